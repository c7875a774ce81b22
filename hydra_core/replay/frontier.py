"""Quality, cost and misroute of the router for EVERY tau or V, exactly, from one sort.

With models in order of preference, model i is chosen exactly for tau in [s_i, min_{j<i} s_j), and
the model of least shortfall also for everything below. Each change of model is a breakpoint; their
running sum is the curve. Under the value rule shortfalls are returns on upgrading, tau is 1 / V,
and the order is that of the predicted costs of each query.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from hydra_core.base.arrays import read_only
from hydra_core.base.types import BoolArray, ChoiceArray, FloatArray, IntArray, Rule
from hydra_core.evalsets.evalset import RESOLVED_AT
from hydra_core.routing.matcher import choices_in_order, preference, ranked_values


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Totals at one setting of the knob: means per query; misroute is a share of all queries."""

    knob: float
    quality: float
    mean_cost_usd: float
    misroute: float


@dataclass(frozen=True, slots=True)
class StepCurve:
    """The exact curve over a knob: tau under the shortfall rule, V under the value rule.

    Attributes:
        knob: (b,) ascending, knob[0] = 0; row i holds for tau in [knob[i], knob[i+1]), and for V in
            (knob[i], knob[i+1]].
        quality: (b,) mean quality in [0, 1].
        mean_cost_usd: (b,) mean cost per query in USD.
        misroute: (b,) fraction of queries that a cheaper-ranked model resolved.
    """

    knob: FloatArray
    quality: FloatArray
    mean_cost_usd: FloatArray
    misroute: FloatArray
    rule: Rule = Rule.SHORTFALL

    @property
    def symbol(self) -> str:
        """What the knob is called."""
        return "V" if self.rule is Rule.VALUE else "tau"

    def at(self, knob: float) -> CurvePoint:
        """The totals at this setting."""
        return self._totals(self.row(knob), knob)

    def point(self, row: int) -> CurvePoint:
        """The totals of one row, at a setting where it holds: its tau, or a V in its middle."""
        low = float(self.knob[row])
        if self.rule is Rule.SHORTFALL:
            return self._totals(row, low)
        last = row + 1 >= self.knob.size
        high = 2.0 * low if last else float(self.knob[row + 1])
        middle = float(np.sqrt(low * high)) if low > 0 else high / 2
        return self._totals(row, middle or 1.0)

    def tidy(self, knob: float) -> float:
        """The shortest decimal at which every query of this set goes where it does at `knob`."""
        row = self.row(knob)
        low = float(self.knob[row])
        for digits in range(2, 15):
            scale = 10.0**digits
            first = float(np.ceil(low * scale - 1e-9)) + 0.0  # -0.0 is written as -0
            for candidate in (first / scale, (first + 1.0) / scale):
                if self.row(candidate) == row and (candidate > 0.0 or knob == 0.0):
                    return candidate
        return knob

    def row(self, knob: float) -> int:
        """The row that holds at this setting (>= 0); on a breakpoint the cheaper side."""
        by_tau = self.rule is Rule.SHORTFALL
        row = np.searchsorted(self.knob, knob, side="right" if by_tau else "left")
        return max(int(row) - 1, 0)

    def simplified(self, points: int) -> IntArray:
        """Rows to draw: at most about `points`, evenly along the curve, both ends and the best.

        Along the curve means by arc length in (cost, quality) scaled to their ranges, so that no
        visible stretch is skipped. For drawing only; every figure uses the full curve.
        """
        if self.knob.size <= points:
            return np.arange(self.knob.size)
        scaled = [
            np.diff(values) / (np.ptp(values) or 1.0)
            for values in (self.mean_cost_usd, self.quality)
        ]
        length = np.concatenate([[0.0], np.cumsum(np.abs(scaled[0]) + np.abs(scaled[1]))])
        wanted = np.linspace(0.0, length[-1], points)
        rows = np.searchsorted(length, wanted).clip(max=self.knob.size - 1)
        best = int(self.quality.argmax())
        return np.unique(np.concatenate([rows, [0, best, self.knob.size - 1]]))

    def _totals(self, row: int, knob: float) -> CurvePoint:
        return CurvePoint(
            knob,
            quality=float(self.quality[row]),
            mean_cost_usd=float(self.mean_cost_usd[row]),
            misroute=float(self.misroute[row]),
        )


def _accumulated(
    start: FloatArray, knob: FloatArray, step: FloatArray, n: int, rule: Rule
) -> StepCurve:
    """Sort the breakpoints, sum the changes, keep the last row of each distinct setting.

    Args:
        start: (3,) total quality, cost and misroute before the first breakpoint.
        knob: (b,) breakpoints in any order.
        step: (b, 3) what each breakpoint adds to the totals.
        n: Queries, to turn totals into means.
    """
    order = np.argsort(knob)
    knob = np.concatenate([[0.0], np.maximum(knob[order], 0.0)])
    total = np.empty((knob.size, start.size))
    total[0] = start
    np.take(step, order, axis=0, out=total[1:])
    keep = np.append(knob[1:] != knob[:-1], True)
    quality, cost_usd, misroute = (
        read_only(np.cumsum(total[:, i])[keep] / n) for i in range(start.size)
    )
    return StepCurve(read_only(knob[keep]), quality, cost_usd, misroute, rule)


