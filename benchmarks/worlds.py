"""How many generated worlds of the native engine differ from Craftax's own, and how fast each makes them.

    python benchmarks/worlds.py --worlds 10240

A floor counts as different if any cell or ladder differs. The engine makes the first floor of a world at once and
the others when they are entered; both are timed, on one thread. Speeds are those of the fastest batch
(of the other floors the median, as they are a difference of two timings).
"""

import argparse
import time
from operator import attrgetter

import jax
import numpy as np
from craftax.craftax.craftax_state import EnvParams, StaticEnvParams
from craftax.craftax.world_gen.world_gen import generate_world

from craftax_native import _core

BY_FLOOR = {
    "blocks": ("map",),
    "items": ("item_map",),
    "light": ("light_map",),
    "ladders": ("down_ladders", "up_ladders"),
}
FLOORS = 9
BATCH = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=10_240)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    rng = np.random.default_rng(args.seed)
    generate = jax.jit(jax.vmap(lambda key: generate_world(key, EnvParams(), StaticEnvParams())))
    jax.block_until_ready(generate(rng.integers(0, 2**32, (BATCH, 2), np.uint32)))  # compiles
    state = _core.new_state(BATCH)
    made = _core.export_all(state)
    different = {part: np.zeros(FLOORS, int) for part in (*BY_FLOOR, "any")}
    others = {name: 0 for name in made if not any(name in names for names in BY_FLOOR.values())}
    worlds = 0
    reference_seconds, first_seconds, other_seconds = [], [], []
    while worlds < args.worlds:
        keys = rng.integers(0, 2**32, (BATCH, 2), np.uint32)
        started = time.perf_counter()
        reference = jax.block_until_ready(generate(keys))
        reference_seconds.append(time.perf_counter() - started)
        started = time.perf_counter()
        _core.generate(state, keys)
        first_seconds.append(time.perf_counter() - started)
        started = time.perf_counter()
        _core.export_all(state, made)
        makes_and_copies = time.perf_counter() - started
        started = time.perf_counter()
        _core.export_all(state, made)
        other_seconds.append(makes_and_copies - (time.perf_counter() - started))

        expected = {name: np.asarray(attrgetter(name)(reference)) for name in made}
        wrong = {
            part: np.logical_or.reduce(
                [(made[name] != expected[name]).reshape(BATCH, FLOORS, -1).any(axis=-1) for name in names]
            )
            for part, names in BY_FLOOR.items()
        }
        wrong["any"] = np.logical_or.reduce(list(wrong.values()))
        for part, floors in wrong.items():
            different[part] += floors.sum(axis=0)
        for name in others:
            others[name] += int((made[name] != expected[name]).reshape(BATCH, -1).any(axis=-1).sum())
        worlds += BATCH

    print(f"Worlds that differ, of {worlds}, by floor")
    print(f"{'floor':>5}" + "".join(f"{part:>9}" for part in different))
    for floor in range(FLOORS):
        print(f"{floor:>5}" + "".join(f"{counts[floor]:>9}" for counts in different.values()))
    print("Other fields that differ:", {name: count for name, count in others.items() if count} or "none")
    print("\nWorlds/s")
    first = min(first_seconds)
    print(f"reference, all floors:   {BATCH / min(reference_seconds):>9.0f}")
    print(f"engine, first floor:     {BATCH / first:>9.0f}")
    print(f"engine, all nine floors: {BATCH / (first + float(np.median(other_seconds))):>9.0f}")


if __name__ == "__main__":
    main()
