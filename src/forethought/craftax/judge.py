"""Which goals a step reaches: the benchmark's, and one's own after them."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from craftax.craftax.craftax_state import EnvParams, EnvState, StaticEnvParams
from craftax.craftax.world_gen.world_gen import generate_world
from jaxtyping import Array, Bool

from forethought.craftax.own_goals import Goal
from forethought.craftax.success import benchmark_success, form_success

Judge = Callable[[EnvState, EnvState], Bool[Array, " goal"]]
"""From the states of one game before and after a step to the goals that it reaches."""


def make_judge(own: Sequence[Goal]) -> Judge:
    """The test of all goals together, for use in compiled programs.

    Raises:
        ValueError: a predicate cannot be compiled, or does not give one truth value.
    """
    if not own:
        return benchmark_success
    for goal in own:
        check_predicate(goal)

    def judge(previous: EnvState, state: EnvState) -> Bool[Array, " goal"]:
        mine = jnp.stack([jnp.asarray(own_success(goal, previous, state), bool) for goal in own])
        return jnp.concatenate([benchmark_success(previous, state), mine])

    return judge


def own_success(goal: Goal, previous: EnvState, state: EnvState) -> Any:
    """Whether a step reaches a goal of one's own."""
    if goal.reached is not None:
        return goal.reached(previous, state)
    assert goal.spec is not None
    return form_success(goal.spec, previous, state)


def check_predicate(goal: Goal) -> None:
    """Try a goal's predicate without running it.

    Raises:
        ValueError: it cannot be compiled, or does not give one truth value.
    """
    state = _state_shapes()
    try:
        result = jax.eval_shape(lambda before, after: own_success(goal, before, after), state, state)
    except Exception as error:
        why = str(error).strip().splitlines()[0] if str(error).strip() else ""
        hint = ""
        if isinstance(error, jax.errors.ConcretizationTypeError | jax.errors.TracerArrayConversionError):
            hint = "; write & | ~ for and, or, not, and jax.numpy for NumPy and if"
        raise ValueError(
            f"goal {goal.id!r}: its predicate cannot be compiled ({type(error).__name__}: {why}){hint}"
        ) from error
    if not isinstance(result, jax.ShapeDtypeStruct) or result.shape or not jnp.issubdtype(result.dtype, jnp.bool):
        raise ValueError(f"goal {goal.id!r}: its predicate gives {_named(result)}; it must give one truth value")


def _named(result: Any) -> str:
    is_array = isinstance(result, jax.ShapeDtypeStruct)
    return f"{result.dtype} of shape {result.shape}" if is_array else f"a {type(result).__name__}"


@lru_cache
def _state_shapes() -> EnvState:
    """A game's state as shapes and types."""
    return jax.eval_shape(
        lambda key: jax.tree.map(jnp.asarray, generate_world(key, EnvParams(), StaticEnvParams())), jax.random.key(0)
    )
