"""From a table's headers to the grids of the import wizard, and back. No streamlit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pandas as pd

from hydra_core.catalog.identifiers import proposed_ids
from hydra_core.evalsets.importers.mapping import TableMapping
from hydra_core.evalsets.importers.reading.cells import BLANK, FILE, WORDS, Form, among
from hydra_core.evalsets.importers.reading.notation import Measure, Notation, parse_notations
from hydra_core.evalsets.importers.reading.tables import LINE
from hydra_core.evalsets.importers.table import measures

#: How the wizard's remedies name its own fields.
FORM: Final = Form(to_read="Written: HOW", to_rate="USD per CURRENCY", to_join="Model names: PAIR")
#: What a column may be said to hold, by what a remedy calls it.
WRITTEN: Final[Mapping[str, str]] = {
    "percent": "percent: 83 is 0.83",
    "1/5": "1/5: 5 is 1",
    "1/10": "1/10: 10 is 1",
    "words": "words: pass is 1, fail is 0",
    "share": "share: 0.83 is 0.83",
    "comma": "comma: 1,234 is 1.234",
    "point": "point: 1,234 is 1234",
    "cents": "cents: 5 is $0.05",
    "1/1000": "1/1000: costs of 1,000 answers, 5 is $0.005",
    "percent,comma": "percent,comma: 83,5 is 0.835",
    "cents,comma": "cents,comma: 1,234 is $0.01234",
}
#: The grid's columns of one model, and what each is called.
SIDES: Final[Mapping[str, str]] = {
    "quality": "Quality",
    "cost_usd": "Cost",
    "input_tokens": "Input tokens",
    "output_tokens": "Output tokens",
    "cached_input_tokens": "Cached tokens",
}
#: A message has this many words, in more than this share of its column's cells.
_WORDS, _MOST = 3, 0.5
_HOLDS: Final[Mapping[Measure, str]] = {
    Measure.QUALITY: "quality",
    Measure.COST: "cost",
    Measure.COUNT: "tokens",
    Measure.SECONDS: "time",
}


@dataclass(frozen=True, slots=True)
class Grid:
    """What an operator made of the grid: columns and ids by model's name; names without quality."""

    mapping: TableMapping
    ids: Mapping[str, str]
    lacking: tuple[str, ...]


def with_likely_text(suggested: TableMapping, heads: Sequence[pd.DataFrame]) -> TableMapping:
    """The suggestion; where no name tells the message, that is the column of the longest texts."""
    if "text" in suggested.fields:
        return suggested
    taken = {*suggested.all_columns().values(), FILE, LINE}
    lengths: dict[str, float] = {}
    for head in heads:
        for column in (str(name) for name in head if name not in taken):
            cells = head[column][~among(head[column], BLANK)]
            if len(cells) and (cells.str.count(r"\s") >= _WORDS - 1).mean() > _MOST:
                lengths[column] = max(lengths.get(column, 0.0), float(cells.str.len().mean()))
    if not lengths:
        return suggested
    longest = max(lengths, key=lambda column: lengths[column])
    return replace(suggested, fields={**suggested.fields, "text": longest})


def model_grid(suggested: TableMapping) -> pd.DataFrame:
    """One row a model: its name in the file, an id for it, and the columns of its figures."""
    ids = proposed_ids(list(suggested.quality))
    columns = [suggested.sides.get(side, {}) for side in SIDES]
    rows = [[name, ids[name], *(one.get(name) for one in columns)] for name in suggested.quality]
    return pd.DataFrame(rows, columns=["name", "id", *SIDES], dtype=object)


def read_grid(grid: pd.DataFrame, suggested: TableMapping) -> Grid:
    """The grid as an operator left it; what it does not show stays as suggested."""
    sides: dict[str, dict[str, str]] = {side: {} for side in SIDES}
    ids, lacking = {}, []
    for row in grid.to_dict("records"):
        model = _cell(row["id"])
        name = _cell(row["name"]) or model or _cell(row["quality"])
        if not _cell(row["quality"]):
            lacking += [name] if name else []
            continue
        ids[name] = model or proposed_ids([name])[name]
        for side in SIDES:
            if column := _cell(row[side]):
                sides[side][name] = column
    hidden = {
        figure: {name: column for name, column in columns.items() if name in ids}
        for figure, columns in suggested.sides.items()
        if figure not in SIDES
    }
    stated = {figure: columns for figure, columns in {**sides, **hidden}.items() if columns}
    mapping = TableMapping(suggested.query_fields, stated)
    return Grid(mapping, ids, tuple(lacking))


def _cell(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def number_columns(mapping: TableMapping, heads: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One row a column of numbers: what it holds, its first cell, how it is proposed to be read."""
    rows = []
    for column, measure in measures(mapping).items():
        cells = pd.concat([head[column] for head in heads if column in head] or [pd.Series([""])])
        filled = cells[~among(cells, BLANK)]
        words = measure is Measure.QUALITY and among(filled, WORDS).any()
        rows.append(
            {
                "column": column,
                "holds": _HOLDS[measure],
                "first": str(filled.iloc[0])[:40] if len(filled) else "",
                "written": "words" if words else None,
            }
        )
    return pd.DataFrame(rows, columns=["column", "holds", "first", "written"], dtype=object)


def notations_of(table: pd.DataFrame) -> dict[str, Notation]:
    """How columns are written, where an operator or a proposal says so."""
    stated = [
        f"{row['column']}={row['written']}"
        for row in table.to_dict("records")
        if isinstance(row["written"], str)
    ]
    return parse_notations(stated)


def without_rates(currencies: Iterable[str], rates: Mapping[str, float | None]) -> list[str]:
    """The currencies that still have no rate."""
    return [one for one in currencies if not rates.get(one)]
