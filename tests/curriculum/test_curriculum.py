import json
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse

from forethought.curriculum import METHODS, Curriculum, CurriculumConfig
from forethought.graphs import FeasibilityEvidence, Interestingness, LearningConnectivity
from forethought.tasks import Task, TaskSet

SIZE = 12
TARGET = 9
SHORT = CurriculumConfig(warmup=2)

pytestmark = pytest.mark.filterwarnings("ignore:after .* iterations no task:UserWarning")


def make_tasks(size=SIZE):
    return TaskSet([Task(f"t{number}", f"Do thing {number}") for number in range(size)])


def make_graphs(tasks, seed=0):
    rng = np.random.default_rng(seed)
    size = len(tasks)
    connections = rng.random((size, size)) * (rng.random((size, size)) < 0.3)
    np.fill_diagonal(connections, 0)
    evidence = rng.random((size + 1, size)) * (rng.random((size + 1, size)) < 0.3)
    np.fill_diagonal(evidence, 0)
    evidence[size] += 0.1
    evidence /= evidence.sum(axis=0)
    return (
        LearningConnectivity.from_weights(tasks.ids, sparse.csr_array(connections)),
        FeasibilityEvidence.from_weights(tasks.ids, sparse.csr_array(evidence[:size]), evidence[size]),
    )


def make_boring(tasks, seed=4):
    judged = np.random.default_rng(seed).random((len(tasks), len(tasks))) < 0.7
    return Interestingness.from_judgments(tasks.ids, judged)


def make(method, *, tasks=None, weights=None, seed=0, config=SHORT):
    tasks = tasks or make_tasks()
    if weights is None:
        weights = np.eye(len(tasks))[TARGET] if method == "target" else np.ones(len(tasks))
    connectivity, feasibility = make_graphs(tasks)
    return Curriculum(
        tasks,
        connectivity=connectivity,
        feasibility=feasibility,
        interestingness=make_boring(tasks),
        method=method,
        weights=weights,
        seed=seed,
        config=config,
    )


def drive(curriculum, iterations, seed=1, k=16):
    """Learn something everywhere, forget now and then, and cross the solved threshold both ways."""
    rng = np.random.default_rng([seed, curriculum.iteration])
    drawn = []
    for _ in range(iterations):
        chosen = curriculum.sample(k, fixed={TARGET: 2})
        drawn.append(chosen)
        level = np.clip(np.sin(curriculum.iteration / 6 + np.arange(SIZE)) * 1.2, 0, 1)
        curriculum.update(chosen, (rng.random(k) < level[chosen]).astype(float))
    return np.array(drawn)


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


FORESEEN = ("alp+f", "alp+d+f", "perm", "mastering-rate")
"""Methods whose graphs send the learner to tasks that were never observed."""


