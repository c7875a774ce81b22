"""Parts of a large set, and the one rule that makes every job resumable without any engine.

A part is one Parquet file; its result is written beside it under another name and renamed when it
is whole. A result that is there is done; a job that was killed goes on with the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from hydra_core.base.errors import EvalSetError, Problem

#: Rows that are in memory at a time, whatever a part holds.
BATCH_ROWS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Task:
    """One part and where its result goes; `number` is the part's place in the set."""

    source: Path
    target: Path
    number: int


class Job(Protocol):
    """What is done with a part; can be sent to another process."""

    def __call__(self, task: Task) -> None:
        """Make the result of one part."""
        ...


def parts_of(folder: Path) -> list[Path]:
    """The Parquet files of a folder, in the order of their names.

    Raises:
        EvalSetError: There are none.
    """
    found = sorted(path for path in folder.glob("*.parquet") if not path.name.startswith("."))
    if not found:
        remedy = "give a folder of .parquet parts"
        raise EvalSetError(str(folder), [Problem("", "holds no Parquet files", remedy)])
    return found


def tasks(parts: list[Path], out: Path, suffix: str) -> list[Task]:
    """One task a part; results carry the part's name and `suffix`.

    Raises:
        EvalSetError: The folder cannot be made.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvalSetError(str(out), [Problem("", f"cannot be made: {error.strerror}")]) from error
    return [Task(path, out / f"{path.stem}{suffix}", number) for number, path in enumerate(parts)]


def forget_torn(unfinished: Sequence[Task]) -> None:
    """Remove what processes of this machine that were killed left of these tasks' results."""
    targets = {task.target for task in unfinished}
    for folder in {target.parent for target in targets}:
        for torn in folder.glob(".*.partial"):
            name, pid, *_ = torn.name[1:].rsplit(".", 3)
            if folder / name in targets and pid.isdecimal() and not _alive(int(pid)):
                torn.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's, so it is there
        return True
    return True


def batches(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """A part, piece by piece.

    Raises:
        EvalSetError: It is damaged, or lacks a column.
    """
    try:
        with pq.ParquetFile(path) as file:
            missing = [name for name in columns or [] if name not in file.schema_arrow.names]
            if missing:
                problems = [Problem(name, "the column is missing") for name in missing]
                raise EvalSetError(path.name, problems)
            yield from file.iter_batches(batch_size=BATCH_ROWS, columns=columns)
    except (OSError, pa.ArrowException) as error:
        message = f"cannot be read: {str(error).splitlines()[0]}"
        raise EvalSetError(path.name, [Problem("", message)]) from error
