import dataclasses
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from forethought import Curriculum, CurriculumConfig, Task, TaskSet  # noqa: E402
from forethought.adapters import jax as fx  # noqa: E402
from forethought.graphs import FeasibilityEvidence, LearningConnectivity  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:after .* iterations no task:UserWarning")

SIZE, TARGET, ENTRIES = 10, 7, 16
FIELDS = ("success_rate", "learning_progress", "downstream_potential", "feasibility", "probabilities")
CONFIGS = [
    CurriculumConfig(warmup=2),
    CurriculumConfig(
        warmup=0,
        exponent=1.3,
        progress="positive",
        downstream_coefficient=0.4,
        max_path_length=5,
        path_discount=0.9,
        solved_threshold=0.6,
        feasibility_threshold=0.4,
        smoothing=0.5,
        max_observations=3,
        lookback=4,
        exploration=0.5,
        feasibility_share=0.2,
    ),
]


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def arguments(method, config=CONFIGS[0], size=SIZE, weights=None, seed=0):
    rng = np.random.default_rng(seed)
    tasks = TaskSet([Task(f"t{number}", f"Do thing {number}") for number in range(size)])
    connections = rng.random((size, size)) * (rng.random((size, size)) < 0.3)
    np.fill_diagonal(connections, 0)
    evidence = rng.random((size + 1, size)) * (rng.random((size + 1, size)) < 0.4)
    np.fill_diagonal(evidence, 0)
    evidence[size] += 0.1
    evidence /= evidence.sum(axis=0)
    if weights is None:
        weights = np.eye(size)[TARGET] if method == "target" else rng.random(size) * (rng.random(size) < 0.7) + 1e-3
    return tasks, {
        "connectivity": LearningConnectivity.from_weights(tasks.ids, sparse.csr_array(connections)),
        "feasibility": FeasibilityEvidence.from_weights(tasks.ids, sparse.csr_array(evidence[:size]), evidence[size]),
        "method": method,
        "weights": weights,
        "seed": seed,
        "config": config,
    }


def histories(iterations, seed=1, size=SIZE):
    """Entries that repeat tasks, leave others out, count none, and often put a rate exactly on a threshold."""
    rng = np.random.default_rng(seed)
    for iteration in range(iterations):
        tasks = rng.integers(0, size, ENTRIES)
        level = np.clip(np.sin(iteration / 5 + np.arange(size)) * 1.2, 0, 1)[tasks]
        episodes = rng.integers(0, 6, ENTRIES)
        rates = rng.binomial(10, level) / 10
        exact = rng.random(ENTRIES) < 0.3
        yield tasks, np.where(exact, rng.choice([0.05, 0.1, 0.4, 0.6, 0.9], ENTRIES), rates), episodes


def believed(state):
    return {name: np.asarray(getattr(state, name)) for name in FIELDS[:-1]} | {"probabilities": fx.probabilities(state)}


@pytest.mark.parametrize("config", CONFIGS, ids=["short warm-up", "all else"])
@pytest.mark.parametrize("method", fx.PAPER_METHODS)
def test_equals_the_numpy_curriculum_on_random_histories(method, config):
    tasks, given = arguments(method, config)
    for seed in range(3):
        reference, state = Curriculum(tasks, **given), fx.init(tasks, **given)
        for entries in histories(40, seed):
            reference.update(*entries)
            state = fx.update(state, *entries)
            for name in FIELDS[:-1]:
                np.testing.assert_allclose(getattr(state, name), getattr(reference, name), rtol=0, atol=1e-12)
            assert np.array_equal(state.success_rate, reference.success_rate)
            np.testing.assert_allclose(fx.probabilities(state), reference.probabilities, rtol=0, atol=1e-9)
        assert int(state.iteration) == reference.iteration == 40


def test_the_histories_cross_every_threshold_both_ways():
    tasks, given = arguments("alp+d+f", CONFIGS[1])
    reference = Curriculum(tasks, **given)
    rates = []
    for entries in histories(40):
        reference.update(*entries)
        rates.append(reference.success_rate)
    for threshold in (0.6, 0.4):
        above = np.array(rates) >= threshold
        assert (above[1:] & ~above[:-1]).sum() > 10
        assert (~above[1:] & above[:-1]).sum() > 10


@pytest.mark.parametrize("method", fx.PAPER_METHODS)
def test_before_anything_is_seen_it_decides_as_numpy_does(method):
    tasks, given = arguments(method)
    reference, state = Curriculum(tasks, **given), fx.init(tasks, **given)
    for name in FIELDS[:-1]:
        np.testing.assert_allclose(getattr(state, name), getattr(reference, name), rtol=0, atol=1e-12)
    np.testing.assert_allclose(fx.probabilities(state), reference.probabilities, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("weights", "size"), [([1.0], 1), ([0, 2], 2), (np.eye(SIZE)[TARGET], SIZE), (np.ones(SIZE, np.float32), SIZE)]
)
def test_odd_weights_and_sizes(weights, size):
    tasks, given = arguments("alp+d+f", CONFIGS[1], size, weights)
    reference, state = Curriculum(tasks, **given), fx.init(tasks, **given)
    for entries in histories(12, size=size):
        reference.update(*entries)
        state = fx.update(state, *entries)
    np.testing.assert_allclose(fx.probabilities(state), reference.probabilities, rtol=0, atol=1e-9)


