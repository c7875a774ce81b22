"""What would have decided otherwise: the strip over the knob and the nearest flips, exactly.

Every boundary is computed in closed form, and the router's own kernel is tried just beyond it (by a
relative 1e-9): between two boundaries the choice cannot change. A flip in words shows a value that
flips as well.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from hydra_core.base.spelling import short_number, signed, usd
from hydra_core.base.types import Band, Catalog, CostBasis, FloatArray, Pool, Rule
from hydra_core.catalog.profiles import compensated_weights
from hydra_core.routing import matcher
from hydra_core.routing.decision import Decision
from hydra_core.routing.matcher import choose, preference, returns_on_upgrading, shortfall

#: Weights that the console lets an operator set: 274 or 0 is no advice.
WEIGHT_RANGE = (0.05, 10.0)
#: How far beyond a boundary the choice is tried, relative to it.
BEYOND = 1e-9
#: A shown value may go this share of the change beyond the true boundary, to be short.
_OVERSHOOT = 0.02


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

    def choice(self, pool: Pool) -> tuple[int, float]:
        """The chosen model and what it costs, with something of the pool changed."""
        s = shortfall(self.need[None, :], pool.capabilities, pool.weights)
        model = int(choose(s, pool.cost, self.tau)[0])
        return model, float(pool.cost[model])


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
    need: FloatArray,
    pool: Pool,
    stored: FloatArray,
    bands: Sequence[Band],
    tau: float,
    one_price: Collection[str] = (),
) -> tuple[Flip, ...]:
    """The nearest flips of each kind, one towards cheaper and one towards dearer as they exist.

    The kinds are tau, one weight (within WEIGHT_RANGE), one cell, one price.

    Args:
        need: (K,) requirements.
        pool: Routable models; its weights must follow from `stored` and `bands`.
        stored: (K,) the operator's weights w.
        bands: One per dimension.
        one_price: Models whose price is that of others too, so that it never changes alone.
    """
    case = _Case(np.asarray(need), pool, np.asarray(stored, dtype=np.float64), bands, tau)
    k, m = len(case.need), len(pool.ids)
    costs = dict(zip(pool.ids, pool.cost.tolist(), strict=True))
    kinds = (
        knob_flips(tau_strip(case.need, pool), pool.ids[case.choice(pool)[0]], costs, tau),
        [flip for j in range(k) for flip in _weight_flips(case, j)],
        [flip for i in range(m) for j in range(k) for flip in _cell_flips(case, i, j)],
    )
    found = [flip for kind in kinds for flip in nearest(kind)]
    prices = [f for i in range(m) if pool.ids[i] not in one_price for f in _price_flips(case, i)]
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

    def changed(value: float) -> Pool:
        return replace(pool, capabilities=_changed(pool.capabilities, (i, j), value))

    return _first_flips(case, flip, inside, changed, hi=1.0)


def _price_flips(case: _Case, i: int) -> tuple[Flip, ...]:
    """The nearest costs of model i (in the pool's unit) that flip the choice."""
    pool = case.pool
    roots, now = np.delete(pool.cost, i).tolist(), float(pool.cost[i])
    flip = Flip("cost", pool.ids[i], now, now, "")
    return _first_flips(
        case, flip, roots, lambda value: replace(pool, cost=_changed(pool.cost, i, value))
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
    for i, other in combinations(range(len(fixed)), 2):
        roots += _real_roots(0.0, slope[i] - slope[other], fixed[i] - fixed[other])

    def changed(value: float) -> Pool:
        weights = compensated_weights(_changed(case.stored, j, value), case.bands)
        return replace(case.pool, weights=weights)

    now = float(case.stored[j])
    flip = Flip("weight", "", now, now, "", dimension=j)
    return _first_flips(case, flip, [root for root in roots if root > 0], changed, *WEIGHT_RANGE)


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
    case: _Case,
    flip: Flip,
    boundaries: Iterable[float],
    changed: Callable[[float], Pool],
    lo: float = 0.0,
    hi: float = np.inf,
) -> tuple[Flip, ...]:
    """Try the choice just beyond every boundary, nearest first, until both directions are found."""
    now = flip.before
    before, paid = case.choice(case.pool)
    found: dict[bool, Flip] = {}
    for boundary in sorted(boundaries, key=lambda value: abs(value - now)):
        step = BEYOND * max(abs(boundary), BEYOND)
        value = float(boundary + step if boundary >= now else boundary - step)
        if lo <= value <= hi:
            after, cost = case.choice(changed(value))
            cheaper = cost < paid
            if after != before and cheaper not in found:
                found[cheaper] = replace(
                    flip, after=value, model=case.pool.ids[after], cheaper=cheaper
                )
        if len(found) == 2:
            break
    return tuple(found.values())


def value_flips(
    success: FloatArray,
    cost_usd: FloatArray,
    ids: Sequence[str],
    value_usd: float,
    price_usd: FloatArray,
    one_price: Collection[str] = (),
) -> tuple[Flip, ...]:
    """The nearest changes of V, of one model's price, and of one model's predicted success.

    Of each, the nearest towards a cheaper and the nearest towards a dearer model, as they exist. A
    price is a factor on `price_usd`, 1 now: the part of `cost_usd` that is not time; those of
    `one_price` never change alone.
    """
    cost = cost_usd[None]
    behind = matcher.value_shortfall(success[None], cost, value_usd)
    chosen = int(matcher.choose(behind, cost, 0.0)[0])
    costs = dict(zip(ids, cost_usd.tolist(), strict=True))
    parts = value_strip(success, cost_usd, ids)
    found = nearest(knob_flips(parts, ids[chosen], costs, value_usd, Rule.VALUE))
    others = [i for i in range(len(ids)) if i != chosen]
    if not others:
        return found
    second = min(others, key=lambda i: behind[0, i])
    gaps = [(i, float(behind[0, i])) for i in others]
    gaps.append((chosen, 0.0 - float(behind[0, second])))
    prices, odds = [], []
    for i, gap in gaps:
        then = second if i == chosen else i
        factor = 1.0 - gap * value_usd / float(price_usd[i]) if price_usd[i] > 0 else 0.0
        factor += np.copysign(BEYOND, factor - 1.0)
        if factor > 0 and ids[i] not in one_price:
            paid = cost_usd[then] + (price_usd[i] * (factor - 1.0) if then == i else 0.0)
            cheaper = bool(paid < cost_usd[chosen])
            prices.append(Flip("price", ids[i], 1.0, float(factor), ids[then], cheaper))
        after = float(success[i]) + gap + np.copysign(BEYOND, gap)
        if 0.0 <= after <= 1.0:
            cheaper = bool(cost_usd[then] < cost_usd[chosen])
            odds.append(
                Flip("success", ids[i], float(success[i]), float(after), ids[then], cheaper)
            )
    return (*found, *nearest(prices), *nearest(odds))


@dataclass(frozen=True, slots=True)
class FlipText:
    """One flip for people: what changes, from where to where, and the model chosen then.

    `cheaper` says whether that model costs less than the present choice; `sentence` says the whole
    where the words of subject and model would repeat each other.
    """

    subject: str
    before: str
    after: str
    model: str
    cheaper: bool = False
    sentence: str = ""

    def __str__(self) -> str:
        if self.sentence:
            return self.sentence
        return f"{self.subject}: {self.before} -> {self.after} chooses {self.model}"


def contenders(decision: Decision) -> Pool:
    """The models that could be chosen: past the gates and healthy (the healthiest if none is)."""
    pool = decision.pool
    past_gates = np.asarray([name not in decision.gates for name in pool.ids])
    alive, _ = matcher.contenders(past_gates, decision.health, decision.health_floor)
    ids = tuple(pool.ids[i] for i in alive)
    return replace(pool, ids=ids, capabilities=pool.capabilities[alive], cost=pool.cost[alive])


def strip(decision: Decision) -> tuple[StripPart, ...]:
    """Which model for every tau (V under the value rule), ascending.

    Empty when the session kept the model unscored.
    """
    if not decision.scored:
        return ()
    if decision.valuation is not None:
        return value_strip(*_valued(decision))
    return tau_strip(decision.requirements, contenders(decision))


def flips(decision: Decision, catalog: Catalog) -> tuple[FlipText, ...]:
    """The nearest flips of each kind in words, those towards cheaper first, as far as settable.

    Empty when nothing was scored. The decision was made with the weights of `catalog`.
    """
    if not decision.scored:
        return ()
    levels = _levels(catalog)
    if decision.valuation is not None:
        success, cost_usd, ids = _valued(decision)
        price_usd = decision.valuation.cost_usd[[decision.pool.ids.index(name) for name in ids]]
        found = value_flips(success, cost_usd, ids, decision.valuation.value_usd, price_usd, levels)
        texts = [_value_text(flip) for flip in found]
    else:
        found = nearest_flips(
            decision.requirements,
            contenders(decision),
            np.asarray(catalog.policy.weights, dtype=np.float64),
            catalog.bands,
            decision.tau,
            levels,
        )
        texts = [flip_text(flip, decision.dimensions, catalog.policy.cost_basis) for flip in found]
    return tuple(sorted(texts, key=lambda text: not text.cheaper))


def _levels(catalog: Catalog) -> frozenset[str]:
    """Models of the pool whose price is that of an effort level of theirs too, and these."""
    priced = {spec.id: (spec.base, spec.price) for spec in catalog.models if spec.status.in_pool}
    families = Counter(priced.values())
    return frozenset(name for name, one in priced.items() if families[one] > 1)


def _valued(decision: Decision) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
    assert decision.valuation is not None
    ids = contenders(decision).ids
    rows = [decision.pool.ids.index(name) for name in ids]
    return decision.valuation.success[rows], decision.valuation.weighed_usd[rows], ids


def _value_text(flip: Flip) -> FlipText:
    """A flip of the value rule in words; the value shown flips as well."""
    sentence = ""
    if flip.what == "value":
        subject = "Worth of one more resolved query"
        shown, digits = _away(flip, max(2 - math.floor(math.log10(flip.after)), 2))
        before, after = _amount(flip.before), f"${shown:.{digits}f}"
    elif flip.what == "price":
        subject, before = f"Price of {flip.name}", "as it is"
        shown, digits = _away(replace(flip, before=0.0, after=100 * flip.change), 1)
        after = f"{signed(shown, digits)} %"
        sentence = _chosen(flip, f"{abs(shown):.{digits}f} % {_less(flip)}")
    else:
        subject, share = f"Predicted success of {flip.name}", 100 * flip.before
        shown, digits = _away(replace(flip, before=share, after=100 * flip.after), 1)
        before, after = f"{share:.{digits}f} %", f"{shown:.{digits}f} %"
    return FlipText(subject, before, after, flip.model, flip.cheaper, sentence)


def flip_text(flip: Flip, dimensions: Sequence[str], basis: CostBasis) -> FlipText:
    """A flip in words; the value shown flips as well, and is as short as it can be."""
    exact = flip.what == "tau"  # tau now in as many digits as an operator sets
    shown, digits = _away(flip, 3 if exact or abs(flip.change) < 0.1 else 2)
    before = short_number(flip.before, 6) if exact else _number(flip.before, digits)
    after = f"{shown:.{digits}f}"
    subject, sentence = "τ", ""
    dimension = "" if flip.dimension is None else dimensions[flip.dimension].replace("_", " ")
    if flip.what == "weight":
        subject = f"Weight of {dimension}"
    elif flip.what == "capability":
        subject = f"{dimension.capitalize()} capability of {flip.name}"
    elif flip.what == "cost":
        listed = basis is CostBasis.LIST_PRICE
        subject = f"Blended price of {flip.name}" if listed else f"Realised cost of {flip.name}"
        before, after = _amount(flip.before), f"${after} per {'Mtok' if listed else 'query'}"
        sentence = _chosen(flip, f"{after} or {_less(flip)} (now {before})")
    return FlipText(subject, before, after, flip.model, flip.cheaper, sentence)


def _less(flip: Flip) -> str:
    return "less" if flip.change < 0 else "more"


def _chosen(flip: Flip, cost: str) -> str:
    who = "it" if flip.model == flip.name else flip.model
    return f"If {flip.name} cost {cost}, {who} would be chosen"


def _away(flip: Flip, least: int) -> tuple[float, int]:
    """`after`, rounded away from `before` so that what is shown flips too, and its decimals."""
    nearer = math.ceil if flip.after > flip.before else math.floor
    for digits in range(least, 10):
        rounded = nearer(flip.after * 10.0**digits) / 10.0**digits
        if _still_flips(flip, rounded):
            return rounded, digits
    return flip.after, 9


def _still_flips(flip: Flip, shown: float) -> bool:
    """Whether a value at or beyond `after` is sure to choose the flip's model."""
    if flip.until is not None:
        return shown < flip.until if flip.after > flip.before else shown >= flip.until
    return abs(shown - flip.after) <= _OVERSHOOT * min(abs(flip.change), abs(flip.after))


def _amount(value: float) -> str:
    """Dollars: with two decimals where they are exact, else with three significant digits."""
    short = f"{value:.2f}"
    return f"${short}" if float(short) == value else usd(value)


def _number(value: float, digits: int) -> str:
    """With two digits where they are exact, else with as many as the other value, but three."""
    short = f"{value:.2f}"
    return short if float(short) == value else f"{value:.{max(digits, 3)}f}"
