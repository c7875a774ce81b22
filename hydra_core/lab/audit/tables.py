"""Human ratings beside predictor and label, laid out as the paper's tables of its audit."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.intervals import LEVEL, Interval, tails
from hydra_core.base.types import FloatArray, IntArray
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.cells import LINE, Issues
from hydra_core.evalsets.importers.reading.tables import columns_of, read_columns
from hydra_core.replay.significance import mean_interval


def alpha(ratings: FloatArray) -> float:
    """Interval alpha of (raters, items) ratings, NaN where one is missing.

    Items with fewer than two ratings do not count. NaN where nothing can be compared, or where all
    ratings are equal (agreement by chance cannot be told from agreement then).
    """
    sums = _sums(ratings)
    return float(_alpha(sums.sum(axis=0, keepdims=True))[0])


def alpha_interval(
    ratings: FloatArray,
    *,
    rng: np.random.Generator,
    clusters: np.ndarray | None = None,
    resamples: int = 1000,
) -> Interval:
    """Alpha with a percentile bootstrap interval, widened to hold the estimate itself.

    Args:
        ratings: (raters, items), NaN where missing.
        clusters: (items,) numbers of items that are resampled together (the cells of one message);
            None: every item by itself.
    """
    sums = _sums(ratings)
    if clusters is not None:
        _, places = np.unique(clusters, return_inverse=True)
        grouped = np.zeros((int(places.max(initial=-1)) + 1, sums.shape[1]))
        np.add.at(grouped, places, sums)
        sums = grouped
    value = float(_alpha(sums.sum(axis=0, keepdims=True))[0])
    n = len(sums)
    if n < 2 or not np.isfinite(value):
        return Interval.none(value, "too few ratings")
    counts = rng.multinomial(n, np.full(n, 1.0 / n), size=resamples)
    drawn = _alpha(counts @ sums)
    lo, hi = np.nanquantile(drawn, tails(LEVEL))
    return Interval.holding(value, float(lo), float(hi))


def _sums(ratings: FloatArray) -> FloatArray:
    """(items, 4): per item the within-item disagreement, count, sum and sum of squares."""
    values = np.asarray(ratings, dtype=float)
    given = np.isfinite(values)
    count = given.sum(axis=0).astype(float)
    shift = values[given].mean() if given.any() else 0.0
    filled = np.where(given, values - shift, 0.0)
    total, squares = filled.sum(axis=0), (filled**2).sum(axis=0)
    paired = count >= 2.0
    within = np.where(
        paired, 2.0 * (count * squares - total**2) / np.maximum(count - 1.0, 1.0), 0.0
    )
    rest = (np.where(paired, part, 0.0) for part in (count, total, squares))
    return np.column_stack([within, *rest])


def _alpha(sums: FloatArray) -> FloatArray:
    """(resamples, 4) summed parts -> (resamples,) alpha."""
    within, count, total, squares = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = within / count
        expected = 2.0 * (count * squares - total**2) / (count * (count - 1.0))
        found = 1.0 - observed / expected
    # Rounding leaves a trace of spread where every rating is the same.
    scale = np.maximum(squares / np.maximum(count, 1.0), 1e-300)
    return np.where(expected > 1e-12 * scale, found, np.nan)


#: query id, rater, scores from 1 to 5, note
RatingRow = tuple[str, str, tuple[float, ...], str]


def to_csv(rows: Iterable[RatingRow], dimensions: Sequence[str]) -> bytes:
    """UTF-8, made to be read again (`views.downloads.csv_file` is for spreadsheets)."""
    table = [[query, rater, *scores, note] for query, rater, scores, note in rows]
    frame = pd.DataFrame(table, columns=["query_id", "rater", *dimensions, "note"])
    return frame.to_csv(index=False, lineterminator="\r\n").encode("utf-8")


def from_csv(
    file: TableFile, dimensions: Sequence[str], query_ids: Sequence[str], *, rater: str = ""
) -> list[RatingRow]:
    """Read ratings of a sample; a row without any score is not rated and left out.

    Args:
        rater: Who rated where the file does not say; '' refuses such rows.

    Raises:
        EvalSetError: With every kind of problem: columns, unknown queries, scores not from 1 to 5.
    """
    there = columns_of(file)
    needed = ["query_id", *([] if rater and "rater" not in there else ["rater"]), *dimensions]
    missing = [name for name in needed if name not in there]
    EvalSetError.raise_any(file.name, [Problem(f"column {n!r}", "is missing") for n in missing])
    wanted = [*needed, *(["note"] if "note" in there else [])]
    frame, _ = read_columns(file, wanted, Budget())
    known, issues, rows = frozenset(query_ids), Issues(), list[RatingRow]()
    for row in frame.to_dict("records"):
        line, query = int(row[LINE]), str(row["query_id"]).strip()
        texts = [str(row[name]).strip() for name in dimensions]
        if not any(texts):
            continue
        who = str(row.get("rater", "")).strip() or rater
        if query not in known:
            message = f"query_id {query!r} is not in the sample"
            issues.add(message, line, "export the sample for its ids")
        if not who:
            issues.add("rater is empty", line, "write who rated it")
        values = tuple(map(_score, texts))
        for name, text, value in zip(dimensions, texts, values, strict=True):
            if not 1.0 <= value <= 5.0:
                message = f"{name} must be a number from 1 to 5, got {text[:40]!r}"
                issues.add(message, line, "write such as 4, or empty the row's scores to rate none")
        rows.append((query, who, values, str(row.get("note", ""))))
    issues.raise_any(file.name)
    return rows


def _score(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


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


_SEED = 1742
POOLED = "pooled"
AVERAGED = "averaged"


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One dimension, all cells pooled, or the mean of the dimensions' values (no interval).

    Attributes:
        raters: Agreement of the raters with one another.
        predictor, label: Their agreement with the mean rating; None where there is no label.
        predictor_mae, label_mae: Mean absolute error on [0, 1].
        predictor_bias, label_bias: Mean of score - rating.
    """

    name: str
    raters: Interval
    predictor: Interval
    label: Interval | None
    predictor_mae: float
    label_mae: float | None
    predictor_bias: Interval
    label_bias: Interval | None


