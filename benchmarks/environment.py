"""Measure the Craftax environments side by side: JAX, and the engine with one thread and with all.

Steps include random actions, observations, all that a goal needs and restarts, inside one `lax.scan` with a donated
state, as training runs them; episodes end by death, or by the limit. "Bare" is the engine from NumPy: steps,
observations and goals, without JAX around them.

    python benchmarks/environment.py
    python benchmarks/environment.py --jax-envs 64 128 256 --engine-envs 1024 --steps 64
"""

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from forethought.craftax.environment import CraftaxEnvironment
from forethought.environment import BatchedEnvironment

EPISODE_LIMIT = 4096


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = jax.block_until_ready(call())
    return time.perf_counter() - start, result


def rollout(env: BatchedEnvironment, steps: int) -> Callable[..., Any]:
    """A program that takes random actions."""

    def one(state: Any, key: Any) -> tuple[Any, Any]:
        actions = jax.random.randint(key, (env.num_envs,), 0, env.num_actions)
        state, observation, outcome = env.step(state, actions)
        return state, (jnp.sum(observation.cells), jnp.sum(observation.features), jnp.sum(outcome.done))

    def many(state: Any, key: Any) -> tuple[Any, Any]:
        state, sums = jax.lax.scan(one, state, jax.random.split(key, steps))
        return state, jax.tree.map(jnp.sum, sums)

    return jax.jit(many, donate_argnums=0)


def rate(env: BatchedEnvironment, goals: Any, steps: int, repeats: int) -> tuple[float, float]:
    """Steps/s in the median of some programs, and the share of steps that ended an episode."""
    program = rollout(env, steps)
    state, _ = env.reset(jax.random.key(0), goals)
    state, _ = program(state, jax.random.key(1))
    times, ended = [], 0.0
    for repeat in range(repeats):
        took, (state, sums) = seconds(lambda state=state, repeat=repeat: program(state, jax.random.key(2 + repeat)))
        times.append(took)
        ended += float(sums[2])
    return env.num_envs * steps / float(np.median(times)), ended / (repeats * steps * env.num_envs)


def worlds(env: BatchedEnvironment, goals: Any, made: int, repeats: int) -> float:
    """Worlds/s of a reset that makes `made` of them."""
    jax.block_until_ready(env.reset(jax.random.key(0), goals))
    times = [seconds(lambda repeat=repeat: env.reset(jax.random.key(repeat), goals))[0] for repeat in range(repeats)]
    return made / float(np.median(times))


def bare(env: Any, goals: Any, steps: int, repeats: int, threads: int) -> float:
    """Steps/s of the engine from NumPy."""
    import craftax_native as engine

    state = engine.new_state(env.num_envs, env._table, EPISODE_LIMIT, 1)
    cells, features = engine.new_observations(env.num_envs)
    keys = np.random.default_rng(0).integers(0, 2**32, (env.num_envs, 2), np.uint32)
    engine.reset(state, keys, np.asarray(goals, np.int32), cells, features, threads)
    success, terminated, truncated = np.zeros((3, env.num_envs), bool)
    actions = np.random.default_rng(1).integers(0, 43, (steps, env.num_envs)).astype(np.int32)
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        for action in actions:
            engine.step(state, action, cells, features, success, terminated, truncated, threads)
        times.append(time.perf_counter() - start)
    return env.num_envs * steps / float(np.median(times[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jax-envs", type=int, nargs="+", default=[64, 128, 256], help="numbers of environments")
    parser.add_argument("--engine-envs", type=int, nargs="+", default=[512, 1024], help="the same for the engine")
    parser.add_argument("--steps", type=int, default=64, help="steps in one program")
    parser.add_argument("--repeats", type=int, default=7, help="programs of which the median counts")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    print(f"{jax.devices()[0].device_kind}, {cores} cores, load {os.getloadavg()[0]:.1f}, jax {jax.__version__}\n")
    print("| environment | envs | worlds/s | steps/s | 1 step in n ends | bare steps/s |")
    print("|---|---|---|---|---|---|", flush=True)

    def row(name: str, env: Any, made: int, bare_rate: str = "") -> float:
        # A goal that random actions do not reach, so that episodes end by death and by the limit alone.
        goals = jnp.full(env.num_envs, env.goal_ids.index("reach_floor_8"), jnp.int32)
        made_rate = worlds(env, goals, made, arguments.repeats)
        speed, ended = rate(env, goals, arguments.steps, arguments.repeats)
        often = f"{1 / ended:.0f}" if ended else "never"
        print(f"| {name} | {env.num_envs} | {made_rate:.0f} | {speed:.0f} | {often} | {bare_rate} |", flush=True)
        return speed

    best_jax = 0.0
    for num_envs in arguments.jax_envs:
        env = CraftaxEnvironment(num_envs, episode_limit=EPISODE_LIMIT)
        best_jax = max(best_jax, row("JAX", env, env.pool_size))
    try:
        from forethought.craftax.engine import EngineEnvironment
    except ImportError as error:
        print(f"\nno engine: {error}")
        return
    best = {}
    for threads in sorted({1, cores}):
        for num_envs in arguments.engine_envs:
            env = EngineEnvironment(num_envs, episode_limit=EPISODE_LIMIT, threads=threads)
            goals = np.full(num_envs, env.goal_ids.index("reach_floor_8"))
            bare_rate = bare(env, goals, arguments.steps, arguments.repeats, threads)
            speed = row(f"engine, {threads} thread{'s' * (threads > 1)}", env, num_envs, f"{bare_rate:.0f}")
            best[threads] = max(best.get(threads, 0.0), speed)
    ratios = ", ".join(f"{speed / best_jax:.0f} times with {threads}" for threads, speed in best.items())
    print(f"\nthe engine's best over the best of JAX: {ratios} (threads)")


if __name__ == "__main__":
    main()
