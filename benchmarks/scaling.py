"""How one run scales over processes, each on one core, as ratios to one process.

    python benchmarks/scaling.py [--processes 1 2] [--updates 5] [--envs 64]

The same updates (the tiny domain, or Craftax on the engine with --domain craftax) by every number of processes. Two
ratios: of the times of an update, which needs cores that nothing else uses, and of the processor seconds of all
processes together, which other work on the machine hardly touches: what is missing to 1 is the price of spreading.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--updates", type=int, default=5)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--domain", choices=["toy", "craftax"], default="toy")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(options, *options.child.split(","))
        return
    results = {count: measure(options, count) for count in options.processes}
    wall, processor = results[options.processes[0]]
    print("processes  s/update  times as fast  processor s/update  efficiency")
    for count, (seconds, busy) in results.items():
        print(f"{count:9}  {seconds:8.3f}  {wall / seconds:13.2f}  {busy:18.3f}  {processor / busy:10.2f}")


def measure(options: argparse.Namespace, count: int) -> tuple[float, float]:
    """Seconds of an update, and processor seconds over all processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cores = sorted(os.sched_getaffinity(0))
    shared = ["--updates", str(options.updates), "--envs", str(options.envs), "--domain", options.domain]
    started = [
        subprocess.Popen(
            [sys.executable, __file__, *shared, "--child", f"{count},{number},{port},{cores[number % len(cores)]}"],
            env=os.environ | {"JAX_PLATFORMS": "cpu"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    # Libraries may print, too.
    reports = [json.loads(process.communicate()[0].splitlines()[-1]) for process in started]
    return max(wall for wall, _ in reports), sum(busy for _, busy in reports)


def child(options: argparse.Namespace, count: str, number: str, port: str, core: str) -> None:
    """One process: its core, the updates, and its times as JSON."""
    os.sched_setaffinity(0, [int(core)])
    import jax
    import numpy as np

    from forethought import processes
    from forethought.learner import Learner, NetworkConfig, PPOConfig
    from forethought.parts import DeviceParts
    from forethought.sharding import spread_over

    if int(count) > 1:
        processes.join(f"127.0.0.1:{port}", int(count), int(number))
    spread = spread_over(jax.local_devices())
    environment = make_environment(options.domain, options.envs)
    if spread is not None and options.domain == "craftax":
        environment = DeviceParts(lambda envs: make_environment("craftax", envs), options.envs, spread)
    learner = Learner(
        environment,
        np.eye(9, 32, dtype=np.float32),
        NetworkConfig(
            observation_units=128,
            fuse_units=128,
            width=64,
            blocks=1,
            memory=32,
            feedforward=64,
            head_units=128,
            channels=16,
            cell_features=16,
        ),
        PPOConfig(rollout_length=64, window=32, minibatches=4),
        spread=spread,
    )
    state = learner.init(jax.random.key(0))
    rollout = learner.begin(jax.random.key(1), np.arange(options.envs) % 9)
    walls, busy = [], []
    for update in range(options.updates + 1):
        started = time.perf_counter(), time.process_time()
        state, rollout, report = learner.update(state, rollout, jax.random.key(update))
        jax.block_until_ready(report)
        walls.append(time.perf_counter() - started[0])
        busy.append(time.process_time() - started[1])
    # The first one compiles.
    print(json.dumps([statistics.median(walls[1:]), statistics.median(busy[1:])]))


def make_environment(domain: str, envs: int) -> Any:
    """A batch of the domain's environments."""
    if domain == "toy":
        from forethought.toy import ToyEnvironment

        return ToyEnvironment(envs)
    from forethought.craftax.engine import EngineEnvironment

    return EngineEnvironment(envs, threads=1)


if __name__ == "__main__":
    main()
