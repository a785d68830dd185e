"""Alters one rule at a time and asks whether the recorded games notice.

    python -m conformance.mutations games.npz

A comparison that an altered rule passes is worth nothing for that rule. Each alteration names the text that it
replaces, so that a change of the sources that makes it meaningless is an error.
"""

import argparse
import atexit
import functools
import multiprocessing
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from .compare import Mismatch, mismatches
from .recording import Recording
from .rules import RulesAlone, build, copy_sources


class Mutation(NamedTuple):
    """A rule altered: in a file of `engine/src/core`, one text for another."""

    file: str
    old: str
    new: str


MUTATIONS = (
    Mutation("rules.hpp", "kRipeAge = 600", "kRipeAge = 601"),
    Mutation("rules.hpp", "kKillsToClear = 8", "kKillsToClear = 9"),
    Mutation("rules.hpp", "kSpawnTurns = 7", "kSpawnTurns = 6"),
    Mutation("rules.hpp", "kDespawnDistance = 14", "kDespawnDistance = 15"),
    Mutation("rules.hpp", "{2, 0, 0}, {4, 0, 0}, {3, 0, 0}", "{2, 0, 0}, {5, 0, 0}, {3, 0, 0}"),
    Mutation("rules.hpp", "{5, 0, 0}, {4, 3, 3}", "{5, 0, 0}, {4, 3, 2}"),
    Mutation("rules.hpp", "{3, 5, 6, 8, 12, 4, 14, 16}", "{3, 5, 6, 8, 12, 5, 14, 16}"),
    Mutation("rules.hpp", "kNoDefense, {0.9f, 1, 0}", "kNoDefense, {0.9f, 0, 0}"),
    Mutation("rules.hpp", "chest, fountain, fire_tree", "chest, fire_tree"),
    Mutation("rules.hpp", "blocks(grass, sand, path, fire_grass", "blocks(grass, path, fire_grass"),
    Mutation(
        "rules.hpp",
        "kPassiveMovement[kCreatureTypes] = {kLand, kFlying",
        "kPassiveMovement[kCreatureTypes] = {kLand, kLand",
    ),
    Mutation("rules.hpp", "{0.0f, 0.06f", "{0.1f, 0.06f"),
    Mutation("rules.hpp", "    case eat_bat:\n", ""),
    Mutation("step.hpp", "if (state.player.sleeping || state.player.resting)", "if (state.player.sleeping)"),
    Mutation("step.hpp", "player.xp += 1", "player.xp += 2"),
    Mutation("step.hpp", "state.timestep >= rules", "state.timestep > rules"),
    Mutation(
        "step.hpp",
        "std::fma(state.player.health - health_before, 0.1f, static_cast<float>(earned))",
        "(state.player.health - health_before) * 0.1f + static_cast<float>(earned)",
    ),
    Mutation(
        "step.hpp",
        "  detail::move_player(state, action);\n  update_mobs(state, chances);",
        "  update_mobs(state, chances);\n  detail::move_player(state, action);",
    ),
    Mutation("interact.hpp", "{0.3f, 0.3f, 0.15f", "{0.3f, 0.35f, 0.15f"),
    Mutation("interact.hpp", "< 0.25f;", "< 0.3f;"),
    Mutation("interact.hpp", "state.player.floor == 3 || state.player.floor == 4", "state.player.floor == 3"),
    Mutation("interact.hpp", "if (items.pickaxe >= 3)", "if (items.pickaxe >= 2)"),
    Mutation("interact.hpp", "player.food + 4", "player.food + 5"),
    Mutation("interact.hpp", "eaten < kPlants ? eaten : 0].age = 0", "eaten < kPlants ? eaten : 0].age = 1"),
    Mutation("interact.hpp", "  player.thirst = 0;\n", ""),
    Mutation("interact.hpp", "if (block == Block::chest)", "if (in_bounds(cell) && block == Block::chest)"),
    Mutation("interact.hpp", "is_boss_vulnerable(state) && state", "state"),
    Mutation(
        "combat.hpp",
        "std::fma(1.0f - defense.fire, attack.fire, physical)",
        "(1.0f - defense.fire) * attack.fire + physical",
    ),
    Mutation("combat.hpp", "state.fighting_boss() ? 1.5f", "state.fighting_boss() ? 1.25f"),
    Mutation("combat.hpp", "{1, 2, 3, 5, 8}", "{1, 2, 3, 6, 8}"),
    Mutation(
        "combat.hpp", "0.05f * static_cast<float>(player.intelligence", "0.06f * static_cast<float>(player.intelligence"
    ),
    Mutation("combat.hpp", "0.2f * static_cast<float>(player.dexterity", "0.25f * static_cast<float>(player.dexterity"),
    Mutation("combat.hpp", "if (passive.killed && by_hand)", "if (passive.killed)"),
    Mutation(
        "combat.hpp", "if (melee.killed || ranged.killed) ++", "if (melee.killed || ranged.killed || passive.killed) ++"
    ),
    Mutation("craft.hpp", ".wood = 1, .diamond = 3", ".wood = 1, .diamond = 2"),
    Mutation(
        "craft.hpp",
        "items.sword, 3, {.wood = 1, .stone = 1, .coal = 1, .iron = 1}, true",
        "items.sword, 3, {.wood = 1, .stone = 1, .coal = 1, .iron = 1}",
    ),
    Mutation("craft.hpp", "count < kMaxCount", "count <= kMaxCount"),
    Mutation("craft.hpp", "piece >= tier", "piece > tier"),
    Mutation("place.hpp", "if (bare && can_hold_item(block)", "if (bare && !is_solid(block)"),
    Mutation("place.hpp", "Block::crafting_table, items.wood, 2", "Block::crafting_table, items.wood, 1"),
    Mutation("place.hpp", "free || block == Block::water", "free"),
    Mutation("place.hpp", "if (!in_bounds(cell) || is_taken(state, cell)) return;", "if (!in_bounds(cell)) return;"),
    Mutation("light.hpp", "std::fma(-cosine * cosine, cosine, 1.0f)", "1.0f - cosine * cosine * cosine"),
    Mutation("light.hpp", "(1.0f / 300.0f)", "(1.0f / 301.0f)"),
    Mutation("light.hpp", "distance * 0.2f", "distance / 5.0f"),
    Mutation("mobs.hpp", "mob.cooldown = 5", "mob.cooldown = 4"),
    Mutation("mobs.hpp", "distance < 10", "distance <= 10"),
    Mutation("mobs.hpp", "< 0.75f", "< 0.76f"),
    Mutation("mobs.hpp", "sleeping ? 3.5f", "sleeping ? 2.5f"),
    Mutation("mobs.hpp", "distance == 4 || distance == 5", "distance == 4"),
    Mutation("mobs.hpp", "distance <= 3 && !can_enter", "distance <= 2 && !can_enter"),
    Mutation("mobs.hpp", "> 0.85f", "> 0.84f"),
    Mutation("mobs.hpp", "block == Block::furnace || block == Block::crafting_table", "block == Block::furnace"),
    Mutation("mobs.hpp", "if (hits_here) attack = scaled(attack, 0.0f);", ""),
    Mutation("spawn.hpp", "kKillsToClear ? 3 : 1", "kKillsToClear ? 2 : 1"),
    Mutation("spawn.hpp", "detail::Ring{81, detail", "detail::Ring{82, detail"),
    Mutation("spawn.hpp", "hostile == 5 ? Habitat::water", "hostile == 4 ? Habitat::water"),
    Mutation("spawn.hpp", "std::fma(chance.melee_in_the_dark, darkness * darkness, chance.melee)", "chance.melee"),
    Mutation("spawn.hpp", "passive >= 0 && !boss && ", "passive >= 0 && "),
    Mutation("spawn.hpp", "  mobs[0].type = type;\n", ""),
    Mutation("survive.hpp", "awake * effort, 25, player.food", "awake * effort, 24, player.food"),
    Mutation("survive.hpp", "0.125f * static_cast", "0.1f * static_cast"),
    Mutation("survive.hpp", "player.fatigue < -10", "player.fatigue < -11"),
    Mutation("survive.hpp", "player.food <= 0 || player.drink <= 0", "player.food <= 0"),
    Mutation("survive.hpp", "player.recover < -15", "player.recover < -16"),
    Mutation(
        "survive.hpp", "0.25f * static_cast<float>(player.intelligence", "0.2f * static_cast<float>(player.intelligence"
    ),
    Mutation("items.hpp", "player.energy -= 3", "player.energy -= 2"),
    Mutation("items.hpp", "player.mana < 9", "player.mana < 8"),
    Mutation("items.hpp", "player.armour_enchantments[piece] != enchantment", "true"),
    Mutation("items.hpp", "ice = !player.learned_spells[0] && uniform", "ice = uniform"),
    Mutation("items.hpp", "attribute >= kMaxAttribute", "attribute > kMaxAttribute"),
    Mutation("random.hpp", "  if (multiplier != 0) offset +=", "  if (false) offset +="),
    Mutation("random.hpp", "(bits >> 9)", "(bits >> 8 & 0x7FFFFF)"),
    Mutation("chances.hpp", "mobs = child(mobs, 1);", "mobs = child(mobs, 0);"),
)


