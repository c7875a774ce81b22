"""Ratings as CSV, out and in: query_id, rater, one column a dimension, note."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from hydra_core.errors import EvalSetError, Problem
from hydra_core.evaluation.audit.tables import on_unit_scale
from hydra_core.evaluation.importers.reading.bounded import Budget, TableFile
from hydra_core.evaluation.importers.reading.issues import Issues
from hydra_core.evaluation.importers.reading.tables import LINE, columns_of, read_columns
from hydra_core.types import FloatArray, IntArray

__all__ = ["RatingRow", "from_csv", "mean_ratings", "to_csv"]

#: query id, rater, scores from 1 to 5, note
RatingRow = tuple[str, str, tuple[float, ...], str]


def to_csv(rows: Iterable[RatingRow], dimensions: Sequence[str]) -> bytes:
    """UTF-8, made to be read again (`views.downloads.csv_file` is for spreadsheets)."""
    table = [[query, rater, *scores, note] for query, rater, scores, note in rows]
    frame = pd.DataFrame(table, columns=["query_id", "rater", *dimensions, "note"])
    text = io.StringIO()
    frame.to_csv(text, index=False, lineterminator="\r\n")
    return text.getvalue().encode("utf-8")


def from_csv(
    file: TableFile, dimensions: Sequence[str], query_ids: Sequence[str]
) -> list[RatingRow]:
    """Read ratings of a sample.

    Raises:
        EvalSetError: With every kind of problem: columns, unknown queries, scores not from 1 to 5.
    """
    there = columns_of(file)
    needed = ["query_id", "rater", *dimensions]
    missing = [name for name in needed if name not in there]
    if missing:
        problems = [Problem(f"column {name!r}", "is missing") for name in missing]
        raise EvalSetError(file.name, problems)
    wanted = [*needed, *(["note"] if "note" in there else [])]
    frame, _ = read_columns(file, wanted, Budget())
    known, issues, rows = frozenset(query_ids), Issues(), list[RatingRow]()
    scores = frame[list(dimensions)].apply(pd.to_numeric, errors="coerce").to_numpy(float)
    for at, values in enumerate(scores.tolist()):
        line, query = int(frame[LINE].iloc[at]), str(frame["query_id"].iloc[at])
        rater = str(frame["rater"].iloc[at]).strip()
        if query not in known:
            issues.add("query_id is not in the sample", line, "export the sample for its ids")
        if not rater:
            issues.add("rater is empty", line)
        for name, value in zip(dimensions, values, strict=True):
            if not 1.0 <= value <= 5.0:
                issues.add(f"{name} must be a number from 1 to 5", line)
        note = str(frame["note"].iloc[at]) if "note" in wanted else ""
        rows.append((query, rater, tuple(values), note))
    issues.raise_any(file.name)
    return rows


def mean_ratings(
    rows: Sequence[RatingRow], query_ids: Sequence[str]
) -> tuple[IntArray, FloatArray]:
    """(n,) places of the rated queries, and their (n, K) mean ratings on [0, 1]."""
    place_of = {query: at for at, query in enumerate(query_ids)}
    given: dict[int, list[tuple[float, ...]]] = {}
    for query, _, scores, _ in rows:
        given.setdefault(place_of[query], []).append(scores)
    places = sorted(given)
    human = np.array([np.mean(given[place], axis=0) for place in places])
    return np.array(places, dtype=np.intp), on_unit_scale(human)
