"""Measure the Craftax environment alone: compile times, worlds/s, and steps/s with random actions.

Steps include observations, all goal tests and restarts, inside one `lax.scan` with a donated state. The last
column ends one environment in eight on every step, to show what restarts cost.

    python benchmarks/environment.py --envs 64 128 256
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from forethought.craftax.environment import CraftaxEnvironment


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = jax.block_until_ready(call())
    return time.perf_counter() - start, result


def rollout(env: CraftaxEnvironment, steps: int, deaths: int) -> Callable[..., Any]:
    """A program that takes random actions, and ends `deaths` environments on every step."""

    def one(state: Any, key: Any) -> tuple[Any, Any]:
        actions = jax.random.randint(key, (env.num_envs,), 0, env.num_actions)
        if deaths:
            chosen = jax.random.permutation(key, env.num_envs)[:deaths]
            health = state.game.player_health.at[chosen].set(-50.0)
            state = state._replace(game=state.game.replace(player_health=health))
        state, observation, outcome = env.step(state, actions)
        return state, (jnp.sum(observation.cells), jnp.sum(observation.features), jnp.sum(outcome.done))

    def many(state: Any, key: Any) -> tuple[Any, Any]:
        state, sums = jax.lax.scan(one, state, jax.random.split(key, steps))
        return state, jax.tree.map(jnp.sum, sums)

    return jax.jit(many, donate_argnums=0)


def measure(num_envs: int, steps: int, repeats: int) -> None:
    env = CraftaxEnvironment(num_envs)
    goals = jnp.arange(num_envs, dtype=jnp.int32) % len(env.goal_ids)
    first_reset, _ = seconds(lambda: env.reset(jax.random.key(0), goals))
    reset, (state, _) = seconds(lambda: env.reset(jax.random.key(1), goals))
    rates = []
    compiling = 0.0
    for deaths in (0, num_envs // 8):
        program = rollout(env, steps, deaths)
        first, (state, _) = seconds(lambda program=program, state=state: program(state, jax.random.key(2)))
        times = []
        for repeat in range(repeats):
            took, (state, _) = seconds(
                lambda program=program, state=state, repeat=repeat: program(state, jax.random.key(3 + repeat))
            )
            times.append(took)
        rates.append(num_envs * steps / min(times))
        compiling = compiling or first - min(times)
    print(
        f"| {num_envs} | {first_reset - reset:.1f} | {compiling:.1f} | {env.pool_size / reset:.0f} "
        f"| {rates[0]:.0f} | {rates[1]:.0f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, nargs="+", default=[64, 128, 256], help="numbers of environments")
    parser.add_argument("--steps", type=int, default=64, help="steps in one program")
    parser.add_argument("--repeats", type=int, default=5, help="runs of which the fastest counts")
    arguments = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}\n")
    print("| envs | compile worlds (s) | compile step (s) | worlds/s | steps/s | steps/s, 1 in 8 ends |")
    print("|---|---|---|---|---|---|")
    for num_envs in arguments.envs:
        measure(num_envs, arguments.steps, arguments.repeats)


if __name__ == "__main__":
    main()
