"""How a table's numbers are read under a mapping, and its first rows as they will be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.importers.mapping import TableMapping, header_notations
from hydra_core.evalsets.importers.reading.bounded import TableFile
from hydra_core.evalsets.importers.reading.cells import FILE, PLAIN, Form
from hydra_core.evalsets.importers.reading.columns import Columns
from hydra_core.evalsets.importers.reading.notation import Measure, Notation
from hydra_core.evalsets.importers.reading.tables import LINE, columns_of, head_of
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


def first_rows(
    file: TableFile,
    mapping: TableMapping,
    n: int = 20,
    *,
    form: Form = PLAIN,
    notations: Mapping[str, Notation] | None = None,
    rates: Mapping[str, float] | None = None,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The first rows as they will be read, under the file's own headers, and how, in words.

    A cell that cannot be read is blank; the notes say why.

    Raises:
        EvalSetError: The file cannot be read.
    """
    columns = columns_of(file)
    rows = head_of(file, n).assign(**{FILE: file.name})
    rows[LINE] = range(1, len(rows) + 1)
    reader = column_reader(columns, mapping, form, notations, rates)
    for column, measure in measures(mapping).items():
        if column in columns:
            rows[column] = reader.plain(rows, column, measure)
    text = mapping.fields.get("text")
    if text in columns:
        rows[text] = unlisted(rows[text])[0]
    faults = [str(problem) for problem in reader.issues.problems()]
    return rows.drop(columns=[FILE, LINE]), (*reader.notes, *faults)


def measures(mapping: TableMapping) -> dict[str, Measure]:
    """Column -> what its numbers are, of all outcomes."""
    sides = {"quality": mapping.quality, "cost_usd": mapping.cost, **mapping.more}
    if not mapping.wide:
        sides = {field: {"": c} for field, c in mapping.outcome_fields.items() if field != "model"}
    return {
        c: _MEASURES.get(field, Measure.COUNT) for field, s in sides.items() for c in s.values()
    }
