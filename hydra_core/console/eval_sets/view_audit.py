"""What Rated by people shows: the next message, agreement, before and after recalibration."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import titled
from hydra_core.base.types import FloatArray
from hydra_core.console.figures.intervals import IntervalsView, Series
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.lab.audit.recalibrate import Recalibration
from hydra_core.lab.audit.tables import Audit, on_unit_scale
from hydra_core.store.records import Rating, RatingState, Sample

#: What the console calls the writing systems of `script_of`.
SCRIPT_NAMES = {
    "latin": "Latin",
    "cjk": "East Asian",
    "cyrillic": "Cyrillic",
    "arabic": "Arabic",
    "other": "Other",
}


@dataclass(frozen=True, slots=True)
class Rated:
    """A sample's ratings as arrays.

    Attributes:
        ratings: (raters, n, K) on [0, 1], NaN where somebody gave none.
        places: (n,) rows of the eval set.
    """

    query_ids: tuple[str, ...]
    raters: tuple[str, ...]
    ratings: FloatArray
    places: np.ndarray


def order_for(sample: Sample, rater: str) -> tuple[str, ...]:
    """The sample in an order of the rater's own, the same at every visit."""

    def place(query: str) -> bytes:
        return hashlib.sha256(f"{rater}|{sample.name}|{query}".encode()).digest()

    return tuple(sorted(sample.query_ids, key=place))


def next_query(sample: Sample, ratings: Sequence[Rating], rater: str) -> str | None:
    """The first query that a rater has neither rated nor skipped, then the skipped ones."""
    mine = {one.query_id: one.state for one in ratings if one.rater == rater}
    order = order_for(sample, rater)
    left = [query for query in order if query not in mine]
    skipped = [query for query in order if mine.get(query) is RatingState.SKIPPED]
    return next(iter([*left, *skipped]), None)


def rated(sample: Sample, ratings: Sequence[Rating], evalset: EvalSet) -> Rated | None:
    """The ratings as arrays; None while there are none."""
    given = [one for one in ratings if one.state is RatingState.RATED]
    place_of = {query: at for at, query in enumerate(evalset.query_ids)}
    queries = [q for q in sample.query_ids if q in place_of and any(o.query_id == q for o in given)]
    if not queries:
        return None
    raters = sorted({one.rater for one in given})
    row, column = ({name: i for i, name in enumerate(names)} for names in (raters, queries))
    values = np.full((len(raters), len(queries), len(sample.dimensions)), np.nan)
    for one in given:
        if one.query_id in column:
            values[row[one.rater], column[one.query_id]] = one.scores
    places = np.array([place_of[query] for query in queries], dtype=np.intp)
    return Rated(tuple(queries), tuple(raters), on_unit_scale(values), places)


def length_of(text: str) -> str:
    """A message's length class."""
    words = len(text.split())
    return (
        "short (to 15 words)" if words <= 15 else "middle" if words <= 80 else "long (81 or more)"
    )


def agreement_frame(found: Audit) -> pd.DataFrame:
    """The paper's table: alpha between raters, with the predictor, with the label."""
    return pd.DataFrame(
        [
            {
                "dimension": titled(row.name),
                "raters": interval_text(row.raters),
                "predictor": interval_text(row.predictor),
                "label": "–" if row.label is None else interval_text(row.label),
            }
            for row in found.rows
        ]
    )


def error_frame(found: Audit) -> pd.DataFrame:
    """Mean absolute error and bias on [0, 1]."""
    return pd.DataFrame(
        [
            {
                "dimension": titled(row.name),
                "predictor_mae": row.predictor_mae,
                "predictor_bias": interval_text(row.predictor_bias, signed=True),
                "label_mae": row.label_mae,
                "label_bias": None if row.label_bias is None else row.label_bias.value,
            }
            for row in found.rows
        ]
    )


def agreement_view(found: Audit) -> IntervalsView:
    """Alpha of every dimension, three series."""
    rows = [row for row in found.rows if np.isfinite(row.predictor.lo)]
    labels = [row.label for row in rows]
    series = []
    if len(found.raters) > 1:
        series.append(Series.of("Raters with one another", [row.raters for row in rows], "muted"))
    series.append(Series.of("Predictor with raters", [row.predictor for row in rows]))
    if rows and None not in labels:
        series.append(Series.of("Label with raters", [one for one in labels if one], "ghost"))
    return IntervalsView(
        tuple(titled(row.name) for row in rows), tuple(series),
        "Krippendorff's alpha (interval), 95 % interval", format=".2f", lines=((0.0, "chance"),),
    )  # fmt: skip


def recalibration_frame(found: Recalibration, dimensions: Sequence[str]) -> pd.DataFrame:
    """Error and bias before and after, on queries the curve was not fitted on."""
    return pd.DataFrame(
        {
            "dimension": [titled(name) for name in dimensions],
            "before": found.before,
            "after": found.after,
            "bias_before": found.bias_before,
            "bias_after": found.bias_after,
        }
    )


def script_frame(found: Recalibration, dimensions: Sequence[str]) -> pd.DataFrame:
    """The same by writing system, with the curve that its messages go through."""
    return pd.DataFrame(
        [
            {
                "dimension": titled(name),
                "script": SCRIPT_NAMES[part.script],
                "n": part.n,
                "before": part.before[k],
                "after": part.after[k],
                "bias_before": part.bias_before[k],
                "bias_after": part.bias_after[k],
                "curve": part.curve(k),
            }
            for k, name in enumerate(dimensions)
            for part in found.parts
        ]
    )


def interval_text(interval: Interval, *, signed: bool = False) -> str:
    """A value with its interval in brackets, where there are some."""
    if not np.isfinite(interval.value):
        return "–"
    sign = "+" if signed else ""
    value = f"{interval.value:{sign}.2f}"
    if np.isfinite(interval.lo):
        value += f" [{interval.lo:{sign}.2f}, {interval.hi:{sign}.2f}]"
    return value.replace("-", "−")
