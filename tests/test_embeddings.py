import sys
import types
import warnings

import numpy as np
import pytest

from forethought.embeddings import Embeddings, embed
from forethought.tasks import Task, TaskSet

MADE = Embeddings("m", ["Do a.", "Do ü."], np.array([[1, 0], [0.6, 0.8]]))


def test_vectors_are_found_by_text_not_by_position():
    tasks = TaskSet([Task("u", "Do ü."), Task("a", "Do a.")])
    np.testing.assert_array_equal(MADE.for_tasks(tasks), np.array([[0.6, 0.8], [1, 0]], np.float32))


def test_missing_texts_are_named_by_task():
    with pytest.raises(ValueError, match=r"no vector for the texts of x.*forethought embed"):
        MADE.for_tasks(TaskSet([Task("x", "Do x.")]))


def test_a_file_holds_everything(tmp_path):
    MADE.save(tmp_path / "e.npz")
    loaded = Embeddings.load(tmp_path / "e.npz")
    assert (loaded.model, loaded.texts, loaded.width) == ("m", MADE.texts, 2)
    np.testing.assert_array_equal(loaded.vectors, MADE.vectors)
    assert [path.name for path in tmp_path.iterdir()] == ["e.npz"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 torn", b"text"])
def test_an_unreadable_file_is_named(tmp_path, content):
    path = tmp_path / "e.npz"
    with pytest.raises(ValueError, match="no such embeddings file"):
        Embeddings.load(path)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"e\.npz: not a readable embeddings file"):
        Embeddings.load(path)


def test_unusable_vectors_are_refused():
    with pytest.raises(ValueError, match="as many vectors"):
        Embeddings("m", ["a"], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="'b' has numbers"):
        Embeddings("m", ["a", "b"], np.array([[1, 0], [np.nan, 0]]))
    with pytest.raises(ValueError, match="more than once"):
        Embeddings("m", ["a", "a"], np.eye(2))


def test_vectors_too_close_are_reported():
    close = Embeddings("m", ["a", "b", "c"], np.array([[1, 0], [0, 1], [1, 1e-3]]))
    with pytest.warns(UserWarning, match="'a' and 'c' are closer"):
        close.check()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MADE.check()


@pytest.fixture
def fake_model(monkeypatch):
    seen = []

    class SentenceTransformer:
        def __init__(self, name):
            if name == "missing":
                raise OSError("no such model\nmore")

        def encode(self, texts, convert_to_numpy):
            seen.extend(texts)
            return np.array([[len(text), 4.0, 100.0] for text in texts], np.float32)

    module = types.ModuleType("sentence_transformers")
    module.SentenceTransformer = SentenceTransformer  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    return seen


def test_embed_cuts_then_normalises_and_adds_no_instruction(fake_model):
    made = embed(["abc"], "some/model", 2)
    np.testing.assert_allclose(made.vectors, [[0.6, 0.8]], rtol=1e-6)
    assert fake_model == ["abc"]
    assert made.model == "some/model"
    assert embed(["abc"], "some/model").width == 3


def test_embed_says_what_is_wrong(fake_model, monkeypatch):
    with pytest.raises(ValueError, match=r"dim is 4.*gives 3"):
        embed(["abc"], "some/model", 4)
    with pytest.raises(ValueError, match="dim is 0"):
        embed(["abc"], "some/model", 0)
    with pytest.raises(ValueError, match=r"'missing' cannot be loaded: no such model$"):
        embed(["abc"], "missing")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ValueError, match=r"pip install 'forethought\[embed\]'"):
        embed(["abc"], "some/model")
