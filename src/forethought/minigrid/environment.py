"""The missions as a Gymnasium environment that takes tasks, made of MiniGrid's BabyAI parts."""

from collections.abc import Callable, Sequence
from operator import index
from types import SimpleNamespace
from typing import Any, SupportsIndex

import numpy as np
from gymnasium.spaces import Discrete
from jaxtyping import UInt8
from minigrid.core.actions import Actions
from minigrid.core.roomgrid import RoomGrid
from minigrid.core.world_object import Ball, Box, Key, WorldObj
from minigrid.envs.babyai.core.roomgrid_level import RoomGridLevel
from minigrid.envs.babyai.core.verifier import (
    ActionInstr,
    BeforeInstr,
    GoToInstr,
    Instr,
    ObjDesc,
    OpenInstr,
    PickupInstr,
    PutNextInstr,
)

from forethought.minigrid.levels import DOOR, FAR_DOOR, LEVELS, Level, Step
from forethought.tasks import TaskSet

EPISODE_LIMIT = 80
"""Steps after which an episode ends; in 60 episodes of every mission the library's bot needed 50 at most."""

_THINGS: dict[str, Callable[[str], WorldObj]] = {"ball": Ball, "box": Box, "key": Key}
_WALL = (2, 5, 0)
"""How MiniGrid encodes a wall, and whatever lies outside of the world."""
_EMPTY = (1, 0, 0)
_TURNS = (
    lambda view: view.transpose(1, 0, 2)[:, ::-1],
    lambda view: view[::-1, ::-1],
    lambda view: view.transpose(1, 0, 2)[::-1],
    lambda view: view,
)
"""What turns a part of the map until the agent looks up, by its heading (east, south, west, north)."""


