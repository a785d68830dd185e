import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forethought.learner.rollout import steps_on_host
from forethought.toy import ToyEnvironment


@pytest.mark.parametrize("subroutines", [False, True])
def test_stepping_on_the_host_gives_the_rollouts_of_one_program(tiny, subroutines):
    results = []
    for host_loop in (False, True):
        learner, state = tiny(ToyEnvironment(4, episode_limit=9), subroutines=subroutines, host_loop=host_loop)
        rollout = learner.begin(jax.random.key(1), np.asarray([7, 3, 8, 5]), np.ones(9, bool))
        reports = []
        for number in range(3):
            state, rollout, update = learner.update(state, rollout, jax.random.key(number))
            reports.append(update)
        results.append((state, rollout, reports))
    (state, rollout, reports), (other, on_host, others) = results
    for one, two in zip(reports, others, strict=True):
        assert (one.done == two.done).all()
        assert (one.success == two.success).all()
        assert (one.calls == two.calls).all()
    assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), rollout.environment, on_host.environment))
    assert (rollout.age == on_host.age).all()
    assert jax.tree.all(jax.tree.map(lambda a, b: jnp.abs(a - b).max() < 1e-4, state.network, other.network))


def test_environments_step_in_the_program_where_both_are_on_one_device():
    environment = ToyEnvironment(2)
    assert not steps_on_host(environment)
    environment.on_host = True
    assert not steps_on_host(environment)  # the tests compute on a CPU
