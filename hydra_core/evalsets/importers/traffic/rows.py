"""Rows of logs as objects, whatever file they are in: JSON, JSONL, CSV or Parquet."""

import ast
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile, suffix_of
from hydra_core.evalsets.importers.reading.cells import LINE, Issues
from hydra_core.evalsets.importers.reading.notation import with_decimal_points
from hydra_core.evalsets.importers.reading.tables import columns_of, json_objects, read_columns

_NUMBER_CHARS = 40
#: The longest cell that is read as Python writes nested values.
_LITERAL_CHARS = 2_000_000
#: Where a row stands, and what it holds.
Row = tuple[tuple[str, int], dict[str, Any]]


def rows_of(files: Sequence[TableFile], budget: Budget, bad: Issues) -> Iterator[Row]:
    """Every row of the files.

    Args:
        bad: Where rows that cannot be read are counted and decimal commas are noted.

    Raises:
        EvalSetError: A file cannot be read, is damaged, or is over the budget.
    """
    for file in files:
        kind = suffix_of(file)
        if kind in (".json", ".jsonl", ".ndjson"):
            for line, found in json_objects(file, budget, bad):
                yield (file.name, line), found
        else:
            yield from _table(file, budget, bad)


def _table(file: TableFile, budget: Budget, bad: Issues) -> Iterator[Row]:
    columns = columns_of(file)
    frame, _ = read_columns(file, columns, budget, bad=bad)
    short = [
        name for name in columns if len(frame) and frame[name].str.len().max() <= _NUMBER_CHARS
    ]
    for name, cells in with_decimal_points({c: frame[c].tolist() for c in short}).items():
        bad.notes += _decimal_comma(name, frame[name], cells)
        frame[name] = cells
    for row in frame.to_dict("records"):
        place = (file.name, int(row.pop(LINE)))
        yield place, {str(name): cell for name, cell in row.items()}


def _decimal_comma(name: str, written: Iterable[str], read: Iterable[str]) -> list[str]:
    """The note on a column whose cells were read otherwise than they stand; else nothing."""
    changed = [cell for cell, plain in zip(written, read, strict=True) if cell.strip() != plain]
    if not changed:
        return []
    marks = ((",", "with a decimal comma"), (".", "with a point between thousands"))
    how = [words for mark, words in marks if any(mark in cell for cell in changed)]
    return [f"{name} was read {' and '.join(how)}, such as {changed[0].strip()}"]


def decoded(value: object) -> Any:  # noqa: ANN401 (JSON)
    """What a cell holds: tables keep nested values as JSON text, or as Python writes them."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{", '"'):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return _literal(value)


def _literal(written: str) -> object:
    """The list or object that pandas put into a CSV; the text itself where it is neither."""
    if "'" not in written or len(written) > _LITERAL_CHARS:
        return written
    try:
        found = ast.literal_eval(written.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return written
    return found if isinstance(found, list | dict) else written


def number(value: object) -> float:
    """A number, also one written as text; NaN for anything else."""
    try:
        found = float(value) if isinstance(value, int | float | str) else math.nan
    except OverflowError:
        return math.nan
    except ValueError:
        return {"true": 1.0, "false": 0.0}.get(str(value).strip().lower(), math.nan)
    return found if math.isfinite(found) else math.nan


def first_number(row: Mapping[str, Any], names: Iterable[str]) -> float:
    """The first of these values that is a number, NaN where none is."""
    values = (number(row.get(name)) for name in names)
    return next((value for value in values if not math.isnan(value)), math.nan)


def text(value: object) -> str:
    """Text as it is, '' for anything else."""
    return value if isinstance(value, str) else ""


def identifier(value: object) -> str:
    """An id as text without spaces around it, also one that was stored as a whole number."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if whole else text(value).strip()


def seconds_between(start: object, end: object) -> float:
    """Seconds from one moment to another; NaN where one of them is none, or end comes first.

    A moment is in ISO form, or seconds with a fraction: a whole number may be one of milliseconds.
    """
    try:
        if isinstance(start, float) and isinstance(end, float):
            seconds = end - start
        else:
            seconds = (_moment(end) - _moment(start)).total_seconds()
        return seconds if seconds >= 0 else math.nan
    except (ValueError, TypeError):
        return math.nan


def _moment(value: object) -> datetime:
    """A moment in ISO form; digits alone are none: 1711121230123 would be in the year 1711."""
    if str(value).isdigit():
        raise ValueError("a count, not a moment")
    return datetime.fromisoformat(str(value))
