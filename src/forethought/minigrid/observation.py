"""A mission's observation as one flat vector: the view one-hot, the compass, and the mission as a bag of words."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from jaxtyping import Float32
from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX

_VERBS = ("go", "to", "pick", "up", "open", "put", "next", "then")
WORDS = (*_VERBS, "red", "blue", "yellow", "purple", "ball", "box", "key", "door")
"""The vocabulary; `the` says nothing."""

_KINDS = ("wall", "door", "key", "ball", "box")
_COLORS = ("red", "blue", "yellow", "purple")
_COLORED = ("door", "key", "ball", "box")


class FlatObservation(gymnasium.ObservationWrapper):
    """Turn MiniGrid's dict of `image`, `direction` and `mission` into one float32 vector of zeros and ones.

    Every cell of the view gives 12 numbers: its kind (5), its colour (4; of what is not a wall), a door's state (3).
    Then come 4 for the direction, and one for each word of the vocabulary: whether it occurs in the mission.

    Args:
        env: an environment with MiniGrid's observations.
        words: the vocabulary.
    """

    def __init__(self, env: gymnasium.Env, words: Sequence[str] = WORDS):
        super().__init__(env)
        self.words = tuple(words)
        view: Any = env.observation_space["image"]  # pyright: ignore[reportIndexIssue]
        size = view.shape[0] * view.shape[1] * _CODES.shape[-1] + 4 + len(self.words)
        self.observation_space = Box(0.0, 1.0, (size,), np.float32)
        self._bag = cache(self.bag_of_words)

    def observation(self, observation: dict[str, Any]) -> Float32[np.ndarray, " feature"]:
        """The vector of an observation."""
        image = observation["image"]
        cells = _CODES[image[..., 0], image[..., 1], image[..., 2]].reshape(-1)
        return np.concatenate([cells, _DIRECTIONS[observation["direction"]], self._bag(observation["mission"])])

    def bag_of_words(self, mission: str) -> Float32[np.ndarray, " word"]:
        """1 for every word of the vocabulary that a mission holds."""
        present = set(mission.replace(",", " ").split())
        return np.array([word in present for word in self.words], np.float32)


def _codes() -> Float32[np.ndarray, "kind color state number"]:
    """Numbers of a cell, by MiniGrid's three codes of it."""
    table = np.zeros((len(OBJECT_TO_IDX), len(COLOR_TO_IDX), 3, len(_KINDS) + len(_COLORS) + 3), np.float32)
    for place, name in enumerate(_KINDS):
        table[OBJECT_TO_IDX[name], ..., place] = 1
    for place, name in enumerate(_COLORS, len(_KINDS)):
        for kind in _COLORED:
            table[OBJECT_TO_IDX[kind], COLOR_TO_IDX[name], :, place] = 1
    for state in range(3):
        table[OBJECT_TO_IDX["door"], :, state, len(_KINDS) + len(_COLORS) + state] = 1
    return table


_CODES = _codes()
_DIRECTIONS = np.eye(4, dtype=np.float32)
