"""Compare curriculum methods on students whose dynamics are known.

Three tables, all in Markdown:

- the far corner: a 10x10 grid of prerequisites of which only the farthest cell counts, and the competence
  (0 to 100) reached on it, over path length limits L and path discounts kappa;
- all cells: the same grid with every cell of the same weight, for which the methods of others are made: they know no
  target, so that with one they choose uniformly until they happen to get there;
- the distance to the optimum: on two tiny problems, how much of the objective J (paper, Eq. 1) each method
  and each decision rule of the paper's Section 3 gives away.

    python benchmarks/far_corner.py --seeds 5
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np

from forethought.curriculum import Curriculum, CurriculumConfig
from forethought.simulate import (
    GreedyOracle,
    LookAhead,
    PrerequisiteGrid,
    TransferStudent,
    UniformChoice,
    regret,
    run,
)
from forethought.tasks import Task, TaskSet

GUIDED = ("alp+d", "alp+d+f")
OTHERS = ("learnability", "plr", "mastering-rate", "thompson", "omni")
METHODS = ("unif", "i-diff", "alp", "alp+f", *GUIDED, "perm", *OTHERS)
"""The paper's, then those of others; `mastering-rate` knows the same graph as D."""
CHECKPOINTS = (5_000, 10_000, 20_000)
DRAWS = 64


def curriculum_for(
    student: PrerequisiteGrid | TransferStudent,
    tasks: TaskSet,
    method: str,
    seed: int,
    config: CurriculumConfig,
) -> Curriculum:
    """A curriculum that knows the student's true graphs."""
    return Curriculum(
        tasks,
        connectivity=student.connectivity(),
        feasibility=student.evidence(),
        interestingness=student.interestingness(),
        method=method,
        seed=seed,
        config=config,
    )


