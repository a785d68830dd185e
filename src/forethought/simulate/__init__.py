"""Synthetic students with a known transfer graph, and oracles that know what a student will do.

Drive any curriculum against a student in milliseconds instead of days:

    student = PrerequisiteGrid(10)
    curriculum = Curriculum(
        student.tasks, connectivity=student.connectivity(), feasibility=student.evidence(), method="alp+d+f"
    )
    record = run(student, curriculum, decisions=300)

The oracles are the decision rules of the paper's Section 3, given the truth; `regret` measures by how much a
curriculum falls short of the best one (Eq. 1).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forethought.simulate.driver import Record, run
    from forethought.simulate.grid import PrerequisiteGrid
    from forethought.simulate.optimum import Regret, expected_objective, objective, regret
    from forethought.simulate.oracles import GreedyOracle, LookAhead, Oracle, UniformChoice
    from forethought.simulate.student import KnownStudent, Student
    from forethought.simulate.transfer import TransferStudent

_HOME = {
    "GreedyOracle": "oracles",
    "KnownStudent": "student",
    "LookAhead": "oracles",
    "Oracle": "oracles",
    "PrerequisiteGrid": "grid",
    "Record": "driver",
    "Regret": "optimum",
    "Student": "student",
    "TransferStudent": "transfer",
    "UniformChoice": "oracles",
    "expected_objective": "optimum",
    "objective": "optimum",
    "regret": "optimum",
    "run": "driver",
}

__all__ = [
    "GreedyOracle",
    "KnownStudent",
    "LookAhead",
    "Oracle",
    "PrerequisiteGrid",
    "Record",
    "Regret",
    "Student",
    "TransferStudent",
    "UniformChoice",
    "expected_objective",
    "objective",
    "regret",
    "run",
]


def __getattr__(name: str) -> Any:
    """Load the public names when first used."""
    if name in _HOME:
        return getattr(import_module(f"forethought.simulate.{_HOME[name]}"), name)
    raise AttributeError(f"module 'forethought.simulate' has no attribute {name!r}")
