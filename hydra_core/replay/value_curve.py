"""Quality, cost and misroute of the value rule for EVERY V, exactly, from one sort.

For one query, p_m - c_m / V is largest on the upper concave hull of the points (c_m, p_m): starting
from the cheapest model the route climbs that hull as V grows, and goes from a to b at
V = (c_b - c_a) / (p_b - p_a). That is at most m - 1 hand-overs a query; sorting all of them and
summing the changes gives the whole curve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hydra_core.base.types import FloatArray, IntArray
from hydra_core.evalsets.evalset import RESOLVED_AT
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.step_curve import CurvePoint, StepCurve, accumulate

#: So many queries at a time stay in the processor's cache.
_ROWS_PER_CHUNK = 4_096
_Handovers = tuple[IntArray, FloatArray, IntArray, IntArray]


@dataclass(frozen=True, slots=True)
class ValueCurve(StepCurve):
    """The exact step curve over V: row i holds above value_usd[i], up to value_usd[i+1]."""

    symbol: ClassVar[str] = "V"

    @property
    def value_usd(self) -> FloatArray:
        """(b,) ascending values of one more resolved query, USD; the first is 0."""
        return self.knob

    def row(self, knob: float) -> int:
        """The row that holds at this V (> 0); on a breakpoint the cheaper side, as the rule."""
        return max(int(np.searchsorted(self.knob, knob, side="left")) - 1, 0)

    def point(self, row: int) -> CurvePoint:
        """The totals of one row, at a V in the middle of where it holds."""
        low = float(self.knob[row])
        last = row + 1 >= self.knob.size
        high = 2.0 * low if last else float(self.knob[row + 1])
        middle = float(np.sqrt(low * high)) if low > 0 else high / 2
        return self._totals(row, middle or 1.0)


def value_curve(
    success: FloatArray,
    predicted_cost_usd: FloatArray,
    quality: FloatArray,
    cost_usd: FloatArray,
    cost: FloatArray,
) -> ValueCurve:
    """The exact curve of the value rule over one replayed set.

    Args:
        success: (n, m) predicted success.
        predicted_cost_usd: (n, m) predicted cost, USD.
        quality: (n, m) outcomes in [0, 1].
        cost_usd: (n, m) realised cost, USD.
        cost: (m,) static cost order, for misroute.

    Raises:
        ValueError: Empty input, shapes that differ, or NaN.
    """
    _check(success, predicted_cost_usd, quality, cost_usd)
    start = np.zeros(3)
    knobs, steps = [], []
    cheaper = _cheaper_resolved(quality, cost)
    for part in _chunks(len(success)):
        columns = (quality[part], cost_usd[part], cheaper[part])
        first, (row, value, before, after) = _handovers(success[part], predicted_cost_usd[part])
        every = np.arange(first.size)
        start += [column[every, first].sum() for column in columns]
        knobs.append(value)
        steps.append(np.stack([c[row, after] - c[row, before] for c in columns], axis=1))
    knob, means = accumulate(start, np.concatenate(knobs), np.concatenate(steps), len(success))
    return ValueCurve(knob, *means)


def data_value_curve(data: ReplayData) -> ValueCurve:
    """The exact curve of the value rule over a replayed set.

    Raises:
        ValueError: There are no predictions.
    """
    if data.predicted is None:
        raise ValueError("the value rule needs the predictions of an outcome model")
    predicted = data.predicted
    return value_curve(
        predicted.success, predicted.cost_usd, data.quality, data.cost_usd, data.pool.cost
    )


def value_shares(
    success: FloatArray, predicted_cost_usd: FloatArray, values_usd: FloatArray
) -> FloatArray:
    """Traffic share of every model at each of a few V, all in one pass.

    Args:
        success: (n, m) predicted success.
        predicted_cost_usd: (n, m) predicted cost, USD.
        values_usd: (t,) in any order, > 0.

    Returns:
        (t, m); rows sum to 1.
    """
    n, m = success.shape
    order = np.argsort(values_usd)
    change = np.zeros((values_usd.size + 1, m))
    for part in _chunks(n):
        first, (_, value, before, after) = _handovers(success[part], predicted_cost_usd[part])
        change[0] += np.bincount(first, minlength=m)
        row = m * np.searchsorted(values_usd[order], value, side="right")
        gained = np.bincount(row + after, minlength=change.size)
        change += (gained - np.bincount(row + before, minlength=change.size)).reshape(-1, m)
    result = np.empty((values_usd.size, m))
    result[order] = np.cumsum(change[:-1], axis=0) / max(n, 1)
    return result


def _chunks(n: int) -> Iterator[slice]:
    return (slice(begin, begin + _ROWS_PER_CHUNK) for begin in range(0, n, _ROWS_PER_CHUNK))


def _handovers(success: FloatArray, cost_usd: FloatArray) -> tuple[IntArray, _Handovers]:
    """Every row's model for V towards 0, then row, V, model before, model after of each step."""
    p, c = success, cost_usd
    at: IntArray = np.where(c <= c.min(axis=1, keepdims=True), p, -np.inf).argmax(axis=1)
    first, rows = at, np.arange(at.size)
    found: list[_Handovers] = []
    while rows.size:
        every = np.arange(rows.size)
        gain = p - p[every, at][:, None]
        extra = c - c[every, at][:, None]
        value = np.full_like(gain, np.inf)
        np.divide(extra, gain, out=value, where=gain > 0)
        least = value.min(axis=1)
        furthest = np.where(value <= least[:, None], p, -np.inf).argmax(axis=1)
        go = np.isfinite(least)
        found.append((rows[go], least[go], at[go], furthest[go]))
        rows, at, p, c = rows[go], furthest[go], p[go], c[go]
    joined = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    return first, (joined[0], joined[1], joined[2], joined[3])


def _cheaper_resolved(quality: FloatArray, cost: FloatArray) -> FloatArray:
    """(n, m) 1 where a model of strictly lower static cost resolved the query."""
    resolved = quality >= RESOLVED_AT
    dearer = (np.asarray(cost)[:, None] < np.asarray(cost)[None, :]).astype(np.float64)
    return (resolved.astype(np.float64) @ dearer > 0).astype(np.float64)


def _check(success: FloatArray, *others: FloatArray) -> None:
    if success.ndim != 2 or 0 in success.shape:
        raise ValueError(f"a curve needs at least one query and one model, got {success.shape}")
    for values in (success, *others):
        if values.shape != success.shape:
            raise ValueError(
                "predicted and realised success and cost must have the same shape, got "
                f"{', '.join(str(found.shape) for found in (success, *others))}"
            )
        if not np.isfinite(values).all():
            raise ValueError("success, quality and costs must be finite numbers, found NaN")
