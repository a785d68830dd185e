import json

import numpy as np
import pytest

from forethought import checkpoint

ARRAYS = {
    "learner": {
        "weights": {"0": np.arange(6, dtype=np.float32).reshape(2, 3)},
        "count": np.int32(7),
        "none": {},
    },
    "curriculum": {"rate": np.array([np.nan, 0.25]), "scalar": np.array(True)},
}
INFO = {"steps": 3_000_000_000, "curriculum": {"rng": 2**127 + 1, "method": "alp+d+f"}}


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return np.asarray(a).tobytes() == b.tobytes() and np.asarray(a).dtype == b.dtype and np.shape(a) == b.shape


def test_a_round_trip_is_exact(tmp_path):
    checkpoint.save(tmp_path, 12, ARRAYS, INFO)
    found = checkpoint.load_latest(tmp_path)
    assert found is not None
    assert found.iteration == 12
    assert found.info == INFO
    assert same(ARRAYS, found.arrays)


def test_no_checkpoint_is_none(tmp_path):
    assert checkpoint.load_latest(tmp_path / "missing") is None
    assert checkpoint.load_latest(tmp_path) is None


def test_the_last_two_stay(tmp_path):
    for iteration in (1, 9, 10, 11):
        checkpoint.save(tmp_path, iteration, ARRAYS, INFO)
    assert checkpoint.iterations(tmp_path) == [10, 11]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["10", "11"]


def test_saving_an_earlier_iteration_removes_the_abandoned_future(tmp_path):
    for iteration in (1, 2, 9, 5):
        checkpoint.save(tmp_path, iteration, ARRAYS, INFO)
    assert checkpoint.iterations(tmp_path) == [2, 5]


def test_saving_the_same_iteration_again_replaces_it(tmp_path):
    checkpoint.save(tmp_path, 3, ARRAYS, {"steps": 1})
    checkpoint.save(tmp_path, 3, ARRAYS, {"steps": 2})
    assert checkpoint.load_latest(tmp_path).info == {"steps": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["3"]


@pytest.mark.parametrize("file", ["state.npz", "info.json"])
def test_any_flipped_bit_is_found_and_the_previous_one_used(tmp_path, file):
    checkpoint.save(tmp_path, 1, ARRAYS, INFO)
    folder = checkpoint.save(tmp_path, 2, ARRAYS, INFO)
    whole = (folder / file).read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 40)):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        (folder / file).write_bytes(damaged)
        lines = []
        found = checkpoint.load_latest(tmp_path, warn=lines.append)
        if lines:
            assert found.iteration == 1
            assert "damaged" in lines[0]
            assert str(folder) in lines[0]
        else:  # a flip that JSON does not see, such as one space for another kind of space
            assert file == "info.json"
            assert same(ARRAYS, found.arrays)
            assert found.info == INFO


@pytest.mark.parametrize("file", ["state.npz", "info.json"])
@pytest.mark.parametrize("how", ["cut", "empty", "missing"])
def test_a_partial_checkpoint_is_passed_over(tmp_path, file, how, capsys):
    checkpoint.save(tmp_path, 1, ARRAYS, INFO)
    path = checkpoint.save(tmp_path, 2, ARRAYS, INFO) / file
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[: 40 if how == "cut" else 0])
    assert checkpoint.load_latest(tmp_path).iteration == 1
    assert "damaged" in capsys.readouterr().err


def test_a_crash_while_writing_leaves_the_earlier_ones(tmp_path, monkeypatch):
    checkpoint.save(tmp_path, 1, ARRAYS, INFO)

    def crash(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint.json, "dump", crash)
    with pytest.raises(OSError, match="No space"):
        checkpoint.save(tmp_path, 2, ARRAYS, INFO)
    monkeypatch.undo()
    assert checkpoint.load_latest(tmp_path).iteration == 1
    checkpoint.save(tmp_path, 2, ARRAYS, INFO)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]


def test_only_damaged_checkpoints_is_an_error(tmp_path):
    folder = checkpoint.save(tmp_path, 4, ARRAYS, INFO)
    (folder / "state.npz").write_bytes(b"")
    with pytest.raises(ValueError, match=r"every checkpoint .* is damaged: 4"):
        checkpoint.load_latest(tmp_path, warn=lambda line: None)


def test_a_checkpoint_from_another_folder_is_refused(tmp_path):
    checkpoint.save(tmp_path, 1, ARRAYS, INFO)
    checkpoint.save(tmp_path, 2, ARRAYS, INFO).rename(tmp_path / "3")
    lines = []
    assert checkpoint.load_latest(tmp_path, warn=lines.append).iteration == 1
    assert "iteration 2" in lines[0]


@pytest.mark.parametrize("bad", [np.array([{}]), [1, 2], 3, None])
def test_what_is_no_array_of_numbers_is_refused_by_name(tmp_path, bad):
    with pytest.raises(ValueError, match="a/b is"):
        checkpoint.save(tmp_path, 1, {"a": {"b": bad}}, {})
    assert not list(tmp_path.iterdir())


def test_keys_with_a_slash_are_refused(tmp_path):
    with pytest.raises(ValueError, match="'a/b'"):
        checkpoint.save(tmp_path, 1, {"a/b": np.zeros(1)}, {})


def test_info_is_readable_json(tmp_path):
    folder = checkpoint.save(tmp_path, 1, ARRAYS, INFO)
    assert json.loads((folder / "info.json").read_text())["info"] == INFO
