import dataclasses

import pytest

from forethought.curriculum import CurriculumConfig
from forethought.curriculum.methods import METHODS, resolve


def test_the_defaults_are_the_papers():
    assert dataclasses.asdict(CurriculumConfig()) == {
        "exponent": 0.5,
        "progress": "absolute",
        "downstream_coefficient": 1.0,
        "max_path_length": 2,
        "path_discount": 0.3,
        "solved_threshold": 0.9,
        "feasibility_threshold": 0.05,
        "smoothing": 0.3,
        "max_observations": 7,
        "lookback": 12,
        "warmup": 16,
        "exploration": 0.2,
        "feasibility_share": 0.5,
        # Of the methods for comparison, those of their authors.
        "rank_temperature": 0.1,
        "staleness_share": 0.1,
        "prerequisite_threshold": 0.5,
        "mastery_power": 6.0,
        "mastery_potential": 0.5,
        "predecessor_share": 0.2,
        "successor_share": 0.05,
        "boring_threshold": 0.5,
        "boring_weight": 0.001,
    }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("exponent", 0.0),
        ("exponent", float("nan")),
        ("downstream_coefficient", -1.0),
        ("downstream_coefficient", float("inf")),
        ("max_path_length", 0),
        ("max_path_length", True),
        ("path_discount", 0.0),
        ("path_discount", 1.1),
        ("solved_threshold", 0.0),
        ("feasibility_threshold", -0.1),
        ("smoothing", 0.0),
        ("max_observations", 1),
        ("lookback", 0),
        ("warmup", -1),
        ("exploration", 1.5),
        ("feasibility_share", -0.5),
        ("rank_temperature", 0.0),
        ("staleness_share", 1.1),
        ("prerequisite_threshold", 0.0),
        ("mastery_power", -6.0),
        ("mastery_potential", 1.5),
        ("predecessor_share", 1.0),
        ("successor_share", float("nan")),
        ("boring_threshold", 0.0),
        ("boring_weight", -0.001),
    ],
)
def test_a_value_out_of_range_is_named(field, value):
    with pytest.raises(ValueError, match=f"{field} is .*allowed"):
        CurriculumConfig(**{field: value})


def test_settings_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CurriculumConfig().warmup = 3  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("connectivity", "feasibility", "name"),
    [(False, False, "alp"), (True, False, "alp+d"), (False, True, "alp+f"), (True, True, "alp+d+f")],
)
def test_no_name_means_the_fullest_method(connectivity, feasibility, name):
    for boring in (False, True):
        found = resolve(None, connectivity=connectivity, feasibility=feasibility, interestingness=boring)
        assert found == (name, METHODS[name])


def test_a_missing_graph_is_named():
    with pytest.raises(ValueError, match=r"'alp\+d' needs the graph connectivity"):
        resolve("alp+d", connectivity=False, feasibility=True)
    with pytest.raises(ValueError, match=r"'alp\+f' needs the graph feasibility"):
        resolve("alp+f", connectivity=True, feasibility=False)
    with pytest.raises(ValueError, match=r"connectivity and feasibility"):
        resolve("perm", connectivity=False, feasibility=False)
    with pytest.raises(ValueError, match=r"'mastering-rate' needs the graph connectivity"):
        resolve("mastering-rate", connectivity=False, feasibility=True)
    with pytest.raises(ValueError, match=r"'omni' needs the graph interestingness"):
        resolve("omni", connectivity=True, feasibility=True)


def test_an_unknown_method_is_named_with_those_allowed():
    with pytest.raises(ValueError, match=r"'ALP'; allowed: unif, target"):
        resolve("ALP", connectivity=True, feasibility=True)
