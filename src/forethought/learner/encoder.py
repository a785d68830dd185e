"""From an observation to a vector: embedded cells through convolutions, and a layer for the rest (C.2)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from forethought.environment import Observation
from forethought.learner.config import NetworkConfig
from forethought.learner.layers import ROOT_2, Linear, orthogonal
from forethought.spec import ObservationSpec


class Convolution(eqx.Module):
    """A 3x3 convolution with zero padding that keeps the grid's size."""

    kernel: Float[Array, "3 3 fan_in fan_out"]
    bias: Float[Array, " fan_out"]

    def __call__(self, x: Float[Array, "batch height width fan_in"]) -> Float[Array, "batch height width fan_out"]:
        """Convolve the grid."""
        kernel = self.kernel.astype(x.dtype)
        # XLA's convolution takes 40 times as long inside a loop as outside one on a CPU.
        y = jax.lax.platform_dependent(x, kernel, cpu=convolve_by_columns, default=convolve)
        return y + self.bias.astype(x.dtype)


class Encoder(eqx.Module):
    """The observation encoder."""

    tables: tuple[Float[Array, "_ embedding"], ...]
    project: Linear
    convolutions: tuple[Convolution, ...]
    features: Linear
    output: Linear
    offsets: tuple[int, ...] = eqx.field(static=True)
    """Where the ids of each channel start among the rows of all tables."""

    def __call__(self, observation: Observation, dtype: jnp.dtype) -> Float[Array, "batch units"]:
        """Embed observations that have one batch axis, computing in the precision given."""
        batch, height, width, _ = observation.cells.shape
        grid = jax.nn.gelu(self._cells(observation, dtype))
        for convolution in self.convolutions:
            grid = jax.nn.gelu(convolution(grid))
        features = jax.nn.gelu(self.features(observation.features.astype(dtype)))
        flat = jnp.concatenate([grid.reshape(batch, height * width * grid.shape[-1]), features], axis=-1)
        return jax.nn.gelu(self.output(flat))

    def _cells(self, observation: Observation, dtype: jnp.dtype) -> Float[Array, "batch height width features"]:
        """Look up, concatenate and project each cell's embeddings.

        All this is linear, so the projection is applied to the tables' few rows instead of to all the cells.
        """
        rows, start = [], 0
        for table in self.tables:
            stop = start + table.shape[1]
            rows.append(table @ self.project.weight[start:stop])
            start = stop
        folded = jnp.concatenate(rows).astype(dtype)
        total = self.project.rest(jnp.zeros((1, 0), dtype))
        for channel, offset in enumerate(self.offsets):
            row = observation.cells[..., channel].astype(jnp.int32) + offset
            total = total + folded.at[row].get(mode="clip")
        return total


def convolve(
    x: Float[Array, "batch height width fan_in"], kernel: Float[Array, "3 3 fan_in fan_out"]
) -> Float[Array, "batch height width fan_out"]:
    """Convolve with the library's convolution."""
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def convolve_by_columns(
    x: Float[Array, "batch height width fan_in"], kernel: Float[Array, "3 3 fan_in fan_out"]
) -> Float[Array, "batch height width fan_out"]:
    """Convolve by one matrix product over each cell's neighbourhood."""
    height, width = x.shape[1:3]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    shifted = [padded[:, i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return jnp.concatenate(shifted, axis=-1) @ kernel.reshape(-1, kernel.shape[-1])


def make_encoder(key: Key[Array, ""], spec: ObservationSpec, config: NetworkConfig) -> Encoder:
    """Initialise an encoder for observations as specified."""
    keys = iter(jax.random.split(key, len(spec.tables) + config.convolutions + 3))
    embedding = config.cell_embedding
    tables = tuple(jax.random.normal(next(keys), (table.rows, embedding), jnp.float32) / 4.0 for table in spec.tables)
    channels, convolutions = config.cell_features, []
    for _ in range(config.convolutions):
        shape = (3, 3, channels, config.channels)
        kernel = jax.nn.initializers.orthogonal(ROOT_2)(next(keys), shape, jnp.float32)
        convolutions.append(Convolution(kernel, jnp.zeros(config.channels, jnp.float32)))
        channels = config.channels
    flat = spec.height * spec.width * channels + config.feature_units
    starts = np.cumsum([0] + [table.rows for table in spec.tables])
    offsets = [int(start) for start, table in zip(starts, spec.tables, strict=False) for _ in range(table.channels)]
    return Encoder(
        tables=tables,
        project=orthogonal(next(keys), embedding * len(spec.tables), config.cell_features, ROOT_2),
        convolutions=tuple(convolutions),
        features=orthogonal(next(keys), spec.features, config.feature_units, ROOT_2),
        output=orthogonal(next(keys), flat, config.observation_units, ROOT_2),
        offsets=tuple(offsets),
    )
