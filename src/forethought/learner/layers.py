"""The few layers that all parts of the network share, with their initialisation."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

ROOT_2 = 2.0**0.5


class Linear(eqx.Module):
    """An affine map over the last axis, computed in the precision of its input."""

    weight: Float[Array, "fan_in fan_out"]
    bias: Float[Array, " fan_out"] | None

    def __call__(self, x: Float[Array, "*batch fan_in"]) -> Float[Array, "*batch fan_out"]:
        """Map the last axis."""
        return self.first(x) if self.bias is None else self.first(x) + self.bias.astype(x.dtype)

    def first(self, x: Float[Array, "*batch part"]) -> Float[Array, "*batch fan_out"]:
        """Map the leading coordinates of an input, without the bias."""
        return x @ self.weight[: x.shape[-1]].astype(x.dtype)

    def rest(self, x: Float[Array, "*batch part"]) -> Float[Array, "*batch fan_out"]:
        """Map the trailing coordinates of an input, with the bias: what `first` leaves over."""
        y = x @ self.weight[self.weight.shape[0] - x.shape[-1] :].astype(x.dtype)
        return y if self.bias is None else y + self.bias.astype(x.dtype)


class LayerNorm(eqx.Module):
    """Layer normalisation over the last axis, computed in float32."""

    scale: Float[Array, " width"]
    shift: Float[Array, " width"]

    def __call__(self, x: Float[Array, "*batch width"]) -> Float[Array, "*batch width"]:
        """Normalise the last axis; the precision of the input is kept."""
        y = x.astype(jnp.float32)
        y = y - y.mean(-1, keepdims=True)
        y = y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-6)
        return (y * self.scale + self.shift).astype(x.dtype)


def orthogonal(key: Key[Array, ""], fan_in: int, fan_out: int, gain: float) -> Linear:
    """A layer with orthogonal weights and a zero bias."""
    weight = jax.nn.initializers.orthogonal(gain)(key, (fan_in, fan_out), jnp.float32)
    return Linear(weight, jnp.zeros(fan_out, jnp.float32))


def lecun(key: Key[Array, ""], fan_in: int, fan_out: int, *, bias: bool = True) -> Linear:
    """A layer with LeCun normal weights and a zero bias or none."""
    weight = jax.nn.initializers.lecun_normal()(key, (fan_in, fan_out), jnp.float32)
    return Linear(weight, jnp.zeros(fan_out, jnp.float32) if bias else None)


def layer_norm(width: int) -> LayerNorm:
    """A normalisation that starts without scale or shift."""
    return LayerNorm(jnp.ones(width, jnp.float32), jnp.zeros(width, jnp.float32))
