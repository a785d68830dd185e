"""The leaderboard: every fault is named with its line and field, and the project's own file is without."""

import datetime
import json
from pathlib import Path

import numpy as np
import pytest

from forethought.cli import run
from forethought.craftax.shipped import goals
from forethought.evaluation import EvaluationResult
from forethought.leaderboard import (
    Entry,
    differences,
    make_entry,
    read_leaderboard,
    table,
    write_leaderboard,
)

SHIPPED = Path(__file__).parents[1] / "results" / "leaderboard.jsonl"
GOALS = ("have_1_wood", "see_cow")


def result(*successes, episodes=4, ids=GOALS):
    count = np.full(len(ids), episodes)
    return EvaluationResult(ids, count, np.array(successes), *(np.zeros(len(ids), int) for _ in range(3)))


def entry(name="mine", successes=(1, 3), **fields):
    return make_entry(result(*successes), name=name, policy="somewhere", seed=0, episode_limit=64, **fields)


def lines(*changes):
    """Entries as text, one a change of fields (None: the field is left out)."""
    found = []
    for number, change in enumerate(changes):
        record = entry(f"agent {number}").model_dump(mode="json") | change
        found.append(json.dumps({name: value for name, value in record.items() if value != "LEFT OUT"}))
    return "\n".join(found) + "\n"


def test_entries_come_back_as_they_were_best_first(tmp_path):
    trained = {"method": "alp+d+f", "learner": "primitive", "steps": 3_000_000_000, "seed": 2}
    entries = [entry(), entry("bessere ☃", (4, 4), training=trained, note="x")]
    write_leaderboard(entries, tmp_path / "l.jsonl")
    found = read_leaderboard(tmp_path / "l.jsonl")
    assert found == entries[::-1]
    assert [e.mean_success_rate for e in found] == [1.0, 0.5]
    assert found[0].training.steps == 3_000_000_000
    assert found[0].date == datetime.date.today()
    assert not any(e.verified for e in found)


def test_all_goals_go_by_one_word():
    ids = goals().ids
    whole = make_entry(result(*range(256), episodes=255, ids=ids), name="x", policy="y", seed=0, episode_limit=4096)
    assert whole.goals == "all"
    assert whole.goal_ids == ids
    assert whole.mean_success_rate == 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "name: String should have at least 1 character"),
        ({"name": "agent 0"}, "name: 'agent 0' is that of line 1 too"),
        ({"date": "30.11.2026"}, "date: Input should be a valid date"),
        ({"policy": "LEFT OUT"}, "policy: Field required"),
        ({"author": "me"}, "author: Extra inputs are not permitted"),
        ({"verified": "yes"}, "verified: Input should be a valid boolean"),
        ({"verified": 1}, "verified: Input should be a valid boolean"),
        ({"episodes": 4.5}, "episodes: Input should be a valid integer"),
        ({"episodes": True}, "episodes: Input should be a valid integer"),
        ({"episodes": 2}, "successes.see_cow: 3 given; allowed are 0 to 2 episodes"),
        ({"seed": -1}, "seed: Input should be greater than or equal to 0"),
        ({"training": {"method": "alp"}}, "training.learner: Field required"),
        ({"goals": "some"}, "goals"),
        ({"goals": []}, "goals: none given"),
        ({"goals": ["have_1_wood", "have_1_woods"]}, "goals: 'have_1_woods' is not in the benchmark"),
        ({"goals": ["have_1_wood", "have_1_wood"]}, "goals: one is given more than once"),
        ({"goals": "all"}, "successes.have_2_wood: missing"),
        ({"goals": ["have_1_wood"]}, "successes.see_cow: not one of the goals"),
        ({"successes": {"have_1_wood": -1, "see_cow": 3}}, "successes.have_1_wood: -1 given; allowed are 0 to 4"),
        ({"successes": {"have_1_wood": 1.5, "see_cow": 3}}, "successes.have_1_wood: Input should be a valid integer"),
        ({"mean_success_rate": 0.51}, "mean_success_rate: 0.51 given, but the successes make 0.500000"),
        ({"mean_success_rate": float("nan")}, "not JSON|mean_success_rate"),
    ],
)
def test_a_fault_is_named_with_its_line_and_field(tmp_path, capsys, change, message):
    path = tmp_path / "l.jsonl"
    path.write_text(lines({}, change, {}), encoding="utf-8")
    with pytest.raises(ValueError, match=f"l.jsonl, line 2: ({message})"):
        read_leaderboard(path)
    assert run(["leaderboard", str(path)]) == 2
    assert "l.jsonl, line 2: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [("{\n", "line 1: not JSON"), ("[]\n", "line 1: "), ("\n" + lines({}), "line 1: empty"), ("7\n", "line 1: ")],
)
def test_what_is_no_entry_is_named_with_its_line(tmp_path, text, message):
    (tmp_path / "l.jsonl").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_leaderboard(tmp_path / "l.jsonl")
    with pytest.raises(ValueError, match=r"nothing.jsonl: cannot be read: No such file"):
        read_leaderboard(tmp_path / "nothing.jsonl")


