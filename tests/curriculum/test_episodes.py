import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forethought.curriculum import latest_per_environment


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=60), st.integers(1, 6))
def test_only_the_last_k_of_each_environment_count(episodes, k):
    environments, means, counts = latest_per_environment(
        np.array([e for e, _ in episodes], int), [float(s) for _, s in episodes], k
    )
    histories: dict[int, list[bool]] = {}
    for environment, success in episodes:
        histories.setdefault(environment, []).append(success)
    assert environments.tolist() == sorted(histories)
    for environment, mean, count in zip(environments, means, counts, strict=True):
        last = histories[environment][-k:]
        assert count == len(last)
        assert mean == pytest.approx(sum(last) / len(last))


def test_no_episode_gives_nothing():
    assert [array.size for array in latest_per_environment([], [])] == [0, 0, 0]


@pytest.mark.parametrize(
    ("environments", "successes", "k", "message"),
    [
        ([0, 1], [1.0], 5, "shapes"),
        ([0.5], [1.0], 5, "type"),
        ([0], [1.0], 0, "k is 0"),
        ([0], [float("nan")], 5, r"\[0, 1\]"),
        ([0], [1.5], 5, r"\[0, 1\]"),
    ],
)
def test_bad_input_is_refused(environments, successes, k, message):
    with pytest.raises(ValueError, match=message):
        latest_per_environment(environments, successes, k)
