"""`forethought doctor`: the state of the installation."""

from collections.abc import Sequence


def command(arguments: Sequence[str]) -> int:
    """Run `forethought doctor`."""
    from forethought.cli.parsing import call

    return call(doctor, arguments, "forethought doctor")


def doctor() -> int:
    """Print versions, devices, caches, disk space and hashes of the shipped data, for a bug report."""
    from forethought.doctor import examine

    for name, value in examine():
        print(f"{name:31}{value}")
    return 0
