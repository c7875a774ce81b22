"""Quality, cost and misroute of the router for EVERY tau, exactly, from one sort.

For one query with models in order of preference, the choice at tau is the first model with
s_i <= tau. So model i is chosen exactly for tau in [s_i, min_{j<i} s_j), and the model of least
shortfall also for everything below. Each change of model is a breakpoint; sorting all breakpoints
and summing what they change gives the whole curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from hydra_core.base.types import BoolArray, ChoiceArray, FloatArray, IntArray
from hydra_core.replay.step_curve import StepCurve, accumulate
from hydra_core.routing.matcher import choices_in_order, preference, ranked_values

#: Stands for the shortfall of a model that a hard gate keeps from a query; no tau reaches it.
CLOSED: Final = 1e9
_ROWS_PER_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class Frontier(StepCurve):
    """The exact step curve over tau: row i holds for tau in [tau[i], tau[i+1]), tau[0] = 0."""

    symbol: ClassVar[str] = "tau"

    @property
    def tau(self) -> FloatArray:
        """(b,) ascending thresholds."""
        return self.knob


@dataclass(frozen=True, slots=True)
class Breakpoints:
    """Where the queries of a set change their model as tau grows.

    Attributes:
        base: (n,) each: quality, cost in USD and misroute of the model of least shortfall.
        row: (b,) the query of each change.
        tau: (b,) from which it holds.
        step: (b, 3) what it changes of quality, cost and misroute.
    """

    base: tuple[FloatArray, ...]
    row: IntArray
    tau: FloatArray
    step: FloatArray


def frontier(
    shortfalls: FloatArray,
    cost: FloatArray,
    quality: FloatArray,
    cost_usd: FloatArray,
    *,
    resolved_at: float = 0.5,
) -> Frontier:
    """The exact frontier of one policy over one replayed set.

    Args:
        shortfalls: (n, m) weighted shortfalls, >= 0.
        cost: (m,) what orders the models (list price or mean realised cost).
        quality: (n, m) outcomes in [0, 1].
        cost_usd: (n, m) realised cost in USD.
        resolved_at: Quality from which a query counts as resolved (for misroute).

    Returns:
        Frontier with one row per distinct breakpoint.

    Raises:
        ValueError: Empty input, shapes that differ, or NaN.
    """
    shortfalls, quality, cost_usd = (
        np.asarray(values, dtype=np.float64) for values in (shortfalls, quality, cost_usd)
    )
    _check(shortfalls, quality, cost_usd)
    n = shortfalls.shape[0]
    start = np.zeros(3)
    taus: list[FloatArray] = []
    steps: list[FloatArray] = []
    static_order = preference(shortfalls[:1], cost) if np.unique(cost).size == len(cost) else None
    for begin in range(0, n, _ROWS_PER_CHUNK):
        part = slice(begin, begin + _ROWS_PER_CHUNK)
        order = preference(shortfalls[part], cost) if static_order is None else static_order
        found = _breakpoints_of(
            shortfalls[part], cost, quality[part], cost_usd[part], order, resolved_at
        )
        start += [values.sum() for values in found.base]
        taus.append(found.tau)
        steps.append(found.step)
    knob, columns = accumulate(start, np.concatenate(taus), np.concatenate(steps), n)
    return Frontier(knob, *columns)


def shares(shortfalls: FloatArray, cost: FloatArray, taus: FloatArray) -> FloatArray:
    """Traffic share of every model at each of a few taus, all in one pass.

    Args:
        shortfalls: (n, m) with m >= 1.
        cost: (m,) what orders the models.
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
    n, m = shortfalls.shape
    order = np.argsort(taus)
    change = np.zeros((taus.size + 1, m), dtype=np.int64)  # last row: beyond every tau asked for
    for begin in range(0, n, _ROWS_PER_CHUNK):
        change += _arrivals(shortfalls[begin : begin + _ROWS_PER_CHUNK], cost, taus[order])
    result = np.empty((taus.size, m))
    result[order] = np.cumsum(change[:-1], axis=0) / max(n, 1)
    return result


