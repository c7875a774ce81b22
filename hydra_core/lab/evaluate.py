"""How good a predictor's scores are against labels, with bootstrap intervals, all vectorised.

A resample is a vector of counts, so every statistic is a weighted one and thousands of resamples
are a few matrix products. Krippendorff's alpha (interval) has a closed form for two raters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hydra_core.base.intervals import tails
from hydra_core.base.types import FloatArray, IntArray
from hydra_core.predictor.bundle import Bundle

#: Per dimension: correlations; mean absolute, root mean squared and mean signed error; agreement
#: on which side of .5; Krippendorff's alpha.
METRICS = ("pearson", "spearman", "mae", "rmse", "bias", "accuracy", "alpha")

_CHUNK_CELLS = 2_000_000
_SEED = 42
_NO_SPREAD = 1e-14
Report = dict[str, object]
_Values = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Reliability:
    """Mean label against mean score in bins of equal count, of one dimension.

    Attributes:
        score: (b,) mean score of each bin, ascending.
        label: (b,) mean label of each bin.
        count: (b,) messages in each bin.
    """

    score: FloatArray
    label: FloatArray
    count: IntArray


def report(
    bundle: Bundle,
    scores: FloatArray,
    labels: FloatArray,
    by: Mapping[str, Sequence[str]],
    resamples: int = 1000,
    clusters: IntArray | None = None,
) -> Report:
    """What `evaluate-predictor --json` prints: `evaluate` with the bundle it belongs to."""
    found = evaluate(scores, labels, bundle.dimensions, by, resamples=resamples, clusters=clusters)
    facts = {"name": bundle.name, "version": bundle.version, "fingerprint": bundle.fingerprint}
    return {**found, "bundle": facts}


def evaluate(
    scores: FloatArray,
    labels: FloatArray,
    dimensions: Sequence[str],
    by: Mapping[str, Sequence[str]] | None = None,
    *,
    resamples: int = 1000,
    clusters: IntArray | None = None,
) -> Report:
    """All metrics, over all messages and over each part of them.

    Args:
        scores: (n, K) in [0, 1].
        labels: (n, K) in [0, 1].
        dimensions: (K,) names.
        by: Name of a breakdown, such as ``groups`` -> (n,) the part each message belongs to.
        resamples: Bootstrap resamples for the 95 % intervals; 0 leaves the intervals out.
        clusters: (n,) numbers of messages that are drawn together, such as translations; None
            when all are independent.

    Returns:
        ``{"n", "pearson": {dimension: value}, ... each of METRICS, "mean": {metric: value},
        "ci": {metric: {dimension or "mean": [low, high]}}}`` and, per breakdown,
        ``{part: the same}``. A value that is not defined (fewer than three messages, or no spread)
        is None.

    Raises:
        ValueError: The shapes differ, or a value is not finite.
    """
    scores, labels = np.asarray(scores, np.float64), np.asarray(labels, np.float64)
    if scores.shape != labels.shape or scores.shape[1:] != (len(dimensions),):
        raise ValueError(f"scores {scores.shape}, labels {labels.shape}, K = {len(dimensions)}")
    if not (np.isfinite(scores).all() and np.isfinite(labels).all()):
        raise ValueError("scores and labels must be finite")
    rng = np.random.default_rng(_SEED)
    unit = np.arange(len(scores)) if clusters is None else clusters
    result = _block(scores, labels, dimensions, resamples, rng, unit)
    for name, parts in (by or {}).items():
        of = np.asarray(parts, dtype=object)
        result[name] = {
            part: _block(scores[rows], labels[rows], dimensions, resamples, rng, unit[rows])
            for part in sorted(set(parts))
            for rows in [of == part]
        }
    return result


def reliability(scores: _Values, labels: _Values, bins: int = 10) -> Reliability:
    """Reliability data of one dimension, for a plot.

    Args:
        scores: (n,), n >= 1.
        labels: (n,).
        bins: At most this many bins.
    """
    parts = [part for part in np.array_split(np.argsort(scores, kind="stable"), bins) if part.size]
    return Reliability(
        score=np.array([scores[part].mean() for part in parts]),
        label=np.array([labels[part].mean() for part in parts]),
        count=np.array([part.size for part in parts], dtype=np.intp),
    )


def _block(
    scores: FloatArray,
    labels: FloatArray,
    dimensions: Sequence[str],
    resamples: int,
    rng: np.random.Generator,
    unit: IntArray,
) -> Report:
    n = len(scores)
    if n < 3:
        nothing = {name: dict.fromkeys(dimensions) for name in METRICS}
        return {"n": n, **nothing, "mean": dict.fromkeys(METRICS)}
    point = _statistics(scores, labels, np.ones((1, n)))
    result: Report = {"n": n}
    for name in METRICS:
        result[name] = dict(zip(dimensions, map(_number, point[name][0]), strict=True))
    result["mean"] = {name: _number(point[name][0].mean()) for name in METRICS}
    if resamples:
        result["ci"] = _intervals(scores, labels, dimensions, resamples, rng, unit)
    return result


def _intervals(
    scores: FloatArray,
    labels: FloatArray,
    dimensions: Sequence[str],
    resamples: int,
    rng: np.random.Generator,
    unit: IntArray,
) -> Report:
    """{metric: {dimension or "mean": [2.5th, 97.5th percentile]}} over bootstrap resamples."""
    n = len(scores)
    drawn: dict[str, list[FloatArray]] = {name: [] for name in METRICS}
    size = max(1, _CHUNK_CELLS // n)
    for start in range(0, resamples, size):
        rows = min(size, resamples - start)
        found = _statistics(scores, labels, _counts(unit, rows, rng))
        for name in METRICS:
            drawn[name].append(found[name])
    result: Report = {}
    for name in METRICS:
        values = np.concatenate(drawn[name])
        values = np.column_stack([values, values.mean(axis=1)])
        defined = ~np.isnan(values).any(axis=1)
        if not defined.any():
            continue
        low, high = np.quantile(values[defined], tails(), axis=0)
        pairs = zip([*dimensions, "mean"], low.tolist(), high.tolist(), strict=True)
        result[name] = {key: [a, b] for key, a, b in pairs}
    return result


def _counts(unit: IntArray, rows: int, rng: np.random.Generator) -> FloatArray:
    """(rows, n) how often resamples of whole units draw each of n messages; rows sum to n."""
    names, place = np.unique(unit, return_inverse=True)
    n = names.size
    drawn = rng.integers(0, n, (rows, n)) + np.arange(rows)[:, None] * n
    counts = np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n)[:, place]
    whole: FloatArray = counts * (place.size / counts.sum(axis=1, keepdims=True))
    return whole


def _statistics(
    scores: FloatArray, labels: FloatArray, counts: FloatArray
) -> dict[str, FloatArray]:
    """(n, K), (n, K), (R, n) counts that sum to n -> each metric (R, K)."""
    n = scores.shape[0]
    centre = labels.mean(axis=0)
    x, y = scores - centre, labels - centre
    error = x - y
    same = ((scores >= 0.5) == (labels >= 0.5)).astype(np.float64)
    k = scores.shape[1]
    columns = np.hstack([x, y, x * x, y * y, x * y, error**2, np.abs(error), error, same])
    means = (counts @ columns / n).reshape(len(counts), 9, k)
    mx, my, mxx, myy, mxy, squared, absolute, signed, agreed = np.moveaxis(means, 1, 0)
    total = 2 * n
    expected = 2 * (total * n * (mxx + myy) - (n * (mx + my)) ** 2) / (total * (total - 1))
    return {
        "pearson": _correlation(mx, my, mxx, myy, mxy),
        "spearman": _spearman(scores, labels, counts),
        "mae": absolute,
        "rmse": np.sqrt(squared),
        "bias": signed,
        "accuracy": agreed,
        "alpha": 1.0 - squared / np.where(expected > _NO_SPREAD, expected, np.nan),
    }


def _correlation(
    mx: FloatArray, my: FloatArray, mxx: FloatArray, myy: FloatArray, mxy: FloatArray
) -> FloatArray:
    """Pearson's r from first and second moments, any shape; nan where one side has no spread."""
    vx, vy = mxx - mx**2, myy - my**2
    fine = (vx > _NO_SPREAD) & (vy > _NO_SPREAD)
    scale = np.sqrt(np.where(fine, vx * vy, np.nan))
    return np.clip((mxy - mx * my) / scale, -1.0, 1.0)


def _spearman(scores: FloatArray, labels: FloatArray, counts: FloatArray) -> FloatArray:
    n = scores.shape[0]
    columns = []
    for x, y in zip(scores.T, labels.T, strict=True):
        a, b = _ranks(x, counts), _ranks(y, counts)
        weighted = [a, b, a * a, b * b, a * b]
        columns.append(_correlation(*((counts * value).sum(axis=1) / n for value in weighted)))
    return np.column_stack(columns)


def _ranks(values: FloatArray, counts: FloatArray) -> FloatArray:
    """(n,), (R, n) -> (R, n) the rank of each value in each resample, centred, scaled to 1/n."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    tied = np.add.reduceat(counts[:, order], starts, axis=1)
    middle = np.cumsum(tied, axis=1) - tied / 2
    part = np.empty(len(values), dtype=np.intp)
    part[order] = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(values)]))
    return middle[:, part] / len(values) - 0.5


def _number(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)