class MissionEnv(RoomGridLevel):
    """BabyAI missions in three rooms in a row; which one, `set_task` says.

    Observations, actions and rules are MiniGrid's: a dict of `image` (7x7x3, what lies ahead of the agent, seen through
    walls), `direction` (0 to 3) and `mission` (text). The reward is 1 for success, else 0, and `info["is_success"]`
    tells it too. An episode ends with success or after `max_steps` steps.

    Args:
        tasks: whose numbers `set_task` takes; ids are those of `LEVELS`. Default: all of them, in their order.
        task: the first task's number.
        max_steps: steps after which an episode ends, at least 1.
        **kwargs: of `minigrid.minigrid_env.MiniGridEnv`, such as `render_mode`.

    Raises:
        ValueError: a task is not among `LEVELS`, or `max_steps` is below 1.
    """

    def __init__(
        self, tasks: TaskSet | None = None, task: SupportsIndex = 0, max_steps: int = EPISODE_LIMIT, **kwargs: Any
    ) -> None:
        ids = tuple(LEVELS) if tasks is None else tasks.ids
        unknown = [id for id in ids if id not in LEVELS]
        if unknown:
            raise ValueError(f"task {unknown[0]!r} is no mission; allowed: {', '.join(LEVELS)}")
        if max_steps < 1:
            raise ValueError(f"max_steps is {max_steps}; allowed: at least 1")
        self.levels: tuple[Level, ...] = tuple(LEVELS[id] for id in ids)
        self.set_task(task)
        self._codes: UInt8[np.ndarray, "x y 3"] = np.zeros((0, 0, 3), np.uint8)
        self._touched: list[int] | None = None
        self._laden = False
        super().__init__(room_size=6, num_rows=1, num_cols=3, max_steps=max_steps, **kwargs)
        self.see_through_walls = True
        # Without "done", which does nothing here.
        self.action_space = Discrete(6)
        # Plain numbers: the many look-ups in an enumeration would take a fifth of every step.
        self.actions = SimpleNamespace(**{action.name: action.value for action in Actions})

    # ------------------------------------------------------------------ what a curriculum needs

    def set_task(self, task: SupportsIndex) -> None:
        """Take another task from the next reset on.

        Raises:
            ValueError: there is no task of that number.
        """
        number = index(task)
        if not 0 <= number < len(self.levels):
            raise ValueError(f"task is {number}; allowed: 0 to {len(self.levels) - 1}")
        self.task = number

    # ------------------------------------------------------------------ episodes

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict]:
        """Set up the task's rooms afresh."""
        self.carrying = None
        observation, info = super().reset(seed=seed, options=options)
        return observation, info

    def step(self, action: SupportsIndex) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Act; `info["is_success"]` says whether the mission is accomplished."""
        self._touched = self.front_pos.tolist()
        self._laden = self.carrying is not None
        observation, reward, terminated, truncated, info = super().step(index(action))
        success = terminated and float(reward) > 0
        return observation, float(success), terminated, truncated and not terminated, {**info, "is_success": success}

    def update_objs_poss(self, instr: Instr | None = None) -> None:
        """Note where things lie after a drop; not if there was nothing to drop, which changes nothing."""
        if self._laden:
            super().update_objs_poss(instr)

    def gen_obs(self) -> dict[str, Any]:
        """MiniGrid's observation, from an encoded map that is kept up to date: some ten times as fast."""
        if not self.see_through_walls:
            return super().gen_obs()
        return {"image": self._view(), "direction": self.agent_dir, "mission": self.mission}

    def _gen_grid(self, width: int, height: int) -> None:
        level = self.levels[self.task]
        while True:
            RoomGrid._gen_grid(self, width, height)
            self._furnish(level)
            self.instrs = _instruction(level.steps)
            if self.check_objs_reachable(raise_exc=False) and not self._accomplished():
                break
        self.surface = self.mission = self.instrs.surface(self)
        self._touched = None

    def _furnish(self, level: Level) -> None:
        for room, name, state in ((0, DOOR, level.door), (1, FAR_DOOR, level.far_door)):
            door, _ = self.add_door(room, 0, 0, name.split()[0], state == "locked")
            door.is_open = state == "open"
        self.place_agent(0, 0)
        for room, names in enumerate((level.here, level.middle, level.far)):
            for name in names:
                color, kind = name.split()
                self.place_in_room(room, 0, _THINGS[kind](color))

    def _accomplished(self) -> bool:
        """Whether things that are to be put together lie together already."""
        if not isinstance(self.instrs, PutNextInstr):
            return False
        self.instrs.reset_verifier(self)
        return self.instrs.objs_next()

    # ------------------------------------------------------------------ the view

    def _view(self) -> UInt8[np.ndarray, "7 7 3"]:
        size = self.agent_view_size
        if self._touched is None:
            margin = ((size, size), (size, size), (0, 0))
            self._codes = np.pad(self.grid.encode(), margin)
            outside = np.ones(self._codes.shape[:2], bool)
            outside[size:-size, size:-size] = False
            self._codes[outside] = _WALL
        else:
            x, y = self._touched
            thing = self.grid.get(x, y)
            self._codes[x + size, y + size] = _EMPTY if thing is None else thing.encode()
        left, top, right, bottom = (edge + size for edge in self.get_view_exts())
        view = _TURNS[self.agent_dir](self._codes[left:right, top:bottom]).copy()
        view[size // 2, size - 1] = self.carrying.encode() if self.carrying else _EMPTY
        return view


def _instruction(steps: Sequence[Step]) -> Instr:
    first, *rest = (_step(*step) for step in steps)
    return BeforeInstr(first, *rest) if rest else first  # pyright: ignore[reportArgumentType]


def _step(verb: str, *things: str) -> ActionInstr:
    descriptions = [ObjDesc(thing.split()[1], thing.split()[0]) for thing in things]
    verbs = {"go to": GoToInstr, "pick up": PickupInstr, "open": OpenInstr, "put": PutNextInstr}
    return verbs[verb](*descriptions)