@dataclass(frozen=True, slots=True)
class Audit:
    """All of an audit: n rated queries, raters, and a row per dimension, pooled and averaged."""

    n: int
    raters: tuple[str, ...]
    rows: tuple[AuditRow, ...]


def on_unit_scale(ratings: FloatArray) -> FloatArray:
    """Ratings from 1 to 5 -> [0, 1]."""
    return (ratings - 1.0) / 4.0


def audit(
    ratings: FloatArray,
    predictor: FloatArray,
    labels: FloatArray | None,
    dimensions: Sequence[str],
    raters: Sequence[str],
    *,
    groups: IntArray | None = None,
    resamples: int = 1000,
) -> Audit:
    """Agreement and error by dimension.

    Args:
        ratings: (raters, n, K) on [0, 1], NaN where somebody gave none; every query has one.
        predictor: (n, K).
        labels: (n, K), or None.
        groups: (n,) cluster of each query, such as translations of one task; None: independent.
    """
    rng = np.random.default_rng(_SEED)
    human = np.nanmean(ratings, axis=0)
    n, k = human.shape

    def row(name: str, places: Sequence[int]) -> AuditRow:
        cells = np.tile(np.arange(n) if groups is None else groups, len(places))
        agreement = partial(alpha_interval, rng=rng, clusters=cells, resamples=resamples)

        def flat(part: FloatArray) -> FloatArray:
            return np.concatenate([part[..., i] for i in places], axis=-1)

        def against(other: FloatArray) -> tuple[Interval, float, Interval]:
            gap = flat(other) - reference
            alike = agreement(np.stack([reference, flat(other)]))
            return alike, float(np.abs(gap).mean()), mean_interval(gap, cells)

        reference, among = flat(human), agreement(flat(ratings))
        alike, mae, bias = against(predictor)
        said = (None, None, None) if labels is None else against(labels)
        return AuditRow(name, among, alike, said[0], mae, said[1], bias, said[2])

    single = [row(name, [i]) for i, name in enumerate(dimensions)]
    return Audit(n, tuple(raters), (*single, row(POOLED, range(k)), _averaged(single)))


def _averaged(rows: Sequence[AuditRow]) -> AuditRow:
    """The mean of the dimensions' values, which is not the pooled one."""

    def mean(values: Sequence[Any]) -> Interval | float | None:
        if None in values:
            return None
        if not isinstance(values[0], Interval):
            return float(np.mean(values))
        middle = float(np.mean([value.value for value in values]))
        return Interval.none(middle, "a mean of dimensions has no interval")

    names = [field.name for field in fields(AuditRow)[1:]]
    means: dict[str, Any] = {name: mean([getattr(one, name) for one in rows]) for name in names}
    return AuditRow(AVERAGED, **means)


def slices(
    human: FloatArray,
    predictor: FloatArray,
    labels: FloatArray | None,
    by: Mapping[str, Sequence[str]],
) -> list[dict[str, object]]:
    """Error by part (language, length): kind, part, n, predictor_mae, predictor_bias, label_mae.

    Args:
        human: (n, K) mean ratings on [0, 1].
        by: Kind of part -> (n,) part of each query.
    """
    rows: list[dict[str, object]] = []
    for kind, parts in by.items():
        of = np.asarray(parts, dtype=object)
        for part in sorted(set(parts)):
            mine = of == part
            gap = predictor[mine] - human[mine]
            label = None if labels is None else float(np.abs(labels[mine] - human[mine]).mean())
            rows.append(
                {
                    "kind": kind,
                    "part": part,
                    "n": int(mine.sum()),
                    "predictor_mae": float(np.abs(gap).mean()),
                    "predictor_bias": float(gap.mean()),
                    "label_mae": label,
                }
            )
    return rows
