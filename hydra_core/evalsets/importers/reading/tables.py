"""Reading CSV, JSONL and Parquet tables as columns of text, strictly and within a bound."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, TypeAlias, cast

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.format import read_arrow
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile, open_plain, tail_of
from hydra_core.evalsets.importers.reading.issues import Issues

#: Name of the column that holds each row's place in its file (line, or row in Parquet).
LINE = "\0line"

_CELL_CHARS = 16 << 20
_MAX_COLUMNS = 2_000
_HEAD_ROWS = 1_000
_CHUNK = 20_000
_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXT = pd.StringDtype("pyarrow", na_value=float("nan"))

Record: TypeAlias = tuple[int, Sequence[str]]


def columns_of(file: TableFile) -> list[str]:
    """Column names of a table (JSONL: the keys of its first thousand objects).

    Raises:
        EvalSetError: Unreadable, empty, or names occur twice.
    """
    with open_plain(file, Budget()) as (kind, stream):
        _table_kind(kind, file.name)
        if kind == "parquet":
            return _parquet_columns(cast(BinaryIO, stream), file.name)
        text = cast(io.TextIOWrapper, stream)
        if kind == "jsonl":
            issues = Issues()
            objects = itertools.islice(_json_objects(text, file.name, issues), _HEAD_ROWS)
            columns = list(dict.fromkeys(key for _, found in objects for key in found))
            issues.raise_any(file.name)
        else:
            columns = next(_csv_reader(text, kind, file.name), [])
    return _checked(columns, file.name)


def _table_kind(kind: str, source: str) -> None:
    if kind == "json":
        remedy = "save it as .jsonl, one object per line"
        raise EvalSetError(source, [Problem("", "is JSON, not a table", remedy)])


def head_of(file: TableFile, rows: int) -> pd.DataFrame:
    """The first rows of a table, every cell as text.

    Raises:
        EvalSetError: As `read_columns`.
    """
    frame = read_columns(file, columns_of(file), Budget(), stop=rows)[0]
    return frame.drop(columns=LINE)


def read_columns(
    file: TableFile, columns: Sequence[str], budget: Budget, *, stop: int | None = None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Some columns of a table as text (missing cells are empty), and warnings.

    Args:
        columns: Names that the table has; others are not kept in memory.
        budget: What the import may still read.
        stop: Read only this many rows.

    Raises:
        EvalSetError: Damaged, ragged or cut-off rows (all are reported), or over the budget.
    """
    wanted = list(columns)
    issues = Issues()
    with open_plain(file, budget) as (kind, stream):
        _table_kind(kind, file.name)
        if kind == "parquet":
            return _parquet(cast(BinaryIO, stream), file.name, wanted, budget, stop), ()
        text = cast(io.TextIOWrapper, stream)
        records = (
            _json_rows(text, file.name, wanted, issues)
            if kind == "jsonl"
            else _csv_rows(text, kind, file.name, wanted, issues)
        )
        frame = _collect(itertools.islice(records, stop), wanted, budget, file.name)
        tail = tail_of(text)
    issues.raise_any(file.name)
    cut = stop is None and tail not in (b"\n", b"\r", b"")
    note = f"{file.name} does not end with a line break; check that it is not cut off"
    return frame, ((note,) if cut else ())


def _collect(
    records: Iterable[Record], columns: list[str], budget: Budget, source: str
) -> pd.DataFrame:
    """Rows to columns of text, piece by piece so that Python objects stay few."""
    frames = []
    left = iter(records)
    while piece := list(itertools.islice(left, _CHUNK)):
        budget.take_rows(len(piece), source)
        cells = zip(*(row for _, row in piece), strict=True) if columns else iter(())
        data = {
            name: pd.array(list(c), dtype=_TEXT) for name, c in zip(columns, cells, strict=True)
        }
        frames.append(pd.DataFrame({LINE: [line for line, _ in piece], **data}))
    if not frames:
        return pd.DataFrame({LINE: [], **{c: pd.array([], dtype=_TEXT) for c in columns}})
    return pd.concat(frames, ignore_index=True)


def _checked(columns: list[str], source: str) -> list[str]:
    if not columns:
        raise EvalSetError(source, [Problem("", "is empty", "give a table with a header and rows")])
    if len(columns) > _MAX_COLUMNS:
        message = f"has {len(columns)} columns, the limit is {_MAX_COLUMNS}"
        raise EvalSetError(source, [Problem("", message, "use the long form")])
    twice = sorted({name for name in columns if name and columns.count(name) > 1})
    if twice:
        raise EvalSetError(
            source, [Problem(f"column {n!r}", "occurs twice", "rename one") for n in twice]
        )
    return columns


