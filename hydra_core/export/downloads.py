"""Tables as files for people: CSV safe to open in a spreadsheet, Parquet, LaTeX."""

import io
import re
from typing import Final

import pandas as pd

from hydra_core.replay.significance_table import tabular

#: What makes a spreadsheet read a cell as a formula (OWASP, "CSV Injection"): = + - @, tab,
#: carriage return and line feed, and the full-width forms that some locales take for the same.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
#: Before what would be one, were the sign before it the end of a cell.
_INNER: Final = re.compile("([;\t])(?=[=+\\-@\uff1d\uff0b\uff0d\uff20])")


def csv_file(frame: pd.DataFrame) -> bytes:
    """A table as CSV (RFC 4180), UTF-8 with a byte order mark, which spreadsheets expect.

    A spreadsheet would run a text of a stranger that begins like a formula. Such cells of text, and
    such headings, get a leading apostrophe, as OWASP advises; so does what begins like one after a
    semicolon or a tab, where some spreadsheets begin another cell. No other cell is changed.

    For reading, not for importing again: no importer strips the apostrophe, since it may be the
    text's own.
    """
    safe = frame.copy()
    safe.columns = pd.Index([_guarded(name) for name in frame.columns])
    for at, kind in enumerate(frame.dtypes):
        if not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_datetime64_any_dtype(kind)):
            safe.isetitem(at, [_guarded(value) for value in frame.iloc[:, at]])
    # With this line end a lone carriage return inside a text is quoted; else it would begin a row.
    return safe.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig")


def parquet_file(frame: pd.DataFrame) -> bytes:
    """A table as Parquet; texts stay as they are, and a column of mixed kinds becomes text."""
    plain = frame.copy()
    plain.columns = pd.Index([str(name) for name in frame.columns])
    for at, kind in enumerate(frame.dtypes):
        if pd.api.types.is_object_dtype(kind):
            cells = [None if _absent(value) else str(value) for value in frame.iloc[:, at]]
            plain.isetitem(at, cells)
    kept = io.BytesIO()
    plain.to_parquet(kept, index=False)
    return kept.getvalue()


def latex_file(frame: pd.DataFrame) -> bytes:
    """A table as LaTeX (booktabs), every name and text escaped; what is missing is a dash."""
    rows = [[_cell(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    head = [str(name) for name in frame.columns]
    return ("\n".join(tabular(head, rows)) + "\n").encode()


def _cell(value: object) -> str:
    if _absent(value):
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _absent(value: object) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _guarded(value: object) -> object:
    if not isinstance(value, str):
        return value
    inner = _INNER.sub(r"\1'", value)
    return f"'{inner}" if value.startswith(_FORMULA) else inner