@pytest.mark.parametrize("method", METHODS)
class TestEveryMethod:
    def test_probabilities_are_a_distribution_with_the_uniform_share(self, method):
        curriculum = make(method)
        uniform = {"unif": 1.0, "target": 0.0}.get(method, 0.1 if METHODS[method].feasibility else 0.2)
        for _ in range(40):
            drive(curriculum, 1)
            q = curriculum.probabilities
            assert np.isfinite(q).all()
            assert q.sum() == pytest.approx(1, abs=1e-12)
            assert q.min() >= uniform / SIZE - 1e-12

    def test_an_empty_curriculum_is_uniform_unless_told_a_target(self, method):
        expected = np.eye(SIZE)[TARGET] if method == "target" else np.full(SIZE, 1 / SIZE)
        curriculum = make(method)
        assert curriculum.probabilities == pytest.approx(expected)
        for _ in range(5):
            curriculum.update([], [])
        assert curriculum.iteration == 5
        if method not in FORESEEN:
            assert curriculum.probabilities == pytest.approx(expected)

    def test_the_seed_decides_everything(self, method):
        assert np.array_equal(drive(make(method), 12), drive(make(method), 12))
        if method != "target":
            assert not np.array_equal(drive(make(method), 12), drive(make(method, seed=1), 12))

    def test_a_resumed_run_equals_an_uninterrupted_one(self, method):
        curriculum = make(method)
        drive(curriculum, 23)
        state = curriculum.state_dict()
        straight = drive(curriculum, 20), curriculum.state_dict(), curriculum.probabilities

        resumed = make(method, seed=99)
        drive(resumed, 5, seed=3)
        resumed.load_state_dict(state)
        again = drive(resumed, 20), resumed.state_dict(), resumed.probabilities
        assert np.array_equal(straight[0], again[0])
        assert same(straight[1], again[1])
        assert np.array_equal(straight[2], again[2])
        assert np.array_equal(curriculum.downstream_potential, resumed.downstream_potential)
        assert np.array_equal(curriculum.feasibility, resumed.feasibility)

    def test_the_state_survives_files(self, method, tmp_path):
        curriculum = make(method)
        drive(curriculum, 20)
        state = curriculum.state_dict()
        assert all(isinstance(value, int | float | str | np.ndarray) for value in state.values())
        np.savez(tmp_path / "state.npz", **state)
        with np.load(tmp_path / "state.npz") as loaded:
            resumed = make(method)
            resumed.load_state_dict(dict(loaded))
        assert same(resumed.state_dict(), state)
        scalars = {name: value for name, value in state.items() if not isinstance(value, np.ndarray)}
        assert json.loads(json.dumps(scalars)) == scalars

    def test_the_order_of_entries_does_not_matter(self, method):
        rng = np.random.default_rng(3)
        a, b = make(method), make(method)
        for _ in range(6):
            tasks, rates = rng.integers(0, SIZE, 40), rng.random(40)
            episodes = rng.integers(0, 6, 40)
            order = rng.permutation(40)
            a.update(tasks, rates, episodes)
            b.update(tasks[order], rates[order], episodes[order])
        assert same(a.state_dict(), b.state_dict())
        assert np.array_equal(a.probabilities, b.probabilities)

    def test_what_is_not_observed_keeps_its_estimates(self, method):
        curriculum = make(method)
        curriculum.update([0, 1], [0.5, 0.6])
        before = curriculum.success_rate, curriculum.learning_progress
        for _ in range(5):
            curriculum.update([2, 0], [1.0, 1.0], [3, 0])
        assert np.array_equal(curriculum.success_rate[:2], before[0][:2])
        assert np.array_equal(curriculum.learning_progress[:2], before[1][:2])

    @pytest.mark.parametrize("alone", [True, False])
    def test_a_task_that_never_reports_never_gains(self, method, alone):
        curriculum = make(method, weights=np.eye(SIZE)[TARGET] if alone or method == "target" else None)
        for _ in range(40):
            chosen = curriculum.sample(16)
            chosen = chosen[chosen != 4]
            curriculum.update(chosen, np.full(chosen.size, 0.5))
            if method not in FORESEEN:
                assert curriculum.probabilities[4] <= 1 / SIZE + 1e-12
        assert curriculum.success_rate[4] == 0
        assert curriculum.learning_progress[4] == 0

    def test_fixed_slots_come_first_from_the_first_iteration(self, method):
        curriculum = make(method)
        chosen = curriculum.sample(16, fixed={"t3": 4, 5: 1})
        assert chosen.shape == (16,)
        assert chosen.dtype == np.int64
        assert chosen[:5].tolist() == ([TARGET] * 5 if method == "target" else [3, 3, 3, 3, 5])

    def test_draws_follow_the_probabilities(self, method):
        curriculum = make(method)
        drive(curriculum, 20)
        counts = np.bincount(curriculum.sample(20_000), minlength=SIZE)
        q = curriculum.probabilities
        deviation = np.abs(counts - 20_000 * q) / np.sqrt(20_000 * np.maximum(q * (1 - q), 1e-9))
        assert deviation[q > 0].max() < 5 or method == "target"
        assert counts[q == 0].sum() == 0

    def test_bad_input_changes_nothing(self, method):
        curriculum = make(method)
        drive(curriculum, 10)
        before = curriculum.state_dict()
        for tasks, rates, episodes in (
            ([-1], [0.5], None),
            ([SIZE], [0.5], None),
            ([0, 1], [0.5, float("nan")], None),
            ([0], [1.01], None),
            ([0], [-0.01], None),
            ([0, 1], [0.5], None),
            ([[0], [1]], [[0.5], [0.5]], None),
            ([0], [0.5], [-1]),
            ([0], [0.5], [1, 2]),
            ([0], [0.5], [1.5]),
            ([0.5], [0.5], None),
        ):
            with pytest.raises(ValueError, match="allowed"):
                curriculum.update(tasks, rates, episodes)
            assert same(curriculum.state_dict(), before)

    def test_explained_parts_add_up(self, method):
        curriculum = make(method)
        drive(curriculum, 20)
        for task in range(SIZE):
            terms = curriculum.explain(task)
            parts = [value for name, value in terms.items() if name.endswith("_probability")]
            assert sum(parts) == pytest.approx(terms["probability"])
            assert terms == curriculum.explain(f"t{task}")

    def test_metrics_are_finite_numbers(self, method):
        curriculum = make(method)
        for _ in range(5):
            metrics = curriculum.metrics()
            assert all(isinstance(value, float) and np.isfinite(value) for value in metrics.values())
            drive(curriculum, 1)

    def test_a_long_run_leaves_the_process_alone(self, method):
        np.random.seed(7)  # noqa: NPY002
        before = np.random.get_state(legacy=False)  # noqa: NPY002
        errors = np.geterr()
        curriculum = make(method)
        rng = np.random.default_rng(0)
        for _ in range(400):
            chosen = curriculum.sample(4)
            curriculum.update(chosen, rng.random(4))
        after = np.random.get_state(legacy=False)  # noqa: NPY002
        assert json.dumps(before, default=str) == json.dumps(after, default=str)
        assert np.geterr() == errors


