import itertools

import numpy as np
import pytest

from forethought.simulate import (
    GreedyOracle,
    LookAhead,
    PrerequisiteGrid,
    TransferStudent,
    UniformChoice,
    expected_objective,
    objective,
    regret,
)
from forethought.tasks import Task, TaskSet


def task_set(*names, weights=None):
    weights = weights or [1.0] * len(names)
    return TaskSet([Task(name, f"do {name}", weight) for name, weight in zip(names, weights, strict=True)])


def random_student(seed, *, reliability=1.0, count=3):
    rng = np.random.default_rng(seed)
    return TransferStudent(
        task_set(*"abcde"[:count], weights=rng.uniform(0, 2, count).tolist()),
        transfer=rng.uniform(-0.5, 1, (count, count)),
        prerequisites=np.triu(rng.uniform(0, 1, (count, count)), 1),
        rate=0.4,
        forgetting=0.05,
        reliability=reliability,
        initial=rng.uniform(0, 0.3, count),
    )


def best_by_enumeration(student, decisions):
    """The best J over all sequences of tasks, for a deterministic student."""
    best = -np.inf
    for sequence in itertools.product(range(len(student.tasks)), repeat=decisions):
        state = student.state
        for task in sequence:
            ((_, state),) = student.transitions(state, task)
        best = max(best, float(student.tasks.weights @ student.competence_of(state)))
    return best


def best_by_recursion(student, state, remaining):
    """The best expected J from a state, straight from the definition, with no memory of states met."""
    if remaining == 0:
        return float(student.tasks.weights @ student.competence_of(state))
    return max(
        sum(p * best_by_recursion(student, after, remaining - 1) for p, after in student.transitions(state, task))
        for task in range(len(student.tasks))
    )


def chain():
    """Only c counts and needs b, which needs a; d is easy and worth a little."""
    prerequisites = np.zeros((4, 4))
    prerequisites[0, 1] = prerequisites[1, 2] = 1.0
    return TransferStudent(
        task_set("a", "b", "c", "d", weights=[0.0, 0.0, 1.0, 0.01]), prerequisites=prerequisites, rate=0.5
    )


class TestGreedy:
    """One step by hand: rate 0.5, a from 0.2 helps b (0.5) from 0, c from 0.6 harms b by half."""

    def student(self):
        transfer = np.zeros((3, 3))
        transfer[0, 1], transfer[2, 1] = 0.5, -0.5
        return TransferStudent(
            task_set("a", "b", "c", weights=[1.0, 3.0, 2.0]),
            transfer=transfer,
            rate=0.5,
            initial=np.array([0.2, 0.4, 0.6]),
        )

    @pytest.mark.parametrize(
        ("rule", "values"),
        [
            ("local", [0.4, 0.3, 0.2]),
            ("weighted", [0.4, 0.9, 0.4]),
            ("cross-task", [0.4 + 3 * 0.15, 0.9, 0.4 - 3 * 0.1]),
        ],
    )
    def test_values(self, rule, values):
        student = self.student()
        oracle = GreedyOracle(student, rule)
        np.testing.assert_allclose(oracle.values(student.state), values, rtol=1e-12)
        np.testing.assert_array_equal(oracle.probabilities(student.state, 0), np.arange(3) == int(np.argmax(values)))

    def test_other_weights_can_be_given(self):
        student = self.student()
        oracle = GreedyOracle(student, "cross-task", np.ones(3))
        np.testing.assert_allclose(oracle.values(student.state), [0.55, 0.3, 0.1], rtol=1e-12)

    def test_expectation_over_wasted_training(self):
        student = TransferStudent(task_set("a", "b"), rate=0.5, reliability=0.25)
        np.testing.assert_allclose(GreedyOracle(student).values(student.state), [0.125, 0.125])

    def test_ties_are_shared(self):
        student = TransferStudent(task_set("a", "b"))
        np.testing.assert_array_equal(GreedyOracle(student).probabilities(student.state, 0), [0.5, 0.5])
        drawn = [GreedyOracle(student).choose(student.state, 0, np.random.default_rng(s)) for s in range(40)]
        assert set(drawn) == {0, 1}


