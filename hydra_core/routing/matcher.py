"""The decision rule: the cheapest model whose shortfall is at most tau ("Shortfall Matching").

What differs between catalogs is where the shortfall comes from. From profiles it is Eq. 6, and cost
is one figure a model. Under the value rule it comes from what each model is predicted to achieve
and cost on this query: the return on upgrading, with tau = 1 / V, which serves every V at once; or,
where one V is asked for, how far success - cost / V lies behind the best, with tau = 0. Both choose
the model of largest success - cost / V. Router, replay and what-if all call these functions;
nothing else in the project decides a route.
"""

import functools
import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from hydra_core.base.types import BoolArray, ChoiceArray, FloatArray, IntArray

_ROWS_PER_CHUNK = 4_096
#: A finite figure that no shortfall or tau exceeds.
_MOST: Final = float(np.finfo(np.float64).max)
#: Below it V is so small that any cost is beyond measure.
_LEAST_USD: Final = 1e-280


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


def shortfall_of_one(
    requirements: Sequence[float],
    by_dimension: Sequence[Sequence[float]],
    weights: Sequence[float],
) -> list[float]:
    """As `shortfall` for one query and a pool that was checked when its catalog was loaded.

    Args:
        by_dimension: (K, m) capabilities.

    Returns:
        (m,) shortfalls, equal to those of `shortfall` to the last bit: summed in the same order.

    Raises:
        ValueError: It is not one requirement a weight.
    """
    if len(requirements) != len(weights):
        raise ValueError(
            f"{len(requirements)} requirements must have {len(weights)} values, one per weight"
        )
    result = [0.0] * len(by_dimension[0])  # so few numbers are summed sooner without arrays
    for need, capabilities, weight in zip(requirements, by_dimension, weights, strict=True):
        pairs = zip(result, capabilities, strict=True)
        result = [s if need <= has else s + (need - has) * weight for s, has in pairs]
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
    order = _shared_order(cost)
    return cost_order(shortfalls, cost) if order is None else order


def _shared_order(cost: FloatArray) -> IntArray | None:
    """(m,) models from cheapest to dearest; None where queries differ, or models cost the same."""
    cost = np.asarray(cost, dtype=np.float64)
    if not np.isfinite(cost).all():
        raise ValueError(f"cost must be finite numbers, got {cost.tolist()}")
    if cost.ndim == 2:
        return None
    order = np.argsort(cost, kind="stable")
    ascending = cost[order]
    return order if (ascending[1:] != ascending[:-1]).all() else None


def cost_order(shortfalls: FloatArray, cost: FloatArray) -> IntArray:
    """As `preference`, (n, m) in every case."""
    whole = np.broadcast_to(np.asarray(cost, np.float64), shortfalls.shape)
    order: IntArray = np.argsort(whole, axis=1, kind="stable")
    ascending = np.take_along_axis(whole, order, 1)
    tied = np.flatnonzero((ascending[:, 1:] == ascending[:, :-1]).any(axis=1))
    if tied.size:
        index = np.broadcast_to(np.arange(whole.shape[1]), (tied.size, whole.shape[1]))
        order[tied] = np.lexsort((index, shortfalls[tied], whole[tied]), axis=1)
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
    if np.isnan(shortfalls).any() or math.isnan(tau):
        raise ValueError("shortfalls and tau must not be NaN")
    cost = np.asarray(cost, dtype=np.float64)
    order = _shared_order(cost)
    if order is None:
        return _cheapest_of(shortfalls, cost, tau)
    eligible = ranked_values(shortfalls <= tau, order)
    position = eligible.argmax(axis=1)
    nobody = np.flatnonzero(~eligible[np.arange(len(position)), position])
    if nobody.size:  # of these alone the floats are put in order: that takes the longest
        position[nobody] = ranked_values(shortfalls[nobody], order).argmin(axis=1)
    chosen: IntArray = order[position]
    return chosen


def _cheapest_of(shortfalls: FloatArray, cost: FloatArray, tau: float) -> IntArray:
    """As `choose`, where the order differs between queries or models cost the same."""
    eligible = shortfalls <= tau
    chosen: IntArray = eligible.argmax(axis=1)
    if np.count_nonzero(eligible) == len(chosen) and eligible[np.arange(len(chosen)), chosen].all():
        return chosen  # one model a query, as by value
    open_ = np.where(eligible, cost, np.inf)
    chosen = open_.argmin(axis=1)
    least = open_[np.arange(len(chosen)), chosen]
    several = np.flatnonzero((open_ == least[:, None]).sum(axis=1) > 1)
    if several.size:  # the same cost, or nobody eligible: smaller shortfalls decide
        s = np.minimum(shortfalls[several], _MOST)
        level = np.maximum(s.min(axis=1, keepdims=True), tau)
        open_ = np.where(s <= level, cost if cost.ndim == 1 else cost[several], np.inf)
        cheapest = open_ <= open_.min(axis=1, keepdims=True)
        chosen[several] = np.where(cheapest, s, np.inf).argmin(axis=1)
    return chosen


