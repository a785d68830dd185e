"""The doctor tells what a bug report needs."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from forethought import devices
from forethought.cli import run
from forethought.config import ConfigError
from forethought.doctor import data_digests, examine


def test_it_names_versions_device_cache_and_data(capsys):
    assert run(["doctor"]) == 0
    text = capsys.readouterr().out
    for name in ("python", "jax", "device", "compilation cache", "disk here", "goals.json"):
        assert f"\n{name}" in f"\n{text}"
    assert [name for name, _ in examine() if f"\n{name}  " not in f"\n{text}"] == [], "no gap before its value"
    assert dict(examine())["numpy"][0].isdigit()


def test_it_says_what_plays_craftax(monkeypatch):
    monkeypatch.setitem(sys.modules, "craftax_native", SimpleNamespace(HAS_FFI=True))
    assert dict(examine())["plays Craftax with"] == "the fast engine"
    monkeypatch.setitem(sys.modules, "craftax_native", SimpleNamespace(HAS_FFI=False))
    assert dict(examine())["plays Craftax with"].startswith("JAX: the fast engine was built without jaxlib; pip")
    monkeypatch.setitem(sys.modules, "craftax_native", None)
    assert dict(examine())["plays Craftax with"].startswith("JAX: the fast engine is not installed; pip install")


def test_the_goals_hash_is_that_of_the_file():
    digests = dict(data_digests())
    assert len(digests["goals.json"]) == 64


def test_a_gpu_that_jaxlib_cannot_use_gives_a_hint(monkeypatch):
    monkeypatch.setattr(devices.shutil, "which", lambda name: "/usr/bin/nvidia-smi")
    assert "pip install 'forethought[cuda13]'" in str(devices.gpu_hint())


def test_the_environment_variable_wins_over_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    assert devices.cache_directory() == tmp_path
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert devices.cache_directory() == tmp_path / "forethought" / "jax"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert devices.cache_directory() == Path.home() / ".cache" / "forethought" / "jax"


def test_a_missing_gpu_is_an_error():
    import jax

    if jax.default_backend() != "cpu":
        pytest.skip("this machine has an accelerator")
    with pytest.raises(ConfigError, match="device: 'gpu' given, but JAX finds no GPU"):
        devices.prepare("gpu")
    assert devices.prepare("auto").startswith("cpu (")