class TestLookAhead:
    @pytest.mark.parametrize("seed", range(5))
    def test_equals_the_best_of_all_sequences(self, seed):
        student = random_student(seed)
        search = LookAhead(student, 5)
        assert search.optimum == pytest.approx(best_by_enumeration(student, 5), abs=1e-9)
        assert expected_objective(student, search, 5) == pytest.approx(search.optimum, abs=1e-9)

    @pytest.mark.parametrize("seed", range(3))
    def test_equals_the_recursion_for_a_stochastic_student(self, seed):
        student = random_student(seed, reliability=0.6)
        search = LookAhead(student, 4)
        assert search.optimum == pytest.approx(best_by_recursion(student, student.state, 4), abs=1e-9)
        assert expected_objective(student, search, 4) == pytest.approx(search.optimum, abs=1e-9)
        expected = [
            sum(p * best_by_recursion(student, after, 3) for p, after in student.transitions(student.state, task))
            for task in range(3)
        ]
        np.testing.assert_allclose(search.values(student.state, 0), expected, atol=1e-9)

    def test_it_prepares_the_ground_where_greedy_rules_do_not(self):
        student = chain()
        search = LookAhead(student, 6)
        state, path = student.state, []
        for decision in range(6):
            path.append(int(np.argmax(search.values(state, decision))))
            ((_, state),) = student.transitions(state, path[-1])
        assert path[0] == 0
        assert path[-1] == 2
        assert 3 not in path
        for rule in ("weighted", "cross-task"):
            oracle = GreedyOracle(student, rule)
            assert oracle.probabilities(student.state, 0)[3] == 1.0
            assert expected_objective(student, oracle, 6) < 0.011 < search.optimum

    def test_zero_decisions_leave_the_start(self):
        student = random_student(0)
        assert LookAhead(student, 0).optimum == pytest.approx(objective(student))

    def test_grid_in_the_fewest_steps(self):
        student = PrerequisiteGrid(3, full=2, unlock=2)
        weights = np.zeros(9)
        weights[8] = 1.0
        assert LookAhead(student, 6, weights).optimum == 1.0
        assert LookAhead(student, 5, weights).optimum == 0.5
        assert LookAhead(student, 4, weights).optimum == 0.0

    def test_too_many_states_are_refused(self):
        with pytest.raises(ValueError, match=r"max_states \(100\)"):
            LookAhead(random_student(0), 6, max_states=100)

    def test_unreachable_states_are_named(self):
        search = LookAhead(random_student(0), 2)
        with pytest.raises(KeyError, match="cannot be reached"):
            search.values((0.9, 0.9, 0.9), 1)
        with pytest.raises(KeyError, match="outside the horizon"):
            search.values((0.9, 0.9, 0.9), 2)


class TestRegret:
    @pytest.mark.parametrize("seed", range(4))
    def test_nobody_beats_the_look_ahead(self, seed):
        student = random_student(seed, reliability=0.8)
        before = student.state
        search = LookAhead(student, 4)
        for oracle in (
            UniformChoice(student),
            *(GreedyOracle(student, r) for r in ("local", "weighted", "cross-task")),
        ):
            result = regret(student, oracle, 4, look_ahead=search)
            assert result.regret >= -1e-9
            assert result.standard_error == 0.0
        assert regret(student, search, 4).regret == pytest.approx(0.0, abs=1e-9)
        assert student.state == before

    def test_local_progress_is_optimal_under_the_three_conditions(self):
        # Equal weights, no transfer, and concave progress of each task on its own.
        student = TransferStudent(task_set("a", "b", "c"), rate=0.3, initial=np.array([0.1, 0.5, 0.0]))
        assert regret(student, GreedyOracle(student, "local"), 5).regret == pytest.approx(0.0, abs=1e-9)

    def test_each_rule_is_optimal_once_its_own_condition_is_all_that_is_dropped(self):
        weighted = TransferStudent(task_set("a", "b", weights=[1.0, 5.0]), rate=0.3)
        assert regret(weighted, GreedyOracle(weighted, "weighted"), 4).regret == pytest.approx(0.0, abs=1e-9)
        assert regret(weighted, GreedyOracle(weighted, "local"), 4).regret > 0.1
        transfer = np.zeros((3, 3))
        transfer[0, 1:] = 1.0
        helpful = TransferStudent(task_set("a", "b", "c"), transfer=transfer, rate=0.3)
        assert regret(helpful, GreedyOracle(helpful, "cross-task"), 1).regret == pytest.approx(0.0, abs=1e-9)
        assert regret(helpful, GreedyOracle(helpful, "local"), 1).regret == pytest.approx(0.4, abs=1e-9)

    def test_uniform_by_hand(self):
        student = TransferStudent(task_set("a", "b"), rate=0.5)
        # Two units: both on one task (half the time) give 0.75, one on each gives 1.
        result = regret(student, UniformChoice(student), 2)
        assert (result.optimum, result.achieved) == pytest.approx((1.0, 0.875))

    def test_a_driven_chooser_is_averaged_over_seeds(self):
        class Coin:
            def __init__(self, seed):
                self.rng = np.random.default_rng(seed)

            def sample(self, k):
                return self.rng.integers(2, size=k)

            def update(self, task_indices, successes):
                assert task_indices.shape == successes.shape == (1,)

        student = TransferStudent(task_set("a", "b"), rate=0.5)
        result = regret(student, Coin, 2, seeds=range(200))
        assert result.achieved == pytest.approx(0.875, abs=4 * result.standard_error)
        assert 0 < result.standard_error < 0.02
        assert student.state == (0.0, 0.0)

    def test_a_search_of_another_horizon_is_refused(self):
        student = random_student(0)
        with pytest.raises(ValueError, match="horizon of 2"):
            regret(student, UniformChoice(student), 3, look_ahead=LookAhead(student, 2))

    @pytest.mark.parametrize("weights", [np.ones(2), np.array([1.0, -1.0, 0.0])])
    def test_bad_weights_are_refused(self, weights):
        with pytest.raises(ValueError, match="weights"):
            LookAhead(random_student(0), 1, weights)
