"""Reading the members of a zip archive within a bound, nothing of it to disk."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile

_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, KeyError)


def members(file: TableFile, budget: Budget) -> Iterator[tuple[str, bytes]]:
    """(name, content) of every file in an archive, as the budget allows.

    Raises:
        EvalSetError: Damaged, compressed in a way that is not read, or over the budget.
    """
    try:
        if not isinstance(file, Path):
            file.seek(0)
        with zipfile.ZipFile(file if isinstance(file, Path) else cast(IO[bytes], file)) as archive:
            for info in archive.infolist():
                if info.is_dir():
                    continue
                with archive.open(info) as member:
                    content = member.read(budget.bytes_left + 1)
                budget.take_bytes(len(content), file.name)
                yield info.filename, content
    except NotImplementedError as error:
        remedy = "save it as JSON (inspect log convert --to json)"
        problem = Problem("", f"is compressed in a way that is not read: {error}", remedy)
        raise EvalSetError(file.name, [problem]) from error
    except _DAMAGED as error:
        if isinstance(error, EvalSetError):
            raise
        problem = Problem("", f"is damaged or cut off: {error}", "get the file again")
        raise EvalSetError(file.name, [problem]) from error
