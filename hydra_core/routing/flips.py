"""What would have decided otherwise: the tau strip and the nearest flips, exactly.

Between two boundaries the choice cannot change, so every boundary is computed in closed form and
the choice is tried just beyond it with the router's own kernel; the nearest that flips is the
answer. "Just beyond" is a relative 1e-9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hydra_core.catalog.profiles import compensated_weights
from hydra_core.routing.matcher import choose, preference, shortfall
from hydra_core.types import Band, FloatArray, Pool

__all__ = ["Flip", "StripPart", "cell_flip", "nearest_flips", "price_flip", "tau_flip", "tau_strip"]

_BEYOND = 1e-9


@dataclass(frozen=True, slots=True)
class StripPart:
    """One model's stretch of tau: it is chosen for tau in [start, end)."""

    model: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Flip:
    """The smallest change of one number that changes the choice.

    Attributes:
        what: tau, weight, capability or cost.
        name: The dimension, model, or model and dimension concerned; '' for tau.
        before: Value now.
        after: Value at which the choice has changed.
        model: The model chosen then.
    """

    what: str
    name: str
    before: float
    after: float
    model: str

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
        tau: float | None = None,
    ) -> int:
        weights = self.pool.weights if stored is None else compensated_weights(stored, self.bands)
        c = self.pool.capabilities if capabilities is None else capabilities
        s = shortfall(self.need[None, :], c, weights)
        price = self.pool.cost if cost is None else cost
        return int(choose(s, price, self.tau if tau is None else tau)[0])


def tau_strip(need: FloatArray, pool: Pool) -> tuple[StripPart, ...]:
    """Which model for every tau >= 0, exactly, in ascending tau.

    Args:
        need: (K,) requirements.
        pool: Routable models.
    """
    s = shortfall(need[None, :], pool.capabilities, pool.weights)
    order = np.broadcast_to(preference(s, pool.cost), s.shape)[0]
    parts: list[StripPart] = []
    least = np.inf
    for i in order:
        if s[0, i] < least:
            parts.append(StripPart(pool.ids[i], float(s[0, i]), float(least)))
            least = s[0, i]
    parts.reverse()
    first = parts[0]
    parts[0] = StripPart(first.model, 0.0, first.end)  # fail open covers everything below
    return tuple(part for part in parts if part.end > part.start)


def nearest_flips(
    need: FloatArray, pool: Pool, stored: FloatArray, bands: Sequence[Band], tau: float
) -> tuple[Flip, ...]:
    """The nearest flip of each kind that exists: tau, one weight, one cell, one price.

    Args:
        need: (K,) requirements.
        pool: Routable models; its weights must follow from `stored` and `bands`.
        stored: (K,) the operator's weights w.
        bands: One per dimension.
        tau: Threshold now.
    """
    case = _Case(np.asarray(need), pool, np.asarray(stored, dtype=np.float64), bands, tau)
    k, m = len(case.need), len(pool.ids)
    found = [
        tau_flip(case.need, pool, tau),
        _smallest((_weight_flip(case, j) for j in range(k)), relative=False),
        _smallest(cell_flip(case.need, pool, tau, i, j) for i in range(m) for j in range(k)),
        _smallest((price_flip(case.need, pool, tau, i) for i in range(m)), relative=True),
    ]
    return tuple(flip for flip in found if flip is not None)


def tau_flip(need: FloatArray, pool: Pool, tau: float) -> Flip | None:
    """The nearest tau at which another model is chosen; None where one model has them all."""
    parts = tau_strip(need, pool)
    here = next(i for i, part in enumerate(parts) if part.start <= tau < part.end)
    options = []
    if here + 1 < len(parts):
        above = _beyond(parts[here].end, tau)
        options.append(Flip("tau", "", tau, above, parts[here + 1].model))
    if here > 0:
        start = parts[here].start
        below = start - _BEYOND * max(start, _BEYOND)
        options.append(Flip("tau", "", tau, below, parts[here - 1].model))
    return _smallest(options)


def cell_flip(need: FloatArray, pool: Pool, tau: float, i: int, j: int) -> Flip | None:
    """The nearest value of capability (i, j) that flips the choice, other cells as they are."""
    case = _Case(np.asarray(need), pool, np.ones(len(need)), (), tau)
    s = shortfall(case.need[None, :], pool.capabilities, pool.weights)[0]
    weight, now = pool.weights[j], pool.capabilities[i, j]
    if weight <= 0:
        return None
    rest = s[i] - weight * max(case.need[j] - now, 0.0)
    targets = np.array([tau, *np.delete(s, i)])
    roots = case.need[j] - (targets - rest) / weight

    def chosen(value: float) -> int:
        changed = pool.capabilities.copy()
        changed[i, j] = value
        return case.choice(capabilities=changed)

    inside = [*roots[(roots >= 0) & (roots <= 1)], case.need[j]]
    return _first_flip(
        "capability", f"{pool.ids[i]}\t{j}", now, inside, chosen, pool.ids, lo=0.0, hi=1.0
    )


def price_flip(need: FloatArray, pool: Pool, tau: float, i: int) -> Flip | None:
    """The nearest cost of model i (in the pool's unit) that flips the choice."""
    case = _Case(np.asarray(need), pool, np.ones(len(need)), (), tau)

    def chosen(value: float) -> int:
        changed = pool.cost.copy()
        changed[i] = value
        return case.choice(cost=changed)

    roots = np.delete(pool.cost, i).tolist()
    return _first_flip("cost", pool.ids[i], float(pool.cost[i]), roots, chosen, pool.ids, lo=0.0)


def _weight_flip(case: _Case, j: int) -> Flip | None:
    """The nearest stored weight of dimension j that flips, all w~ recomputed (Eq. 4)."""
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

    def chosen(value: float) -> int:
        changed = case.stored.copy()
        changed[j] = value
        return case.choice(stored=changed)

    positive = [root for root in roots if root > 0]
    return _first_flip(
        "weight", str(j), float(case.stored[j]), positive, chosen, case.pool.ids, lo=0.0
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


def _first_flip(
    what: str,
    name: str,
    now: float,
    boundaries: Iterable[float],
    chosen: Callable[[float], int],
    ids: Sequence[str],
    *,
    lo: float,
    hi: float = np.inf,
) -> Flip | None:
    """Try the choice just beyond every boundary, nearest first."""
    before = chosen(now)
    for boundary in sorted(boundaries, key=lambda value: abs(value - now)):
        value = _beyond(boundary, now)
        if lo <= value <= hi:
            after = chosen(value)
            if after != before:
                return Flip(what, name, float(now), value, ids[after])
    return None


def _beyond(boundary: float, now: float) -> float:
    """Just past a boundary, seen from `now`."""
    step = _BEYOND * max(abs(boundary), _BEYOND)
    return float(boundary + step if boundary >= now else boundary - step)


def _smallest(flips: Iterable[Flip | None], relative: bool = False) -> Flip | None:
    present = [flip for flip in flips if flip is not None]
    if not present:
        return None

    def size(flip: Flip) -> float:
        return abs(flip.change) / (flip.before or 1.0) if relative else abs(flip.change)

    return min(present, key=size)