def test_one_decision_by_hand():
    # Two iterations: t0 goes 0.4 -> 0.8, t1 stays at 0; t2 is never seen. Only t2 counts; t0 -> t2 weighs 0.5.
    tasks = make_tasks(3)
    connections, evidence = np.zeros((3, 3)), np.zeros((3, 3))
    connections[0, 2] = 0.5
    evidence[0, 2] = 1.0
    curriculum = Curriculum(
        tasks.with_target("t2"),
        connectivity=LearningConnectivity.from_weights(tasks.ids, sparse.csr_array(connections)),
        feasibility=FeasibilityEvidence.from_weights(tasks.ids, sparse.csr_array(evidence), np.array([1.0, 1.0, 0.0])),
        config=CurriculumConfig(warmup=0),
    )
    assert curriculum.method == "alp+d+f"
    curriculum.update([0, 1], [0.4, 0.0])
    curriculum.update([0, 1], [0.8, 0.0])
    assert curriculum.success_rate == pytest.approx([0.7 * 0.4 + 0.3 * 0.8, 0, 0])
    assert curriculum.learning_progress == pytest.approx([0.4, 0, 0])
    assert curriculum.downstream_potential == pytest.approx([0.3 * 0.5, 0, 0])
    assert curriculum.feasibility == pytest.approx([1, 1, 0.52])
    # Progress: t0 alone. Feasibility: t1 and t2 are active; w-bar = 1/2, D-bar = 0; only t2 is worth anything.
    assert curriculum.probabilities == pytest.approx([0.8 + 0.1 / 3, 0.1 / 3, 0.1 + 0.1 / 3])


@pytest.mark.parametrize("method", ["alp", "alp+d", "alp+f", "alp+d+f", "i-diff", "learnability"])
def test_probabilities_equal_the_papers_formulas(method):
    rng = np.random.default_rng(8)
    weights = rng.random(SIZE) * (rng.random(SIZE) < 0.8)
    curriculum = make(method, weights=weights)
    tasks = curriculum.tasks
    connectivity, evidence = make_graphs(tasks)
    drive(curriculum, 40)
    p, lp = curriculum.success_rate, curriculum.learning_progress
    c = connectivity.weights.toarray() * (p < 0.9) * 0.3
    best = c.copy()
    for s in range(SIZE):
        for t in range(SIZE):
            best[s, t] = max(best[s, t], *(c[s, u] * c[u, t] for u in range(SIZE)))
    np.fill_diagonal(best, 0)
    d = best @ weights
    f = evidence.from_scratch + p @ evidence.weights.toarray()

    def normalised(score):
        return score / score.sum() if score.sum() > 0 else np.full(SIZE, 1 / SIZE)

    def valued(signal):
        if "+d" not in method:
            return signal * weights
        active = signal > 0
        w_bar, d_bar = weights[active].mean(), d[active].mean()
        return signal * (weights / w_bar + d / max(d_bar, w_bar))

    uniform = np.full(SIZE, 1 / SIZE)
    rate_alone = {"i-diff": (p >= 0.1) & (p <= 0.9), "learnability": p * (1 - p)}
    lead = rate_alone[method] * weights if method in rate_alone else valued(np.sqrt(np.abs(lp)))
    expected = 0.8 * normalised(lead)
    if "+f" in method:
        expected += 0.1 * normalised(valued((p <= 0.05) * f)) + 0.1 * uniform
    else:
        expected += 0.2 * uniform
    assert curriculum.probabilities == pytest.approx(expected, abs=1e-12)