def far_corner(method: str, length: int, discount: float, seed: int) -> tuple[np.ndarray, int | None]:
    """Competence (0-100) on the far corner at the checkpoints, and the episodes until it is mastered."""
    student = PrerequisiteGrid(10)
    config = CurriculumConfig(max_path_length=length, path_discount=discount)
    curriculum = curriculum_for(student, student.tasks.with_target(student.far_corner), method, seed, config)
    record = run(student, curriculum, -(-max(CHECKPOINTS) // DRAWS), DRAWS, seed=seed)
    reached = np.array([100 * record.at(episodes)[-1] for episodes in CHECKPOINTS])
    return reached, record.mastered_at(student.far_corner)


def print_far_corner(lengths: list[int], discounts: list[float], seeds: int) -> None:
    print(f"## Far corner: mean competence over {seeds} seeds (751 episodes is the least possible)\n")
    print("| method | L | kappa | 5k | 10k | 20k | mastered at, per seed | s a run |")
    print("|---|---|---|---|---|---|---|---|")
    for method in METHODS:
        # Only the methods with D depend on L and kappa; PERM permutes the graphs, so it does as well.
        settings = [(length, kappa) for length in lengths for kappa in discounts]
        for length, kappa in settings if method in (*GUIDED, "perm") else settings[:1]:
            started = time.perf_counter()
            results = [far_corner(method, length, kappa, seed) for seed in range(seeds)]
            seconds = (time.perf_counter() - started) / seeds
            means = np.mean([reached for reached, _ in results], axis=0)
            mastered = ", ".join("-" if at is None else str(at) for _, at in results)
            shown = (str(length), str(kappa)) if method in (*GUIDED, "perm") else ("any", "any")
            cells = [method.upper(), *shown, *(f"{value:.0f}" for value in means), mastered, f"{seconds:.1f}"]
            print("| " + " | ".join(cells) + " |", flush=True)


def print_all_cells(seeds: int) -> None:
    print(f"\n## All cells: mean competence over {seeds} seeds (7,600 episodes are the least that can master all)\n")
    print("| method | 5k | 10k | 20k | cells mastered at 10k | far corner mastered at, per seed | ms a decision |")
    print("|---|---|---|---|---|---|---|")
    decisions = -(-max(CHECKPOINTS) // DRAWS)
    for method in METHODS:
        means, mastered, corner, seconds = [], [], [], []
        for seed in range(seeds):
            student = PrerequisiteGrid(10)
            curriculum = Timed(curriculum_for(student, student.tasks, method, seed, CurriculumConfig()))
            record = run(student, curriculum, decisions, DRAWS, seed=seed)
            means.append([100 * record.at(episodes).mean() for episodes in CHECKPOINTS])
            mastered.append(np.count_nonzero(record.at(10_000) > 0.75))
            corner.append(record.mastered_at(student.far_corner))
            seconds.append(curriculum.seconds / decisions)
        cells = [
            method.upper(),
            *(f"{value:.0f}" for value in np.mean(means, axis=0)),
            f"{np.mean(mastered):.0f}",
            ", ".join("-" if at is None else str(at) for at in corner),
            f"{1e3 * np.mean(seconds):.2f}",
        ]
        print("| " + " | ".join(cells) + " |", flush=True)


class Timed:
    """A curriculum with the processor time that its decisions took."""

    def __init__(self, curriculum: Curriculum):
        self._curriculum, self.seconds = curriculum, 0.0

    def sample(self, k: int) -> np.ndarray:
        """As the curriculum's."""
        started = time.process_time()
        chosen = self._curriculum.sample(k)
        self.seconds += time.process_time() - started
        return chosen

    def update(self, task_indices: np.ndarray, successes: np.ndarray) -> None:
        """As the curriculum's."""
        started = time.process_time()
        self._curriculum.update(task_indices, successes)
        self.seconds += time.process_time() - started


def small_grid() -> PrerequisiteGrid:
    """Nine cells of three levels; the far corner alone counts."""
    return PrerequisiteGrid(3, full=3, unlock=3)


def noisy_chain() -> TransferStudent:
    """Five tasks of equal weight in a chain of prerequisites, with transfer up the chain and forgetting."""
    count = 5
    up = np.diag(np.ones(count - 1), 1)
    tasks = TaskSet([Task(f"step-{i}", f"do step {i}") for i in range(count)])
    return TransferStudent(tasks, transfer=0.2 * up, prerequisites=up, rate=0.5, forgetting=0.01, outcomes="bernoulli")


def print_regret(name: str, make: Callable, decisions: int, target: str | None, seeds: int) -> None:
    student = make()
    tasks = student.tasks if target is None else student.tasks.with_target(target)
    weights = np.asarray(tasks.weights) / np.sum(tasks.weights)
    best = LookAhead(student, decisions, weights, max_states=3_000_000)
    config = CurriculumConfig(max_path_length=8, warmup=2)
    print(f"\n## Distance to the optimum: {name}, {decisions} units of training, J* = {best.optimum:.3f}\n")
    print("| decides | J | standard error | regret |")
    print("|---|---|---|---|")
    oracles = {
        "oracle: local": GreedyOracle(student, "local", weights),
        "oracle: weighted": GreedyOracle(student, "weighted", weights),
        "oracle: cross-task": GreedyOracle(student, "cross-task", weights),
        "oracle: look-ahead": best,
        "uniform, exactly": UniformChoice(student),
    }
    methods = {
        method.upper(): lambda seed, method=method: curriculum_for(student, tasks, method, seed, config)
        for method in METHODS
    }
    for label, method in {**oracles, **methods}.items():
        result = regret(student, method, decisions, weights=weights, seeds=range(seeds), look_ahead=best)
        print(
            f"| {label} | {result.achieved:.3f} | {result.standard_error:.3f} | {round(result.regret, 3) + 0.0:.3f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="runs of each far-corner setting")
    parser.add_argument("--regret-seeds", type=int, default=64, help="runs of each method on the tiny problems")
    parser.add_argument("--lengths", type=int, nargs="+", default=[2, 5, 20], help="path length limits L")
    parser.add_argument("--discounts", type=float, nargs="+", default=[0.3, 0.9], help="path discounts kappa")
    arguments = parser.parse_args()
    # That nothing scores with a short reach is one of the results shown here.
    warnings.simplefilter("ignore")
    print_far_corner(arguments.lengths, arguments.discounts, arguments.seeds)
    print_all_cells(arguments.seeds)
    grid = small_grid()
    print_regret("3x3 grid, far corner", small_grid, 30, grid.far_corner, arguments.regret_seeds)
    print_regret("chain of five", noisy_chain, 8, None, arguments.regret_seeds)


if __name__ == "__main__":
    main()
