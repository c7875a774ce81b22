"""A simultaneous band: how far a whole curve may lie from nothing by chance alone.

Someone who picks the best point of a curve needs an interval that holds at all points at once. Its
half width is `critical` standard errors: the 95 % quantile of the largest studentised deviation
(multiplier bootstrap: Chernozhukov, Chetverikov and Kato, "Anti-concentration and honest, adaptive
confidence bands", 2014). Draws are made from the (p, p) covariance of the queries' differences,
summed up block by block: the same distribution at a cost that does not grow with the draws. The
deviations are divided by a chi-square: for a single point the band is Student's interval.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hydra_core.base.intervals import DIFFERENCE, LEVEL, Interval
from hydra_core.base.types import BoolArray, ChoiceArray, FloatArray, IntArray, Progress
from hydra_core.replay.fixed_mix import MatchedCost, matched_cost_mix
from hydra_core.replay.metrics import ConstantPolicy, picked, upper_hull
from hydra_core.replay.significance import student_quantile

#: Fewer moved queries (clusters) than this cannot carry a verdict.
MIN_MOVED = 20
_DRAWS = 10_000
_ROWS_PER_BLOCK = 4_096
_DRAWS_PER_BLOCK = 1_000

Blocks = Iterator[tuple[int, FloatArray]]


@dataclass(frozen=True, slots=True, eq=False)
class CurveBand:
    """A curve with an interval that holds at every position at once.

    Attributes:
        knob: (p,) positions on the curve (tau, V, ...), as given.
        estimate: (p,) mean difference at each.
        standard_error: (p,) of the estimate.
        critical: Half width in standard errors; at least Student's quantile for one position, NaN
            with one independent query.
        counted: (p,) positions that the band covers; the others have too little evidence for
            any verdict, and are left out of the supremum.
    """

    knob: FloatArray
    estimate: FloatArray
    standard_error: FloatArray
    critical: float
    counted: BoolArray

    @property
    def lo(self) -> FloatArray:
        """(p,) lower bound."""
        return self.estimate - self.critical * self.standard_error

    @property
    def hi(self) -> FloatArray:
        """(p,) upper bound."""
        return self.estimate + self.critical * self.standard_error

    def interval(self, position: int) -> Interval:
        """The simultaneous interval at one position."""
        ends = (self.estimate, self.lo, self.hi)
        return Interval(*(float(values[position]) for values in ends)).clipped(*DIFFERENCE)


def simultaneous_band(
    differences: FloatArray,
    knob: FloatArray,
    clusters: IntArray | None = None,
    *,
    rng: np.random.Generator,
    counted: BoolArray | None = None,
    level: float = LEVEL,
    draws: int = _DRAWS,
    progress: Progress | None = None,
) -> CurveBand:
    """The band of any curve of means: column j holds what each query adds to position j.

    Args:
        differences: (n, p) per-query values, uncentred; their column means are the curve. For
            estimates that are not plain means, the estimate plus its influence values.
        knob: (p,) where on the knob each column lies.
        clusters: (n,) cluster numbers of dependent queries, None when all are independent.
        counted: (p,) positions that may be looked at; default all whose variance is not 0.
        level: Confidence level over all counted positions together.
        progress: Called with (done, total) blocks of queries.

    Raises:
        ValueError: Shapes do not fit, a value is not finite, or fewer than 2 independent queries.
    """
    differences = np.asarray(differences, dtype=np.float64)
    if differences.ndim != 2 or differences.shape[1] != len(knob) or not differences.size:
        raise ValueError(
            f"differences {differences.shape} must be (queries, positions), one column for each "
            f"of the {len(knob)} knob positions"
        )
    if not np.isfinite(differences).all():
        raise ValueError("differences must be finite numbers, found NaN or infinity")
    estimate = differences.mean(axis=0)

    def blocks() -> Blocks:
        for done, rows, starts in _whole_clusters(clusters, len(differences)):
            yield done, _joined(np.add, differences[rows] - estimate, starts)

    spread, units = _spread(blocks(), len(differences), len(knob), progress)
    if units < 2:
        raise ValueError(f"a band needs at least 2 independent queries, got {units}")
    among = np.ones(len(knob), dtype=bool) if counted is None else np.asarray(counted)
    return _band(np.asarray(knob), estimate, spread, units, among, rng, level, draws)


def lift_band(
    quality: FloatArray,
    cost_usd: FloatArray,
    choice: ChoiceArray,
    knob: FloatArray,
    clusters: IntArray | None = None,
    *,
    rng: np.random.Generator,
    level: float = LEVEL,
    draws: int = _DRAWS,
    progress: Progress | None = None,
    measured: BoolArray | None = None,
    stand_in: IntArray | None = None,
) -> CurveBand:
    """The band of a policy's lift over the best mixture of constants, along its knob.

    Whatever the rule: only where it sends each query at each position is looked at. Positions at
    which fewer than `MIN_MOVED` independent queries go elsewhere than the mixture's nearer end are
    not counted: no verdict is given there, and so none with one independent query.

    Args:
        quality: (n, m) outcomes in [0, 1].
        cost_usd: (n, m) realised cost, USD.
        choice: (n, p) model index of each query at each knob position; unsigned bytes will do.
        clusters, rng, level, draws, progress: As in `simultaneous_band`.
        measured: (m,) models that have outcomes, so that mixes may be made of them; None for all.
        stand_in: (n, m) as `ReplayData.stand_in`; `quality` and `cost_usd` then hold its outcomes.

    Raises:
        ValueError: Shapes do not fit.
    """
    n, m = quality.shape
    if choice.shape != (n, len(knob)) or cost_usd.shape != quality.shape:
        raise ValueError(
            f"quality {quality.shape}, cost_usd {cost_usd.shape} and choice {choice.shape} must "
            f"be (queries, models) twice and (queries, {len(knob)} positions)"
        )
    parts = [slice(begin, begin + _ROWS_PER_BLOCK) for begin in range(0, n, _ROWS_PER_BLOCK)]
    mean_cost = sum(picked(cost_usd[part], choice[part]).sum(axis=0) for part in parts) / n
    mean_quality = sum(picked(quality[part], choice[part]).sum(axis=0) for part in parts) / n
    columns = zip(quality.mean(axis=0).tolist(), cost_usd.mean(axis=0).tolist(), strict=True)
    hull = upper_hull(
        [
            ConstantPolicy(str(i), i, 0, q, c)
            for i, (q, c) in enumerate(columns)
            if measured is None or measured[i]
        ]
    )
    mixes = [matched_cost_mix(hull, cost) for cost in mean_cost.tolist()]
    against = MatchedCost.of(mixes, m)
    estimate = mean_quality - np.array([mix.quality for mix in mixes])
    moved = np.zeros((2, len(knob)))

    def blocks() -> Blocks:
        for done, rows, starts in _whole_clusters(clusters, n):
            here = choice[rows]
            serving = None if stand_in is None else stand_in[rows]
            for end, away in enumerate(against.away(here, serving)):
                moved[end] += _joined(np.logical_or, away, starts).sum(axis=0)
            values = against.differences(quality[rows], cost_usd[rows], here)
            yield done, _joined(np.add, values - estimate, starts)

    spread, units = _spread(blocks(), n, len(knob), progress)
    counted = moved.min(axis=0) >= MIN_MOVED
    return _band(np.asarray(knob), estimate, spread, units, counted, rng, level, draws)


def _whole_clusters(
    clusters: IntArray | None, n: int
) -> Iterator[tuple[int, IntArray | slice, IntArray]]:
    """Blocks that cut no cluster: rows done, the rows, where in them each cluster starts."""
    if clusters is None:
        for begin in range(0, n, _ROWS_PER_BLOCK):
            end = min(begin + _ROWS_PER_BLOCK, n)
            yield end, slice(begin, end), np.arange(end - begin)
        return
    order = np.argsort(clusters, kind="stable")
    starts = np.flatnonzero(np.diff(clusters[order], prepend=clusters[order[0]] - 1))
    begin = 0
    while begin < n:
        wanted = np.searchsorted(starts, begin + _ROWS_PER_BLOCK)
        end = int(starts[wanted]) if wanted < starts.size else n
        yield end, order[begin:end], starts[(starts >= begin) & (starts < end)] - begin
        begin = end


def _joined(by: np.ufunc, values: np.ndarray, starts: IntArray) -> np.ndarray:
    """(units, p): rows of one cluster joined `by` sum or by or; most have one row, which stays."""
    if len(starts) == len(values):
        return values
    sizes = np.diff(starts, append=len(values))
    total = values[starts]
    several = sizes > 1
    rows = np.flatnonzero(np.repeat(several, sizes))
    begins = np.cumsum(sizes[several]) - sizes[several]
    total[several] = by.reduceat(values[rows], begins, axis=0)
    return total


def _spread(
    blocks: Blocks, n: int, positions: int, progress: Progress | None
) -> tuple[FloatArray, int]:
    """(p, p) covariance of the curve, and the number of independent units."""
    gram, units = np.zeros((positions, positions)), 0
    for done, sums in blocks:
        gram += sums.T @ sums
        units += len(sums)
        if progress is not None:
            progress(done, n)
    return gram * (units / max(units - 1, 1) / n**2), units


def _band(
    knob: FloatArray,
    estimate: FloatArray,
    spread: FloatArray,
    units: int,
    counted: BoolArray,
    rng: np.random.Generator,
    level: float,
    draws: int,
) -> CurveBand:
    error = np.sqrt(np.diagonal(spread))
    among = counted & (error > 1e-12)
    scale = error[among]
    correlation = spread[np.ix_(among, among)] / np.outer(scale, scale)
    critical = _critical(correlation, units - 1, rng, level, draws) if units > 1 else np.nan
    return CurveBand(knob, estimate, error, critical, among)


def _critical(
    correlation: FloatArray, freedom: int, rng: np.random.Generator, level: float, draws: int
) -> float:
    """The quantile of the largest |t| over positions with this correlation; for none, for one."""
    values, vectors = np.linalg.eigh(correlation if correlation.size else np.ones((1, 1)))
    kept = values > 1e-10 * values[-1]
    factor = (vectors[:, kept] * np.sqrt(values[kept])).T.astype(np.float32)
    largest = []
    for begin in range(0, draws, _DRAWS_PER_BLOCK):
        count = min(_DRAWS_PER_BLOCK, draws - begin)
        deviation = rng.standard_normal((count, len(factor)), dtype=np.float32) @ factor
        root = np.sqrt(rng.chisquare(freedom, count) / freedom)
        largest.append(np.abs(deviation).max(axis=1) / root)
    one = student_quantile(freedom + 1, level)
    return max(float(np.quantile(np.concatenate(largest), level)), one)