def test_entries_of_one_task_are_pooled_by_episodes():
    curriculum = make("alp")
    curriculum.update([3, 3, 3, 4], [1.0, 0.0, 0.5, 0.9], [1, 5, 2, 0])
    assert curriculum.success_rate[3] == pytest.approx(2 / 8)
    assert curriculum.success_rate[4] == 0
    once = make("alp")
    once.update([3], [2 / 8])
    assert np.array_equal(once.learning_progress, curriculum.learning_progress)


def test_fractional_rates_and_booleans_are_kept():
    curriculum = make("alp")
    curriculum.update(np.array([0, 1]), np.array([0.9, 0.25], np.float32))
    assert curriculum.success_rate[:2] == pytest.approx([0.9, 0.25], abs=1e-7)
    curriculum.update([2], [True])
    assert curriculum.success_rate[2] == 1


def test_warmup_lasts_sixteen_iterations():
    curriculum = make("alp", config=CurriculumConfig())
    for iteration in range(17):
        uniform = np.allclose(curriculum.probabilities, 1 / SIZE)
        assert uniform == (iteration < 16)
        assert curriculum.sample(8).shape == (8,)
        curriculum.update([0], [iteration / 20])


def test_permutation_renames_the_tasks_of_the_connectivity_alone():
    curriculum, plain = make("perm"), make("alp+d+f")
    sigma = curriculum.state_dict()["permutation"]
    assert sorted(sigma) == list(range(SIZE))
    # C'(s, t) = C(sigma s, sigma t), so with uniform weights D'(s) = D(sigma s).
    assert curriculum.downstream_potential == pytest.approx(plain.downstream_potential[sigma])
    assert np.array_equal(curriculum.feasibility, plain.feasibility)
    assert not np.array_equal(sigma, make("perm", seed=1).state_dict()["permutation"])


def test_paired_methods_share_their_warmup_draws():
    draws = [make(method, seed=5).sample(32) for method in METHODS if method != "target"]
    assert all(np.array_equal(draws[0], other) for other in draws[1:])


def test_target_needs_one_target():
    with pytest.raises(ValueError, match="exactly one task"):
        make("target", weights=np.ones(SIZE))


def test_single_target_progress_without_foresight_goes_to_the_target_only():
    curriculum = make("alp", weights=np.eye(SIZE)[TARGET])
    for level in (0.1, 0.3, 0.5):
        curriculum.update([0, 1], [level, level])
    assert curriculum.probabilities == pytest.approx(np.full(SIZE, 1 / SIZE))
    curriculum.update([TARGET], [0.2])
    assert curriculum.probabilities[TARGET] == pytest.approx(0.8 + 0.2 / SIZE)


def test_a_task_that_gets_worse_is_raised_again_unless_only_gains_count():
    for config, raised in (
        (CurriculumConfig(warmup=0, progress="absolute"), True),
        (CurriculumConfig(warmup=0, progress="positive"), False),
    ):
        curriculum = make("alp", config=config)
        for level in [1.0] * 14 + [0.4, 0.2]:
            curriculum.update([0, 1], [level, 1.0])
        assert (curriculum.probabilities[0] > 0.5) == raised


@pytest.mark.parametrize(
    ("method", "part"),
    [("i-diff", "intermediate"), ("alp", "progress"), ("omni", "progress"), ("learnability", "learnability")],
)
def test_where_no_task_is_left_sampling_is_uniform_and_the_metrics_say_so(method, part):
    curriculum = make(method, config=CurriculumConfig(warmup=0))
    for outcomes in (np.zeros(SIZE), np.ones(SIZE)):
        for _ in range(20):
            curriculum.update(np.arange(SIZE), outcomes)
        assert curriculum.probabilities == pytest.approx(np.full(SIZE, 1 / SIZE), abs=1e-3)
    for _ in range(80):
        curriculum.update(np.arange(SIZE), np.zeros(SIZE))
    assert curriculum.metrics()[f"{part}_fell_back"] == 1
    curriculum.update([3], [0.5])
    assert curriculum.metrics()[f"{part}_fell_back"] == 0
    assert curriculum.probabilities[3] > 0.5


