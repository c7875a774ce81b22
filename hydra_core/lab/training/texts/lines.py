"""The lines of a data file: JSON objects, plain or gzipped."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from hydra_core.base.errors import HydraError


class DatasetError(HydraError):
    """A data file is missing or a line of it does not hold what it must."""


def read_lines(path: Path) -> list[dict[str, object]]:
    """The objects of a JSONL file, plain or gzipped.

    Raises:
        DatasetError: no such file, or a line that is not a JSON object.
    """
    if not path.is_file():
        raise DatasetError(f"{path}: no such file")
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DatasetError(f"{path}: line {number}: not JSON ({error})") from error
        if not isinstance(row, dict):
            raise DatasetError(f"{path}: line {number}: expected an object, got {row!r:.60}")
        rows.append(row)
    return rows
