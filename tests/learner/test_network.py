import jax
import pytest

from forethought.learner import NetworkConfig
from forethought.learner.network import make_network
from forethought.spec import CellTable, ObservationSpec

CRAFTAX = ObservationSpec(
    9, 11, (CellTable("block", 37), CellTable("item", 5), CellTable("creature", 41, 5), CellTable("visible", 2)), 51
)


def test_parameter_total_is_the_papers():
    made = jax.eval_shape(lambda k: make_network(k, CRAFTAX, 43, 512, NetworkConfig()), jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(made)) == 6_169_564


@pytest.mark.parametrize(("wrong", "named"), [({"heads": 3}, "heads"), ({"memory": 0}, "memory")])
def test_sizes_are_checked(wrong, named):
    with pytest.raises(ValueError, match=named):
        NetworkConfig(**wrong)