@pytest.mark.parametrize("method", [name for name, row in METHODS.items() if row.adaptive and name not in FORESEEN])
def test_tasks_that_are_all_mastered_differ_by_no_rounding(method):
    """A moving average comes to rest a few roundings below 1, or at 1, by where it came from."""
    curriculum = make(method, config=CurriculumConfig(warmup=0))
    curriculum.update(np.arange(SIZE), np.linspace(0, 1, SIZE))
    for _ in range(300):
        curriculum.update(np.arange(SIZE), np.ones(SIZE))
    assert 0 < np.ptp(curriculum.success_rate) < 1e-12
    assert np.ptp(curriculum.probabilities) < 1e-12


def test_target_share_weights_reach_the_scores():
    tasks = make_tasks().with_target("t9", share=0.5)
    assert tasks.weights[TARGET] == pytest.approx(0.5)
    assert tasks.weights.sum() == pytest.approx(1)
    curriculum = Curriculum(tasks, config=CurriculumConfig(warmup=0))
    curriculum.update([0, TARGET], [0.5, 0.5])
    ratio = (curriculum.probabilities[TARGET] - 0.2 / SIZE) / (curriculum.probabilities[0] - 0.2 / SIZE)
    assert ratio == pytest.approx(0.5 / (0.5 / 11))


def test_float32_and_whole_weights_are_accepted():
    for dtype in (np.float32, np.int64):
        curriculum = make("alp", weights=np.ones(SIZE, dtype))
        drive(curriculum, 20)
        assert curriculum.probabilities.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    "weights",
    [np.zeros(SIZE), -np.ones(SIZE), np.ones(SIZE - 1), np.full(SIZE, np.nan), np.ones((SIZE, 1))],
)
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(ValueError, match="weights"):
        make("alp", weights=weights)


def test_graphs_are_matched_by_id():
    tasks = make_tasks()
    connectivity, feasibility = make_graphs(tasks)
    shuffled = TaskSet([tasks[int(i)] for i in np.random.default_rng(0).permutation(SIZE)])
    a = Curriculum(tasks, connectivity=connectivity, feasibility=feasibility)
    b = Curriculum(shuffled, connectivity=connectivity, feasibility=feasibility)
    back = [shuffled.index(id) for id in tasks.ids]
    assert b.downstream_potential[back] == pytest.approx(a.downstream_potential)
    assert b.feasibility[back] == pytest.approx(a.feasibility)


def test_graphs_over_other_tasks_are_refused_whatever_the_method():
    connectivity, feasibility = make_graphs(make_tasks(SIZE - 1))
    with pytest.raises(ValueError, match="t11"):
        Curriculum(make_tasks(), method="unif", connectivity=connectivity)
    with pytest.raises(ValueError, match="t11"):
        Curriculum(make_tasks(), method="unif", feasibility=feasibility)


def test_a_bad_request_to_sample_draws_nothing():
    curriculum = make("alp")
    before = curriculum.state_dict()
    for k, fixed in ((0, None), (-1, None), (2, {0: 3}), (2, {0: -1}), (2, {SIZE: 1}), (2, {-1: 1})):
        with pytest.raises(ValueError, match="allowed"):
            curriculum.sample(k, fixed)
    with pytest.raises(KeyError, match="nothing"):
        curriculum.sample(2, {"nothing": 1})
    assert same(curriculum.state_dict(), before)


def test_names_of_any_script_round_trip():
    tasks = TaskSet([Task("собрать-дерево", "x"), Task("🪵", "y"), Task("two words", "z")])
    curriculum = Curriculum(tasks, seed=2)
    curriculum.update(curriculum.sample(4, fixed={"🪵": 2}), [1, 0, 1, 0])
    again = Curriculum(tasks)
    again.load_state_dict(curriculum.state_dict())
    assert again.explain("🪵")["task"] == "🪵"
    assert np.array_equal(again.sample(9), curriculum.sample(9))


def test_a_foreign_state_is_refused_and_changes_nothing():
    curriculum = make("alp+d")
    drive(curriculum, 5)
    before = curriculum.state_dict()
    others = {
        "tasks": make("alp+d", tasks=TaskSet([Task(f"u{i}", "x") for i in range(SIZE)])),
        "method": make("alp+f"),
        "config": make("alp+d", config=CurriculumConfig(warmup=3)),
    }
    for name, other in others.items():
        with pytest.raises(ValueError, match=f"other {name}"):
            curriculum.load_state_dict(other.state_dict())
    broken = [
        before | {"version": 99},
        before | {"success_rate": np.zeros(3)},
        before | {"success_rate": np.full(SIZE, np.nan)},
        before | {"iteration": -3},
        {name: value for name, value in before.items() if name != "rng"},
    ]
    for state in broken:
        with pytest.raises(ValueError, match="state"):
            curriculum.load_state_dict(state)
    assert same(curriculum.state_dict(), before)


