"""Measured effects recover a synthetic student's transfer, and show none where there is none."""

from pathlib import Path

import numpy as np
import pytest

from forethought.config import load_config
from forethought.curriculum import Curriculum
from forethought.experiments.effects import History, measure_effects
from forethought.experiments.transfer import compare_transfer, comparison_text
from forethought.graphs import LearningConnectivity
from forethought.rundir import CURRICULUM_COLUMNS, RunDirectory
from forethought.simulate import TransferStudent
from forethought.tasks import Task, TaskSet

SIZE = 16
TASKS = TaskSet([Task(f"t{i:02d}", f"Task {i}.") for i in range(SIZE)])


def true_graph(seed=0):
    edges = np.random.default_rng(seed).random((SIZE, SIZE)) < 0.2
    np.fill_diagonal(edges, False)
    return LearningConnectivity.from_weights(TASKS.ids, edges.astype(np.float64))


def make_run(path: Path, strength: float, method="unif", seed=0, iterations=300, fixed=None, tasks=TASKS) -> Path:
    """A run directory as training leaves one, of a student whose tasks help each other with the given strength."""
    graph, fixed = true_graph(), fixed or {}
    run = RunDirectory.create(path, load_config("toy").to_toml(), {"run_id": "x"})
    student = TransferStudent(tasks, transfer=strength * graph.weights.toarray(), rate=0.02, forgetting=0.003)
    curriculum = Curriculum(tasks, connectivity=graph, method=method, seed=seed)
    rng = np.random.default_rng(seed)
    for iteration in range(1, iterations + 1):
        q, k = np.array(curriculum.probabilities), 12
        slots = np.bincount(list(fixed), list(fixed.values()), SIZE) if fixed else np.zeros(SIZE)
        record = dict.fromkeys(CURRICULUM_COLUMNS, np.zeros(SIZE, np.int64)) | {
            "task": tasks.ids,
            "probability": q,
            "effective_share": (slots + (k - slots.sum()) * q) / k,
            "success_rate": np.array(curriculum.success_rate),
        }
        selected = curriculum.sample(k, fixed)
        for task in selected.tolist():
            student.train(task, rng)
        selections = np.bincount(selected, minlength=SIZE)
        episodes = 40 * selections
        successes = rng.binomial(episodes, student.competence).astype(np.float64)
        seen = np.flatnonzero(episodes)
        curriculum.update(seen, successes[seen] / episodes[seen], episodes[seen])
        run.record_curriculum(
            iteration, record | {"selections": selections, "episodes": episodes, "successes": successes}
        )
    run.flush()
    return run.path


@pytest.fixture(scope="module")
def uniform_run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("transfer") / "uniform", strength=0.8)


def test_a_uniform_run_recovers_the_true_graph(uniform_run):
    found = compare_transfer(uniform_run, true_graph(), top=30)
    assert found.uniform
    assert (found.iterations, found.targets, found.pairs) == (300, SIZE, SIZE * (SIZE - 1))
    assert found.rank_correlation.low > 0.05
    assert found.precision.low > found.base_rate
    assert found.precision.value > found.base_rate + 0.25
    assert found.lowest_share < found.base_rate
    source, target, gain, score, weight = found.clearest[0]
    assert weight == true_graph().weights[TASKS.index(source), TASKS.index(target)]
    assert gain > 0
    assert score > 2


def test_a_graph_that_is_wrong_finds_no_support(uniform_run):
    found = compare_transfer(uniform_run, true_graph(seed=5), top=30)
    assert found.rank_correlation.low < 0.08
    assert found.rank_correlation.low < 0 < found.rank_correlation.high
    assert found.precision.low < found.base_rate < found.precision.high


@pytest.mark.parametrize("method", ["unif", "alp+d"])
def test_without_transfer_the_intervals_cover_chance(tmp_path, method):
    # Over 40 other seeds, 38 of the intervals cover chance (uniform run), 39 (alp+d), for either number.
    found = compare_transfer(make_run(tmp_path / "run", 0.0, method, seed=1), true_graph(), top=30)
    assert found.uniform == (method == "unif")
    assert found.rank_correlation.low < 0 < found.rank_correlation.high
    assert found.precision.low < found.base_rate < found.precision.high
    assert abs(found.rank_correlation.value) < 0.15


def test_an_adaptive_run_with_fixed_selections_recovers_the_graph_too(tmp_path):
    path = make_run(tmp_path / "run", 0.8, "alp+d", iterations=500, fixed={3: 2})
    found = compare_transfer(path, true_graph(), top=30)
    assert not found.uniform
    assert found.rank_correlation.low > 0
    assert found.precision.value > found.lowest_share


