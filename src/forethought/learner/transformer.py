"""One block of the gated Transformer-XL (Parisotto et al. 2020), for single steps and for windows of steps.

Both ways compute the same function. A step attends to itself and to earlier steps at most `memory` away, as
far as its episode reaches back, with relative positions as in Transformer-XL (Dai et al. 2019).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from forethought.learner.layers import LayerNorm, Linear, layer_norm, lecun

_MASKED = -1e30


class Gate(eqx.Module):
    """A gate in the form of a recurrent unit, in place of a residual connection."""

    from_output: Float[Array, "width triple"]
    """Weights from the sublayer to reset, update and candidate."""
    from_stream: Float[Array, "width double"]
    """Weights from the residual stream to reset and update."""
    from_reset: Float[Array, "width width"]
    """Weights from the reset stream to the candidate."""
    bias: Float[Array, " width"]
    """Added against updating: with a large bias the gate passes the stream unchanged."""

    def __call__(
        self, stream: Float[Array, "*batch width"], output: Float[Array, "*batch width"]
    ) -> Float[Array, "*batch width"]:
        """Merge a sublayer's output into the residual stream."""
        width, dtype = stream.shape[-1], stream.dtype
        y = output @ self.from_output.astype(dtype)
        x = stream @ self.from_stream.astype(dtype)
        reset = jax.nn.sigmoid(y[..., :width] + x[..., :width])
        update = jax.nn.sigmoid(y[..., width : 2 * width] + x[..., width:] - self.bias.astype(dtype))
        candidate = jnp.tanh(y[..., 2 * width :] + (reset * stream) @ self.from_reset.astype(dtype))
        return (1 - update) * stream + update * candidate


class Block(eqx.Module):
    """Attention and feed-forward layer, each normalised at its input and gated at its output."""

    norm_attention: LayerNorm
    query_key_value: Linear
    position: Linear
    content_bias: Float[Array, "heads head_width"]
    position_bias: Float[Array, "heads head_width"]
    attention_output: Linear
    gate_attention: Gate
    norm_feedforward: LayerNorm
    expand: Linear
    contract: Linear
    gate_feedforward: Gate

    def positions(self, memory: int) -> Float[Array, "distance heads head_width"]:
        """Project the codes of the distances 0 to `memory`."""
        heads, head_width = self.content_bias.shape
        codes = jnp.asarray(_sinusoids(memory + 1, heads * head_width))
        return self.position(codes).reshape(memory + 1, heads, head_width)

    def keys_values(
        self, hidden: Float[Array, "batch time width"]
    ) -> tuple[Float[Array, "batch heads time head_width"], Float[Array, "batch heads time head_width"]]:
        """Keys and values of inputs to this block."""
        width = hidden.shape[-1]
        layer = Linear(self.query_key_value.weight[:, width:], _tail(self.query_key_value.bias, width))
        both = layer(self.norm_attention(hidden))
        return self._heads(both[..., :width]), self._heads(both[..., width:])

    def step(
        self,
        x: Float[Array, "env width"],
        keys: Float[Array, "env heads slot head_width"],
        values: Float[Array, "env heads slot head_width"],
        positions: Float[Array, "slot heads head_width"],
        slot: Int[Array, ""],
        visible: Bool[Array, "env slot"],
    ) -> tuple[
        Float[Array, "env width"],
        Float[Array, "env heads slot head_width"],
        Float[Array, "env heads slot head_width"],
    ]:
        """Process one step of each environment.

        Args:
            x: Inputs.
            keys: Cached keys; the slot of this step is overwritten.
            values: Cached values, likewise.
            positions: Projected position of each slot as seen from this step.
            slot: The slot of this step.
            visible: Which slots each environment may attend to.

        Returns:
            Outputs, and the keys and values with this step's.
        """
        env, width = x.shape
        heads, head_width = self.content_bias.shape
        query, key, value = jnp.split(self.query_key_value(self.norm_attention(x)), 3, axis=-1)
        query = query.reshape(env, heads, head_width)
        new_key = key.reshape(env, heads, 1, head_width)
        new_value = value.reshape(env, heads, 1, head_width)
        keys = jax.lax.dynamic_update_slice_in_dim(keys, new_key, slot, axis=2)
        values = jax.lax.dynamic_update_slice_in_dim(values, new_value, slot, axis=2)
        dtype = x.dtype
        content = jnp.einsum("ehd,ehsd->ehs", query + self.content_bias.astype(dtype), keys)
        position = jnp.einsum("ehd,shd->ehs", query + self.position_bias.astype(dtype), positions.astype(dtype))
        weights = _softmax(content + position, head_width, visible[:, None])
        attended = jnp.einsum("ehs,ehsd->ehd", weights, values).reshape(env, width)
        return self._finish(x, attended), keys, values

    def window(
        self,
        x: Float[Array, "batch time width"],
        memory: Float[Array, "batch memory width"],
        visible: Bool[Array, "batch time span"],
    ) -> Float[Array, "batch time width"]:
        """Process a window of steps, attending to it and to the remembered inputs of the steps before it.

        Args:
            x: Inputs.
            memory: Inputs of the steps before, the latest last.
            visible: Which of memory and window, in this order, each step may attend to.
        """
        batch, time, width = x.shape
        slots = memory.shape[1]
        _, head_width = self.content_bias.shape
        query, key, value = jnp.split(self.query_key_value(self.norm_attention(x)), 3, axis=-1)
        old_keys, old_values = self.keys_values(memory)
        keys = jnp.concatenate([old_keys, self._heads(key)], axis=2)
        values = jnp.concatenate([old_values, self._heads(value)], axis=2)
        query, dtype = self._heads(query), x.dtype
        content = jnp.einsum("bhqd,bhkd->bhqk", query + self.content_bias.astype(dtype)[:, None], keys)
        positions = self.positions(slots)[::-1].astype(dtype)
        by_distance = jnp.einsum("bhqd,khd->bhqk", query + self.position_bias.astype(dtype)[:, None], positions)
        weights = _softmax(content + _skew(by_distance), head_width, visible[:, None])
        attended = jnp.einsum("bhqk,bhkd->bqhd", weights, values).reshape(batch, time, width)
        return self._finish(x, attended)

    def _finish(
        self, x: Float[Array, "*batch width"], attended: Float[Array, "*batch width"]
    ) -> Float[Array, "*batch width"]:
        x = self.gate_attention(x, jax.nn.relu(self.attention_output(attended)))
        inner = jax.nn.gelu(self.expand(self.norm_feedforward(x)))
        return self.gate_feedforward(x, jax.nn.relu(self.contract(inner)))

    def _heads(self, x: Float[Array, "batch time width"]) -> Float[Array, "batch heads time head_width"]:
        batch, time, _ = x.shape
        return x.reshape(batch, time, *self.content_bias.shape).swapaxes(1, 2)


