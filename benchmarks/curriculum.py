"""Time and memory of one curriculum decision: take in 64 tasks x 8 environments, score, draw 64.

    python benchmarks/curriculum.py [--sizes 256 10000 ...] [--methods plr omni ...]

Every row runs in a process of its own, so that its peak memory is its own. "crossing" rows make one task cross the
solved threshold in every decision, alternately up and down; the others none. The first rows are ALP+D+F's; the methods
of others have the same graph for prerequisites and for what is boring.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np
from scipy import sparse

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
DEGREE = {256: 255, 10_000: 20, 100_000: 10, 1_000_000: 5}
AIM = {256: 0.5, 10_000: 2.0, 100_000: 15.0, 1_000_000: 150.0}
CROSSING_AIM = 3.0
OTHERS = ("learnability", "plr", "mastering-rate", "thompson", "omni")
CRAFTAX_DEGREE = 25
"""About what the shipped graph of the 256 goals has."""


def problem(size: int, degree: int, tied: bool):
    """Tasks and random graphs; tied weights are multiples of 1/5, as five judgments give."""
    from forethought.graphs import FeasibilityEvidence, Interestingness, LearningConnectivity
    from forethought.tasks import Task, TaskSet

    rng = np.random.default_rng(0)
    tasks = TaskSet([Task(f"t{number}", f"Task {number}") for number in range(size)])
    if degree >= size - 1:
        weights = rng.random((size, size))
        np.fill_diagonal(weights, 0)
        connections = sparse.csr_array(weights)
    else:
        sources = np.repeat(np.arange(size), degree)
        targets = (sources + rng.integers(1, size, sources.size)) % size
        strengths = rng.integers(1, 6, sources.size) / 5 if tied else rng.random(sources.size)
        entries = sparse.csr_array((strengths, (sources, targets)), shape=(size, size))
        connections = entries.minimum(1.0).tocsr()
    targets = np.repeat(np.arange(size), 3)
    sources = (targets + rng.integers(1, size, targets.size)) % size
    evidence = sparse.csr_array((np.full(targets.size, 0.25), (sources, targets)), shape=(size, size))
    return (
        tasks,
        LearningConnectivity.from_weights(tasks.ids, connections),
        FeasibilityEvidence.from_weights(tasks.ids, evidence, np.full(size, 0.25)),
        Interestingness.from_weights(tasks.ids, connections),
    )


def measure(size: int, degree: int, single: bool, crossing: bool, tied: bool, method: str) -> dict[str, float]:
    from forethought.curriculum import Curriculum, CurriculumConfig

    tasks, connectivity, feasibility, interestingness = problem(size, degree, tied)
    weights = np.eye(1, size, size // 2)[0] if single else np.ones(size)
    started = time.perf_counter()
    # Without smoothing one observation is enough to cross.
    config = CurriculumConfig(smoothing=1.0) if crossing else CurriculumConfig()
    curriculum = Curriculum(
        tasks,
        connectivity=connectivity,
        feasibility=feasibility,
        interestingness=interestingness,
        method=method,
        weights=weights,
        seed=0,
        config=config,
    )
    made = time.perf_counter() - started
    rng = np.random.default_rng(1)
    count = 2000 if size <= 256 else 300 if size <= 10_000 else 100 if size <= 100_000 else 40
    solved = np.zeros(size, bool)
    for _ in range(17):
        seen = rng.integers(0, size, 512)
        curriculum.update(seen, rng.random(512) * 0.8)
    if crossing:
        # Half of the tasks are solved, late in a run.
        half = rng.permutation(size)[: size // 2]
        solved[half] = True
        for _ in range(12):
            curriculum.update(half, np.ones(half.size))
    times = []
    chosen = curriculum.sample(64)
    for number in range(count):
        seen = np.repeat(chosen, 8)
        # Keeps every task on its side of 0.9, whatever it was before.
        rates = np.where(solved[seen], 1.0, rng.random(seen.size) * 0.8)
        if crossing:
            flipped = rng.choice(np.flatnonzero(solved == bool(number % 2)))
            solved[flipped] = not solved[flipped]
            seen = np.concatenate([seen[seen != flipped], np.full(8, flipped)])
            rates = np.where(solved[seen], 1.0, rng.random(seen.size) * 0.8)
        started = time.perf_counter()
        curriculum.update(seen, rates, np.full(seen.size, 5))
        chosen = curriculum.sample(64)
        times.append(time.perf_counter() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "p50": 1e3 * float(np.percentile(times, 50)),
        "p99": 1e3 * float(np.percentile(times, 99)),
        "made": made,
        "peak": peak,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(DEGREE))
    parser.add_argument("--methods", nargs="*", choices=("alp+d+f", *OTHERS), default=["alp+d+f", *OTHERS])
    parser.add_argument("--row", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        print(json.dumps(measure(**json.loads(arguments.row))))
        return
    rows = []
    for method in arguments.methods:
        # Only D depends on the weights.
        kinds = (True, False) if method == "alp+d+f" else (False,)
        rows += [(method, size, DEGREE[size], single, False, False) for size in arguments.sizes for single in kinds]
        if 256 in arguments.sizes:
            rows += [(method, 256, degree, False, True, degree < 255) for degree in (255, CRAFTAX_DEGREE)]
    print("| method | tasks | degree | weights | crossings | p50 ms | p99 ms | aim ms | set-up s | peak MiB |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for method, size, degree, single, crossing, tied in rows:
        row = {"size": size, "degree": degree, "single": single, "crossing": crossing, "tied": tied, "method": method}
        command = [sys.executable, __file__, "--row", json.dumps(row)]
        output = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | ONE_THREAD)
        found = json.loads(output.stdout)
        aim = CROSSING_AIM if crossing else AIM[size]
        weighted, crossed = "single target" if single else "uniform", "one" if crossing else "none"
        print(
            f"| {method.upper()} | {size:,} | {degree} | {weighted} | {crossed} "
            f"| {found['p50']:.3f} | {found['p99']:.3f} | {aim:g} | {found['made']:.2f} | {found['peak']:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
