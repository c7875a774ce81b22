"""One decision rule: the cheapest model whose shortfall is at most tau.

The shortfall rule and the value rule differ only in where the shortfalls come from. Under the value
rule a model's shortfall is its return on upgrading: the most success per USD that a dearer model
would add for this query. "The cheapest model whose return on upgrading is at most 1 / V" is the
model of largest `success - cost / V`.
"""

from __future__ import annotations

import numpy as np

from hydra_core.base.types import ChoiceArray, FloatArray, IntArray

_ROWS_PER_CHUNK = 4_096


def returns_on_upgrading(success: FloatArray, cost_usd: FloatArray) -> FloatArray:
    """Return the best return on upgrading from every model, for every query.

    For model i it is the maximum of (p_j - p_i) / (c_j - c_i) over the dearer models j, and 0 where
    no dearer model is better. A better model at the same cost makes it infinite.

    Args:
        success: (n, m) predicted success.
        cost_usd: (n, m) predicted cost of the query, USD.

    Returns:
        (n, m) success per USD, >= 0.

    Raises:
        ValueError: The shapes differ, there is no model, or a value is not finite.
    """
    success, cost_usd = np.asarray(success, np.float64), np.asarray(cost_usd, np.float64)
    if success.ndim != 2 or success.shape[1] == 0 or success.shape != cost_usd.shape:
        raise ValueError(
            f"success {success.shape} and cost_usd {cost_usd.shape} must both be (n, m), m >= 1"
        )
    if not (np.isfinite(success).all() and np.isfinite(cost_usd).all()):
        raise ValueError("success and cost_usd must be finite numbers, got NaN or infinity")
    best = np.zeros(success.shape)
    for j in range(success.shape[1]):  # m is small; (n, m) buffers instead of an (n, m, m) array
        gain = success[:, j, None] - success
        extra = cost_usd[:, j, None] - cost_usd
        upgrade = (gain > 0) & (extra >= 0)
        ratio = np.full(gain.shape, np.inf)
        with np.errstate(over="ignore"):
            np.divide(gain, extra, out=ratio, where=extra > 0)
        np.maximum(best, np.where(upgrade, ratio, 0.0), out=best)
    return best


def cost_order(shortfalls: FloatArray, cost: FloatArray) -> IntArray:
    """Return the models of each query from cheapest to dearest.

    Equal cost: smaller shortfall, then catalog order.

    Args:
        shortfalls: (n, m).
        cost: (n, m) predicted cost of each query, or (m,) one cost per model.

    Returns:
        (n, m) model indices.
    """
    whole = np.broadcast_to(np.asarray(cost, np.float64), shortfalls.shape)
    index = np.broadcast_to(np.arange(shortfalls.shape[1]), shortfalls.shape)
    order: IntArray = np.lexsort((index, shortfalls, whole), axis=1)
    return order


def choose_in_order(shortfalls: FloatArray, order: IntArray, tau: float) -> IntArray:
    """Return the route of every query: its first model in order with shortfall <= tau.

    Where no model is eligible, the route is the first model of least shortfall (fail open).

    Args:
        shortfalls: (n, m) with m >= 1; infinity is never eligible.
        order: (n, m) models from cheapest to dearest.
        tau: Largest acceptable shortfall; 1 / V where shortfalls are returns.

    Returns:
        (n,) model indices.

    Raises:
        ValueError: Shapes do not fit, or a shortfall or tau is NaN.
    """
    if shortfalls.ndim != 2 or shortfalls.shape[1] == 0 or order.shape != shortfalls.shape:
        raise ValueError(
            f"shortfalls {shortfalls.shape} and order {order.shape} must both be (n, m), m >= 1"
        )
    if np.isnan(shortfalls).any() or np.isnan(tau):
        raise ValueError("shortfalls and tau must not be NaN")
    return choices_in_order(shortfalls, order, np.array([tau]))[:, 0].astype(np.intp)


def choices_in_order(shortfalls: FloatArray, order: IntArray, taus: FloatArray) -> ChoiceArray:
    """Return the routes at each of a few taus, all in one pass.

    Args:
        shortfalls: (n, m) with 1 <= m <= 255, not NaN.
        order: (n, m) models from cheapest to dearest.
        taus: (t,) in any order.

    Returns:
        (n, t) model indices as unsigned bytes.
    """
    n, m = shortfalls.shape
    result = np.empty((n, len(taus)), dtype=np.uint8)
    for begin in range(0, n, _ROWS_PER_CHUNK):
        part = slice(begin, begin + _ROWS_PER_CHUNK)
        ranked = np.take_along_axis(shortfalls[part], order[part], 1)
        models = order[part].astype(np.uint8)
        least = np.take_along_axis(models, ranked.argmin(axis=1)[:, None], 1)
        chosen = np.repeat(least, len(taus), axis=1)
        for rank in reversed(range(m)):  # the cheapest eligible model is written last
            np.copyto(chosen, models[:, rank, None], where=ranked[:, rank, None] <= taus)
        result[part] = chosen
    return result
