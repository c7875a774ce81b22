"""How a table's numbers are read under a mapping, and its first rows as they will be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.importers.mapping import TableMapping, header_notations
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.cells import FILE, PLAIN, Form
from hydra_core.evalsets.importers.reading.columns import Columns
from hydra_core.evalsets.importers.reading.notation import Measure, Notation
from hydra_core.evalsets.importers.reading.tables import LINE, columns_of, read_columns
from hydra_core.evalsets.importers.reading.texts import unlisted

_MEASURES = {
    "quality": Measure.QUALITY, "cost_usd": Measure.COST, "latency_s": Measure.SECONDS
}  # fmt: skip


def column_reader(
    union: Sequence[str],
    mapping: TableMapping,
    form: Form,
    notations: Mapping[str, Notation] | None,
    rates: Mapping[str, float] | None,
) -> Columns:
    """The reader of all columns.

    Raises:
        EvalSetError: A notation is said of a column that is not there.
    """
    unknown = [name for name in notations or {} if name not in union]
    if unknown:
        remedy = f"columns: {', '.join(union[:20])}"
        raise EvalSetError(
            "--read", [Problem(repr(name), "is not a column", remedy) for name in unknown]
        )
    return Columns(
        form,
        notations or {},
        header_notations(union),
        {"USD": 1.0, **(rates or {})},
        wide=len(mapping.quality) > 1,
    )


def raw_rows(file: TableFile, n: int) -> pd.DataFrame:
    """The first rows as they stand, each with its FILE and LINE.

    Raises:
        EvalSetError: The file cannot be read.
    """
    frame = read_columns(file, columns_of(file), Budget(), stop=n)[0]
    return frame.assign(**{FILE: file.name})


@dataclass(frozen=True, slots=True, eq=False)
class AsRead:
    """Rows as they will be read.

    Attributes:
        rows: Under the file's own headers; a cell that cannot be read is blank.
        notes: What is read otherwise than it stands, in words.
        faults: Cells that cannot be read, in words.
        currencies: Those that are met, with and without a rate.
    """

    rows: pd.DataFrame
    notes: tuple[str, ...]
    faults: tuple[str, ...]
    currencies: frozenset[str]


def read_rows(
    raw: pd.DataFrame,
    mapping: TableMapping,
    *,
    form: Form = PLAIN,
    notations: Mapping[str, Notation] | None = None,
    rates: Mapping[str, float] | None = None,
) -> AsRead:
    """Rows of one file as they will be read.

    Args:
        raw: Every cell text, with FILE and LINE.
    """
    rows = raw.copy()
    columns = [name for name in raw.columns if name not in (FILE, LINE)]
    own = {name: how for name, how in (notations or {}).items() if name in columns}
    reader = column_reader(columns, mapping, form, own, rates)
    for column, measure in measures(mapping).items():
        if column in columns:
            rows[column] = reader.plain(rows, column, measure)
    text = mapping.fields.get("text")
    if text in columns:
        rows[text] = unlisted(rows[text])[0]
    return AsRead(
        rows.drop(columns=[FILE, LINE]),
        tuple(reader.notes),
        tuple(str(problem) for problem in reader.issues.problems()),
        frozenset(reader.converted | reader.unrated),
    )


def measures(mapping: TableMapping) -> dict[str, Measure]:
    """Column -> what its numbers are, of all outcomes."""
    sides = {"quality": mapping.quality, "cost_usd": mapping.cost, **mapping.more}
    if not mapping.wide:
        sides = {field: {"": c} for field, c in mapping.outcome_fields.items() if field != "model"}
    return {
        c: _MEASURES.get(field, Measure.COUNT) for field, s in sides.items() for c in s.values()
    }