#: Stands for the shortfall of a model that a hard gate keeps from a query; no tau reaches it.
CLOSED: Final = 1e9
_ROWS_PER_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class Breakpoints:
    """Where the queries of a set change their model as tau grows.

    Attributes:
        base: (n,) each: quality, cost in USD and misroute of the model of least shortfall.
        cheapest: The same of the first model in order.
        row: (b,) the query of each change.
        tau: (b,) from which it holds.
        step: (b, 3) what it changes of quality, cost and misroute.
    """

    base: tuple[FloatArray, ...]
    cheapest: tuple[FloatArray, ...]
    row: IntArray
    tau: FloatArray
    step: FloatArray


def frontier(
    shortfalls: FloatArray,
    cost: FloatArray,
    quality: FloatArray,
    cost_usd: FloatArray,
    *,
    ranked_by: FloatArray | None = None,
) -> StepCurve:
    """The exact frontier of one policy over one replayed set.

    Args:
        shortfalls: (n, m) weighted shortfalls, >= 0; returns on upgrading under the value rule.
        cost: (m,) what ranks the models for misroute (list price or mean realised cost), and
            orders them for the rule where `ranked_by` is not given.
        quality: (n, m) outcomes in [0, 1].
        cost_usd: (n, m) realised cost in USD.
        ranked_by: (n, m) predicted cost in USD of the value rule, whose curve is over V.

    Returns:
        Curve with one row per distinct breakpoint.

    Raises:
        ValueError: Empty input, shapes that differ, or NaN.
    """
    shortfalls, quality, cost_usd = (
        np.asarray(values, dtype=np.float64) for values in (shortfalls, quality, cost_usd)
    )
    _check(shortfalls, quality, cost_usd)
    by_value = ranked_by is not None
    n = shortfalls.shape[0]
    start = np.zeros(3)
    knobs: list[FloatArray] = []
    steps: list[FloatArray] = []
    for begin in range(0, n, _ROWS_PER_CHUNK):
        part = slice(begin, begin + _ROWS_PER_CHUNK)
        ranks = cost if ranked_by is None else ranked_by[part]
        found = breakpoints(shortfalls[part], cost, quality[part], cost_usd[part], ranks)
        if by_value:  # V rises from the cheapest model, as tau falls to it
            start += [values.sum() for values in found.cheapest]
            knobs.append(1.0 / found.tau)
            steps.append(-found.step)
        else:
            start += [values.sum() for values in found.base]
            open_ = found.tau < CLOSED
            knobs.append(found.tau[open_])
            steps.append(found.step[open_])
    rule = Rule.VALUE if by_value else Rule.SHORTFALL
    return _accumulated(start, np.concatenate(knobs), np.concatenate(steps), n, rule)


def shares(shortfalls: FloatArray, cost: FloatArray, taus: FloatArray) -> FloatArray:
    """Traffic share of every model at each of a few taus, all in one pass.

    Args:
        shortfalls: (n, m) with m >= 1.
        cost: (m,) what orders the models, or (n, m) for every query.
        taus: (t,) in any order.

    Returns:
        (t, m); rows sum to 1, or to 0 where there is no query.

    Raises:
        ValueError: A shortfall, cost or tau is NaN, or there is no model.
    """
    shortfalls, taus = np.asarray(shortfalls, np.float64), np.asarray(taus, np.float64)
    if shortfalls.ndim != 2 or shortfalls.shape[1] == 0:
        raise ValueError(f"shortfalls must be (n, m) with m >= 1, got {shortfalls.shape}")
    if np.isnan(shortfalls).any() or np.isnan(taus).any():
        raise ValueError("shortfalls and taus must not be NaN")
    (n, m), each = shortfalls.shape, np.ndim(cost) == 2
    order = np.argsort(taus)
    change = np.zeros((taus.size + 1, m), dtype=np.int64)  # last row: beyond every tau asked for
    for begin in range(0, n, _ROWS_PER_CHUNK):
        part = slice(begin, begin + _ROWS_PER_CHUNK)
        change += _arrivals(shortfalls[part], cost[part] if each else cost, taus[order])
    result = np.empty((taus.size, m))
    result[order] = np.cumsum(change[:-1], axis=0) / max(n, 1)
    return result


