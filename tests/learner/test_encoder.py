import jax
import jax.numpy as jnp

from forethought.learner.encoder import convolve, convolve_by_columns


def test_both_convolutions_agree():
    x = jax.random.normal(jax.random.key(0), (2, 4, 5, 3))
    kernel = jax.random.normal(jax.random.key(1), (3, 3, 3, 6))
    assert jnp.abs(convolve(x, kernel) - convolve_by_columns(x, kernel)).max() < 1e-4
