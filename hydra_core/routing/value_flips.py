"""What would have decided otherwise under the value rule: the strip of V, and nearest flips."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hydra_core.routing.flips import BEYOND, Flip, StripPart, nearest
from hydra_core.routing.matcher import choose_by_value
from hydra_core.types import FloatArray

__all__ = ["value_flips", "value_strip"]


def value_strip(
    success: FloatArray, cost_usd: FloatArray, ids: Sequence[str]
) -> tuple[StripPart, ...]:
    """Which model for every V, ascending: each is chosen for V in (start, end].

    Args:
        success: (m,) predicted success.
        cost_usd: (m,) predicted cost, USD.
        ids: (m,) models.
    """
    at = int(np.where(cost_usd <= cost_usd.min(), success, -np.inf).argmax())
    start, parts = 0.0, []
    while True:
        gain, extra = success - success[at], cost_usd - cost_usd[at]
        value = np.full(gain.shape, np.inf)
        np.divide(extra, gain, out=value, where=gain > 0)
        end = float(value.min())
        parts.append(StripPart(ids[at], start, end))
        if not np.isfinite(end):
            return tuple(parts)
        at = int(np.where(value <= end, success, -np.inf).argmax())
        start = end


def value_flips(
    success: FloatArray, cost_usd: FloatArray, ids: Sequence[str], value_usd: float
) -> tuple[Flip, ...]:
    """The nearest changes of V, of one model's price, and of one model's predicted success.

    Of each, the nearest towards a cheaper and the nearest towards a dearer model, as they exist. A
    price is a factor on the model's predicted cost, 1 now.
    """
    net = success - cost_usd / value_usd
    chosen = int(choose_by_value(success[None], cost_usd[None], value_usd)[0])
    found = nearest(_value_flips(success, cost_usd, ids, value_usd, chosen))
    others = [i for i in range(len(ids)) if i != chosen]
    if not others:
        return found
    second = max(others, key=lambda i: net[i])
    gaps = [(i, float(net[chosen] - net[i])) for i in others]
    gaps.append((chosen, float(net[second] - net[chosen])))
    prices, odds = [], []
    for i, gap in gaps:
        then = second if i == chosen else i
        factor = 1.0 - gap * value_usd / float(cost_usd[i]) if cost_usd[i] > 0 else 0.0
        factor += np.copysign(BEYOND, factor - 1.0)
        if factor > 0:
            paid = float(cost_usd[then]) * (factor if then == i else 1.0)
            cheaper = paid < float(cost_usd[chosen])
            prices.append(Flip("price", ids[i], 1.0, float(factor), ids[then], cheaper))
        after = float(success[i]) + gap + np.copysign(BEYOND, gap)
        if 0.0 <= after <= 1.0:
            cheaper = bool(cost_usd[then] < cost_usd[chosen])
            odds.append(
                Flip("success", ids[i], float(success[i]), float(after), ids[then], cheaper)
            )
    return (*found, *nearest(prices), *nearest(odds))


def _value_flips(
    success: FloatArray,
    cost_usd: FloatArray,
    ids: Sequence[str],
    value_usd: float,
    chosen: int,
) -> list[Flip]:
    """The ends of the chosen model's own stretch of V."""
    found = []
    parts = value_strip(success, cost_usd, ids)
    here = next(p for p in parts if p.model == ids[chosen])
    for end in (here.start, here.end):
        if 0 < end < np.inf:
            after = end * (1 + BEYOND if end >= value_usd else 1 - BEYOND)
            then = int(choose_by_value(success[None], cost_usd[None], after)[0])
            cheaper = bool(cost_usd[then] < cost_usd[chosen])
            part = next(p for p in parts if p.model == ids[then])
            # a stretch has its upper end, not its lower one
            until = part.end if after > value_usd else float(np.nextafter(part.start, np.inf))
            found.append(Flip("value", "", value_usd, after, ids[then], cheaper, until))
    return found
