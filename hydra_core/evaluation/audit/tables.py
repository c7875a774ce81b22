"""Human ratings beside predictor and label, laid out as the paper's tables of its audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hydra_core.evaluation.audit.agreement import alpha_interval
from hydra_core.evaluation.significance import Interval, mean_interval
from hydra_core.types import FloatArray

__all__ = ["Audit", "AuditRow", "audit", "on_unit_scale", "slices"]

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
    resamples: int = 1000,
) -> Audit:
    """Agreement and error by dimension.

    Args:
        ratings: (raters, n, K) on [0, 1], NaN where somebody gave none; every query has one.
        predictor: (n, K).
        labels: (n, K), or None.
    """
    rng = np.random.default_rng(_SEED)
    human = np.nanmean(ratings, axis=0)
    n, k = human.shape

    def row(name: str, places: Sequence[int]) -> AuditRow:
        cells = np.tile(np.arange(n), len(places))
        flat = [np.concatenate([part[..., i] for i in places], axis=-1)
                for part in (ratings, human, predictor)]  # fmt: skip
        said, reference, scores = flat
        label = None if labels is None else np.concatenate([labels[:, i] for i in places])

        def against(other: FloatArray) -> Interval:
            pair = np.stack([reference, other])
            return alpha_interval(pair, rng=rng, clusters=cells, resamples=resamples)

        return AuditRow(
            name,
            alpha_interval(said, rng=rng, clusters=cells, resamples=resamples),
            against(scores),
            None if label is None else against(label),
            float(np.abs(scores - reference).mean()),
            None if label is None else float(np.abs(label - reference).mean()),
            mean_interval(scores - reference, cells),
            None if label is None else mean_interval(label - reference, cells),
        )

    single = [row(name, [i]) for i, name in enumerate(dimensions)]
    return Audit(n, tuple(raters), (*single, row(POOLED, range(k)), _averaged(single)))


def _averaged(rows: Sequence[AuditRow]) -> AuditRow:
    """The mean of the dimensions' values, which is not the pooled one."""

    def mean(name: str) -> Interval | None:
        values = [getattr(one, name) for one in rows]
        if None in values:
            return None
        middle = float(np.mean([value.value for value in values]))
        return Interval(middle, float("nan"), float("nan"))

    def error(name: str) -> float | None:
        values = [getattr(one, name) for one in rows]
        return None if None in values else float(np.mean(values))

    nothing = Interval(float("nan"), float("nan"), float("nan"))
    return AuditRow(
        AVERAGED,
        mean("raters") or nothing,
        mean("predictor") or nothing,
        mean("label"),
        error("predictor_mae") or 0.0,
        error("label_mae"),
        mean("predictor_bias") or nothing,
        mean("label_bias"),
    )


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
