"""An altered rule does not pass for the game: the recorded games notice every alteration of a long list."""

from pathlib import Path

import pytest
from conformance.mutations import MUTATIONS, Mutation, alter, notice, notice_all
from conformance.recording import Recording
from conformance.rules import ENGINE, build, copy_sources


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{mutation.file}: {mutation.old.strip()}")
def test_what_is_to_be_altered_is_there_once(mutation: Mutation) -> None:
    text = (ENGINE / "src" / "core" / mutation.file).read_text()
    assert text.count(mutation.old) == 1
    assert mutation.new != mutation.old


def test_an_alteration_of_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    mutation = Mutation("step.hpp", "no such rule", "another")
    copy_sources(tmp_path / "src")
    with pytest.raises(ValueError, match=r"step\.hpp has 0 times, not once, 'no such rule'"):
        alter(mutation, tmp_path / "src")


@pytest.mark.craftax
@pytest.mark.slow
def test_every_alteration_is_noticed(recorded_games: Path) -> None:
    assert len(MUTATIONS) >= 20
    unnoticed = [mutation for mutation, mismatch in notice_all(recorded_games) if mismatch is None]
    assert not unnoticed


@pytest.mark.craftax
@pytest.mark.slow
def test_the_rules_unaltered_pass(recorded_games: Path, tmp_path: Path) -> None:
    # Otherwise the alterations would be noticed for another reason.
    recording = Recording.load(recorded_games)
    assert notice(Mutation("step.hpp", "// One step of the game.", "// The same."), recording, steps=100) is None


def test_sources_that_do_not_compile_are_an_error(tmp_path: Path) -> None:
    copy_sources(tmp_path / "src")
    alter(Mutation("step.hpp", "CRAFTAX_FN void move_player", "CRAFTAX_FN woid move_player"), tmp_path / "src")
    with pytest.raises(RuntimeError, match="woid"):
        build("rules", tmp_path / "src", tmp_path / "rules.so")
