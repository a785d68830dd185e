"""What the engine's tests share: the way to the helpers beside them, and the recorded games."""

import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

collect_ignore = ["conformance"]
if importlib.util.find_spec("craftax_native") is None:  # without a compiler there is no engine to test
    collect_ignore_glob = ["*.py"]


@pytest.fixture(scope="session")
def recorded_games() -> Path:
    """The file of Craftax's own games, recorded if need be, which takes minutes."""
    from conformance import cached

    return cached.recorded_games()
