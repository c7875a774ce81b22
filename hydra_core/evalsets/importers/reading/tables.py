"""Reading CSV, JSONL and Parquet tables as columns of text, strictly and within a bound.

What is nested in Parquet comes as JSON.
"""

import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Final, TextIO, TypeAlias, cast

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pandas.api.extensions import ExtensionArray

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.json_values import TwiceError, json_or_none
from hydra_core.base.reading.csv_rows import MAX_CELL, BrokenRow, csv_rows
from hydra_core.evalsets.folders import read_arrow
from hydra_core.evalsets.importers.reading.bounded import (
    MAX_BYTES,
    TABLES,
    Budget,
    TableFile,
    open_plain,
    tail_of,
)
from hydra_core.evalsets.importers.reading.cells import LINE, Issues
from hydra_core.evalsets.importers.reading.json_document import (
    EACH,
    MAX_JSON_BYTES,
    each,
    list_of_objects,
    parsed,
    paths_in,
    value_at,
)

_MAX_COLUMNS = 2_000
_HEAD_ROWS = 1_000
_HEAD_CELLS = 100
_CHUNK = 20_000
_LETTERS = re.compile(r"[^\W\d_]")
_SURROGATE = re.compile("[\ud800-\udfff]")

Record: TypeAlias = tuple[int, Sequence[str]]
#: How columns of text are kept in memory.
TEXT = pd.StringDtype("pyarrow", na_value=float("nan"))
_HEAD: Final = 200_000
_KEY: Final = re.compile(r'"([^"\\\n]{1,80})"\s*:')


def columns_of(file: TableFile, *, inside: bool = False) -> list[str]:
    """Column names of a table (JSONL: the keys of its first thousand objects).

    Args:
        inside: Whether paths into the JSON that cells of a CSV or Parquet file hold are columns
            too, as paths into the objects of a JSON file always are.

    Raises:
        EvalSetError: Unreadable, empty, or names occur twice.
    """
    with open_plain(file, Budget()) as (kind, stream):
        if kind == "parquet":
            names = _parquet_columns(cast(BinaryIO, stream), file.name)
            columns = _checked(names, file.name)
            return columns + (_parquet_paths(file, columns) if inside else [])
        text = cast(io.TextIOWrapper, stream)
        if kind in ("json", "jsonl"):
            issues = Issues()
            objects = itertools.islice(_json_objects(text, kind, file.name, issues), _HEAD_ROWS)
            columns = _names_of(found for _, found in objects)
            issues.raise_any(file.name)
        else:
            rows = _csv_reader(text, kind, file.name)
            line, columns = _header(rows)
            second = _header(rows)[1]
            _require_one_heading(columns, line, second, file.name)
            named = [name for name in columns if name.strip()]
            if len(named) < 2 <= len(columns):
                found = f"has {len(named)} of {len(columns)} headings: {', '.join(named)}"
                remedy = "delete the rows above the headings"
                raise EvalSetError.of(file.name, found, remedy, place=f"line {line}")
            if inside:
                head = [second, *(row for _, row in itertools.islice(rows, _HEAD_CELLS))]
                paths = _paths_in_cells(columns, head)
                return _checked(columns, file.name) + paths
    return _checked(columns, file.name)