def test_no_edges_and_no_graphs():
    tasks, given = arguments(None)
    empty = LearningConnectivity.from_weights(tasks.ids, sparse.csr_array((SIZE, SIZE)))
    for graphs in ({"connectivity": empty}, {"feasibility": given["feasibility"]}, {}):
        reference, state = Curriculum(tasks, **graphs), fx.init(tasks, **graphs)
        for entries in histories(20):
            reference.update(*entries)
            state = fx.update(state, *entries)
        np.testing.assert_allclose(fx.probabilities(state), reference.probabilities, rtol=0, atol=1e-9)


class TestTransformations:
    def run(self, state, tasks, successes, episodes):
        for entries in zip(tasks, successes, episodes, strict=True):
            state = fx.update(state, *entries)
        return state

    @pytest.fixture
    def start(self):
        tasks, given = arguments("alp+d+f")
        return fx.init(tasks, **given)

    @pytest.fixture
    def history(self):
        return tuple(np.array(column) for column in zip(*histories(25), strict=True))

    def test_scan_equals_a_loop(self, start, history):
        @jax.jit
        def scanned(state):
            return jax.lax.scan(lambda s, e: (fx.update(s, *e), fx.probabilities(s)), state, history)

        state, shares = scanned(start)
        expected = believed(self.run(start, *history))
        for name, value in believed(state).items():
            np.testing.assert_allclose(value, expected[name], rtol=0, atol=1e-12)
        assert shares.shape == (25, SIZE)

    def test_vmap_equals_one_by_one(self, start, history):
        lanes = [tuple(np.array(c) for c in zip(*histories(25, seed), strict=True)) for seed in range(3)]
        stacked = tuple(np.stack(columns, axis=1) for columns in zip(*lanes, strict=True))

        @jax.jit
        def all_at_once(state):
            states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (3, *leaf.shape)), state)
            return jax.lax.scan(lambda s, e: (jax.vmap(fx.update)(s, *e), None), states, stacked)[0]

        states = all_at_once(start)
        for lane, history in enumerate(lanes):
            mine = jax.tree.map(lambda leaf: leaf[lane], states)  # noqa: B023
            expected = believed(self.run(start, *history))
            for name, value in believed(mine).items():
                np.testing.assert_allclose(value, expected[name], rtol=0, atol=1e-12)

    def test_a_whole_loop_is_compiled_once_for_equal_curricula(self, start, history):
        traces = []

        @jax.jit
        def loop(state, key):
            traces.append(1)

            def iteration(state, key):
                chosen = fx.sample(state, key, 8, {"t3": 2})
                return fx.update(state, chosen, (chosen % 3 == 0) * 0.5), chosen

            return jax.lax.scan(iteration, state, jax.random.split(key, 30))

        tasks, given = arguments("alp+d+f")
        state, chosen = loop(start, jax.random.key(0))
        loop(fx.init(tasks, **given), jax.random.key(1))
        assert len(traces) == 1
        assert (chosen[:, :2] == 3).all()
        loop(fx.init(tasks, **given | {"weights": np.ones(SIZE)}), jax.random.key(1))
        assert len(traces) == 2
        assert int(state.iteration) == 30

    def test_the_state_is_frozen_and_stays_as_it_was(self, start, history):
        before = believed(start)
        after = self.run(start, *history)
        with pytest.raises(dataclasses.FrozenInstanceError):
            start.iteration = 3
        for name, value in believed(start).items():
            assert np.array_equal(value, before[name])
        leaves, structure = jax.tree.flatten(after)
        assert jax.tree.structure(start) == structure
        assert [leaf.dtype for leaf in leaves] == [leaf.dtype for leaf in jax.tree.leaves(start)]

    def test_single_precision_stays_near_and_takes_rounding_for_no_progress(self):
        with jax.enable_x64(False):
            tasks, given = arguments("alp+d+f", CurriculumConfig(warmup=2, solved_threshold=0.87))
            reference, state = Curriculum(tasks, **given), fx.init(tasks, **given)
            assert state.success_rate.dtype == jnp.float32
            for entries in histories(40):
                reference.update(*entries)
                state = fx.update(state, *entries)
            np.testing.assert_allclose(fx.probabilities(state), reference.probabilities, rtol=0, atol=1e-3)
            still = fx.init(tasks, method="alp")
            for _ in range(12):
                still = fx.update(still, np.arange(SIZE), np.linspace(0.1, 0.7, SIZE))
            still = fx.update(still, [], [])
            assert np.array_equal(still.learning_progress, np.zeros(SIZE))


