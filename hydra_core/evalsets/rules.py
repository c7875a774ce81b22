"""The rules an eval set's rows obey, and the way between long rows and (n, m) matrices."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from pandas.api import types as dtypes

from hydra_core.base.arrays import read_only
from hydra_core.base.errors import Problem
from hydra_core.base.types import FloatArray, IntArray
from hydra_core.catalog.identifiers import id_problem, proposed_ids

REQUIRED_QUERY_COLUMNS = ("query_id", "language")
OPTIONAL_QUERY_COLUMNS = (
    *("text", "has_image", "conversation_id", "turn", "context"),
    *("group", "cluster", "needs", "require"),
    *("needs_tools", "context_tokens", "allow", "deny"),
)
EXTRA_OUTCOMES = (
    *("latency_s", "tokens"),
    *("input_tokens", "output_tokens", "cached_input_tokens"),
)
#: How likely each model was to serve a logged query; also of models that did not.
PROPENSITY = "propensity"
#: Columns of true and false.
FLAGS = ("has_image", "needs_tools")
_TEXTS = ("group", "cluster", "conversation_id", "context", "needs", "require", "allow", "deny")
_KEPT = ("quality", "cost_usd", *EXTRA_OUTCOMES, PROPENSITY)

_LANGUAGE = re.compile(r"[a-z]{2,3}")
_SHOWN = 3


def model_id_problem(model: object, place: str = "model") -> Problem | None:
    """The Problem with a model id, or None when it is fine (the catalog's rule for ids).

    Its remedy suggests an id.
    """
    if not isinstance(model, str):
        return Problem(place, f"must be text, got {model!r}")
    found = id_problem(model)
    if found is None:
        return None
    message, remedy = found
    return Problem(place, message, f"{remedy}; such as {proposed_ids([model])[model]}")


def check_queries(queries: pd.DataFrame) -> list[Problem]:
    """Every problem with the query table (columns, types, duplicates, empty cells)."""
    missing = [c for c in REQUIRED_QUERY_COLUMNS if c not in queries.columns]
    if missing:
        return [Problem(f"queries: {name}", "the column is missing") for name in missing]
    if queries.empty:
        return [Problem("queries", "there are no queries")]
    problems = []
    for name in (*REQUIRED_QUERY_COLUMNS, *({"text"} & set(queries.columns))):
        column = queries[name]
        if isinstance(column.dtype, pd.StringDtype):  # as read from a file: text or nothing
            bad = column.isna() | (column == "").fillna(True).astype(bool)
        else:
            bad = ~column.astype(object).map(lambda v: isinstance(v, str) and v != "")
        problems += _rows(f"queries: {name}", "is empty or not text", column, bad)
    if problems:
        return problems
    ids = queries["query_id"]
    problems += _rows("queries: query_id", "occurs more than once", ids, ids.duplicated())
    codes = queries["language"]
    known = {code for code in codes.unique() if _LANGUAGE.fullmatch(code)}
    bad = ~codes.isin(known)
    problems += _rows("queries: language", "is not an ISO 639 code such as en", codes, bad)
    return problems + check_optional_columns(queries)


def _places(column: pd.Series, known: pd.Index) -> IntArray:
    """(rows,) place of every cell among `known`, -1 where it is not there."""
    codes, values = pd.factorize(column, use_na_sentinel=False)
    return known.get_indexer(pd.Index(values))[codes]


def check_optional_columns(queries: pd.DataFrame) -> list[Problem]:
    """Every problem with the columns of a query table that a set may have."""
    problems = []
    for name in queries.columns:
        column = queries[name]
        if name.startswith("label_"):
            problems += _range(f"queries: {name}", column, 0.0, 1.0)
        elif name == "turn":
            problems += _range(f"queries: {name}", column, 1.0, np.inf)
        elif name == "context_tokens":
            problems += _range(f"queries: {name}", column, 0.0, np.inf)
        elif name in FLAGS:
            if not dtypes.is_bool_dtype(column):
                problems.append(Problem(f"queries: {name}", "must hold true and false only"))
        elif name in _TEXTS:
            text = column.astype(object).map(lambda value: isinstance(value, str))
            bad = column.notna() & ~text
            problems += _rows(f"queries: {name}", "is not text", column, bad)
        elif name not in (*REQUIRED_QUERY_COLUMNS, "text"):
            problems.append(Problem(f"queries: {name}", "is not a column of an eval set"))
    return problems


def _range(place: str, column: pd.Series, low: float, high: float) -> list[Problem]:
    if dtypes.is_bool_dtype(column) or not dtypes.is_numeric_dtype(column):
        return [Problem(place, f"must hold numbers, got {column.dtype}")]
    values = column.to_numpy(dtype=float, na_value=np.nan)
    bad = pd.Series((values < low) | (values > high) | np.isinf(values), index=column.index)
    end = "up" if np.isinf(high) else f"to {high:g}"
    return _rows(place, f"must lie from {low:g} {end}", column, bad)


def _rows(place: str, message: str, column: pd.Series, bad: pd.Series) -> list[Problem]:
    """One Problem for all bad rows of a column: how many, which first, what they hold."""
    if not bad.any():
        return []
    at = np.flatnonzero(bad.to_numpy())
    shown = ", ".join(f"row {i + 1}: {str(column.iloc[i])[:60]!r}" for i in at[:_SHOWN])
    more = ", ..." if len(at) > _SHOWN else ""
    return [Problem(place, f"{message} in {len(at)} row(s) ({shown}{more})")]


def check_outcomes(
    outcomes: pd.DataFrame, query_ids: pd.Index, models: Sequence[str]
) -> list[Problem]:
    """Every problem with the long outcome table against its queries and models."""
    missing = [c for c in ("query_id", "model", "quality", "cost_usd") if c not in outcomes.columns]
    if missing:
        return [Problem(f"outcomes: {name}", "the column is missing") for name in missing]
    if outcomes.empty:
        return [Problem("outcomes", "there are no outcomes")]
    known = ("query_id", "model", *_KEPT)
    problems = [
        Problem(f"outcomes: {name}", "is not a column of an eval set")
        for name in outcomes.columns
        if name not in known
    ]
    ids, names = outcomes["query_id"], outcomes["model"]
    for column in (ids, names):
        if not (dtypes.is_string_dtype(column) or isinstance(column.dtype, pd.CategoricalDtype)):
            problems.append(Problem(f"outcomes: {column.name}", f"must be text, is {column.dtype}"))
    if problems:
        return problems
    for column, among, message in (
        (ids, query_ids, "is not among the queries"),
        (names, pd.Index(models), "is not in evalset.yaml"),
    ):
        absent = pd.Series(_places(column, among.unique()) < 0, index=column.index)
        problems += _rows(f"outcomes: {column.name}", message, column, absent)
    twice = outcomes.duplicated(["query_id", "model"])
    problems += _rows("outcomes", "query and model occur more than once", ids, twice)
    problems += _range("outcomes: quality", outcomes["quality"], 0.0, 1.0)
    for name in _KEPT[1:]:
        if name in outcomes.columns:
            high = 1.0 if name == PROPENSITY else np.inf
            problems += _range(f"outcomes: {name}", outcomes[name], 0.0, high)
    return problems


def matrix_problems(
    n: int, models: Sequence[str], matrices: Mapping[str, FloatArray]
) -> list[Problem]:
    """Every problem with the (n, m) matrices that are to be saved."""
    found = (model_id_problem(model, f"models[{i}]") for i, model in enumerate(models))
    problems = [problem for problem in found if problem is not None]
    if not models or len(set(models)) < len(models):
        problems.append(Problem("models", "must be at least one, each named once"))
    for name, matrix in matrices.items():
        high = 1.0 if name in ("quality", PROPENSITY) else np.inf
        if name not in _KEPT:
            problems.append(Problem(name, "is not a column of an eval set"))
        elif matrix.shape != (n, len(models)):
            problems.append(Problem(name, f"must be {(n, len(models))}, got {matrix.shape}"))
        elif np.any((matrix < 0) | (matrix > high) | np.isinf(matrix)):
            problems.append(Problem(name, f"has values outside [0, {high:g}]"))
    if not problems and np.isnan(matrices["quality"]).all():
        problems.append(Problem("quality", "there are no outcomes"))
    return problems


def outcome_matrices(
    outcomes: pd.DataFrame, query_ids: pd.Index, models: Sequence[str]
) -> dict[str, FloatArray]:
    """(n, m) read-only values of every outcome column, NaN where there is no row."""
    rows = _places(outcomes["query_id"], query_ids)
    columns = _places(outcomes["model"], pd.Index(models))
    matrices = {}
    for name in _KEPT:
        if name in outcomes.columns:
            matrix = np.full((len(query_ids), len(models)), np.nan)
            matrix[rows, columns] = outcomes[name].to_numpy(dtype=float, na_value=np.nan)
            matrices[name] = read_only(matrix)
    return matrices


def outcome_rows(
    query_ids: pd.Series, models: Sequence[str], matrices: Mapping[str, FloatArray]
) -> pd.DataFrame:
    """Long rows (query_id, model, quality, ...): every known outcome, cost or propensity."""
    known = ~(np.isnan(matrices["quality"]) & np.isnan(matrices["cost_usd"]))
    if PROPENSITY in matrices:
        known |= ~np.isnan(matrices[PROPENSITY])
    rows, columns = np.nonzero(known)
    content: dict[str, object] = {
        "query_id": query_ids.to_numpy()[rows],
        "model": np.asarray(models, dtype=object)[columns],
    }
    content |= {name: np.asarray(matrix)[rows, columns] for name, matrix in matrices.items()}
    return pd.DataFrame(content)