@pytest.mark.parametrize("method", ["alp+d+f", "omni", "plr"])
def test_returned_arrays_are_the_callers_own(method):
    curriculum = make(method)
    drive(curriculum, 20)
    before = curriculum.state_dict()
    for array in (
        curriculum.probabilities,
        curriculum.success_rate,
        curriculum.learning_progress,
        curriculum.downstream_potential,
        curriculum.feasibility,
        curriculum.interestingness,
    ):
        array[:] = 7
    for value in curriculum.state_dict().values():
        if isinstance(value, np.ndarray):
            value[:] = 0
    assert same(curriculum.state_dict(), before)
    assert curriculum.probabilities.sum() == pytest.approx(1)


def test_a_state_saved_before_a_setting_existed_is_taken_on():
    curriculum = make("alp+d")
    drive(curriculum, 5)
    state = curriculum.state_dict()
    settings = json.loads(state["config"])
    del settings["boring_weight"], settings["mastery_power"]
    resumed = make("alp+d")
    resumed.load_state_dict(state | {"config": json.dumps(settings)})
    assert np.array_equal(drive(resumed, 5), drive(curriculum, 5))
    for other in (settings | {"warmup": 3}, settings | {"unheard_of": 1}):
        with pytest.raises(ValueError, match="other config"):
            resumed.load_state_dict(state | {"config": json.dumps(other)})


def blind(**settings):
    """Only t2 counts, nothing leads there, and t0 makes progress."""
    tasks = make_tasks(3)
    connectivity = LearningConnectivity.from_weights(tasks.ids, sparse.csr_array((3, 3)))
    config = CurriculumConfig(warmup=1, **settings)
    return Curriculum(tasks.with_target("t2"), connectivity=connectivity, config=config)


@pytest.mark.filterwarnings("error")
def test_blindness_is_told_once_and_after_warmup():
    curriculum = blind()
    curriculum.sample(2)
    curriculum.update([0], [0.5])
    with pytest.warns(UserWarning, match="max_path_length = 2"):
        curriculum.sample(2)
    curriculum.update([0], [0.6])
    assert curriculum.probabilities == pytest.approx(np.full(3, 1 / 3))
    resumed = blind()
    resumed.load_state_dict(curriculum.state_dict())
    resumed.sample(2)


@pytest.mark.filterwarnings("error")
def test_nothing_left_to_learn_is_no_blindness():
    curriculum = blind()
    for _ in range(20):
        curriculum.update([2], [1.0])
        curriculum.sample(2)
    assert curriculum.learning_progress[2] == 0


def test_importing_changes_nothing_and_settings_need_no_numpy():
    code = (
        "import sys, forethought.curriculum.config, forethought.curriculum.methods\n"
        "assert 'numpy' not in sys.modules\n"
        "import numpy as np; before = np.geterr(), repr(np.random.get_state())\n"
        # SciPy adds a filter of its own.
        "import scipy.sparse, warnings; filters = list(warnings.filters)\n"
        "import signal, threading; handler = signal.getsignal(signal.SIGINT)\n"
        "from forethought.curriculum import Curriculum\n"
        "from forethought import Task, TaskSet\n"
        "curriculum = Curriculum(TaskSet([Task('a', 'A.')])); curriculum.update(curriculum.sample(2), [0, 1])\n"
        "assert signal.getsignal(signal.SIGINT) is handler and threading.active_count() == 1\n"
        "assert list(warnings.filters) == filters\n"
        "assert (np.geterr(), repr(np.random.get_state())) == before\n"
        "assert 'jax' not in sys.modules and 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_two_hundred_tasks_cross_both_ways_without_drift():
    tasks = make_tasks(200)
    connectivity, feasibility = make_graphs(tasks)
    curriculum = Curriculum(tasks, connectivity=connectivity, feasibility=feasibility, config=SHORT)
    rng = np.random.default_rng(0)
    for _ in range(30):
        chosen = curriculum.sample(32)
        curriculum.update(chosen, (rng.random(32) < 0.8).astype(float))
    fresh = Curriculum(tasks, connectivity=connectivity, feasibility=feasibility, config=SHORT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fresh.load_state_dict(curriculum.state_dict())
        assert np.array_equal(fresh.downstream_potential, curriculum.downstream_potential)
        assert np.array_equal(fresh.probabilities, curriculum.probabilities)