def _csv_reader(text: io.TextIOWrapper, kind: str, source: str) -> Iterator[list[str]]:
    """Rows of cells; the header's own delimiter (comma, semicolon, tab) is used for CSV."""
    csv.field_size_limit(_CELL_CHARS)
    first = text.readline(_CELL_CHARS)
    delimiter = "\t" if kind == "tsv" else max(",;\t", key=first.count)
    lines = itertools.chain([first], text) if first else iter(())
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            remedy = "the file may be cut off inside a quoted text; get it again"
            raise EvalSetError(
                source, [Problem(f"line {reader.line_num}", str(error), remedy)]
            ) from error


def _csv_rows(
    text: io.TextIOWrapper, kind: str, source: str, wanted: list[str], issues: Issues
) -> Iterator[Record]:
    rows = _csv_reader(text, kind, source)
    header = next(rows, [])
    places = [header.index(name) for name in wanted]
    line = 1 + sum(cell.count("\n") for cell in header)
    for row in rows:
        start = line + 1
        line = start + sum(cell.count("\n") for cell in row)
        if not row:
            continue
        if len(row) != len(header):
            found = f"has {len(row)} cells instead of {len(header)}"
            issues.add(found, start, "cut-off file, or a text with a delimiter but no quotes")
            continue
        yield start, [row[i] for i in places]


def json_objects(
    file: TableFile, budget: Budget, issues: Issues
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of a JSONL file; lines that hold none go to `issues`.

    Raises:
        EvalSetError: The file cannot be read, or is over the budget.
    """
    with open_plain(file, budget) as (kind, stream):
        if kind != "jsonl":
            raise EvalSetError(file.name, [Problem("", f"is {kind}", "give it as .jsonl")])
        yield from _json_objects(cast(io.TextIOWrapper, stream), file.name, issues)


def _json_objects(
    text: io.TextIOWrapper, source: str, issues: Issues
) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    while line := text.readline(_CELL_CHARS):
        number += 1
        if not line.endswith("\n") and len(line) >= _CELL_CHARS:
            raise EvalSetError(source, [Problem(f"line {number}", "is longer than 16 MiB")])
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            yield number, found
        else:
            issues.add(
                "is not a JSON object", number, "one object per line; the file may be cut off"
            )


def _json_rows(
    text: io.TextIOWrapper, source: str, wanted: list[str], issues: Issues
) -> Iterator[Record]:
    for number, found in _json_objects(text, source, issues):
        cells = [_cell(found.get(name)) for name in wanted]
        for i, (name, cell) in enumerate(zip(wanted, cells, strict=True)):
            if cell is None:
                issues.add(f"{name}: holds a list or an object", number, "map a plain value")
            elif not cell.isascii() and _SURROGATE.search(cell):
                issues.add(f"{name}: holds half a character (lone surrogate)", number, "correct it")
                cells[i] = None
        yield number, [cell or "" for cell in cells]


def _cell(value: object) -> str | None:
    """A JSON value as text; None when it is nested."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    return None


def _parquet_columns(stream: BinaryIO, source: str) -> list[str]:
    try:
        with pq.ParquetFile(stream) as file:
            return _checked(list(file.schema_arrow.names), source)
    except (pa.ArrowException, ValueError) as error:
        raise _damaged(source, error) from error


def _damaged(source: str, error: Exception) -> EvalSetError:
    reason = str(error).splitlines()[0]
    return EvalSetError(
        source, [Problem("", f"is not a whole Parquet file: {reason}", "get the file again")]
    )


def _parquet(
    stream: BinaryIO, source: str, wanted: list[str], budget: Budget, stop: int | None
) -> pd.DataFrame:
    try:
        table = read_arrow(stream, budget.bytes_left, wanted, stop=stop)
    except OverflowError as error:
        raise budget.too_large(source) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(source, error) from error
    budget.take_rows(table.num_rows, source)
    budget.take_bytes(table.nbytes, source)
    frame = pd.DataFrame({LINE: range(1, table.num_rows + 1)})
    for name in wanted:
        try:
            cells = pc.fill_null(table[name].cast(pa.large_string()), "")
            frame[name] = pd.array(cells.to_numpy(zero_copy_only=False), dtype=_TEXT)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            message = f"cannot be read as text (type {table[name].type})"
            raise EvalSetError(source, [Problem(f"column {name!r}", message)]) from error
    return frame
