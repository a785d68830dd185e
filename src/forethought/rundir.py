"""What a run leaves behind: one directory with its configuration, records and checkpoints.

    config.toml            the resolved configuration
    meta.json              versions, git commit, command line, device, digests of goals and graphs
    metrics.jsonl          one line an iteration
    curriculum-*.parquet   one row a task and iteration
    evaluations.parquet    one row a goal and evaluation
    checkpoints/           see `forethought.checkpoint`

Records are appended in step with the checkpoints: rows of the curriculum reach the disk before the checkpoint
that covers them, and `rewind` drops everything a checkpoint does not cover. So a run that was killed and
continued leaves the records of one that was not.
"""

import fcntl
import json
import math
import os
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forethought.files import replacing, sync_directory

if TYPE_CHECKING:
    import polars as pl

Columns = Mapping[str, Sequence[Any] | np.ndarray]
"""A table, by column."""

CONFIG = "config.toml"
META = "meta.json"
METRICS = "metrics.jsonl"
EVALUATIONS = "evaluations.parquet"

WALL_TIME_FIELDS = ("seconds", "steps_per_second")
"""Fields of `metrics.jsonl` that differ between two runs of the same configuration."""

CURRICULUM_COLUMNS = {
    "iteration": "Int64",
    "task": "String",
    "probability": "Float64",
    "effective_share": "Float64",
    "success_rate": "Float64",
    "learning_progress": "Float64",
    "downstream_potential": "Float64",
    "feasibility": "Float64",
    "selections": "Int64",
    "episodes": "Int64",
    "successes": "Float64",
    "calls": "Int64",
}
EVALUATION_COLUMNS = {
    "iteration": "Int64",
    "steps": "Int64",
    "goal": "String",
    "episodes": "Int64",
    "successes": "Int64",
    "first_step_successes": "Int64",
    "episodes_with_call": "Int64",
    "successes_with_call": "Int64",
    "success_rate": "Float64",
    "wilson_low": "Float64",
    "wilson_high": "Float64",
}


