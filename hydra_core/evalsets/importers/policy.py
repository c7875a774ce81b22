"""Import of another router's decisions: a table of query_id and model for an eval set's queries."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.evalsets.importers.mapping import suggest_mapping
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.tables import LINE, columns_of, read_columns

_SHOWN = 5


def read_policy(
    file: TableFile, evalset: EvalSet, columns: Mapping[str, str] | None = None
) -> pd.Series:
    """(n,) the model that each query of the set was sent to, rows as in the set.

    Args:
        file: CSV, JSONL or Parquet with a row a query; further rows for queries that the set does
            not have are ignored.
        columns: Which column is query_id and which model; the rest is suggested from the names.

    Raises:
        EvalSetError: A query without a row, a query with two, or a model the set does not have.
    """
    found = columns_of(file)
    fields = {**suggest_mapping(found).fields, **(columns or {})}
    problems = [
        Problem(name, "the column is missing", f"columns: {', '.join(found[:20])}")
        for name in ("query_id", "model")
        if fields.get(name) not in found
    ]
    if problems:
        raise EvalSetError(file.name, problems)
    wanted = [fields["query_id"], fields["model"]]
    frame = read_columns(file, wanted, Budget())[0]
    rows = pd.DataFrame(
        {"id": frame[wanted[0]], "model": frame[wanted[1]].str.strip(), "line": frame[LINE]}
    )
    rows = rows[rows["id"].isin(evalset.queries["query_id"])]
    _check(rows, evalset, file.name)
    return rows.set_index("id")["model"].reindex(evalset.queries["query_id"]).reset_index(drop=True)


def _check(rows: pd.DataFrame, evalset: EvalSet, source: str) -> None:
    known = ", ".join(evalset.models)
    problems = []
    twice = rows[rows["id"].duplicated()]
    if len(twice):
        message = f"{len(twice)} queries have a second row: {_listed(twice['id'])}"
        problems.append(Problem(f"line {twice['line'].iloc[0]}", message, "keep one row a query"))
    strange = rows[~rows["model"].isin(evalset.models)]
    for model, part in strange.groupby("model"):
        message = f"{model!r} is not a model of eval set {evalset.name} ({len(part)} rows)"
        problems.append(Problem(f"line {part['line'].iloc[0]}", message, f"its models: {known}"))
    absent = evalset.queries["query_id"][~evalset.queries["query_id"].isin(rows["id"])]
    if len(absent):
        message = f"{len(absent)} of {evalset.n} queries have no row: {_listed(absent)}"
        problems.append(Problem("query_id", message, "give every query of the set a model"))
    if problems:
        raise EvalSetError(source, problems)


def _listed(ids: pd.Series) -> str:
    return ", ".join(map(str, ids.iloc[:_SHOWN])) + (", ..." if len(ids) > _SHOWN else "")
