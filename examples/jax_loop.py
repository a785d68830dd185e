"""A whole training loop in one compiled program: many runs at once, the curriculum carried along by `lax.scan`.

pip install 'forethought[jax]'
python examples/jax_loop.py

The learners are simulated: a chain of tasks, each of which can be learnt once the one before it is known. All that
counts is the last.
"""

import jax
import jax.numpy as jnp
import numpy as np

from forethought import CurriculumConfig, FeasibilityEvidence, LearningConnectivity, Task, TaskSet
from forethought.adapters import jax as fx

LINKS, EPISODES, ITERATIONS, RUNS = 10, 32, 150, 16
TASKS = TaskSet([Task(f"link-{n + 1}", f"Reach link {n + 1}.") for n in range(LINKS)]).with_target(f"link-{LINKS}")


def curriculum(method):
    """Each link helps with the next, and shows that it is ready to be tried."""
    chain = np.eye(LINKS, k=1)
    return fx.init(
        TASKS,
        connectivity=LearningConnectivity.from_weights(TASKS.ids, chain),
        feasibility=FeasibilityEvidence.from_weights(TASKS.ids, chain, from_scratch=np.eye(LINKS)[0]),
        method=method,
        config=CurriculumConfig(warmup=4, max_path_length=LINKS),
    )


def practise(skill, chosen):
    """Each episode on a task adds to its skill, if the task before it is known well enough."""
    known = jnp.concatenate([jnp.ones(1), skill[:-1]]) > 0.6
    return jnp.minimum(skill + 0.01 * jnp.bincount(chosen, length=LINKS) * known, 1.0)


def iteration(carry, key):
    """Choose tasks, play an episode of each, learn, and tell the curriculum."""
    state, skill = carry
    draw, play = jax.random.split(key)
    chosen = fx.sample(state, draw, EPISODES)
    successes = jax.random.bernoulli(play, skill[chosen])
    skill = practise(skill, chosen)
    return (fx.update(state, chosen, successes), skill), (skill[-1], fx.probabilities(state))


@jax.jit
def run(state, key):
    """One run; returns the last link's skill [iteration] and the sampling [iteration link]."""
    return jax.lax.scan(iteration, (state, jnp.zeros(LINKS)), jax.random.split(key, ITERATIONS))[1]


def compare(methods=("unif", "alp+d", "alp+d+f"), runs=RUNS):
    """Method -> the last link's skill [run iteration] and the sampling [run iteration link]."""
    keys = jax.random.split(jax.random.key(0), runs)
    return {method: jax.vmap(run, in_axes=(None, 0))(curriculum(method), keys) for method in methods}


if __name__ == "__main__":
    for name, (skill, sampling) in compare().items():
        print(
            f"{name}: skill at the last link after {ITERATIONS} iterations {skill[:, -1].mean():.2f}, what was sampled:"
        )
        for when in range(ITERATIONS // 5 - 1, ITERATIONS, ITERATIONS // 5):
            print(f"  iteration {when + 1:3}: {np.asarray(sampling[:, when].mean(0)).round(2)}")
