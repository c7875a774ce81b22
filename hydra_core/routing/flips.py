"""What would have decided otherwise: the strip over the knob and the nearest flips, exactly.

Every boundary is computed in closed form, and the router's own kernel is tried just beyond it (by a
relative 1e-9): between two boundaries the choice cannot change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hydra_core.base.types import Band, FloatArray, Pool, Rule
from hydra_core.catalog.profiles import compensated_weights
from hydra_core.routing.matcher import choose, preference, returns_on_upgrading, shortfall

#: Weights that the console lets an operator set: 274 or 0 is no advice.
WEIGHT_RANGE = (0.05, 10.0)
#: How far beyond a boundary the choice is tried, relative to it.
BEYOND = 1e-9


@dataclass(frozen=True, slots=True)
class StripPart:
    """One model's stretch: it is chosen for tau in [start, end), or for V in (start, end]."""

    model: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Flip:
    """The smallest change of one number that changes the choice towards cheaper or dearer.

    Attributes:
        what: tau, weight, capability or cost (value, price or success under the value rule).
        name: The model concerned; '' for tau, V and a weight.
        before: Value now.
        after: Value at which `model` is chosen.
        cheaper: Whether that model then costs less than the present choice costs now.
        until: Where the model's own stretch ends beyond `after`, where that is known.
        dimension: Number of the dimension concerned, of a weight or a capability.
    """

    what: str
    name: str
    before: float
    after: float
    model: str
    cheaper: bool = False
    until: float | None = None
    dimension: int | None = None

    @property
    def change(self) -> float:
        """after - before."""
        return self.after - self.before


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """One query against one pool: requirements (K,), stored weights (K,), bands, tau."""

    need: FloatArray
    pool: Pool
    stored: FloatArray
    bands: Sequence[Band]
    tau: float

    def choice(
        self,
        *,
        stored: FloatArray | None = None,
        capabilities: FloatArray | None = None,
        cost: FloatArray | None = None,
    ) -> tuple[int, float]:
        """The chosen model and what it costs."""
        weights = self.pool.weights if stored is None else compensated_weights(stored, self.bands)
        c = self.pool.capabilities if capabilities is None else capabilities
        s = shortfall(self.need[None, :], c, weights)
        price = self.pool.cost if cost is None else cost
        model = int(choose(s, price, self.tau)[0])
        return model, float(price[model])


def tau_strip(need: FloatArray, pool: Pool) -> tuple[StripPart, ...]:
    """Which model for every tau >= 0, exactly, in ascending tau; `need` is (K,)."""
    s = shortfall(need[None, :], pool.capabilities, pool.weights)
    return _strip(s, pool.cost[None, :], pool.ids)


def value_strip(
    success: FloatArray, cost_usd: FloatArray, ids: Sequence[str]
) -> tuple[StripPart, ...]:
    """Which model for every V, exactly, in ascending V, by (m,) success and (m,) cost in USD."""
    returns = returns_on_upgrading(success[None, :], cost_usd[None, :])
    parts = reversed(_strip(returns, cost_usd[None, :], ids))
    return tuple(
        StripPart(one.model, 1 / one.end, 1 / one.start if one.start > 0 else np.inf)
        for one in parts
    )


def _strip(shortfalls: FloatArray, cost: FloatArray, ids: Sequence[str]) -> tuple[StripPart, ...]:
    """The parts of one query, (1, m) shortfalls and costs, in ascending tau."""
    parts: list[StripPart] = []
    least = np.inf
    for i in preference(shortfalls, cost)[0]:
        if shortfalls[0, i] < least:
            parts.append(StripPart(ids[i], float(shortfalls[0, i]), float(least)))
            least = shortfalls[0, i]
    parts.reverse()
    first = parts[0]
    parts[0] = StripPart(first.model, 0.0, first.end)  # fail open covers everything below
    return tuple(part for part in parts if part.end > part.start)


def nearest_flips(
    need: FloatArray, pool: Pool, stored: FloatArray, bands: Sequence[Band], tau: float
) -> tuple[Flip, ...]:
    """The nearest flips of each kind, one towards cheaper and one towards dearer as they exist.

    The kinds are tau, one weight (within WEIGHT_RANGE), one cell, one price.

    Args:
        need: (K,) requirements.
        pool: Routable models; its weights must follow from `stored` and `bands`.
        stored: (K,) the operator's weights w.
        bands: One per dimension.
    """
    case = _Case(np.asarray(need), pool, np.asarray(stored, dtype=np.float64), bands, tau)
    k, m = len(case.need), len(pool.ids)
    costs = dict(zip(pool.ids, pool.cost.tolist(), strict=True))
    kinds = (
        knob_flips(tau_strip(case.need, pool), pool.ids[case.choice()[0]], costs, tau),
        [flip for j in range(k) for flip in _weight_flips(case, j)],
        [flip for i in range(m) for j in range(k) for flip in _cell_flips(case, i, j)],
    )
    found = [flip for kind in kinds for flip in nearest(kind)]
    prices = [flip for i in range(m) for flip in _price_flips(case, i)]
    return (*found, *nearest(prices, relative=True))


def nearest(flips: Iterable[Flip], relative: bool = False) -> tuple[Flip, ...]:
    """The smallest change towards cheaper and the smallest towards dearer, as they exist.

    With `relative` a change is measured against the value now.
    """
    best: dict[bool, Flip] = {}

    def size(flip: Flip) -> float:
        return abs(flip.change) / (flip.before or 1.0) if relative else abs(flip.change)

    for flip in flips:
        if flip.cheaper not in best or size(flip) < size(best[flip.cheaper]):
            best[flip.cheaper] = flip
    return tuple(best[cheaper] for cheaper in (True, False) if cheaper in best)


