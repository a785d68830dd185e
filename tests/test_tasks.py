import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forethought.tasks import Task, TaskSet

TASKS = TaskSet([Task("a", "Do a."), Task("b", "Do b.", 2.0), Task("ç-😀", "Do ç.", 0.0)])


def test_order_ids_texts_and_weights():
    assert TASKS.ids == ("a", "b", "ç-😀")
    assert TASKS.weights.tolist() == [1.0, 2.0, 0.0]
    assert TASKS.index("ç-😀") == 2
    assert TASKS.indices(["b", "a"]).tolist() == [1, 0]
    assert len(TASKS) == 3
    assert "b" in TASKS


def test_an_unknown_id_names_the_nearest():
    with pytest.raises(KeyError, match=r"unknown task id 'have_4_wod'.*'have_4_wood'"):
        TaskSet([Task("have_4_wood", "x"), Task("zzz", "y")]).index("have_4_wod")


def test_weights_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        TASKS.weights[0] = 3


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -1, 1], "'b' has the weight -1"),
        ([1, np.nan, 1], "'b' has the weight nan"),
        ([0, 0, 0], "sum must be positive"),
        ([1, 1], "one weight for each of 3"),
        (["x", 1, 1], "must be numbers"),
    ],
)
def test_unusable_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        TASKS.with_weights(weights)


def test_unusable_tasks_are_refused():
    with pytest.raises(ValueError, match="at least one"):
        TaskSet([])
    with pytest.raises(ValueError, match="'a' occurs more than once"):
        TaskSet([Task("a", "x"), Task("a", "y")])
    with pytest.raises(ValueError, match="non-empty"):
        TaskSet([Task("", "x")])


@given(st.integers(2, 30), st.floats(0.01, 1.0))
def test_target_share_splits_the_rest_equally(n, share):
    tasks = TaskSet([Task(str(i), "t") for i in range(n)]).with_target("1", share)
    expected = np.full(n, (1 - share) / (n - 1))
    expected[1] = share
    np.testing.assert_allclose(tasks.weights, expected, rtol=1e-12)


def test_target_share_outside_its_range_is_refused():
    for share in (0.0, -1.0, 1.5, float("nan")):
        with pytest.raises(ValueError, match="share"):
            TASKS.with_target("a", share)


def test_restrict_keeps_the_given_order_and_weights():
    assert TASKS.restrict(["b", "a"]).ids == ("b", "a")
    assert TASKS.restrict(["b", "a"]).weights.tolist() == [2.0, 1.0]
    with pytest.raises(KeyError, match="unknown task id 'x'"):
        TASKS.restrict(["x"])


def test_digest_depends_on_ids_and_texts_in_order_but_not_on_weights():
    assert TASKS.digest == TASKS.uniform().digest
    assert TASKS.digest != TASKS.restrict(["b", "a", "ç-😀"]).digest
    assert TaskSet([Task("a", "b")]).digest != TaskSet([Task("b", "a")]).digest


RECORDS = [{"id": "a", "text": "Do a."}, {"id": "ü", "goal": "Do ü.", "weight": 0.5}]


def test_loads_json_yaml_and_csv_alike(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps(RECORDS), encoding="utf-8")
    (tmp_path / "t.yaml").write_text("- {id: a, text: Do a.}\n- {id: ü, goal: Do ü., weight: 0.5}\n", encoding="utf-8")
    (tmp_path / "t.csv").write_text("id,text,weight\na,Do a.,\nü,Do ü.,0.5\n", encoding="utf-8")
    sets = [TaskSet.load(tmp_path / name) for name in ("t.json", "t.yaml", "t.csv")]
    assert sets[0] == sets[1] == sets[2]
    assert sets[0].weights.tolist() == [1.0, 0.5]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.json", "[{", "not a readable task file"),
        ("t.json", '{"id": 1}', "a list of records"),
        ("t.json", '[{"id": "a"}]', "record 0 has the fields"),
        ("t.json", '[{"id": "a", "text": "x", "weigth": 2}]', "weigth"),
        ("t.json", "[3]", "record 0 is 3"),
        ("t.csv", "id,text,weight\na,x,heavy\n", "'a' has the weight 'heavy'"),
        ("t.yaml", "- [", "not a readable task file"),
        ("t.txt", "", "ends in .json"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message) as error:
        TaskSet.load(tmp_path / name)
    assert name in str(error.value)
