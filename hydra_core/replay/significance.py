"""Intervals and paired tests for rates, means, ratios and differences (paper appendix
"Statistical Significance on SWE-Bench Verified").

All intervals are two-sided 95 % unless a level is given. Queries that share a cluster
(translations of one task, turns of one conversation) are not independent; where `clusters` is
given, variances are summed over clusters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from hydra_core.base.intervals import (
    COST,
    FREE_BASELINE,
    LEVEL,
    ONE_OBSERVATION,
    SAVING,
    SHARE,
    Interval,
    normal_quantile,
    tails,
)
from hydra_core.base.types import FloatArray, IntArray
from hydra_core.evalsets.evalset import RESOLVED_AT

_EXACT_BELOW = 25


@dataclass(frozen=True, slots=True)
class McNemar:
    """Paired test of two yes/no outcomes: only_a and only_b count the queries they differ on."""

    only_a: int
    only_b: int
    p_value: float
    exact: bool


def student_quantile(units: int, level: float = LEVEL) -> float:
    """Half width in standard errors of an interval from so many independent units (>= 2)."""
    return float(special.stdtrit(units - 1, 0.5 + level / 2))


def normal_p(statistic: float) -> float:
    """Two-sided p-value of a statistic that is standard normal where there is no effect."""
    return float(2 * special.ndtr(-abs(statistic)))


def student_p(statistic: float, freedom: int) -> float:
    """The same for Student's t with so many degrees of freedom (>= 1)."""
    return float(2 * special.stdtr(freedom, -abs(statistic)))