def test_several_runs_are_pooled(tmp_path, uniform_run):
    second = make_run(tmp_path / "second", 0.8, seed=1)
    found = compare_transfer([uniform_run, second], true_graph())
    alone = compare_transfer(uniform_run, true_graph())
    assert found.iterations == 600
    assert found.rank_correlation.value > alone.rank_correlation.value * 0.9
    assert found.top == 100


def test_the_text_names_every_number(uniform_run):
    text = comparison_text(compare_transfer(str(uniform_run), true_graph(), horizon=4, top=5))
    for part in (
        "learning connectivity against measured gains",
        "300 (uniform)",
        "within 4 iterations",
        "edges among the 5",
    ):
        assert part in text
    assert text.count(" -> ") == 5


def slow_effect(history, source, target, horizon):
    """The effect of the module's docstring, in plain loops."""
    drawn, q, rate, estimate = history.drawn, history.probability, history.rate, history.estimate
    length, n = len(q), drawn.sum(axis=1)
    seen = 1 - (1 - q) ** n[:, None]
    means = {}
    for lag in range(1, horizon + 1):
        rows = [j for j in range(lag, length) if np.isfinite(rate[j, target])]
        weights = [1 / seen[j, target] for j in rows]
        gains = [rate[j, target] - estimate[j - lag, target] for j in rows]
        means[lag] = np.average(gains, weights=weights) if rows else 0.0
    above = below = 0.0
    for i in range(length):
        share = q[i, source] / (1 - q[i, target])
        z = drawn[i, source] - (n[i] - drawn[i, target]) * share
        for j in range(i + 1, min(i + horizon, length - 1) + 1):
            below += n[i] * q[i, source] * (1 - share)
            if np.isfinite(rate[j, target]):
                above += z * (rate[j, target] - estimate[i, target] - means[j - i]) / seen[j, target]
    return above / below


def test_effects_equal_the_definition_computed_slowly():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(4), size=30)
    drawn = np.array([rng.multinomial(6, row) for row in q]).astype(np.float64)
    rate = np.where(drawn > 0, rng.random((30, 4)), np.nan)
    history = History(drawn, q, np.zeros((30, 4)), rate, rng.random((30, 4)))
    effect = measure_effects([history], horizon=3, blocks=4).effect()
    for s in range(4):
        for t in range(4):
            if s != t:
                assert effect[s, t] == pytest.approx(slow_effect(history, s, t, 3))


def test_leaving_out_a_block_leaves_out_its_share_of_the_sums():
    rng = np.random.default_rng(1)
    q = np.full((24, 3), 1 / 3)
    drawn = rng.multinomial(5, q[0], size=24).astype(np.float64)
    history = History(drawn, q, np.zeros((24, 3)), rng.random((24, 3)), rng.random((24, 3)))
    effects = measure_effects([history], horizon=2, blocks=4)
    whole, without = effects.effect(), effects.effect(without=2)
    back = (without[0, 1] * (effects.variances[[0, 1, 3], 0, 1].sum()) + effects.products[2, 0, 1]) / effects.variances[
        :, 0, 1
    ].sum()
    assert back == pytest.approx(whole[0, 1])
    assert np.isnan(whole[0, 0])


def test_a_run_that_cannot_tell_says_why(tmp_path, uniform_run):
    with pytest.raises(ValueError, match="not a run directory"):
        compare_transfer(tmp_path, true_graph())
    with pytest.raises(ValueError, match="10 iterations are recorded; at least 40"):
        compare_transfer(make_run(tmp_path / "short", 0.8, iterations=10), true_graph())
    with pytest.raises(ValueError, match="horizon is 0"):
        compare_transfer(uniform_run, true_graph(), horizon=0)
    with pytest.raises(ValueError, match="does not know this task"):
        compare_transfer(uniform_run, LearningConnectivity.from_weights(["a", "b"], np.zeros((2, 2))))
    with pytest.raises(ValueError, match="no run is named"):
        compare_transfer([], true_graph())
    only_target = make_run(tmp_path / "target", 0.8, "target", tasks=TASKS.with_target("t00"), iterations=60)
    with pytest.raises(ValueError, match="only one task was trained on"):
        compare_transfer(only_target, true_graph())
    with pytest.raises(ValueError, match="no records of its curriculum yet"):
        compare_transfer(RunDirectory.create(tmp_path / "new", load_config("toy").to_toml(), {}).path, true_graph())


def test_a_graph_without_edges_ranks_nothing(uniform_run):
    found = compare_transfer(uniform_run, LearningConnectivity.from_weights(TASKS.ids, np.zeros((SIZE, SIZE))))
    assert found.ranked_targets == 0
    assert np.isnan(found.rank_correlation.value)
    assert found.precision.value == found.base_rate == 0.0
