"""Table 2: the settings that were tuned, the values tried and the value taken. The layout is the paper's."""

from dataclasses import dataclass
from fractions import Fraction

from forethought.experiments.tables.formats import Table


@dataclass(frozen=True)
class Tuned:
    """One setting."""

    name: str
    field: str
    """Its name in a run's configuration."""
    values: tuple[int | float, ...]
    """The values compared."""


TUNED = (
    Tuned("Learning rate", "ppo.learning_rate", (3e-5, 5e-5, 1e-4, 2e-4)),
    Tuned("Entropy coefficient", "ppo.entropy_coefficient", (0.005, 0.01)),
    Tuned("Discount γ", "ppo.discount", (0.995, 0.999, 1.0)),
    Tuned("GAE λ", "ppo.gae_lambda", (0.95, 0.97, 0.99)),
    Tuned("Minibatches of PPO", "ppo.minibatches", (4, 8)),
    Tuned("Steps of an environment in a rollout", "ppo.rollout_length", (256, 512)),
    Tuned("Steps the transformer remembers", "network.memory", (64, 128)),
    Tuned("Exponent of learning progress ρ", "curriculum.exponent", (1 / 2, 2 / 3, 1.0)),
    Tuned("Observations in the fit of learning progress", "curriculum.max_observations", (5, 7)),
    Tuned("Share of uniform sampling", "curriculum.exploration", (0.2, 0.3)),
)
"""The paper's Table 2; what was taken is the preset `paper`."""


def tuned_table() -> Table:
    """Table 2, the values taken read from the preset `paper`."""
    from forethought.config import read_layer

    preset = read_layer("paper")
    rows = []
    for tuned in TUNED:
        section, field = tuned.field.split(".")
        chosen = preset[section][field]
        rows.append((tuned.name, ", ".join(map(_number, tuned.values)), _number(chosen)))
    return Table(
        "What was tuned",
        ("setting", "values compared", "value taken"),
        tuple(rows),
        "The numerical settings that were tuned with ALP, uniform weights and primitive actions, before the "
        "experiments. Each was changed by itself, around a configuration kept for reference: no grid was searched.",
        "The suite `tuning` repeats these comparisons, on seeds that nothing else uses: `forethought sweep tuning`.",
    )


def _number(value: int | float) -> str:
    """A value as people write it: `2e-4`, `2/3`, `0.2`."""
    fraction = Fraction(value).limit_denominator(3)
    if abs(float(fraction) - value) < 1e-12:
        return str(fraction)
    mantissa, exponent = f"{value:e}".split("e")
    return f"{value:g}" if value >= 0.001 else f"{float(mantissa):g}e{int(exponent)}"
