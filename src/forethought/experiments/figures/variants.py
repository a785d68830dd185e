"""What a variant's name says: `L=1`, `alpha=3`, `share=0.5`, several joined by commas, or nothing for the default."""

DEFAULTS = {"L": 2.0, "alpha": 1.0, "share": 1.0}
"""Longest path, downstream coefficient, and the target's share of the weight, as in the main experiments."""


def settings(variant: str) -> dict[str, float]:
    """Every setting of a variant, those it does not name at their defaults.

    >>> settings("L=1")
    {'L': 1.0, 'alpha': 1.0, 'share': 1.0}

    Raises:
        ValueError: for a part that is not NAME=NUMBER with a known name.
    """
    found = dict(DEFAULTS)
    for part in filter(None, variant.replace(" ", "").split(",")):
        name, equals, value = part.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = None
        if name not in DEFAULTS or not equals or number is None:
            raise ValueError(f"variant is {variant!r}; allowed are {', '.join(DEFAULTS)} =NUMBER, joined by commas")
        found[name] = number
    return found


def changes_only(variant: str, *names: str) -> bool:
    """Whether a variant leaves everything but the named settings as in the main experiments.

    >>> changes_only("L=1", "L", "alpha"), changes_only("share=0.5", "L"), changes_only("gamma=1", "L")
    (True, False, False)
    """
    try:
        found = settings(variant)
    except ValueError:
        return False
    return all(found[name] == default for name, default in DEFAULTS.items() if name not in names)
