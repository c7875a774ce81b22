"""The names at a file's beginning, by which its format is recognised."""

from __future__ import annotations

import re
from typing import Final

import pyarrow.parquet as pq

from hydra_core.evalsets.importers.reading.bounded import MAX_BYTES, Budget, TableFile, open_plain
from hydra_core.evalsets.importers.reading.tables import header_of

_HEAD: Final = 200_000
_KEY: Final = re.compile(r'"([^"\\\n]{1,80})"\s*:')


def names_in(file: TableFile) -> tuple[set[str], bool]:
    """Columns or keys at the file's beginning, and whether it is a table.

    Raises:
        EvalSetError: The file cannot be read as far as that.
    """
    with open_plain(file, Budget(MAX_BYTES)) as (kind, stream):
        if kind == "parquet":
            return set(pq.read_schema(stream).names), True
        head = str(stream.read(_HEAD))
    if kind in ("csv", "tsv"):
        return set(header_of(head, kind)), True
    return set(_KEY.findall(head)), kind == "jsonl"