def test_an_entry_that_cannot_be_is_not_made():
    with pytest.raises(ValueError, match="name: String should have at least 1 character"):
        entry("")


def test_differences_are_told_goal_by_goal():
    assert differences(entry(), result(1, 3)) == []
    assert differences(entry(), result(1, 2)) == ["see_cow: 3 of 4 in the leaderboard, 2 now"]


def test_the_table_says_what_is_verified():
    text = table([entry(), entry("other").model_copy(update={"verified": True})])
    assert [line.split()[-1] for line in text.splitlines()] == ["verified", "no", "yes"]


def test_a_high_mean_over_few_goals_does_not_come_first(tmp_path):
    ids = goals().ids
    whole = make_entry(result(*[1] * 256, ids=ids), name="all", policy="y", seed=0, episode_limit=4096)
    write_leaderboard([entry("two", (4, 4)), entry("also two", (3, 3)), whole], tmp_path / "l.jsonl")
    found = read_leaderboard(tmp_path / "l.jsonl")
    assert [e.name for e in found] == ["all", "two", "also two"]
    assert [line.split("  ")[0] for line in table(found[::-1]).splitlines()[1:]] == ["all", "two", "also two"]


@pytest.mark.parametrize("command", ["--add", "--verify"])
def test_what_others_add_while_a_policy_is_measured_stays(tmp_path, monkeypatch, command):
    path = tmp_path / "l.jsonl"
    path.write_text(lines({}))

    def measured(*_):
        write_leaderboard([*read_leaderboard(path), entry("other")], path)
        return {"policy": "somewhere"}, result(1, 3)

    monkeypatch.setattr("forethought.cli.leaderboard._measured", measured)
    name = "mine" if command == "--add" else "agent 0"
    assert run(["leaderboard", str(path), command, "random", "--name", name]) == 0
    found = {e.name: e.verified for e in read_leaderboard(path)}
    assert found == {"agent 0": command == "--verify", "other": False} | ({"mine": False} if name == "mine" else {})


def test_two_entries_of_one_name_are_not_written(tmp_path, monkeypatch, capsys):
    path = tmp_path / "l.jsonl"
    with pytest.raises(ValueError, match="'mine' is that of two entries"):
        write_leaderboard([entry(), entry()], path)
    assert not path.exists()

    def measured(*_):
        write_leaderboard([entry()], path)
        return {"policy": "somewhere"}, result(1, 3)

    monkeypatch.setattr("forethought.cli.leaderboard._measured", measured)
    assert run(["leaderboard", str(path), "--add", "random", "--name", "mine"]) == 2
    said = capsys.readouterr().err
    assert "'mine' is that of two entries" in said
    assert 'measured, but not added: {"name":"mine"' in said


def test_an_entry_that_others_changed_meanwhile_is_not_marked(tmp_path, monkeypatch, capsys):
    path = tmp_path / "l.jsonl"
    path.write_text(lines({}))

    def measured(*_):
        path.write_text(lines({"note": "another agent"}))
        return {}, result(1, 3)

    monkeypatch.setattr("forethought.cli.leaderboard._measured", measured)
    assert run(["leaderboard", str(path), "--verify", "random", "--name", "agent 0"]) == 2
    assert "'agent 0' has changed while it was measured" in capsys.readouterr().err
    assert path.read_text() == lines({"note": "another agent"})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--add", "random"], "--name: not set"),
        (["--add", "random", "--verify", "random", "--name", "x"], "one of them at a time"),
        (["--add", "random", "--name", "agent 0"], "there is such an entry already"),
        (["--verify", "random", "--name", "agent 9"], "entries are 'agent 0'"),
        (["--add", "nowhere", "--name", "x"], "nowhere is not a run directory"),
    ],
)
def test_commands_that_cannot_be_done_change_nothing(tmp_path, capsys, arguments, message):
    path = tmp_path / "l.jsonl"
    path.write_text(lines({}))
    assert run(["leaderboard", str(path), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert path.read_text() == lines({})


def test_the_projects_leaderboard_is_sound():
    entries = read_leaderboard(SHIPPED)
    assert any(entry.training is None for entry in entries)
    assert all(isinstance(entry, Entry) for entry in entries)


def test_random_actions_are_what_the_leaderboard_says():
    """Some goals of the first entry, measured again."""
    pytest.importorskip("craftax_native")
    from forethought.benchmark import craftax_domain, evaluate
    from forethought.policies import RandomPolicy

    known = next(entry for entry in read_leaderboard(SHIPPED) if "RandomPolicy" in entry.policy)
    assert known.verified
    chosen = [goal for goal in known.goal_ids if 0 < known.successes[goal] < known.episodes][:2]
    domain = craftax_domain(chosen, embeddings=None, episode_limit=known.episode_limit)
    found = evaluate(RandomPolicy(43), chosen, known.episodes, seed=known.seed, domain=domain, num_envs=64)
    assert len(chosen) == 2
    assert differences(known, found) == []