class RunDirectory:
    """One run's directory, open for reading, and for writing while `locked`."""

    def __init__(self, path: str | Path):
        """Open an existing run.

        Raises:
            ValueError: If `path` is no run directory.
        """
        self.path = Path(path)
        if not (self.path / CONFIG).is_file() or not (self.path / META).is_file():
            raise ValueError(f"{self.path} is not a run directory: it has no {CONFIG} and {META}")
        self._rows: list[Columns] = []
        self._first_row_iteration = 0
        self._last_row_iteration = 0

    @classmethod
    def create(cls, path: str | Path, config: str, meta: Mapping[str, Any]) -> "RunDirectory":
        """Make a new run directory, whole or not at all.

        Args:
            path: Where; must not exist.
            config: The text of `config.toml`.
            meta: The content of `meta.json`.

        Raises:
            ValueError: If it exists or cannot be written.
        """
        path = Path(path)
        check_new(path)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        made = [parent for parent in path.parents if not parent.exists()]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.mkdir()
            (temporary / CONFIG).write_text(config, encoding="utf-8")
            (temporary / META).write_text(_json(meta, indent=1) + "\n", encoding="utf-8")
            temporary.rename(path)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            for parent in made:
                if parent.is_dir():
                    parent.rmdir()
            raise ValueError(f"run directory {path} cannot be written: {error.strerror or error}") from error
        return cls(path)

    @property
    def checkpoints(self) -> Path:
        """Where the checkpoints lie."""
        return self.path / "checkpoints"

    @property
    def config_text(self) -> str:
        """The text of `config.toml`."""
        return (self.path / CONFIG).read_text(encoding="utf-8")

    @property
    def meta(self) -> dict[str, Any]:
        """The content of `meta.json`."""
        return json.loads((self.path / META).read_text(encoding="utf-8"))

    def write_meta(self, meta: Mapping[str, Any]) -> None:
        """Replace `meta.json`."""
        with replacing(self.path / META) as temporary:
            temporary.write_text(_json(meta, indent=1) + "\n", encoding="utf-8")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run for this process; the system lets go of it when the process ends, however it ends.

        Raises:
            ValueError: If another process holds it, or the directory cannot be written.
        """
        try:
            file = open(self.path / ".lock", "a+", encoding="utf-8")  # noqa: SIM115 - held until the end
        except OSError as error:
            raise ValueError(f"run directory {self.path} cannot be written: {error.strerror}") from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                file.seek(0)
                holder = file.read().strip() or "another process"
                raise ValueError(f"run directory {self.path} is in use by {holder}") from error
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
            yield
            file.truncate(0)

    def record_metrics(self, row: Mapping[str, Any]) -> None:
        """Append one line to `metrics.jsonl`; numbers that are not finite become null."""
        with open(self.path / METRICS, "a", encoding="utf-8") as file:
            file.write(_json(row) + "\n")

    def record_curriculum(self, iteration: int, columns: Columns) -> None:
        """Keep one iteration's rows (a column each, without `iteration`) until `flush`."""
        if not self._rows:
            self._first_row_iteration = iteration
        self._last_row_iteration = iteration
        self._rows.append({"iteration": [iteration] * len(columns["task"]), **columns})

    def flush(self) -> None:
        """Force all records to disk; call before saving a checkpoint."""
        if self._rows:
            import polars as pl

            name = f"curriculum-{self._first_row_iteration:07d}-{self._last_row_iteration:07d}.parquet"
            table = pl.concat([_table(rows, CURRICULUM_COLUMNS) for rows in self._rows])
            _write_parquet(table, self.path / name)
            self._rows.clear()
        if (self.path / METRICS).exists():
            with open(self.path / METRICS, "a", encoding="utf-8") as file:
                os.fsync(file.fileno())
        sync_directory(self.path)

    def record_evaluation(self, columns: Columns) -> None:
        """Add one whole evaluation to `evaluations.parquet`, at once."""
        import polars as pl

        table = pl.concat([self.evaluations(), _table(columns, EVALUATION_COLUMNS)])
        _write_parquet(table, self.path / EVALUATIONS)

    def rewind(self, iteration: int) -> None:
        """Drop every record beyond `iteration`, and a torn last line."""
        self._rows.clear()
        kept, dropped = [], False
        for line in self._metric_lines():
            row = _parse(line)
            if row is not None and row["iteration"] <= iteration:
                kept.append(line if line.endswith(b"\n") else line + b"\n")
            dropped |= row is None or row["iteration"] > iteration or not line.endswith(b"\n")
        if dropped:
            with replacing(self.path / METRICS) as temporary:
                temporary.write_bytes(b"".join(kept))
        for part in self._parts():
            first, last = (int(number) for number in part.stem.split("-")[1:])
            if first > iteration:
                part.unlink()
            elif last > iteration:
                import polars as pl

                table = pl.read_parquet(part).filter(pl.col("iteration") <= iteration)
                _write_parquet(table, part.with_name(f"curriculum-{first:07d}-{iteration:07d}.parquet"))
                part.unlink()
        evaluations = self.evaluations()
        if len(evaluations) and evaluations["iteration"].max() > iteration:  # pyright: ignore
            _write_parquet(evaluations.filter(evaluations["iteration"] <= iteration), self.path / EVALUATIONS)

    def metrics(self) -> "pl.DataFrame":
        """`metrics.jsonl` as a table, one row an iteration."""
        import polars as pl

        rows = [row for row in map(_parse, self._metric_lines()) if row is not None]
        return pl.DataFrame(rows, infer_schema_length=None)

    def curriculum(self) -> "pl.DataFrame":
        """The curriculum's record: `CURRICULUM_COLUMNS`, one row a task and iteration.

        The probabilities are those drawn from in the iteration and the estimates are those they rest on;
        selections, episodes and successes are the iteration's outcome. `calls` counts how often agents pursuing any
        goal called this one.
        """
        import polars as pl

        return pl.concat([_empty(CURRICULUM_COLUMNS), *(pl.read_parquet(part) for part in self._parts())])

    def evaluations(self) -> "pl.DataFrame":
        """All evaluations: `EVALUATION_COLUMNS`, one row a goal and evaluation."""
        import polars as pl

        path = self.path / EVALUATIONS
        return pl.read_parquet(path) if path.exists() else _empty(EVALUATION_COLUMNS)

    def evaluated(self) -> set[int]:
        """Iterations whose evaluation is recorded."""
        return set(self.evaluations()["iteration"].unique().to_list())

    def _metric_lines(self) -> Iterable[bytes]:
        path = self.path / METRICS
        return path.read_bytes().splitlines(keepends=True) if path.exists() else []

    def _parts(self) -> list[Path]:
        return sorted(self.path.glob("curriculum-*-*.parquet"))


def check_new(path: str | Path) -> None:
    """Refuse a path that a new run cannot be made at, before any work is done.

    Raises:
        ValueError: If it exists, or its nearest existing parent is no writable directory.
    """
    path = Path(path)
    if path.exists() or path.is_symlink():
        raise ValueError(
            f"run directory {path} exists already; name a new one, or continue it by giving its path alone"
        )
    parent = next((parent for parent in path.parents if parent.exists()), Path("."))
    if not parent.is_dir():
        raise ValueError(f"run directory {path} cannot be written: {parent} is not a directory")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise ValueError(f"run directory {path} cannot be written: no permission to write in {parent}")


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(_finite(value), indent=indent, allow_nan=False, ensure_ascii=False)


def _finite(value: Any) -> Any:
    """JSON has no NaN: a missing number is null."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _parse(line: bytes) -> dict[str, Any] | None:
    """One line's row; None if the line is torn."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and isinstance(row.get("iteration"), int) else None


def _table(columns: Columns, schema: Mapping[str, str]) -> "pl.DataFrame":
    import polars as pl

    table = pl.DataFrame({name: columns[name] for name in schema}, schema=_types(schema))
    return table.with_columns(pl.col(pl.Float64).fill_nan(None))


def _empty(schema: Mapping[str, str]) -> "pl.DataFrame":
    import polars as pl

    return pl.DataFrame(schema=_types(schema))


def _types(schema: Mapping[str, str]) -> dict[str, Any]:
    import polars as pl

    return {name: getattr(pl, kind) for name, kind in schema.items()}


def _write_parquet(table: "pl.DataFrame", path: Path) -> None:
    with replacing(path) as temporary:
        table.write_parquet(temporary)
