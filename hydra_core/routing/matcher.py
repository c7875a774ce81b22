"""The decision rule: the cheapest model whose shortfall is at most tau ("Shortfall Matching").

Shortfalls come from profiles (Eq. 6), and cost is one figure a model; or they are returns on
upgrading, from what each model is predicted to achieve and cost on this query. "The cheapest model
whose return on upgrading is at most 1 / V" is the model of largest success - cost / V: the value
rule, which `choose_by_value` decides directly. Router, replay and what-if all call these functions;
nothing else in the project decides a route.
"""

from __future__ import annotations

import numpy as np

from hydra_core.base.types import BoolArray, ChoiceArray, FloatArray, IntArray

_ROWS_PER_CHUNK = 4_096


def shortfall(
    requirements: FloatArray, capabilities: FloatArray, weights: FloatArray
) -> FloatArray:
    """Weighted shortfall of every model for every query (Eq. 6).

    Surplus on one dimension never compensates a deficit on another.

    Args:
        requirements: (n, K) predicted requirements in [0, 1].
        capabilities: (m, K) model capabilities in [0, 1].
        weights: (K,) band-compensated weights w~ (Eq. 4), >= 0.

    Returns:
        (n, m) shortfalls >= 0.

    Raises:
        ValueError: Shapes do not fit, or a value is not finite.
    """
    requirements = np.asarray(requirements, dtype=np.float64)
    capabilities = np.asarray(capabilities, dtype=np.float64)
    weights = np.asarray(weights, dtype=np.float64)
    dimensions = weights.shape[0]
    if requirements.shape[1:] != (dimensions,) or capabilities.shape[1:] != (dimensions,):
        raise ValueError(
            f"requirements {requirements.shape} and capabilities {capabilities.shape} must both "
            f"have {dimensions} columns, one per weight"
        )
    for name, values in (("requirements", requirements), ("capabilities", capabilities)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite numbers, found NaN or infinity")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError(f"weights must be finite and >= 0, got {weights.tolist()}")
    result = np.zeros((requirements.shape[0], capabilities.shape[0]))
    deficit = np.empty_like(result)
    for k in range(dimensions):  # K is small; one (n, m) buffer instead of an (n, m, K) array
        np.subtract.outer(requirements[:, k], capabilities[:, k], out=deficit)
        np.maximum(deficit, 0.0, out=deficit)
        deficit *= weights[k]
        result += deficit
    return result


def preference(shortfalls: FloatArray, cost: FloatArray) -> IntArray:
    """Models from most to least preferred per query, before tau is looked at.

    Cheapest first; equal cost: smaller shortfall, then catalog order. For any tau the route is
    the first eligible model of this order, and the first of least shortfall if none is.

    Args:
        shortfalls: (n, m).
        cost: (m,) what orders the models, or (n, m) for every query.

    Returns:
        (m,) when there is one cost a model and all differ (one order for every query), else (n, m).
    """
    cost = np.asarray(cost, dtype=np.float64)
    if not np.isfinite(cost).all():
        raise ValueError(f"cost must be finite numbers, got {cost.tolist()}")
    if cost.ndim == 2:
        return cost_order(shortfalls, cost)
    order = np.argsort(cost, kind="stable")
    ascending = cost[order]
    if (ascending[1:] != ascending[:-1]).all():
        return order
    return cost_order(shortfalls, cost)


def cost_order(shortfalls: FloatArray, cost: FloatArray) -> IntArray:
    """As `preference`, (n, m) in every case."""
    whole = np.broadcast_to(np.asarray(cost, np.float64), shortfalls.shape)
    index = np.broadcast_to(np.arange(shortfalls.shape[1]), shortfalls.shape)
    order: IntArray = np.lexsort((index, shortfalls, whole), axis=1)
    return order


def contenders(open_: BoolArray, health: FloatArray, floor: float) -> tuple[IntArray, bool]:
    """The models that may be chosen: past the hard gates and not vetoed by health (Algorithm 4).

    Args:
        open_: (m,) True where no hard gate took the model out; at least one.
        health: (m,) in [0, 1].
        floor: Models below it are vetoed.

    Returns:
        Their rows, ascending, and whether this is the gateway's fallback: nobody is healthy, so
        the healthiest of those past the gates are left.
    """
    alive = np.flatnonzero(open_ & (health >= floor))
    if alive.size:
        return alive, False
    return np.flatnonzero(open_ & (health >= health[open_].max())), True


def choose(shortfalls: FloatArray, cost: FloatArray, tau: float) -> IntArray:
    """The route of every query: the cheapest model with shortfall <= tau (Algorithm 2).

    Nobody eligible: the model of least shortfall (fail open), the cheapest of several.

    Args:
        shortfalls: (n, m) with m >= 1; infinity is never eligible below an infinite tau.
        cost: (m,) what orders the models, or (n, m) for every query.
        tau: Largest acceptable shortfall; 1 / V where shortfalls are returns on upgrading.

    Returns:
        (n,) index of the chosen model.

    Raises:
        ValueError: A shortfall, cost or tau is NaN, or there is no model.
    """
    shortfalls = np.asarray(shortfalls, dtype=np.float64)
    if shortfalls.ndim != 2 or shortfalls.shape[1] == 0:
        raise ValueError(f"shortfalls must be (n, m) with m >= 1, got {shortfalls.shape}")
    if np.isnan(shortfalls).any() or np.isnan(tau):
        raise ValueError("shortfalls and tau must not be NaN")
    order = preference(shortfalls, cost)
    eligible = ranked_values(shortfalls <= tau, order)
    position = eligible.argmax(axis=1)
    rows = np.arange(len(position))
    nobody = np.flatnonzero(~eligible[rows, position])
    if nobody.size:  # of these alone the floats are put in order: that takes the longest
        own = order if order.ndim == 1 else order[nobody]
        position[nobody] = ranked_values(shortfalls[nobody], own).argmin(axis=1)
    chosen: IntArray = order[position] if order.ndim == 1 else order[rows, position]
    return chosen


def ranked_values(values: np.ndarray, order: IntArray) -> np.ndarray:
    """(n, m) values in the order of a `preference`."""
    return values[:, order] if order.ndim == 1 else np.take_along_axis(values, order, 1)


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


def choose_by_value(success: FloatArray, cost_usd: FloatArray, value_usd: float) -> IntArray:
    """The route of every query by value: the largest predicted success - predicted cost / V.

    Ties go to the cheaper model, then to catalog order. V towards 0 is the cheapest model of every
    query, V = infinity the one of highest predicted success.

    Args:
        success: (n, m) predicted success, m >= 1.
        cost_usd: (n, m) predicted cost of the query, USD.
        value_usd: V, what one more resolved query is worth, USD > 0.

    Returns:
        (n,) index of the chosen model.

    Raises:
        ValueError: Shapes do not fit, a value is not finite, or V is not > 0.
    """
    success, cost_usd = np.asarray(success, np.float64), np.asarray(cost_usd, np.float64)
    if success.ndim != 2 or success.shape[1] == 0 or success.shape != cost_usd.shape:
        raise ValueError(
            f"success {success.shape} and cost_usd {cost_usd.shape} must both be (n, m), m >= 1"
        )
    if not (np.isfinite(success).all() and np.isfinite(cost_usd).all()):
        raise ValueError("success and cost_usd must be finite numbers, found NaN or infinity")
    if not value_usd > 0:
        raise ValueError(f"the value of a resolved query must be > 0 USD, got {value_usd}")
    with np.errstate(over="ignore"):  # V near 0: every cost is beyond measure
        net = success - cost_usd / value_usd
    best = net >= net.max(axis=1, keepdims=True)
    chosen: IntArray = np.where(best, cost_usd, np.inf).argmin(axis=1)
    return chosen


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
