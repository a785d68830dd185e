import csv
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO

from forethought.minigrid import tasks

EXAMPLE = Path(__file__).parents[2] / "examples" / "babyai.py"


@pytest.fixture
def babyai(monkeypatch):
    spec = importlib.util.spec_from_file_location("babyai", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    for name, value in {"NUM_ENVS": 8, "ROLLOUT": 64, "ITERATION": 512, "EPISODES": 4, "FINAL_EPISODES": 4}.items():
        monkeypatch.setattr(example, name, value)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield example
    torch.set_num_threads(threads)


def test_both_methods_are_compared_in_tables_and_a_figure(babyai, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(babyai, "EVALUATIONS", 1)
    calls = []
    run = babyai.train
    monkeypatch.setattr(babyai, "train", lambda *given: calls.append(given[:2]) or run(*given))
    flags = ["--seeds", "0", "1", "--iterations", "2", "--out", str(tmp_path)]
    babyai.main(["compare", "--methods", "unif", "alp+d+f", *flags])
    assert calls == [("unif", 0), ("alp+d+f", 0), ("unif", 1), ("alp+d+f", 1)]
    with (tmp_path / "evaluations.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 2 * len(tasks())
    assert {row["steps"] for row in rows} == {"0", "1024"}
    assert all(0 <= float(row["success_rate"]) <= 1 for row in rows)
    # The same seed: the same network and the same rooms before anything is learned.
    first = [
        [row["success_rate"] for row in rows if row["steps"] == "0" and row["seed"] == "0"][i::24] for i in range(24)
    ]
    assert all(unif == full for unif, full in first)
    assert (tmp_path / "babyai.svg").stat().st_size > 10_000
    assert "success at the end, alp+d+f minus unif, paired: " in capsys.readouterr().out
    # From the command line, as the example says.
    (tmp_path / "babyai.svg").unlink()
    command = [sys.executable, EXAMPLE, "plot", "--out", tmp_path]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert (tmp_path / "babyai.svg").exists()
    before = (tmp_path / "evaluations.csv").read_bytes()
    babyai.main(["compare", "--methods", "unif", "alp+d+f", *flags])
    assert len(calls) == 4
    assert (tmp_path / "evaluations.csv").read_bytes() == before


def test_a_mission_s_rate_counts_the_first_episodes_of_its_environments(babyai):
    missions = tasks().restrict(["goto_ball", "pickup_box_far"])
    model = PPO("MlpPolicy", babyai.environments(missions, 2), seed=0, device="cpu")
    rates = babyai.success_rates(model, missions, episodes=40, seed=1)
    assert rates[0] > 0.2
    assert rates[1] == 0
    np.testing.assert_array_equal(rates * 40, np.round(rates * 40))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        again = [babyai.success_rates(model, missions, 8, seed) for seed in (1, 2)]
        torch.manual_seed(0)
        np.testing.assert_array_equal(babyai.success_rates(model, missions, 8, 1), again[0])


def test_the_summary_pairs_the_seeds(babyai):
    rates = {("unif", 0): (0.0, 0.5), ("unif", 1): (0.2, 0.7), ("alp", 0): (0.0, 0.6), ("alp", 1): (0.2, 0.9)}
    rates |= {("alp+d+f", 0): (0.0, 0.5), ("alp+d+f", 1): (0.2, 0.6)}
    rows = [
        {"method": method, "seed": seed, "steps": steps, "task": task, "success_rate": rate, "episodes": 4}
        for (method, seed), curve in rates.items()
        for steps, rate in zip((0, 10), curve, strict=True)
        for task in ("a", "b")
    ]
    text = babyai.summary(rows)
    half = 12.706204736 * np.std([0.1, 0.2], ddof=1) / np.sqrt(2)
    assert f"success at the end, alp minus unif, paired: +0.150 +- {half:.3f}" in text
    assert "success at the end, alp+d+f minus alp, paired: -0.200 +- " in text
    assert "success over training, unif: 0.350 +- " in text
    assert "missions above 0.5 at the end, alp minus unif, paired: +1.000" in text
    # The order of the runs in the table does not matter; runs of another length do.
    assert babyai.summary(rows[::-1]) == text
    with pytest.raises(ValueError, match="alp: the runs in the tables were not measured after the same steps"):
        babyai.summary([row for row in rows if row["method"] == "unif"] + rows[10:16])


def test_the_page_gives_the_numbers_of_the_tables(babyai):
    page = (EXAMPLE.parents[1] / "docs" / "babyai.md").read_text(encoding="utf-8").replace("\N{MINUS SIGN}", "-")
    rows = [line.split(" | ")[1:] for line in page.splitlines() if " \N{PLUS-MINUS SIGN} " in line and line[0] == "|"]
    given = [cell.strip(" |") for row in rows for cell in row]
    lines = babyai.summary(babyai.read(babyai.RESULTS / "evaluations.csv")).splitlines()
    found = [re.fullmatch(r"(.*): ([-+]?)(\S+) \+- (\S+)", line).groups() for line in lines]
    digits = [1 if name.startswith("missions") else 3 for name, *_ in found]
    assert given == [
        f"{s}{float(m):.{d}f} \N{PLUS-MINUS SIGN} {float(h):.{d}f}"
        for d, (_, s, m, h) in zip(digits, found, strict=True)
    ]