def wilson(successes: float, n: float, level: float = LEVEL) -> Interval:
    """Wilson score interval of a rate.

    Args:
        successes: Number resolved, 0 <= successes <= n.
        n: Number of queries, or how many independent ones they are worth, >= 1.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"need 0 <= successes <= n and n >= 1, got {successes} of {n}")
    z = normal_quantile(level)
    rate = successes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    lo, hi = max(centre - half, 0.0), min(centre + half, 1.0)
    return Interval(rate, lo if successes else 0.0, hi if successes < n else 1.0)


def mcnemar(a: npt.ArrayLike, b: npt.ArrayLike) -> McNemar:
    """McNemar's paired test of two policies on the same queries.

    Chi-square with continuity correction; exact binomial when fewer than 25 queries differ.

    Args:
        a: (n,) resolved or not, or quality in [0, 1].
        b: (n,) resolved or not, same queries.
    """
    has_a, has_b = np.asarray(a) >= RESOLVED_AT, np.asarray(b) >= RESOLVED_AT
    only_a, only_b = int((has_a & ~has_b).sum()), int((has_b & ~has_a).sum())
    differing = only_a + only_b
    if differing < _EXACT_BELOW:
        fewer = min(only_a, only_b)  # two-sided; an even split counts its middle once
        p = min(1.0, 2.0 * float(special.bdtr(fewer, differing, 0.5))) if differing else 1.0
        return McNemar(only_a, only_b, p, exact=True)
    statistic = max(abs(only_a - only_b) - 1, 0) ** 2 / differing
    return McNemar(only_a, only_b, float(special.chdtrc(1, statistic)), exact=False)


def paired_test(a: npt.ArrayLike, b: npt.ArrayLike, clusters: IntArray | None = None) -> McNemar:
    """Test two policies on the same queries; McNemar's where all queries are independent.

    With clusters the p value is that of a t test of the paired difference over them: McNemar's
    counts each translation of a task as a query of its own.

    Args:
        a: (n,) resolved or not, or quality in [0, 1].
        b: (n,) resolved or not, same queries.
        clusters: (n,) cluster number per query, without gaps.
    """
    found = mcnemar(a, b)
    if clusters is None:
        return found
    has_a, has_b = np.asarray(a) >= RESOLVED_AT, np.asarray(b) >= RESOLVED_AT
    difference = has_a.astype(np.float64) - has_b
    delta = float(difference.mean()) if difference.size else 0.0
    error, freedom = standard_error(difference - delta, clusters) if difference.size else (0.0, 0)
    p_value = student_p(delta / error, freedom) if freedom and error > 0 else 1.0
    return McNemar(found.only_a, found.only_b, p_value, exact=False)


def influence_interval(
    value: float, influence: FloatArray, clusters: IntArray | None = None, level: float = LEVEL
) -> Interval:
    """Interval of an estimate from its influence values (delta method).

    Args:
        influence: (n,) each query's influence; their mean is 0 up to rounding.
        clusters: (n,) cluster number per query, or None when all are independent.
    """
    error, freedom = standard_error(influence, clusters)
    if not freedom:
        return Interval.none(value, ONE_OBSERVATION)
    half = student_quantile(freedom + 1, level) * error
    return Interval(value, value - half, value + half)


def standard_error(influence: FloatArray, clusters: IntArray | None = None) -> tuple[float, int]:
    """Standard error of an estimate from its (n,) influence values, and its degrees of freedom.

    Queries of one cluster count as dependent. With fewer than two clusters the error is infinite.
    """
    sums = influence if clusters is None else np.bincount(clusters, weights=influence)
    count = sums.size
    if count < 2:
        return float("inf"), 0
    # not sums @ sums: BLAS wakes a thread for it, and waits for that on a busy machine
    variance = count / (count - 1) * float(np.square(sums).sum()) / influence.size**2
    return float(np.sqrt(variance)), count - 1


def mean_interval(
    values: FloatArray, clusters: IntArray | None = None, level: float = LEVEL
) -> Interval:
    """Interval of a mean of (n,) values."""
    mean = float(values.mean())
    return influence_interval(mean, values - mean, clusters, level)


def ratio_interval(
    above: FloatArray, below: FloatArray, clusters: IntArray | None = None, level: float = LEVEL
) -> Interval:
    """Interval of mean(above) / mean(below), paired by query (delta method).

    Args:
        above: (n,) numerator.
        below: (n,) denominator, mean != 0.
    """
    base = float(below.mean())
    if base == 0.0:
        return Interval.none(float("nan"), FREE_BASELINE)
    ratio = float(above.mean()) / base
    return influence_interval(ratio, (above - ratio * below) / base, clusters, level)


def per_resolved(
    cost_usd: FloatArray, quality: FloatArray, clusters: IntArray | None = None
) -> Interval:
    """Cost of one resolved query in USD: mean(cost) / mean(quality), (n,) each.

    Graded quality counts in part: two queries of quality 0.5 are one resolved query. Without a
    resolved query there is no such cost.
    """
    if not quality.any():
        return Interval.none(float("nan"), "no query is resolved")
    return ratio_interval(cost_usd, quality, clusters).clipped(*COST)


def saving_interval(
    cost_usd: FloatArray, base_usd: FloatArray, clusters: IntArray | None = None
) -> Interval:
    """Interval of 1 - mean(cost) / mean(base): the share of a cost that is saved, (n,) each."""
    return ratio_interval(cost_usd, base_usd, clusters).scaled(-1.0, 1.0).clipped(*SAVING)


def rate_interval(holds: FloatArray, clusters: IntArray | None = None) -> Interval:
    """Interval of the mean of (n,) zeros and ones: Wilson's, or over clusters where there are.

    Where all are the same, each of at least two clusters counts once.
    """
    if clusters is None:
        return wilson(float(holds.sum()), holds.size)
    found = mean_interval(holds, clusters).clipped(*SHARE)
    alike = found.known and holds.min() == holds.max()
    return clustered_wilson(holds, clusters) if alike else found


def clustered_wilson(holds: FloatArray, clusters: IntArray) -> Interval:
    """Wilson interval of a share, on as many independent queries as dependent ones are worth.

    For shares near 0 or 1. They are worth p (1 - p) / variance of the share, at most n: n where
    each is its own cluster. Where fewer than two clusters have one that holds, or one that does
    not, nothing shows how alike the queries of a cluster are, and each cluster counts once.

    Args:
        holds: (n,) zeros and ones.
        clusters: (n,) cluster number per query, without gaps.
    """
    mean = float(holds.mean())
    error, freedom = standard_error(holds - mean, clusters)
    units = worth = freedom + 1.0
    differing = [np.unique(clusters[holds == outcome]).size for outcome in (0, 1)]
    if error > 0.0 and min(differing) > 1:
        plain = error**2 * freedom / units  # as Wilson's: not corrected for the estimated mean
        worth = min(max(mean * (1.0 - mean) / plain, 1.0), holds.size)
    found = wilson(mean * worth, worth)
    return Interval.holding(mean, found.lo, found.hi)


def paired_bootstrap(
    columns: FloatArray,
    statistic: Callable[[FloatArray], FloatArray],
    *,
    rng: np.random.Generator,
    resamples: int = 10_000,
    level: float = LEVEL,
) -> Interval:
    """Percentile bootstrap of a statistic of column means; whole queries are resampled.

    Args:
        columns: (n, c) per-query values, e.g. router cost and baseline cost.
        statistic: Callable of (r, c) means -> (r,) values.
        resamples: Number of resamples (the paper: 10,000).
    """
    means = bootstrap_means(columns, rng=rng, resamples=resamples)
    values = statistic(means)
    lo, hi = np.quantile(values, tails(level))
    point = float(statistic(columns.mean(axis=0, keepdims=True))[0])
    return Interval.holding(point, float(lo), float(hi))


def bootstrap_means(
    columns: FloatArray, *, rng: np.random.Generator, resamples: int = 10_000
) -> FloatArray:
    """(resamples, c) column means of (n, c) values when whole rows are drawn anew."""
    n, width = columns.shape
    kind = np.uint16 if n <= np.iinfo(np.uint16).max else np.uint32
    means = np.empty((resamples, width))
    chunk = max(1, min(resamples, 2_000_000 // max(n, 1)))
    for begin in range(0, resamples, chunk):
        rows = rng.integers(0, n, size=(min(chunk, resamples - begin), n), dtype=kind)
        for column in range(width):
            drawn = np.take(columns[:, column], rows)
            means[begin : begin + len(rows), column] = drawn.mean(axis=1)
    return means


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm-adjusted p values, in the order given: compare them with the level as they are.

    NaN, where nothing could be tested, stays NaN and counts for no test.
    """
    count = len(p_values) - int(np.isnan(p_values).sum())
    order = np.argsort(p_values, kind="stable")[:count]
    adjusted = np.full(len(p_values), np.nan)
    running = 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = running
    return tuple(adjusted.tolist())


def detectable_effect(
    standard_deviation: float, n: int, level: float = LEVEL, power: float = 0.80
) -> float:
    """The smallest mean paired difference that n queries would show with this power.

    Args:
        standard_deviation: Of the per-query difference (for yes/no outcomes: the root of the
            share of queries on which the two policies differ, minus the squared difference).
        n: Number of queries (or clusters).
        power: Probability of seeing an effect of that size.
    """
    quantiles = normal_quantile(level) + special.ndtri(power)
    return float(quantiles * standard_deviation / np.sqrt(n))


def sample_size(
    standard_deviation: float, effect: float, level: float = LEVEL, power: float = 0.80
) -> int:
    """How many queries it takes to see a mean paired difference of `effect` (not 0)."""
    if effect == 0:
        raise ValueError("no number of queries shows an effect of 0")
    return int(np.ceil((detectable_effect(standard_deviation, 1, level, power) / effect) ** 2))
