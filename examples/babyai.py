"""Twenty-four BabyAI missions, one PPO policy of Stable-Baselines3: does a judged curriculum beat uniform sampling?

    pip install -e '.[minigrid]'
    python examples/babyai.py train --method alp+d+f --seed 0    # one run
    python examples/babyai.py compare                            # all methods, five seeds each; then the figure
    python examples/babyai.py plot                               # the figure again, from the tables

Every run trains a policy on all missions for the same number of steps. It is measured with fresh episodes of every
mission: on the way, and with more episodes at the end. `compare` goes on where it was stopped.
"""

import argparse
import csv
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

from forethought import Curriculum, TaskSet
from forethought.adapters.sb3 import CurriculumCallback
from forethought.files import replacing
from forethought.minigrid import FlatObservation, MissionEnv, connectivity, evidence, tasks

METHODS, SEEDS = ("unif", "alp", "alp+d+f"), range(5)

NUM_ENVS, ROLLOUT = 32, 128
ITERATION = NUM_ENVS * ROLLOUT
"""Environment steps of one curriculum iteration, which is one PPO update."""
ITERATIONS = 80

EVALUATIONS = 8
EPISODES, FINAL_EPISODES = 12, 60
"""Of each mission, in an evaluation on the way and in the last one."""

RESULTS = Path(__file__).parent.parent / "results" / "babyai"
TABLES = ("evaluations", "choices")
"""Success rates by run, steps and mission; probabilities by run, steps and mission."""

LOOKS = {"unif": ("#8c8c8c", "--", "o"), "alp": ("#56b4e9", ":", "^"), "alp+d+f": ("#d55e00", "-", "s")}
"""Colour, dashes and marker; told apart by any kind of colour vision, and without colours."""

Rows = list[dict[str, Any]]


