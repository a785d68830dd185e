"""What happened in recorded games, so that a test can say which rules they exercised."""

from collections import Counter

import numpy as np

from .fields import CREATURES, FLOORS, PROJECTILES, SIZE, Fields
from .names import ACHIEVEMENTS, ACTIONS, BLOCKS, Action
from .recording import Changes


class Coverage:
    """Counts events; each is a word or a few, such as "action do" or "block tree to grass"."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()

    def add(self, before: Fields, actions: np.ndarray, after: Fields, done: np.ndarray, changes: Changes) -> None:
        """Count what happened in one step of all environments; `changes` lead from `before` to `after`."""
        awake = ~before["is_sleeping"] & ~before["is_resting"]
        self._count("action {}", np.bincount(actions[awake], minlength=len(ACTIONS)), ACTIONS)
        earned = after["achievements"] & ~before["achievements"]
        self._count("achievement {}", earned.sum(axis=0), ACHIEVEMENTS)
        self._add_floors(before, after)
        self._add_blocks(before, changes)
        self._add_creatures(before, after)
        self._add_player(before, actions, after, awake)
        self._tally("game over", done)

    def to_json(self) -> dict[str, int]:
        """Events and how often each happened, sorted."""
        return dict(sorted(self.events.items()))

    def _tally(self, event: str, happened: np.ndarray) -> None:
        count = int(np.count_nonzero(happened))
        if count:
            self.events[event] += count

    def _count(self, event: str, counts: np.ndarray, names: tuple[str, ...]) -> None:
        for index in np.flatnonzero(counts):
            self.events[event.format(names[index])] += int(counts[index])

    def _add_floors(self, before: Fields, after: Fields) -> None:
        old, new = before["player_level"], after["player_level"]
        for floor in range(9):
            self._tally(f"step on floor {floor}", new == floor)
            self._tally(f"down from floor {floor}", (old == floor) & (new == floor + 1))
            self._tally(f"up from floor {floor}", (old == floor) & (new == floor - 1))

    def _add_blocks(self, before: Fields, changes: Changes) -> None:
        where, new = changes.of("map")
        old = before["map"].reshape(-1)[where]
        for pair, count in Counter(zip(old.tolist(), new.tolist(), strict=True)).items():
            self.events[f"block {BLOCKS[pair[0]]} to {BLOCKS[pair[1]]}"] += count
        env, floor = where // (FLOORS * SIZE * SIZE), where // (SIZE * SIZE) % FLOORS
        ripe = (floor == 0) & (new == BLOCKS.index("ripe_plant"))
        self._tally("plant ripens while the player is away", ripe & (before["player_level"][env] != 0))
        self._tally("torch placed", changes.of("item_map")[1] == 1)

    def _add_creatures(self, before: Fields, after: Fields) -> None:
        every = np.arange(len(after["map"]))
        floor = after["player_level"]
        same = before["player_level"] == floor
        kills = (after["monsters_killed"] - before["monsters_killed"]).sum(axis=1)
        self._tally("two monsters killed at once", kills > 1)
        for mobs in (*CREATURES, *PROJECTILES):
            old = {
                part: before[f"{mobs}.{part}"][every, floor]
                for part in ("mask", "type_id", "health", "attack_cooldown")
            }
            new = {part: after[f"{mobs}.{part}"][every, floor] for part in old}
            self._count(
                f"{mobs} of type {{}}", np.bincount(new["type_id"][new["mask"]], minlength=8), tuple("01234567")
            )
            appeared, gone = ~old["mask"] & new["mask"], old["mask"] & ~new["mask"] & same[:, None]
            self._tally(f"{mobs} appear", appeared)
            if mobs in CREATURES:
                dead = gone & (new["health"] <= 0)
                self._count(
                    f"{mobs} killed of type {{}}", np.bincount(old["type_id"][dead], minlength=8), tuple("01234567")
                )
                self._tally(f"{mobs} despawn", gone & (new["health"] > 0))
                hurt = old["mask"] & new["mask"] & (new["health"] < old["health"]) & same[:, None]
                self._count(
                    f"{mobs} hurt of type {{}}", np.bincount(old["type_id"][hurt], minlength=8), tuple("01234567")
                )
                if mobs != "passive_mobs":
                    attack = new["mask"] & (new["attack_cooldown"] > old["attack_cooldown"])
                    types = np.bincount(new["type_id"][attack], minlength=8)
                    self._count(f"{mobs} attack of type {{}}", types, tuple("01234567"))
            else:
                self._tally(f"{mobs} end", gone)

    def _add_player(self, before: Fields, actions: np.ndarray, after: Fields, awake: np.ndarray) -> None:
        drunk = before["inventory.potions"] - after["inventory.potions"] == 1
        drunk &= ((actions >= Action.drink_potion_red) & (actions <= Action.drink_potion_yellow) & awake)[:, None]
        effects = before["potion_mapping"][drunk]
        self._count("potion of effect {}", np.bincount(effects, minlength=6), tuple("012345"))
        for name in ("sleeping", "resting"):
            old, new = before[f"is_{name}"], after[f"is_{name}"]
            self._tally(f"begin {name}", ~old & new)
            self._tally(f"end {name}", old & ~new)
            self._tally(f"{name} while hurt", old & ~new & (after["player_health"] < before["player_health"]))
        light = after["light_level"]
        self._tally("day", light > 0.9)
        self._tally("night", light < 0.1)
        progress = after["boss_progress"] > before["boss_progress"]
        for round_ in range(8):
            self._tally(f"boss round {round_} won", progress & (before["boss_progress"] == round_))
        fighting = after["player_level"] == 8
        self._tally("boss wave", fighting & (before["boss_timesteps_to_spawn_this_round"] >= 1))
        for floor in range(9):
            self._tally(
                f"first chest of floor {floor}", after["chests_opened"][:, floor] & ~before["chests_opened"][:, floor]
            )
        for name in ("dexterity", "strength", "intelligence"):
            old, new = before[f"player_{name}"], after[f"player_{name}"]
            for level in range(2, 6):
                self._tally(f"{name} {level}", (new > old) & (new == level))
        looting = (actions == Action.do) & awake
        for name in ("pickaxe", "sword", "bow"):
            found = looting & (after[f"inventory.{name}"] > before[f"inventory.{name}"])
            self._tally(f"{name} found in a chest", found)
            for tier in range(1, 5):
                made = after[f"inventory.{name}"] == tier
                self._tally(f"{name} {tier} found in a chest", found & made)
        for name in ("torches", "coal", "iron", "diamond", "sapphire", "ruby", "arrows", "books"):
            chests = looting & (after["achievements"][:, ACHIEVEMENTS.index("open_chest")])
            self._tally(f"{name} in hand by do", chests & (after[f"inventory.{name}"] > before[f"inventory.{name}"]))
        for thing in ("sword", "bow"):
            old, new = before[f"{thing}_enchantment"], after[f"{thing}_enchantment"]
            for kind, word in ((1, "fire"), (2, "ice")):
                self._tally(f"{thing} enchanted with {word}", (old != new) & (new == kind))
        old, new = before["armour_enchantments"], after["armour_enchantments"]
        for kind, word in ((1, "fire"), (2, "ice")):
            self._tally(f"armour enchanted with {word}", (old != new) & (new == kind))
            self._tally(f"armour enchanted anew with {word}", (old != new) & (old != 0) & (new == kind))
        for index, name in enumerate(("fireball", "iceball")):
            learned = after["learned_spells"][:, index] & ~before["learned_spells"][:, index]
            self._tally(f"{name} learned", learned)
        both = before["learned_spells"].all(axis=1)
        self._tally("book read with both spells known", both & (after["inventory.books"] < before["inventory.books"]))
        self._tally("sapling planted", (after["growing_plants_mask"] & ~before["growing_plants_mask"]).any(axis=1))
        full = before["growing_plants_mask"].all(axis=1)
        planted = (actions == Action.place_plant) & (after["inventory.sapling"] < before["inventory.sapling"])
        self._tally("sapling planted beyond the tenth", full & planted)
        for name in ("food", "drink", "energy"):
            self._tally(f"{name} falls to nothing", (after[f"player_{name}"] == 0) & (before[f"player_{name}"] > 0))
        self._tally("death", (after["player_health"] <= 0) & (before["player_health"] > 0))
