"""Tables with units; numbers stay numbers so that they sort and export."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import ArrayLike

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.spelling import counted, signed
from hydra_core.console.figures.theme import apart
from hydra_core.export.downloads import csv_file, latex_file, parquet_file

if TYPE_CHECKING:  # it brings Jinja with it, and few tables need it
    from pandas.io.formats.style import Styler

_PERCENT = "%.1f %%"


def dollars(values: ArrayLike) -> str:
    """The format of a column of USD: as many decimals as its smallest value needs, 2 at least."""
    return f"$%.{_decimals(values)}f"


def _decimals(values: ArrayLike) -> int:
    given = np.asarray(values, dtype=np.float64)
    small = float(given[given > 0].min(initial=1.0))
    return min(max(2 - math.floor(math.log10(small)), 2), 7)


_FILES = (
    ("CSV", csv_file, "csv", "text/csv"),
    ("Parquet", parquet_file, "parquet", "application/vnd.apache.parquet"),
    ("LaTeX", latex_file, "tex", "text/x-tex"),
)


def offer_downloads(
    frame: pd.DataFrame | Callable[[], pd.DataFrame], key: str, *, disabled: bool = False
) -> None:
    """A table as a file: CSV, Parquet or LaTeX, made when it is asked for.

    Args:
        frame: All rows with plain numbers, or what makes them.
        key: Of the widgets, unique on the page; with dots as dashes it is the file's name.
    """
    with st.popover(
        "Download", icon=":material/download:", type="tertiary", disabled=disabled,
        key=f"{key}.take",
    ):  # fmt: skip
        for label, written, ending, mime in _FILES:
            st.download_button(
                label, partial(_written, written, frame), f"{key.replace('.', '-')}.{ending}", mime,
                key=f"{key}.{ending}", on_click="ignore", width="stretch",
            )  # fmt: skip
        st.caption(
            "In the CSV, a text that a spreadsheet would run as a formula begins with an "
            "apostrophe."
        )


#: A column of numbers to edit; its cells are `number_texts`.
number_column = partial(st.column_config.TextColumn, alignment="right")


def number_texts(cells: Iterable[Any], form: str = ".10g") -> pd.Series[Any]:
    """Numbers as the texts of a column to edit, None for an empty one; other texts as they are.

    A column of numbers would make 3 of 3k and 12 of 1/2 before Python sees it. Whole parts are as
    wide as the widest, so that the column sorts by size.
    """
    shown = [
        cell if isinstance(cell, str) else "" if pd.isna(cell) else f"{cell:{form}}"
        for cell in cells
    ]
    wide = max((len(text.partition(".")[0]) for text in shown), default=0)
    padded = [" " * (wide - len(text.partition(".")[0])) + text if text else None for text in shown]
    return pd.Series(padded, dtype=object)


def plain_numbers(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """The frame to take along: these columns as numbers, NaN for a text that is none."""
    cells = {name: pd.to_numeric(frame[name], errors="coerce").astype("float64") for name in names}
    return frame.assign(**cells)


def read_numbers(
    table: pd.DataFrame,
    name: str,
    column: str,
    read: Callable[[object], Decimal | None],
    most: float = math.inf,
) -> dict[str, float]:
    """What was typed into a column of numbers, by the row's name; no row where nothing was.

    Raises:
        EvalSetError: A cell is no number of 0 to `most`.
    """
    found, problems = dict[str, float](), []
    for row, cell in zip(table[name].astype(str), table[column].fillna(""), strict=True):
        text = str(cell).strip()
        number = read(text)
        if number is not None and 0 <= number <= most:
            found[row] = float(number)
        elif text:
            upto = "or more" if math.isinf(most) else f"to {most:g}"
            problems.append(
                Problem(f"{row}, {column}", f"is {text!r}", f"write a number, 0 {upto}")
            )
    EvalSetError.raise_any("the table", problems)
    return found


def spelled(frame: pd.DataFrame, spelling: Mapping[str, Callable[[Any], str]]) -> Styler:
    """A table whose numbers stay numbers, to sort by; each column reads as it is spelled."""
    formats: dict[Any, Any] = dict(spelling)
    return frame.style.format(formats, na_rep="–")


def named(width: int, models: Iterable[str]) -> Callable[[str], str]:
    """How these models are written in a column of this width in pixels.

    A cell shows the beginning alone: where names begin alike, the long ones are shortened.
    """
    most = max(2 * (width - 16) // 13, 5)
    names = set(models)
    begins = Counter(model[:most] for model in names)
    shown = apart(names, most) if max(begins.values(), default=0) > 1 else {}
    return lambda name: shown.get(name, name)


def renamed(frame: pd.DataFrame, models: Iterable[str], most: int = 26) -> pd.DataFrame:
    """The table with long names of these models written as `apart` does, in sentences too."""
    short = apart(models, most)
    either = re.compile("|".join(map(re.escape, sorted(short, key=len, reverse=True))))

    def written(cell: Any) -> Any:  # noqa: ANN401 (a table has cells of any kind)
        return either.sub(lambda found: short[found[0]], cell) if isinstance(cell, str) else cell

    return frame.map(written) if short else frame


def wide(names: Iterable[str], least: int, most: int) -> int:
    """Pixels that hold the longest name beside the sign of an editable column."""
    longest = max((len(str(name)) for name in names), default=0)
    return min(max(7 * longest + 44, least), most)


def change(form: str = "+.1f", unit: str = "") -> Callable[[float], str]:
    """How differences are written: +1.8 pp, −0.7 pp, and 0.0 pp for what rounds to nothing."""

    def written(value: float) -> str:
        shown = f"{value:{form}}"
        return (shown.replace("-", "−") if float(shown) else shown[1:]) + unit

    return written


def kept(
    frame: pd.DataFrame | Sequence[tuple[object, ...]],
    key: str,
    spelling: Mapping[str, Callable[[Any], str]] | None = None,
    *,
    columns: Mapping[str, Any] | None = None,
    rows: pd.DataFrame | Callable[[], pd.DataFrame] | None = None,
    height: int | Literal["content"] = "content",
    **shown: Any,  # noqa: ANN401 (Streamlit's own)
) -> None:
    """A table of results, with its rows to take along below it.

    Args:
        frame: The table, or its rows with a value for each of `columns`.
        spelling: See `spelled`.
        columns: The columns shown, in this order, with heading or configuration; None for all.
        rows: What is taken along, where that is not what is shown.
        shown: As `st.dataframe` takes it.
    """
    if not isinstance(frame, pd.DataFrame):
        frame = pd.DataFrame(frame, columns=list(columns or ()))
    if columns is not None:
        shown |= {"column_order": list(columns), "column_config": columns}
    drawn = spelled(frame, spelling) if spelling else frame
    st.dataframe(drawn, hide_index=True, height=height, **shown)
    offer_downloads(frame if rows is None else rows, key)


def _written(
    form: Callable[[pd.DataFrame], bytes], frame: pd.DataFrame | Callable[[], pd.DataFrame]
) -> bytes:
    return form(frame if isinstance(frame, pd.DataFrame) else frame())


def languages(frame: pd.DataFrame, key: str) -> None:
    """QR, CS and cost by language with 95 % bounds; small samples are marked."""
    column, costs = st.column_config, ranges(frame, "cost", _decimals(frame["cost"]))
    last = {
        "cost": column.NumberColumn("Cost per query", format=dollars(frame["cost"])),
        "cost_range": "95 % interval  ",
    }
    _slices(frame, key, {"policy": "Language"}, {}, last, cost_range=costs)


def groups(frame: pd.DataFrame, key: str) -> None:
    """Language groups with QR and savings, and both minus English, in percent points."""
    column = st.column_config
    _slices(
        frame, key, {"group": "Language group"},
        {"qr_apart": column.TextColumn("QR minus English", width=170)},
        {"cs_apart": column.TextColumn("Savings minus English", width=170)},
        qr_apart=_apart(frame, "qr_english"), cs_apart=_apart(frame, "cs_english"),
    )  # fmt: skip


def _slices(
    frame: pd.DataFrame,
    key: str,
    name: dict[str, Any],
    qr: dict[str, Any],
    last: dict[str, Any],
    **further: list[str],
) -> None:
    """Parts of a set with queries, QR and savings, and what stands behind either."""
    column = st.column_config
    columns = {
        **name,
        "n": column.NumberColumn("Queries", format="localized"),
        "qr": column.NumberColumn("QR", format=_PERCENT),
        "qr_range": "95 % interval",
        **qr,
        "cs": column.NumberColumn("Savings", format=_PERCENT),
        "cs_range": "95 % interval ",
        **last,
        "note": "",
    }
    shown = frame.assign(
        qr_range=ranges(frame, "qr"),
        cs_range=ranges(frame, "cs"),
        note=frame["small"].map({True: "small sample", False: ""}),
        **further,
    )
    kept(shown, key, columns=columns, rows=frame)


def _apart(frame: pd.DataFrame, name: str) -> list[str]:
    """A difference in percent points with its interval; empty where there is none."""
    ends = zip(frame[name], frame[f"{name}_lo"], frame[f"{name}_hi"], strict=True)
    return [
        "" if pd.isna(value)
        else f"{signed(value)} pp" + ("" if pd.isna(low) else f" ({signed(low)} to {signed(high)})")
        for value, low, high in ends
    ]  # fmt: skip


def policies(frame: pd.DataFrame, key: str) -> None:
    """The router beside the fixed mix at its cost, the oracle and every single model."""
    column = st.column_config
    shown = frame.assign(
        qr_range=ranges(frame, "qr"),
        **{f"{x}_range": ranges(frame, x, _decimals(frame[x])) for x in ("cost", "per_resolved")},
    )
    columns: dict[str, Any] = {
        "policy": column.TextColumn("Policy", width=180),
        "detail": column.TextColumn("What it is", width=125),
        "quality": column.NumberColumn("Quality", format=_PERCENT),
        "qr": column.NumberColumn("QR", format=_PERCENT),
        "qr_range": "95 % interval",
        "cost": column.NumberColumn("Cost per query", format=dollars(frame["cost"])),
        "cost_range": "95 % interval ",
        "per_resolved": column.NumberColumn(
            "Cost per resolved", format=dollars(frame["per_resolved"])
        ),
        "per_resolved_range": "95 % interval  ",
        "cs": column.NumberColumn("Savings", format=_PERCENT),
        "misroute": column.NumberColumn("Overpaid queries", format=_PERCENT),
    }
    kept(shown, key, columns=columns, rows=frame)


def ranges(frame: pd.DataFrame, name: str, digits: int = 1) -> list[str]:
    """Both bounds of a column as text, empty where there are none; `name` may be empty."""
    low, high = (f"{name}_lo", f"{name}_hi") if name else ("low", "high")
    bounds = zip(frame[low], frame[high], strict=True)
    return ["" if pd.isna(a) else f"{a:.{digits}f} – {b:.{digits}f}" for a, b in bounds]


def models(frame: pd.DataFrame) -> None:
    """The models of an eval set: quality, cost and what is missing."""
    column = st.column_config
    missing = {"missing_quality": "No outcome", "missing_cost": "No cost"}
    missing = {name: label for name, label in missing.items() if frame[name].any()}
    width = 215 - 32 * len(missing)
    columns: dict[str, Any] = {
        "model": column.TextColumn("Model", width=width),
        "resolved": column.NumberColumn("Resolved", format="localized"),
        "quality": column.NumberColumn("Quality", format=_PERCENT),
        "bounds": "95 % interval",
        "cost": column.NumberColumn("Cost per query", format=dollars(frame["cost"])),
        **{x: column.NumberColumn(label) for x, label in missing.items()},
    }
    names = frame["model"].map(named(width, frame["model"]))
    shown = frame.assign(model=names, bounds=ranges(frame, ""))
    st.dataframe(
        shown, hide_index=True, height="content", column_order=tuple(columns),
        column_config=columns, placeholder="–",
    )  # fmt: skip


def queries(frame: pd.DataFrame, total: int) -> None:
    """The first queries of an eval set, with requirements in [0, 1] where there are some."""
    known = ("query", "language", "resolved by", "text")
    read = [name for name in frame.columns if name not in known]
    st.dataframe(
        frame,
        hide_index=True,
        height=420,
        placeholder="–",
        column_order=("query", *(name for name in ("text",) if name in frame), *read, *known[1:3]),
        column_config={
            "query": st.column_config.TextColumn("Query", width="small"),
            "language": st.column_config.TextColumn("Language", width="small"),
            "resolved by": st.column_config.TextColumn("Resolved by", width="small"),
            **{
                name: st.column_config.NumberColumn(name.capitalize(), format="%.2f", width=100)
                for name in read
            },
            "text": st.column_config.TextColumn("Text", width=225),
        },
    )
    if total > len(frame):
        st.caption(f"The first {len(frame):,} of {counted(total, 'query')}.")
    if "text" not in frame.columns:
        st.caption("This set has no texts.")