def _paths_in_cells(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The paths into cells that hold objects as JSON."""
    found = (
        {name: value for name, cell in zip(columns, row, strict=False) if (value := _object(cell))}
        for row in rows
    )
    paths = [path for path in _names_of(found) if path not in columns and EACH not in path]
    return paths[: max(0, _MAX_COLUMNS - len(columns))]


def _object(cell: str) -> dict[str, Any] | None:
    found = json_or_none(cell) if cell.lstrip().startswith("{") else None
    return found if isinstance(found, dict) else None


def _holder(name: str, columns: Sequence[str]) -> str:
    """The column itself, else the one whose cells a path leads into."""
    return (
        name
        if name in columns
        else max((one for one in columns if name.startswith(f"{one}.")), key=len, default=name)
    )


def _inside(cells: Iterable[str], path: str) -> Iterator[str | None]:
    """What stands at a path in each cell; '' where nothing does, None where it is nested."""
    for cell in cells:
        yield _cell(value_at(_object(cell), path))


def _require_one_heading(first: list[str], line: int, second: list[str], source: str) -> None:
    """Refuse a heading of two rows, as merged cells give it: the second completes the first, and
    holds no number, or again the models of each measure.
    """
    if len(first) != len(second) or len(set(first)) == len(first):
        return
    pairs = list(zip(first, second, strict=True))
    completes = all(above.strip() or below.strip() for above, below in pairs)
    both = [f"{above.strip()} {below.strip()}" for above, below in pairs if above and below]
    filled = [cell.strip() for cell in second if cell.strip()]
    again = len(set(filled)) < len(filled) and all(map(_LETTERS.search, filled))
    again = again and not (first[0].strip() and second[0].strip())  # a row has an id of its own
    words = len(filled) > 1 and (again or not re.search(r"\d", "".join(filled)))
    if words and completes and both:
        remedy = f"write one row of headings, such as {both[-1]!r}, and delete line {line}"
        raise EvalSetError.of(source, "are two rows of headings", remedy, place=f"line {line}")


def _names_of(objects: Iterable[dict[str, Any]]) -> list[str]:
    """The keys of objects, and paths to what is nested in them as far as the limit allows."""
    plain: dict[str, None] = {}
    nested: dict[str, None] = {}
    for found in objects:
        plain |= dict.fromkeys(found)
        if len(nested) < _MAX_COLUMNS:
            nested |= dict.fromkeys(path for path in paths_in(found) if path not in found)
    return [*plain, *list(nested)[: max(0, _MAX_COLUMNS - len(plain))]]


def read_columns(
    file: TableFile,
    columns: Sequence[str],
    budget: Budget,
    *,
    stop: int | None = None,
    bad: Issues | None = None,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Some columns of a table as text (missing cells are empty), and warnings.

    Args:
        columns: Names that the table has; others are not kept in memory.
        bad: Where rows that cannot be read are counted; without it they are refused.

    Raises:
        EvalSetError: Damaged, ragged or cut-off rows (all are reported), or over the budget.
    """
    wanted = list(columns)
    issues = Issues() if bad is None else bad
    with open_plain(file, budget) as (kind, stream):
        if kind == "parquet":
            frame = _parquet_cells(cast(BinaryIO, stream), file.name, wanted, budget, stop, issues)
            frame.insert(0, LINE, range(1, len(frame) + 1))
            if bad is None:
                issues.raise_any(file.name)
            return frame, ()
        text = cast(io.TextIOWrapper, stream)
        records = (
            _json_rows(text, kind, file.name, wanted, issues)
            if kind in ("json", "jsonl")
            else _csv_rows(text, kind, file.name, wanted, issues)
        )
        frame = _collect(itertools.islice(records, stop), wanted, budget, file.name)
        tail = tail_of(text)
    if bad is None:
        issues.raise_any(file.name)
    cut = stop is None and kind != "json" and tail not in (b"\n", b"\r", b"")
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
        data = {name: pd.array(list(c), dtype=TEXT) for name, c in zip(columns, cells, strict=True)}
        frames.append(pd.DataFrame({LINE: [line for line, _ in piece], **data}))
    if not frames:
        return pd.DataFrame({LINE: [], **{c: pd.array([], dtype=TEXT) for c in columns}})
    return pd.concat(frames, ignore_index=True)


def _checked(columns: list[str], source: str) -> list[str]:
    if not columns:
        raise EvalSetError.of(source, "is empty", "give a table with a header and rows")
    if len(columns) > _MAX_COLUMNS:
        message = f"has {len(columns)} columns, the limit is {_MAX_COLUMNS}"
        raise EvalSetError.of(source, message, "use the long form")
    twice = sorted({name for name in columns if name and columns.count(name) > 1})
    EvalSetError.raise_any(
        source, [Problem(f"column {n!r}", "occurs twice", "rename one") for n in twice]
    )
    return columns


def _csv_reader(text: TextIO, kind: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """`csv_rows` of a file; a broken row ends it."""
    try:
        yield from csv_rows(text, TABLES[kind])
    except BrokenRow as error:
        remedy = "the file may be cut off inside a quoted text; get it again"
        place = f"line {error.line}"
        raise EvalSetError.of(source, str(error), remedy, place=place) from error


def csv_records(file: TableFile, budget: Budget) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of a CSV or TSV file, the header first, whatever its names.

    Raises:
        EvalSetError: It is no such file, is damaged, or is over the budget.
    """
    with open_plain(file, budget) as (kind, stream):
        if kind not in TABLES:
            raise EvalSetError.of(file.name, f"is {kind}", "give it as .csv")
        for line, row in _csv_reader(cast(io.TextIOWrapper, stream), kind, file.name):
            budget.take_rows(1, file.name)
            if row:
                yield line, row


def _header(rows: Iterator[tuple[int, list[str]]]) -> tuple[int, list[str]]:
    return next(((line, row) for line, row in rows if row), (0, []))


def _csv_rows(
    text: io.TextIOWrapper, kind: str, source: str, wanted: list[str], issues: Issues
) -> Iterator[Record]:
    rows = _csv_reader(text, kind, source)
    header = _header(rows)[1]
    places = [header.index(_holder(name, header)) for name in wanted]
    paths = [name[len(header[at]) + 1 :] for name, at in zip(wanted, places, strict=True)]
    for line, row in rows:
        if not any(cell.strip() for cell in row):
            continue  # spreadsheets write rows of delimiters alone
        if len(row) != len(header):
            found = f"has {len(row)} cells instead of {len(header)}"
            issues.add(found, line, "cut-off file, or a text with a delimiter but no quotes")
            continue
        cells = [row[at] for at in places]
        if any(paths):
            inner = [
                next(_inside([cell], path)) if path else cell
                for cell, path in zip(cells, paths, strict=True)
            ]
            cells = _plain_cells(inner, wanted, line, issues)
        yield line, cells


def json_objects(
    file: TableFile, budget: Budget, issues: Issues
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of a JSONL file, or (place, object) of the list that a JSON document
    is; lines that hold none go to `issues`.

    Raises:
        EvalSetError: The file cannot be read, or is over the budget.
    """
    with open_plain(file, budget) as (kind, stream):
        if kind not in ("json", "jsonl"):
            raise EvalSetError.of(file.name, f"is {kind}", "give it as .jsonl")
        text = cast(io.TextIOWrapper, stream)
        for number, found in _json_objects(text, kind, file.name, issues, budget.max_bytes):
            budget.take_rows(1, file.name)
            yield number, found


def _json_objects(
    text: io.TextIOWrapper, kind: str, source: str, issues: Issues, most: int = MAX_JSON_BYTES
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(place, object): the line of JSON lines, or the place in the list that a JSON document is,
    which may be called .jsonl, too.
    """
    if kind == "json":
        yield from enumerate(list_of_objects(text.read(), source, most), 1)
        return
    number, begun = 0, False
    while line := text.readline(MAX_CELL):
        number += 1
        if not line.endswith("\n") and len(line) >= MAX_CELL:
            raise EvalSetError.of(source, "is longer than 16 MiB", place=f"line {number}")
        if not line.strip():
            continue
        if not begun and (line.lstrip().startswith("[") or line.strip() == "{"):
            yield from enumerate(list_of_objects(line + text.read(), source, most), 1)
            return
        begun = True
        try:
            found = parsed(line)
        except TwiceError as error:
            issues.add(f"is no row: {error}", number, "keep one of them")
            continue
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            yield number, found
        else:
            issues.add(
                "is not a JSON object", number, "one object per line; the file may be cut off"
            )


def _json_rows(
    text: io.TextIOWrapper, kind: str, source: str, wanted: list[str], issues: Issues
) -> Iterator[Record]:
    for number, found in _records_of(text, kind, source, wanted, issues):
        cells = [_cell(value_at(found, name)) for name in wanted]
        yield number, _plain_cells(cells, wanted, number, issues)


def _plain_cells(
    cells: Sequence[str | None], names: Sequence[str], line: int, issues: Issues
) -> list[str]:
    """The cells of a row as text; what is nested or no text is an issue."""
    found = []
    for name, cell in zip(names, cells, strict=True):
        broken = cell is not None and not cell.isascii() and _SURROGATE.search(cell)
        if cell is None:
            issues.add(
                f"{name}: holds a list or an object", line, f"map a value in it: {name}.NAME"
            )
        elif broken:
            issues.add(f"{name}: holds half a character (lone surrogate)", line, "correct it")
        found.append("" if cell is None or broken else cell)
    return found


def _records_of(
    text: io.TextIOWrapper, kind: str, source: str, wanted: list[str], issues: Issues
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, object); of the one list whose objects are asked for, one for each of them."""
    lists = sorted({name.partition(EACH)[0] for name in wanted if EACH in name})
    if len(lists) > 1:
        message, remedy = f"asks for objects of {' and '.join(lists)}", "map values of one list"
        raise EvalSetError.of(source, message, remedy, place="--map")
    for number, found in _json_objects(text, kind, source, issues):
        yield from ((number, one) for one in (each(found, lists[0]) if lists else [found]))


def _cell(value: object) -> str | None:
    """A JSON value as text, a list of messages as JSON; None when it is nested otherwise."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    if (
        isinstance(value, list)
        and value
        and all(isinstance(m, dict) and "role" in m for m in value)
    ):
        return json.dumps(value, ensure_ascii=False)
    return None


def _parquet_columns(stream: BinaryIO, source: str) -> list[str]:
    try:
        with pq.ParquetFile(stream) as file:
            return list(file.schema_arrow.names)
    except (pa.ArrowException, ValueError) as error:
        raise _damaged(source, error) from error


def _damaged(source: str, error: Exception) -> EvalSetError:
    reason = str(error).splitlines()[0]
    return EvalSetError.of(source, f"is not a whole Parquet file: {reason}", "get the file again")


def _parquet_paths(file: TableFile, columns: Sequence[str]) -> list[str]:
    """The paths into cells of the first rows that hold objects, or JSON of them."""
    frame = read_columns(file, columns, Budget(), stop=_HEAD_CELLS)[0]
    return _paths_in_cells(columns, frame[list(columns)].to_numpy())


def _parquet_cells(
    stream: BinaryIO,
    source: str,
    wanted: list[str],
    budget: Budget,
    stop: int | None,
    issues: Issues,
) -> pd.DataFrame:
    """Some columns as text, empty where there is no value; paths lead into cells of one."""
    try:
        there = pq.read_schema(stream).names
        stream.seek(0)
        held = list(dict.fromkeys(_holder(name, there) for name in wanted))
        table = read_arrow(stream, budget.bytes_left, held, stop=stop)
    except OverflowError as error:
        raise budget.too_large(source) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(source, error) from error
    budget.take_rows(table.num_rows, source)
    budget.take_bytes(table.nbytes, source)
    frame = pd.DataFrame(index=range(table.num_rows))
    for name in wanted:
        column = _holder(name, there)
        try:
            texts = _texts(table[column])
        except (pa.ArrowException, UnicodeDecodeError) as error:
            message = f"cannot be read as text (type {table[column].type})"
            raise EvalSetError.of(source, message, place=f"column {column!r}") from error
        if name != column:
            found = _inside(texts, name[len(column) + 1 :])
            cells = [
                _plain_cells([cell], [name], line, issues)[0] for line, cell in enumerate(found, 1)
            ]
            texts = pd.array(cells, dtype=TEXT)
        frame[name] = texts
    return frame


def _texts(column: pa.ChunkedArray) -> ExtensionArray:
    cells: Any = pc.fill_null(_plain(column), "")
    texts: ExtensionArray = pd.array(cells.to_numpy(zero_copy_only=False), dtype=TEXT)
    return texts


def _plain(column: pa.ChunkedArray) -> Any:  # noqa: ANN401 (pyarrow has no types)
    if not pa.types.is_nested(column.type):
        return column.cast(pa.large_string())
    values = [dict(v) if pa.types.is_map(column.type) and v else v for v in column.to_pylist()]
    return pa.chunked_array([[None if v is None else json.dumps(v, default=str) for v in values]])


def names_in(file: TableFile) -> tuple[set[str], bool]:
    """Columns or keys at the file's beginning, and whether it is a table.

    Raises:
        EvalSetError: The file cannot be read as far as that.
    """
    with open_plain(file, Budget(MAX_BYTES)) as (kind, stream):
        if kind == "parquet":
            return set(pq.read_schema(stream).names), True
        head = str(stream.read(_HEAD))
    if kind not in TABLES:
        return set(_KEY.findall(head)), kind == "jsonl"
    try:
        return set(_header(_csv_reader(io.StringIO(head, newline=""), kind, ""))[1]), True
    except EvalSetError:  # the header is cut off
        return set(), True
