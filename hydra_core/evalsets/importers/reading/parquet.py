"""Reading Parquet files as columns of text; what is nested comes as JSON."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pandas.api.extensions import ExtensionArray

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.format import read_arrow
from hydra_core.evalsets.importers.reading.bounded import Budget

#: How columns of text are kept in memory.
TEXT = pd.StringDtype("pyarrow", na_value=float("nan"))


def parquet_columns(stream: BinaryIO, source: str) -> list[str]:
    """Column names of a Parquet file, not yet checked.

    Raises:
        EvalSetError: It is no whole Parquet file.
    """
    try:
        with pq.ParquetFile(stream) as file:
            return list(file.schema_arrow.names)
    except (pa.ArrowException, ValueError) as error:
        raise _damaged(source, error) from error


def _damaged(source: str, error: Exception) -> EvalSetError:
    reason = str(error).splitlines()[0]
    return EvalSetError(
        source, [Problem("", f"is not a whole Parquet file: {reason}", "get the file again")]
    )


def parquet_cells(
    stream: BinaryIO, source: str, wanted: list[str], budget: Budget, stop: int | None
) -> pd.DataFrame:
    """Some columns as text, empty where there is no value.

    Raises:
        EvalSetError: It is no whole Parquet file, over the budget, or a column is no text.
    """
    try:
        table = read_arrow(stream, budget.bytes_left, wanted, stop=stop)
    except OverflowError as error:
        raise budget.too_large(source) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(source, error) from error
    budget.take_rows(table.num_rows, source)
    budget.take_bytes(table.nbytes, source)
    frame = pd.DataFrame(index=range(table.num_rows))
    for name in wanted:
        try:
            frame[name] = _texts(table[name])
        except (pa.ArrowException, UnicodeDecodeError) as error:
            message = f"cannot be read as text (type {table[name].type})"
            raise EvalSetError(source, [Problem(f"column {name!r}", message)]) from error
    return frame


def _texts(column: pa.ChunkedArray) -> ExtensionArray:
    cells: Any = pc.fill_null(_plain(column), "")
    texts: ExtensionArray = pd.array(cells.to_numpy(zero_copy_only=False), dtype=TEXT)
    return texts


def _plain(column: pa.ChunkedArray) -> Any:  # noqa: ANN401 (pyarrow has no types)
    """A column as text, what is nested as JSON."""
    if not pa.types.is_nested(column.type):
        return column.cast(pa.large_string())
    values = [dict(v) if pa.types.is_map(column.type) and v else v for v in column.to_pylist()]
    return pa.chunked_array([[None if v is None else json.dumps(v, default=str) for v in values]])