def choose_one(shortfalls: Sequence[float], cost: Sequence[float], tau: float) -> int:
    """As `choose` for one query: the row of its route among the m models.

    Raises:
        ValueError: A shortfall is NaN.
    """
    if math.isnan(sum(shortfalls)):
        raise ValueError("shortfalls and tau must not be NaN")
    eligible = [i for i, s in enumerate(shortfalls) if s <= tau]
    if len(eligible) == 1:
        return eligible[0]
    if eligible:
        return min(eligible, key=lambda i: (cost[i], shortfalls[i]))
    return min(range(len(cost)), key=lambda i: (shortfalls[i], cost[i]))


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
    success, cost_usd = _predictions(success, cost_usd)
    if not (np.isfinite(success).all() and np.isfinite(cost_usd).all()):
        raise ValueError("success and cost_usd must be finite numbers, got NaN or infinity")
    best = np.empty(success.shape)
    for begin in range(0, len(success), _ROWS_PER_CHUNK):
        part = slice(begin, begin + _ROWS_PER_CHUNK)
        p, c = success[part].T.copy(), cost_usd[part].T.copy()  # m is small: one row a model
        most = np.zeros(p.shape)
        for gained, spent in zip(p, c, strict=True):
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                ratio = np.maximum(gained - p, 0.0) / (spent - c)
            np.fmax(most, ratio, out=most)  # below 0 for cheaper models, NaN for equal ones
        best[part] = most.T
    return best


def value_shortfall(success: FloatArray, cost_usd: FloatArray, value_usd: float) -> FloatArray:
    """Return how far every model's success - cost / V lies behind the best of the query.

    With tau = 0 `choose` takes the best, of equals the cheaper. V towards 0 is the cheapest model
    of every query, V = infinity the one of highest predicted success.

    Args:
        success: (n, m) predicted success, m >= 1.
        cost_usd: (n, m) predicted cost of the query, USD.
        value_usd: V, what one more resolved query is worth, USD > 0.

    Returns:
        (n, m) >= 0, in units of success; 0 for the best.

    Raises:
        ValueError: Shapes do not fit, or V is not > 0. What is not finite `choose` refuses.
    """
    success, cost_usd = _predictions(success, cost_usd)
    if not value_usd > 0:
        raise ValueError(f"the value of a resolved query must be > 0 USD, got {value_usd}")
    net = success - cost_usd / max(value_usd, _LEAST_USD)
    best: FloatArray = functools.reduce(np.maximum, net.T)  # m is small: column by column
    return best[:, None] - net


def value_shortfall_of_one(
    success: Sequence[float], cost_usd: Sequence[float], value_usd: float
) -> list[float]:
    """As `value_shortfall` for one query: (m,) and (m,) -> (m,).

    Raises:
        ValueError: A prediction is not finite, or V is not > 0.
    """
    if not (math.isfinite(sum(success)) and math.isfinite(sum(cost_usd))):
        raise ValueError("success and cost_usd must be finite numbers, got NaN or infinity")
    if not value_usd > 0:
        raise ValueError(f"the value of a resolved query must be > 0 USD, got {value_usd}")
    value_usd = max(value_usd, _LEAST_USD)
    net = [said - cost / value_usd for said, cost in zip(success, cost_usd, strict=True)]
    best = max(net)
    return [best - one for one in net]


def tau_of_value(values_usd: FloatArray) -> FloatArray:
    """Return the tau for returns on upgrading that stands for each V: 1 / V, always finite."""
    with np.errstate(over="ignore"):
        tau: FloatArray = np.minimum(1.0 / np.asarray(values_usd, np.float64), _MOST)
    return tau


def _predictions(success: FloatArray, cost_usd: FloatArray) -> tuple[FloatArray, FloatArray]:
    success, cost_usd = np.asarray(success, np.float64), np.asarray(cost_usd, np.float64)
    if success.ndim != 2 or success.shape[1] == 0 or success.shape != cost_usd.shape:
        raise ValueError(
            f"success {success.shape} and cost_usd {cost_usd.shape} must both be (n, m), m >= 1"
        )
    return success, cost_usd


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