def alter(mutation: Mutation, sources: Path) -> None:
    """Alter a rule in a copy of the sources.

    Raises:
        ValueError: The text to replace is not there exactly once.
    """
    file = sources / "core" / mutation.file
    text = file.read_text()
    if text.count(mutation.old) != 1:
        raise ValueError(f"{mutation.file} has {text.count(mutation.old)} times, not once, {mutation.old!r}")
    file.write_text(text.replace(mutation.old, mutation.new))


def notice(mutation: Mutation, recording: Recording, steps: int | None = None) -> Mismatch | None:
    """The first difference that an altered rule makes in recorded games, if any."""
    with tempfile.TemporaryDirectory() as folder:
        sources, rules = Path(folder, "src"), Path(folder, "rules.so")
        copy_sources(sources)
        alter(mutation, sources)
        build("rules", sources, rules)
        games = RulesAlone(rules, _exchange(), recording.num_envs, recording.max_timesteps)
        # States are looked at before each renewal and now and then.
        return next(mismatches(recording, games, steps, every=5), None)


def notice_all(path: Path, steps: int | None = None, processes: int = 2) -> Iterator[tuple[Mutation, Mismatch | None]]:
    """Each alteration with the first difference that it makes."""
    # Not forked, as the process may have threads of JAX's.
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        yield from zip(
            MUTATIONS, pool.map(functools.partial(_notice_in_file, path=path, steps=steps), MUTATIONS), strict=True
        )


def _notice_in_file(mutation: Mutation, path: Path, steps: int | None) -> Mismatch | None:
    return notice(mutation, _load(path), steps)


@functools.cache
def _load(path: Path) -> Recording:
    return Recording.load(path)


@functools.cache
def _exchange() -> Path:
    # No rule has to do with it, so that it is built once for all of them.
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    copy_sources(folder / "src")
    build("exchange", folder / "src", folder / "exchange.so")
    return folder / "exchange.so"


def main() -> None:
    """Try all alterations, and fail if one goes unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--steps", type=int)
    args = parser.parse_args()
    unnoticed = 0
    for mutation, mismatch in notice_all(args.path, args.steps):
        unnoticed += mismatch is None
        print(
            f"{mutation.file}: {mutation.old.strip()!r} -> {mutation.new.strip()!r}\n    {mismatch or 'UNNOTICED'}",
            flush=True,
        )
    print(f"{len(MUTATIONS) - unnoticed} of {len(MUTATIONS)} alterations noticed")
    raise SystemExit(unnoticed > 0)


if __name__ == "__main__":
    main()