def train(method: str, seed: int, iterations: int = ITERATIONS) -> tuple[Rows, Rows]:
    """Train one policy; returns its rows of the two tables."""
    missions = tasks()
    curriculum = Curriculum(missions, connectivity=connectivity(), feasibility=evidence(), method=method, seed=seed)
    model = PPO(
        "MlpPolicy",
        environments(missions, NUM_ENVS),
        n_steps=ROLLOUT,
        batch_size=ITERATION // 8,
        n_epochs=4,
        learning_rate=7e-4,
        ent_coef=0.01,
        policy_kwargs={"net_arch": {"pi": [128, 64], "vf": [64, 64]}, "activation_fn": torch.nn.ReLU},
        seed=1000 * seed,  # Stable-Baselines3 gives environment number i this seed plus i.
        device="cpu",
    )
    choose = CurriculumCallback(curriculum, iteration_steps=ITERATION, new_task="iteration")
    record = Record(curriculum, method, seed, every=max(1, iterations // EVALUATIONS))
    model.learn(iterations * ITERATION, callback=[choose, record])
    record.take(FINAL_EPISODES)
    return record.evaluations, record.choices


def environments(missions: TaskSet, number: int) -> DummyVecEnv:
    """Environments side by side, in one process."""
    return DummyVecEnv([lambda: FlatObservation(MissionEnv(missions)) for _ in range(number)])


def success_rates(model: PPO, missions: TaskSet, episodes: int, seed: int, side_by_side: int = 4) -> np.ndarray:
    """Success rate of each mission over about `episodes` fresh episodes; the policy samples its actions.

    Each environment plays one mission, and its first `episodes / side_by_side` episodes count, rounded up: had all
    that end in time counted, short ones would have counted more often.
    """
    which = np.repeat(np.arange(len(missions)), side_by_side)
    made = environments(missions, which.size)
    made.seed(seed)
    for environment, task in enumerate(which):
        made.env_method("set_task", int(task), indices=[environment])
    observations: Any = made.reset()
    each = -(-episodes // side_by_side)
    finished, succeeded = np.zeros(which.size, int), np.zeros(which.size, int)
    while finished.min() < each:
        observations, _, dones, infos = made.step(model.predict(observations)[0])
        for environment in np.flatnonzero(dones & (finished < each)):
            finished[environment] += 1
            succeeded[environment] += infos[environment]["is_success"]
    return np.bincount(which, succeeded) / (each * side_by_side)


class Record(BaseCallback):
    """Measures the policy every few iterations, and notes what the curriculum would choose then."""

    def __init__(self, curriculum: Curriculum, method: str, seed: int, every: int):
        super().__init__()
        self.curriculum, self.every, self.run = curriculum, every, {"method": method, "seed": seed}
        self.evaluations: Rows = []
        self.choices: Rows = []
        self._rollouts = 0

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self._rollouts % self.every == 0:
            self.take(EPISODES)
        self._rollouts += 1

    def take(self, episodes: int) -> None:
        """Measure every mission in fresh episodes."""
        missions, model = self.curriculum.tasks, self.model
        assert isinstance(model, PPO)
        # Measuring must not shift the numbers that training draws.
        with torch.random.fork_rng():
            seed = 1_000_000 * (self.run["seed"] + 1) + self.num_timesteps
            torch.manual_seed(seed)
            rates = success_rates(model, missions, episodes, seed)
        self._add(self.evaluations, success_rate=rates, episodes=np.full(len(missions), episodes))
        self._add(self.choices, probability=self.curriculum.probabilities)
        print(f"{self.run} {self.num_timesteps:>9,} steps: mean success {rates.mean():.3f}", flush=True)

    def _add(self, rows: Rows, **columns: np.ndarray) -> None:
        for task, id in enumerate(self.curriculum.tasks.ids):
            values = {name: round(column[task].item(), 4) for name, column in columns.items()}
            rows.append({**self.run, "steps": self.num_timesteps, "task": id, **values})


def compare(methods: Sequence[str], seeds: Sequence[int], iterations: int, out: Path) -> None:
    """Train every method with every seed, seed by seed; runs that the tables hold already are passed over."""
    out.mkdir(parents=True, exist_ok=True)
    tables = [read(out / f"{name}.csv") for name in TABLES]
    for seed in seeds:
        for method in methods:
            if any((row["method"], row["seed"]) == (method, seed) for row in tables[0]):
                continue
            began = time.process_time()
            for name, table, rows in zip(TABLES, tables, train(method, seed, iterations), strict=True):
                table += rows
                write(out / f"{name}.csv", table)
            print(f"{method}, seed {seed}: {time.process_time() - began:.0f} s of CPU time", flush=True)


def read(path: Path) -> Rows:
    """A table's rows; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [{k: v if k in ("method", "task") else float(v) for k, v in row.items()} for row in csv.DictReader(file)]


def write(path: Path, rows: Rows) -> None:
    """Write a table as CSV; an old file is replaced only by a whole new one."""
    rows = [{k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in row.items()} for row in rows]
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def methods_of(rows: Rows) -> list[str]:
    """The methods in a table, the usual ones in their usual order first."""
    found = dict.fromkeys(row["method"] for row in rows)
    return [name for name in dict.fromkeys((*LOOKS, *found)) if name in found]


def array(rows: Rows, column: str, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and a column of a method's rows by seed, steps and mission."""
    mine = sorted((row for row in rows if row["method"] == method), key=lambda row: (row["seed"], row["steps"]))
    seeds, steps, missions = ({row[name] for row in mine} for name in ("seed", "steps", "task"))
    if len(mine) != len(seeds) * len(steps) * len(missions):
        raise ValueError(f"{method}: the runs in the tables were not measured after the same steps; use another folder")
    values = np.array([row[column] for row in mine]).reshape(len(seeds), len(steps), len(missions))
    return np.array(sorted(steps)), values


def interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the first axis, and half the width of its 95 % interval (Student's t); NaN for a single value."""
    from scipy.stats import t

    number = len(values)
    if number < 2:
        return values.mean(0), np.full(values.shape[1:], np.nan)
    return values.mean(0), t.ppf(0.975, number - 1) * values.std(0, ddof=1) / np.sqrt(number)


def summary(evaluations: Rows) -> str:
    """The comparison in words: mean success at the end and over training, and paired differences."""
    lines, found = [], {}
    for method in methods_of(evaluations):
        steps, rates = array(evaluations, "success_rate", method)
        curves = rates.mean(2)
        found[method] = {
            "success at the end": curves[:, -1],
            "success over training": np.trapezoid(curves, steps, axis=1) / (steps[-1] - steps[0]),
            "missions above 0.5 at the end": (rates[:, -1] > 0.5).sum(1).astype(float),
        }
    for name in next(iter(found.values())):
        for method, values in found.items():
            lines.append("{}, {}: {:.3f} +- {:.3f}".format(name, method, *interval(values[name])))
        for base, method in combinations(found, 2):
            middle, half = interval(found[method][name] - found[base][name])
            lines.append(f"{name}, {method} minus {base}, paired: {middle:+.3f} +- {half:.3f}")
    return "\n".join(lines)


def plot(out: Path) -> None:
    """Draw `babyai.svg` and `babyai.png` from the tables, and print the summary."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    evaluations, choices = (read(out / f"{name}.csv") for name in TABLES)
    methods = methods_of(evaluations)
    missions = tasks().ids
    with plt.style.context(
        {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "babyai"}
    ):
        figure, (curves, final, chosen) = plt.subplots(
            1, 3, figsize=(10, 4), width_ratios=(1, 1, 1.1), layout="constrained"
        )
        chosen.sharey(final)
        for offset, method in enumerate(methods):
            color, dashes, marker = LOOKS.get(method, ("#0072b2", "-", "D"))
            steps, rates = array(evaluations, "success_rate", method)
            by_seed = rates.mean(2)
            middle, half = interval(by_seed)
            label = f"{method.upper()}, {len(rates)} seeds"
            curves.fill_between(steps / 1000, middle - half, middle + half, color=color, alpha=0.2, linewidth=0)
            curves.plot(steps / 1000, by_seed.T, color=color, linewidth=0.4, alpha=0.7)
            curves.plot(steps / 1000, middle, color=color, linestyle=dashes, label=label)
            middle, half = interval(rates[:, -1])
            bars = np.clip([half, half], 0, [middle, 1 - middle])
            heights = np.arange(len(missions)) + 0.3 * (offset - (len(methods) - 1) / 2)
            final.errorbar(
                middle, heights, xerr=bars, fmt=marker, markersize=3, elinewidth=0.8, color=color, label=label
            )
        curves.set(xlabel="environment steps (thousands)", ylabel="success rate, mean of 24 missions", ylim=(0, 1))
        curves.grid(color="#e4e4e4", linewidth=0.5)
        curves.set_title("While training")
        curves.legend(loc="upper left")
        final.set(xlabel="success rate", xlim=(-0.02, 1.02), ylim=(len(missions) - 0.5, -0.5))
        final.set_yticks(range(len(missions)), missions)
        final.grid(axis="y", color="#e4e4e4", linewidth=0.5)
        final.set_title("At the end, by mission")
        steps, probability = array(choices, "probability", methods[-1])
        rows, shown = np.arange(len(missions) + 1) - 0.5, probability.mean(0)[:-1].T
        image = chosen.pcolormesh(steps / 1000, rows, shown, cmap="cividis", vmin=0)
        chosen.set_xlabel("environment steps (thousands)")
        chosen.tick_params(labelleft=False)
        chosen.set_title(f"What {methods[-1].upper()} chooses next")
        figure.colorbar(image, ax=chosen, label="probability, mean of the seeds")
        figure.savefig(out / "babyai.svg", metadata={"Date": None})
        figure.savefig(out / "babyai.png", dpi=150)
        plt.close(figure)
    print(summary(evaluations))


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, and do what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    for action in ("train", "compare", "plot"):
        flags = actions.add_parser(action)
        flags.add_argument("--out", type=Path, default=RESULTS, help="folder of the tables and the figure")
        if action != "plot":
            flags.add_argument("--iterations", type=int, default=ITERATIONS, help=f"of {ITERATION} environment steps")
    actions.choices["train"].add_argument("--method", default="alp+d+f")
    actions.choices["train"].add_argument("--seed", type=int, default=0)
    actions.choices["compare"].add_argument("--methods", nargs="+", default=METHODS)
    actions.choices["compare"].add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if given.action == "train":
        evaluations, _ = train(given.method, given.seed, given.iterations)
        for row in evaluations[-len(tasks()) :]:
            print(f"{row['task']:20}{row['success_rate']:.2f}")
        return
    if given.action == "compare":
        compare(given.methods, given.seeds, given.iterations, given.out)
    plot(given.out)


if __name__ == "__main__":
    main()
