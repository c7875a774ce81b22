"""Krippendorff's alpha for interval data, with a bootstrap interval over the rated items.

alpha = 1 - D_o / D_e. With m_u ratings of item u, D_o sums the squared differences within items and
D_e those of all ratings thrown together; both are sums over items, so a resample of items is one
matrix product (Krippendorff, Content Analysis, chapter 12).
"""

from __future__ import annotations

import numpy as np

from hydra_core.evaluation.significance import Interval
from hydra_core.types import FloatArray

__all__ = ["alpha", "alpha_interval"]


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
    level: float = 0.95,
) -> Interval:
    """Alpha with a percentile bootstrap interval.

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
    if n == 0 or not np.isfinite(value):
        return Interval(value, float("nan"), float("nan"))
    counts = rng.multinomial(n, np.full(n, 1.0 / n), size=resamples)
    drawn = _alpha(counts @ sums)
    tail = (1.0 - level) / 2.0
    lo, hi = np.nanquantile(drawn, [tail, 1.0 - tail])
    return Interval(value, float(lo), float(hi))


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