class TestEntries:
    def test_their_order_does_not_matter(self):
        tasks, given = arguments("alp+d+f")
        a = b = fx.init(tasks, **given)
        rng = np.random.default_rng(0)
        for entries in histories(10):
            order = rng.permutation(ENTRIES)
            a, b = fx.update(a, *entries), fx.update(b, *(column[order] for column in entries))
        assert all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))

    def test_lists_are_taken_inside_of_compiled_code_as_outside(self):
        state = fx.init(arguments("alp")[0], method="alp")
        for entries in (([3, 4], [0.5, True]), ([3], [0.5], [2]), ([], [])):
            outside, inside = fx.update(state, *entries), jax.jit(fx.update)(state, *entries)
            assert all(np.array_equal(x, y) for x, y in zip(*map(jax.tree.leaves, (outside, inside)), strict=True))

    def test_what_is_not_observed_keeps_its_estimates(self):
        state = fx.update(fx.init(arguments("alp")[0], method="alp"), [0, 1], [0.5, 0.6])
        later = fx.update(fx.update(state, [2, 0], [1.0, 1.0], [3, 0]), [], [])
        assert later.success_rate[:3].tolist() == [0.5, 0.6, 1]
        assert later.observations[:3].tolist() == [1, 1, 1]
        assert int(later.iteration) == 3

    @pytest.mark.parametrize(
        ("entries", "words"),
        [
            (([0, SIZE], [1, 1]), r"task_indices\[1\] is 10; allowed: 0 to 9"),
            (([-1], [1]), r"task_indices\[0\] is -1"),
            (([0], [np.nan]), r"successes\[0\] is nan; allowed: 0 to 1"),
            (([0], [1.01]), r"successes\[0\] is 1.01"),
            (([0], [1], [-1]), r"episodes\[0\] is -1"),
            (([0.0], [1]), "task_indices has type float64"),
            (([0], [1], [1.0]), "episodes has type float64"),
            (([0, 1], [1]), "shapes"),
            (([[0]], [[1]]), "shapes"),
        ],
    )
    def test_nonsense_is_refused_outside_of_compiled_code(self, entries, words):
        state = fx.init(arguments("alp")[0], method="alp")
        with pytest.raises(ValueError, match=words):
            fx.update(state, *entries)

    def test_nonsense_is_ignored_inside_of_it(self):
        state = fx.init(arguments("alp")[0], method="alp")
        good = fx.update(state, [3, 4], [0.5, 1.0], [1, 2])
        bad = jax.jit(fx.update)(
            state, jnp.array([-1, 3, 4, SIZE, 5, 6, 7]), jnp.array([1, 0.5, 1, 1, np.nan, 1.5, 1]),
            jnp.array([1, 1, 2, 1, 1, 1, -2]),
        )  # fmt: skip
        assert all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(good), jax.tree.leaves(bad), strict=True))
        with pytest.raises(ValueError, match="float64"):
            jax.jit(fx.update)(state, jnp.array([0.0]), jnp.array([1.0]))


class TestSampling:
    def test_draws_follow_the_probabilities(self):
        tasks, given = arguments("alp+d+f")
        state = fx.init(tasks, **given)
        for entries in histories(20):
            state = fx.update(state, *entries)
        q = np.asarray(fx.probabilities(state))
        counts = np.bincount(fx.sample(state, jax.random.key(0), 20_000), minlength=SIZE)
        assert np.ptp(q) > 0.05
        assert ((counts - 20_000 * q) ** 2 / (20_000 * q)).sum() < 33.7, "chi-square, 9 degrees, p = 0.0001"
        again = fx.sample(state, jax.random.key(0), 20_000)
        assert np.array_equal(np.bincount(again, minlength=SIZE), counts)

    def test_fixed_slots_come_first_and_not_for_target(self):
        tasks, given = arguments("target")
        key = jax.random.key(1)
        assert fx.sample(fx.init(tasks, **given), key, 5, {"t2": 3}).tolist() == [TARGET] * 5
        chosen = fx.sample(fx.init(tasks, method="unif"), key, 50, {"t2": 3, 5: 1})
        assert chosen[:4].tolist() == [2, 2, 2, 5]
        assert len(set(chosen[4:].tolist())) > 5

    def test_requests_out_of_range_are_refused(self):
        state = fx.init(arguments("unif")[0], method="unif")
        for k, fixed in ((0, None), (-1, None), (2, {0: 3}), (2, {0: -1}), (2, {SIZE: 1}), (2, {-1: 1})):
            with pytest.raises(ValueError, match="allowed"):
                fx.sample(state, jax.random.key(0), k, fixed)
        with pytest.raises(KeyError, match="nothing"):
            fx.sample(state, jax.random.key(0), 2, {"nothing": 1})


def test_other_methods_and_missing_graphs_are_refused():
    tasks, _ = arguments("alp")
    with pytest.raises(ValueError, match="method is 'omni'"):
        fx.init(tasks, method="omni")
    with pytest.raises(ValueError, match="needs the graph connectivity"):
        fx.init(tasks, method="alp+d")
    with pytest.raises(ValueError, match="weights"):
        fx.init(tasks, weights=np.zeros(SIZE))


def test_the_example_reaches_the_last_link_only_by_foresight():
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "jax_loop.py"))
    results = example["compare"](methods=("unif", "alp+d+f"), runs=2)
    assert results["unif"][0][:, -1].max() < 0.1
    assert results["alp+d+f"][0][:, -1].min() > 0.9