def choices(shortfalls: FloatArray, cost: FloatArray, taus: FloatArray) -> ChoiceArray:
    """The route of every query at each of a few taus: `choose` for all of them in one pass.

    Args:
        shortfalls: (n, m) with 1 <= m <= 255.
        cost: (m,) what orders the models, or (n, m) for every query.
        taus: (t,) in any order.

    Returns:
        (n, t) model indices as unsigned bytes.
    """
    order = np.broadcast_to(preference(shortfalls, cost), shortfalls.shape)
    return choices_in_order(shortfalls, order, taus)


def _check(shortfalls: FloatArray, quality: FloatArray, cost_usd: FloatArray) -> None:
    if shortfalls.ndim != 2 or 0 in shortfalls.shape:
        raise ValueError(
            f"a frontier needs at least one query and one model, got {shortfalls.shape}"
        )
    if not shortfalls.shape == quality.shape == cost_usd.shape:
        raise ValueError(
            f"shortfalls {shortfalls.shape}, quality {quality.shape} and cost_usd "
            f"{cost_usd.shape} must have the same shape (queries, models)"
        )
    if np.isnan(shortfalls).any():
        raise ValueError("shortfalls must be finite numbers, or infinity for never; found NaN")
    for name, values in (("quality", quality), ("cost_usd", cost_usd)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite numbers, found NaN or infinity")


def _cheaper_resolved(quality: FloatArray, cost: FloatArray) -> FloatArray:
    """(n, m) 1 where a model of strictly lower static cost resolved the query."""
    cost = np.asarray(cost, dtype=np.float64)
    dearer = (cost[:, None] < cost).astype(np.float32)
    counts = (quality >= RESOLVED_AT).astype(np.float32) @ dearer
    return (counts > 0).astype(np.float64)


def _arrivals(shortfalls: FloatArray, cost: FloatArray, taus: FloatArray) -> IntArray:
    """Queries each model gains, less those it loses, on the way to each ascending tau: (t + 1, m).

    Row 0 starts from no queries at all; the last row holds breakpoints beyond the largest tau.
    """
    order = preference(shortfalls, cost)
    ranked = ranked_values(shortfalls, order)
    rows, at, last = _records(ranked)
    m, handover = ranked.shape[1], ~last[:-1]
    models = order[at - m * rows] if order.ndim == 1 else order.reshape(-1)[at]
    row = m * np.searchsorted(taus, ranked.reshape(-1)[at[:-1][handover]], side="left")
    size = (taus.size + 1) * m
    gained = np.bincount(row + models[:-1][handover], minlength=size)
    lost = np.bincount(row + models[1:][handover], minlength=size)
    first = np.bincount(models[last], minlength=size)
    return (first + gained - lost).reshape(-1, m)


def _records(ranked: FloatArray) -> tuple[IntArray, IntArray, BoolArray]:
    """Rows and flat positions of the strict prefix minima of every row, and which end their row.

    Only these records are ever chosen, and record i hands over to the record before it (cheaper)
    at tau = that record's shortfall.
    """
    n, m = ranked.shape
    least = np.minimum.accumulate(ranked, axis=1)
    record = np.empty((n, m), dtype=bool)
    record[:, 0] = True
    np.less(ranked[:, 1:], least[:, :-1], out=record[:, 1:])
    rows, columns = np.nonzero(record)
    last = np.empty(rows.size, dtype=bool)
    last[-1] = True
    np.not_equal(rows[1:], rows[:-1], out=last[:-1])
    return rows, rows * m + columns, last


def breakpoints(
    shortfalls: FloatArray,
    cost: FloatArray,
    quality: FloatArray,
    cost_usd: FloatArray,
    ranks: FloatArray | None = None,
) -> Breakpoints:
    """Every change of model of every query, unsorted; `frontier` is their running sum.

    For a part of a set that is too large to sort at once; finite numbers, arguments as `frontier`.

    Args:
        ranks: (m,) or (n, m) what orders the models, default `cost`.
    """
    order = preference(shortfalls, cost if ranks is None else ranks)
    ranked = ranked_values(shortfalls, order)
    rows, flat, last = _records(ranked)
    m, handover = ranked.shape[1], ~last[:-1]
    models = order[flat - m * rows] if order.ndim == 1 else order.reshape(-1)[flat]
    at = m * rows + models  # in pool order: records are few
    values = quality, cost_usd, _cheaper_resolved(quality, cost)
    chosen = [value.reshape(-1)[at] for value in values]
    step = np.empty((int(handover.sum()), len(values)))  # one row each: sorted in one gather
    for column, value in enumerate(chosen):
        step[:, column] = (value[:-1] - value[1:])[handover]
    first = np.append(True, last[:-1])
    base = tuple(value[last] for value in chosen)
    cheapest = tuple(value[first] for value in chosen)
    tau = ranked.reshape(-1)[flat[:-1][handover]]
    return Breakpoints(base, cheapest, rows[:-1][handover], tau, step)
