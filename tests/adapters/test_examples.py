import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def _example(name):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def test_gymnasium_vector():
    train = _example("gymnasium_vector")["train"]
    uniform, ours = (train(method, steps=4000) for method in ("unif", "alp+d+f"))
    assert uniform.method == "unif"
    # Steps that reset an environment do not count.
    assert 100 < ours.iteration < 4000 * 8 // 256
    assert ours.success_rate.sum() > uniform.success_rate.sum() > 1


def test_stable_baselines3(tmp_path):
    ours = _example("sb3_ppo")["train"](steps=2048, folder=tmp_path)
    assert ours.iteration == 4
    assert ours.success_rate[0] > 0.2
    assert {path.name for path in tmp_path.iterdir()} == {"model.zip", "curriculum.npz"}


@pytest.mark.slow
def test_rllib():
    command = [sys.executable, str(EXAMPLES / "rllib.py"), "--iterations", "2"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "  2 success" in result.stdout
