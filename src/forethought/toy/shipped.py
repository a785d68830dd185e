"""The tiny domain's task set, hand-made graphs of what helps what, and embeddings."""

import numpy as np

from forethought.embeddings import Embeddings
from forethought.graphs import FeasibilityEvidence, LearningConnectivity
from forethought.tasks import Task, TaskSet
from forethought.toy.goals import GOAL_IDS, GOALS

_HELPS = {
    ("move", "corner-nw"): 0.8,
    ("move", "corner-se"): 0.8,
    ("move", "wood"): 0.8,
    ("move", "lava"): 0.8,
    ("corner-nw", "corner-se"): 0.4,
    ("corner-se", "corner-nw"): 0.4,
    ("corner-nw", "wood-nw"): 0.6,
    ("wood", "wood-nw"): 0.8,
    ("wood", "stone"): 0.8,
    ("stone", "gem"): 0.9,
    ("gem", "gem-se"): 0.9,
    ("corner-se", "gem-se"): 0.5,
}
"""How far learning the first goal helps to learn the second, by hand."""

_WIDTH = 16


def tasks() -> TaskSet:
    """The goals, equally weighted."""
    return TaskSet([Task(name, text) for name, text in GOALS])


def connectivity() -> LearningConnectivity:
    """Hand-made learning connectivity: which goal helps to learn which."""
    weights = np.zeros((len(GOALS), len(GOALS)))
    for (source, target), weight in _HELPS.items():
        weights[GOAL_IDS.index(source), GOAL_IDS.index(target)] = weight
    return LearningConnectivity.from_weights(GOAL_IDS, weights)


def evidence() -> FeasibilityEvidence:
    """Hand-made evidence: success on which goals speaks for which being learnable next; columns sum to 1."""
    weights = np.zeros((len(GOALS), len(GOALS)))
    for (source, target), weight in _HELPS.items():
        weights[GOAL_IDS.index(source), GOAL_IDS.index(target)] = weight
    total = weights.sum(axis=0)
    from_scratch = np.where(total > 0, 0.0, 1.0)
    weights /= np.where(total > 0, total, 1.0)
    return FeasibilityEvidence.from_weights(GOAL_IDS, weights, from_scratch)


def embeddings() -> Embeddings:
    """Unit vectors of the goals' texts: one coordinate per goal, so that no two are alike."""
    vectors = np.eye(len(GOALS), _WIDTH, dtype=np.float32)
    return Embeddings("toy", tuple(text for _, text in GOALS), vectors)