def make_block(key: Key[Array, ""], width: int, heads: int, feedforward: int, gate_bias: float) -> Block:
    """Initialise a block: LeCun normal weights, zero biases but for the gates'."""
    keys = jax.random.split(key, 7)
    zeros = jnp.zeros((heads, width // heads), jnp.float32)
    return Block(
        norm_attention=layer_norm(width),
        query_key_value=lecun(keys[0], width, 3 * width),
        position=lecun(keys[1], width, width, bias=False),
        content_bias=zeros,
        position_bias=jnp.array(zeros),
        attention_output=lecun(keys[2], width, width),
        gate_attention=_make_gate(keys[3], width, gate_bias),
        norm_feedforward=layer_norm(width),
        expand=lecun(keys[4], width, feedforward),
        contract=lecun(keys[5], feedforward, width),
        gate_feedforward=_make_gate(keys[6], width, gate_bias),
    )


def _make_gate(key: Key[Array, ""], width: int, bias: float) -> Gate:
    keys = jax.random.split(key, 3)
    return Gate(
        from_output=lecun(keys[0], width, 3 * width, bias=False).weight,
        from_stream=lecun(keys[1], width, 2 * width, bias=False).weight,
        from_reset=lecun(keys[2], width, width, bias=False).weight,
        bias=jnp.full(width, bias, jnp.float32),
    )


def _sinusoids(count: int, width: int) -> np.ndarray:
    """Sines and cosines of the distances 0 to `count - 1`."""
    rates = 10000.0 ** (-np.arange(0, width, 2) / width)
    angles = np.arange(count)[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def _softmax(
    scores: Float[Array, "*batch key"], head_width: int, visible: Bool[Array, "*#batch key"]
) -> Float[Array, "*batch key"]:
    scaled = scores.astype(jnp.float32) * head_width**-0.5
    return jax.nn.softmax(jnp.where(visible, scaled, _MASKED), axis=-1).astype(scores.dtype)


def _skew(scores: Float[Array, "batch heads time distance"]) -> Float[Array, "batch heads time span"]:
    """Move row i by i places to the right: from distances (farthest first) to places in memory and window."""
    batch, heads, time, distances = scores.shape
    padded = jnp.pad(scores, ((0, 0), (0, 0), (0, 0), (0, time)))
    flat = padded.reshape(batch, heads, time * (distances + time))[..., :-time]
    return flat.reshape(batch, heads, time, distances + time - 1)


def _tail(bias: Float[Array, " fan"] | None, start: int) -> Float[Array, " part"] | None:
    return None if bias is None else bias[start:]
