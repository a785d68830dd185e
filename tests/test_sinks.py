import sys
from types import SimpleNamespace

import pytest

from forethought import sinks
from forethought.sinks import check_sinks, open_sinks


def test_no_name_opens_and_imports_nothing(tmp_path):
    assert open_sinks((), tmp_path, {}, "id") == []
    assert "wandb" not in sys.modules
    assert "tensorboardX" not in sys.modules


def test_an_unknown_name_says_what_is_allowed():
    with pytest.raises(ValueError, match="unknown sink 'mlflow'; allowed are wandb, tensorboard"):
        check_sinks(["mlflow"])


@pytest.mark.parametrize("name", ["wandb", "tensorboard"])
def test_a_missing_package_says_which_command_brings_it(name, monkeypatch):
    monkeypatch.setattr(sinks, "find_spec", lambda module: None)
    with pytest.raises(ValueError, match=rf"{name} needs .* not installed; pip install 'forethought\[{name}\]'"):
        check_sinks([name])


class Recorder(list):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self.append((name, args, kwargs)) or self


def test_wandb_gets_every_number(tmp_path, monkeypatch):
    calls = Recorder()
    monkeypatch.setitem(sys.modules, "wandb", calls)
    monkeypatch.setattr(sinks, "find_spec", lambda module: SimpleNamespace())
    (sink,) = open_sinks(["wandb"], tmp_path, {"seed": 1}, "id")
    sink.log(10, {"success": 0.5})
    sink.close()
    assert [name for name, *_ in calls] == ["init", "log", "finish"]
    assert calls[0][2]["id"] == "id"
    assert calls[0][2]["reinit"] == "create_new"
    assert calls[1] == ("log", ({"success": 0.5},), {"step": 10})


def test_tensorboard_gets_every_number(tmp_path, monkeypatch):
    calls = Recorder()
    monkeypatch.setitem(sys.modules, "tensorboardX", calls)
    monkeypatch.setattr(sinks, "find_spec", lambda module: SimpleNamespace())
    (sink,) = open_sinks(["tensorboard"], tmp_path, {}, "id")
    sink.log(10, {"success": 0.5})
    sink.close()
    assert calls[1:] == [("add_scalar", ("success", 0.5, 10), {}), ("close", (), {})]