def choices(shortfalls: FloatArray, cost: FloatArray, taus: FloatArray) -> ChoiceArray:
    """The route of every query at each of a few taus: `choose` for all of them in one pass.

    Args:
        shortfalls: (n, m) with 1 <= m <= 255.
        cost: (m,) what orders the models.
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
    for name, values in (
        ("shortfalls", shortfalls),
        ("quality", quality),
        ("cost_usd", cost_usd),
    ):
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite numbers, found NaN or infinity")


def _cheaper_resolved(
    quality: FloatArray, cost: FloatArray, order: IntArray, resolved_at: float
) -> FloatArray:
    """(n, m) in preference order: 1 where a model of strictly lower cost resolved the query."""
    cost = np.asarray(cost, dtype=np.float64)
    resolved = ranked_values(quality, order) >= resolved_at
    ranked_cost = cost[order]
    before = np.zeros(resolved.shape, dtype=bool)
    np.logical_or.accumulate(resolved[:, :-1], axis=1, out=before[:, 1:])
    if order.ndim == 2 or np.unique(cost).size < cost.size:
        return _strictly_cheaper(resolved, np.broadcast_to(ranked_cost, resolved.shape))
    return before.astype(np.float64)


def _strictly_cheaper(resolved: np.ndarray, ranked_cost: FloatArray) -> FloatArray:
    """As `_cheaper_resolved`, where several models cost the same: equals do not count."""
    result = np.zeros(resolved.shape)
    for i in range(1, resolved.shape[1]):
        cheaper = ranked_cost[:, :i] < ranked_cost[:, i : i + 1]
        result[:, i] = (resolved[:, :i] & cheaper).any(axis=1)
    return result


def _arrivals(shortfalls: FloatArray, cost: FloatArray, taus: FloatArray) -> IntArray:
    """Queries each model gains, less those it loses, on the way to each ascending tau: (t + 1, m).

    Row 0 starts from no queries at all; the last row holds breakpoints beyond the largest tau.
    """
    order = preference(shortfalls, cost)
    ranked = ranked_values(shortfalls, order)
    at, last = _records(ranked)
    m, handover = ranked.shape[1], ~last[:-1]
    models = order[at % m] if order.ndim == 1 else order.reshape(-1)[at]
    row = m * np.searchsorted(taus, ranked.reshape(-1)[at[:-1][handover]], side="left")
    size = (taus.size + 1) * m
    gained = np.bincount(row + models[:-1][handover], minlength=size)
    lost = np.bincount(row + models[1:][handover], minlength=size)
    first = np.bincount(models[last], minlength=size)
    moved: IntArray = (first + gained - lost).reshape(-1, m)
    return moved


def _records(ranked: FloatArray) -> tuple[IntArray, BoolArray]:
    """Flat positions of the strict prefix minima of every row, and which end their row.

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
    return rows * m + columns, last


def breakpoints(
    shortfalls: FloatArray,
    cost: FloatArray,
    quality: FloatArray,
    cost_usd: FloatArray,
    *,
    resolved_at: float = 0.5,
) -> Breakpoints:
    """Every change of model of every query, unsorted; `frontier` is their running sum.

    Args and errors: as `frontier`. For a part of a set that is too large to sort at once.
    """
    _check(shortfalls, quality, cost_usd)
    order = preference(shortfalls, cost)
    return _breakpoints_of(shortfalls, cost, quality, cost_usd, order, resolved_at)


def _breakpoints_of(
    shortfalls: FloatArray,
    cost: FloatArray,
    quality: FloatArray,
    cost_usd: FloatArray,
    order: IntArray,
    resolved_at: float,
) -> Breakpoints:
    ranked = ranked_values(shortfalls, order)
    values = (
        ranked_values(quality, order),
        ranked_values(cost_usd, order),
        _cheaper_resolved(quality, cost, order, resolved_at),
    )
    flat, last = _records(ranked)
    chosen = [value.reshape(-1)[flat] for value in values]
    handover = ~last[:-1]
    at = flat[:-1][handover]
    step = np.empty((at.size, len(values)))  # one row per breakpoint: sorted in one gather
    for column, value in enumerate(chosen):
        step[:, column] = (value[:-1] - value[1:])[handover]
    base = tuple(value[last] for value in chosen)
    tau = ranked.reshape(-1)[at]
    open_ = tau < CLOSED
    if not open_.all():
        at, tau, step = at[open_], tau[open_], step[open_]
    return Breakpoints(base, at // ranked.shape[1], tau, step)
