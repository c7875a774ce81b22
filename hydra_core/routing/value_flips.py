"""What would have decided otherwise under the value rule: the strip of V, and nearest flips."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hydra_core.routing.flips import Flip, StripPart
from hydra_core.routing.matcher import choose_by_value
from hydra_core.types import FloatArray

__all__ = ["value_flips", "value_strip"]

_BEYOND = 1e-9


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
    """The nearest change of V, of one model's price, and of one model's predicted success.

    A price is a factor on the model's predicted cost, 1 now.
    """
    net = success - cost_usd / value_usd
    chosen = int(choose_by_value(success[None], cost_usd[None], value_usd)[0])
    found = [_value_flip(success, cost_usd, ids, value_usd, chosen)]
    others = [i for i in range(len(ids)) if i != chosen]
    if others:
        second = max(others, key=lambda i: net[i])
        gaps = [(i, float(net[chosen] - net[i])) for i in others] + [
            (chosen, float(net[second] - net[chosen]))
        ]
        found.append(_price_flip(cost_usd, ids, value_usd, chosen, second, gaps))
        i, gap = min(gaps, key=lambda pair: abs(pair[1]))
        after = float(success[i]) + gap + np.copysign(_BEYOND, gap)
        if 0.0 <= after <= 1.0:
            model = ids[second] if i == chosen else ids[i]
            found.append(Flip("success", ids[i], float(success[i]), float(after), model))
    return tuple(flip for flip in found if flip is not None)


def _value_flip(
    success: FloatArray,
    cost_usd: FloatArray,
    ids: Sequence[str],
    value_usd: float,
    chosen: int,
) -> Flip | None:
    for part in value_strip(success, cost_usd, ids):
        if part.model == ids[chosen]:
            ends = [end for end in (part.start, part.end) if 0 < end < np.inf]
            if not ends:
                return None
            near = min(ends, key=lambda end: abs(end - value_usd))
            after = near * (1 + _BEYOND if near >= value_usd else 1 - _BEYOND)
            model = choose_by_value(success[None], cost_usd[None], after)[0]
            return Flip("value", "", value_usd, after, ids[int(model)])
    return None


def _price_flip(
    cost_usd: FloatArray,
    ids: Sequence[str],
    value_usd: float,
    chosen: int,
    second: int,
    gaps: Iterable[tuple[int, float]],
) -> Flip | None:
    """The smallest relative change of one model's cost that closes a gap."""
    best: Flip | None = None
    for i, gap in gaps:
        if cost_usd[i] <= 0:
            continue
        factor = 1.0 - gap * value_usd / float(cost_usd[i])
        factor += np.copysign(_BEYOND, factor - 1.0)
        if factor <= 0:
            continue
        flip = Flip("price", ids[i], 1.0, float(factor), ids[second] if i == chosen else ids[i])
        if best is None or abs(flip.change) < abs(best.change):
            best = flip
    return best
