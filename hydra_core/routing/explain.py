"""A decision in words: which model for every tau, and the nearest change that decides otherwise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hydra_core.base.spelling import signed
from hydra_core.base.types import Catalog, CostBasis, FloatArray, Pool, Rule
from hydra_core.routing import matcher
from hydra_core.routing.decision import Cause, Decision
from hydra_core.routing.flips import (
    BEYOND,
    Flip,
    StripPart,
    knob_flips,
    nearest,
    nearest_flips,
    tau_strip,
    value_strip,
)


def value_flips(
    success: FloatArray, cost_usd: FloatArray, ids: Sequence[str], value_usd: float
) -> tuple[Flip, ...]:
    """The nearest changes of V, of one model's price, and of one model's predicted success.

    Of each, the nearest towards a cheaper and the nearest towards a dearer model, as they exist. A
    price is a factor on the model's predicted cost, 1 now.
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


#: A cause in a few plain words.
CAUSES = {
    Cause.CHEAPEST_ELIGIBLE: "Cheapest model within τ",
    Cause.HIGHEST_VALUE: "Worth most: predicted success against cost",
    Cause.FAIL_OPEN: "No model is within τ: the closest one is used",
    Cause.GATEWAY_FALLBACK: "Fallback: the models that would do are not healthy",
    Cause.KEPT_BY_SESSION: "Kept by the conversation",
    Cause.KEPT_BELOW_THRESHOLD: "Kept: the message asks for little",
    Cause.KEPT_WITHIN_MARGIN: "Kept: not enough to gain by leaving its prompt cache",
}
#: A shown value may go this share of the change beyond the true boundary, to be short.
_OVERSHOOT = 0.02


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
    return Pool(
        ids=tuple(pool.ids[i] for i in alive),
        capabilities=pool.capabilities[alive],
        cost=pool.cost[alive],
        weights=pool.weights,
        level=pool.level,
    )


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
    if decision.valuation is not None:
        found = value_flips(*_valued(decision), decision.valuation.value_usd)
        texts = [_value_text(flip) for flip in found]
    else:
        found = nearest_flips(
            decision.requirements,
            contenders(decision),
            np.asarray(catalog.policy.weights, dtype=np.float64),
            catalog.bands,
            decision.tau,
        )
        basis = catalog.policy.cost_basis
        texts = [flip_text(flip, decision.dimensions, basis) for flip in found]
    return tuple(sorted(texts, key=lambda text: not text.cheaper))


def _valued(decision: Decision) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
    """Predicted success and cost of the models that could be chosen, and their ids."""
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
        before, after = f"${_number(flip.before, digits)}", f"${shown:.{digits}f}"
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
    before, after = _shown(flip)
    subject, sentence = "τ", ""
    dimension = "" if flip.dimension is None else dimensions[flip.dimension].replace("_", " ")
    if flip.what == "weight":
        subject = f"Weight of {dimension}"
    elif flip.what == "capability":
        subject = f"{dimension.capitalize()} capability of {flip.name}"
    elif flip.what == "cost":
        listed = basis is CostBasis.LIST_PRICE
        subject = f"Blended price of {flip.name}" if listed else f"Realised cost of {flip.name}"
        before, after = f"${before}", f"${after} per {'Mtok' if listed else 'query'}"
        sentence = _chosen(flip, f"{after} or {_less(flip)} (now {before})")
    return FlipText(subject, before, after, flip.model, flip.cheaper, sentence)


def _less(flip: Flip) -> str:
    return "less" if flip.change < 0 else "more"


def _chosen(flip: Flip, cost: str) -> str:
    who = "it" if flip.model == flip.name else flip.model
    return f"If {flip.name} cost {cost}, {who} would be chosen"


def _shown(flip: Flip) -> tuple[str, str]:
    """Both values in as few digits as do; tau now in as many as an operator sets."""
    exact = flip.what == "tau"
    shown, digits = _away(flip, 3 if exact or abs(flip.change) < 0.1 else 2)
    return _number(flip.before, max(digits, 5) if exact else digits), f"{shown:.{digits}f}"


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


def _number(value: float, digits: int) -> str:
    """With two digits where they are exact, else with as many as the other value, but three."""
    short = f"{value:.2f}"
    return short if float(short) == value else f"{value:.{max(digits, 3)}f}"