def knob_flips(
    parts: Sequence[StripPart],
    model: str,
    cost: Mapping[str, float],
    knob: float,
    rule: Rule = Rule.SHORTFALL,
) -> tuple[Flip, ...]:
    """The next settings below and above at which another model is chosen, as they exist.

    Args:
        parts: Of the whole knob, ascending.
        model: The model chosen now.
        knob: tau or V now.
    """
    here = next(i for i, part in enumerate(parts) if part.model == model)
    by_value = rule is Rule.VALUE
    found = []
    for part in parts[max(here - 1, 0) : here + 2]:
        if part is parts[here]:
            continue
        above = part.start >= parts[here].end
        edge = parts[here].end if above else parts[here].start
        step = BEYOND * max(edge, BEYOND)
        # a stretch of V has its upper end, not its lower one
        least = float(np.nextafter(part.start, np.inf)) if by_value else part.start
        found.append(
            Flip(
                "value" if by_value else "tau", "", knob, edge + step if above else edge - step,
                part.model, bool(cost[part.model] < cost[model]), part.end if above else least,
            )
        )  # fmt: skip
    return tuple(found)


def _cell_flips(case: _Case, i: int, j: int) -> tuple[Flip, ...]:
    """The nearest values of capability (i, j) that flip the choice, other cells as they are."""
    pool = case.pool
    s = shortfall(case.need[None, :], pool.capabilities, pool.weights)[0]
    weight, now = pool.weights[j], pool.capabilities[i, j]
    if weight <= 0:
        return ()
    rest = s[i] - weight * max(case.need[j] - now, 0.0)
    targets = np.array([case.tau, *np.delete(s, i)])
    roots = case.need[j] - (targets - rest) / weight

    inside = [*roots[(roots >= 0) & (roots <= 1)], case.need[j]]
    flip = Flip("capability", pool.ids[i], float(now), float(now), "", dimension=j)
    return _first_flips(
        flip,
        inside,
        lambda value: case.choice(capabilities=_changed(pool.capabilities, (i, j), value)),
        pool.ids,
        lo=0.0,
        hi=1.0,
    )


def _price_flips(case: _Case, i: int) -> tuple[Flip, ...]:
    """The nearest costs of model i (in the pool's unit) that flip the choice."""
    pool = case.pool
    roots, now = np.delete(pool.cost, i).tolist(), float(pool.cost[i])
    return _first_flips(
        Flip("cost", pool.ids[i], now, now, ""),
        roots,
        lambda value: case.choice(cost=_changed(pool.cost, i, value)),
        pool.ids,
        lo=0.0,
    )


def _changed(values: FloatArray, at: int | tuple[int, int], value: float) -> FloatArray:
    changed = values.copy()
    changed[at] = value
    return changed


def _weight_flips(case: _Case, j: int) -> tuple[Flip, ...]:
    """The nearest settable weights of dimension j that flip the choice, all w~ anew (Eq. 4)."""
    widths = np.array([band.width for band in case.bands])
    deficits = np.maximum(case.need[None, :] - case.pool.capabilities, 0.0) / widths
    slope = deficits[:, j]
    fixed = deficits @ case.stored - slope * case.stored[j]
    total = case.stored.sum() - case.stored[j]
    scale = (case.stored / widths).sum() - case.stored[j] / widths[j]
    roots: list[float] = []
    for a, b in zip(fixed, slope, strict=True):
        # (a + b w)(total + w) = tau (scale + w / width)
        roots += _real_roots(b, a + b * total - case.tau / widths[j], a * total - case.tau * scale)
    for i in range(len(fixed)):
        for other in range(i):
            roots += _real_roots(0.0, slope[i] - slope[other], fixed[i] - fixed[other])

    lo, hi = WEIGHT_RANGE
    now = float(case.stored[j])
    return _first_flips(
        Flip("weight", "", now, now, "", dimension=j),
        [root for root in roots if root > 0],
        lambda value: case.choice(stored=_changed(case.stored, j, value)),
        case.pool.ids,
        lo=lo,
        hi=hi,
    )


def _real_roots(a: float, b: float, c: float) -> list[float]:
    """Real x with a x^2 + b x + c = 0."""
    if abs(a) < 1e-15:
        return [] if abs(b) < 1e-15 else [-c / b]
    inner = b * b - 4 * a * c
    if inner < 0:
        return []
    q = -0.5 * (b + np.copysign(np.sqrt(inner), b))
    return [q / a] if q == 0 else [q / a, c / q]


def _first_flips(
    flip: Flip,
    boundaries: Iterable[float],
    chosen: Callable[[float], tuple[int, float]],
    ids: Sequence[str],
    *,
    lo: float,
    hi: float = np.inf,
) -> tuple[Flip, ...]:
    """Try the choice just beyond every boundary, nearest first, until both directions are found."""
    now = flip.before
    before, paid = chosen(now)
    found: dict[bool, Flip] = {}
    for boundary in sorted(boundaries, key=lambda value: abs(value - now)):
        value = _beyond(boundary, now)
        if lo <= value <= hi:
            after, cost = chosen(value)
            cheaper = cost < paid
            if after != before and cheaper not in found:
                found[cheaper] = replace(flip, after=value, model=ids[after], cheaper=cheaper)
        if len(found) == 2:
            break
    return tuple(found.values())


def _beyond(boundary: float, now: float) -> float:
    """Just past a boundary, seen from `now`."""
    step = BEYOND * max(abs(boundary), BEYOND)
    return float(boundary + step if boundary >= now else boundary - step)
