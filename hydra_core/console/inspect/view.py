"""One message under one policy, with everything the Inspect page shows of it. No streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from hydra_core.base.reading.plain_yaml import load_plain
from hydra_core.base.shipped import SAMPLE_DATA
from hydra_core.base.spelling import signed, titled, usd
from hydra_core.base.tokens import IMAGE_TOKENS, text_tokens
from hydra_core.base.types import Catalog, CostBasis, ModelSpec, Rule
from hydra_core.console.figures.strip import TAU, Part, Scale, Strip, strip_end
from hydra_core.console.inspect.figures import RequirementsView
from hydra_core.predictor.languages import LANGUAGES
from hydra_core.predictor.signals import Signals, signals
from hydra_core.predictor.tokens import Gap, TokenCounter
from hydra_core.routing import flips
from hydra_core.routing.decision import Candidate, Decision, Fate
from hydra_core.routing.flips import FlipText
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router, Scorer
from hydra_core.routing.valuation import Valuation


@dataclass(frozen=True, slots=True)
class Example:
    """A message to try; `level` is easy, medium or hard, as its author meant it."""

    id: str
    language: str
    level: str
    text: str

    @property
    def label(self) -> str:
        """Language, level and the beginning of the text on one line."""
        start = " ".join(self.text.split())
        short = start if len(start) <= 60 else f"{start[:57].rstrip()}…"
        return f"{LANGUAGES[self.language].name} · {self.level} · {short}"


@lru_cache(maxsize=1)
def examples() -> tuple[Example, ...]:
    """The shipped messages, in the order of the file."""
    rows: Any = load_plain((SAMPLE_DATA / "examples.yaml").read_text(encoding="utf-8"))
    return tuple(Example(**row) for row in rows)


#: What Robustness calls the claims of difficulty.
_FAMILIES = {
    "keywords": "Keywords of difficulty",
    "concerns": "Concerns",
    "role": "A claimed role",
    "jargon": "Jargon",
    "assertion": "A bare assertion",
    "authority": "An authority's word",
    "stakes": "High stakes",
    "effort": "A plea for effort",
}


def family_name(family: str) -> str:
    """A family of suffixes in words."""
    return _FAMILIES.get(family, titled(family))


#: The column of what the message costs on each model.
COST = "This message"
#: A candidate's fate in one or two words.
FATES = {
    Fate.CHOSEN: "Chosen",
    Fate.DEARER: "Comes later",
    Fate.SHORT: "Falls short",
    Fate.GATED: "Ruled out",
    Fate.UNHEALTHY: "Unhealthy",
    Fate.WORTH_LESS: "Worth less",
}


@dataclass(frozen=True, slots=True, eq=False)
class Inspection:
    """A decision and its explanation.

    Attributes:
        catalog: With the tau and weights used.
        flips: The nearest changes that decide otherwise.
        signals: None when a link brought the requirements without the text.
        gap: What of the message it did not see, None if nothing.
        plain: The model chosen without the image and the earlier context, '' where there is none.
        costs: Of the message on each model; None when a link brought no text.
        left_out: Tokens of the text that a link came without.
    """

    decision: Decision
    catalog: Catalog
    flips: tuple[FlipText, ...]
    signals: Signals | None = None
    gap: Gap | None = None
    plain: str = ""
    costs: MessageCosts | None = None
    left_out: int = 0

    def cost_text(self, model: str) -> str:
        """What the message costs on a model; '' where that is not known."""
        return "" if self.costs is None else usd(self.costs.usd[model])

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every model, cheapest first."""
        return self.decision.candidates()

    @property
    def chosen(self) -> Candidate:
        """The chosen model's row."""
        return next(row for row in self.candidates if row.model == self.decision.model)


def inspect(catalog: Catalog, predictor: Scorer, counter: TokenCounter, query: Query) -> (
    Inspection
):  # fmt: skip
    """Route one message and explain it; raises as `Router.route`."""
    decision = Router(catalog, predictor).route(query)
    reading = decision.reading
    return Inspection(
        decision=decision,
        catalog=catalog,
        flips=flips.flips(decision, catalog),
        signals=signals(query.text, query.turn),
        gap=counter.gap(query.text, query.turn) if reading and reading.truncated else None,
        plain=_without_burden(catalog, predictor, query),
    )


def _without_burden(catalog: Catalog, predictor: Scorer, query: Query) -> str:
    """Where the same message would go alone; '' where it is alone."""
    if not query.has_image and not query.context_tokens:
        return ""
    alone = replace(query, has_image=False, context_tokens=0)
    return Router(catalog, predictor).route(alone).model


def further_tokens(one: Inspection) -> int:
    """Tokens of an image, harness text and earlier context, which are read beside the message."""
    query = one.decision.query
    if query is None:
        return 0
    image = IMAGE_TOKENS if query.has_image else 0
    return image + query.harness_tokens + _earlier_tokens(query) - one.left_out


def _earlier_tokens(query: Query) -> int:
    """Tokens of what came before the message, which the request holds beside it."""
    return max(0, query.context_tokens - round(query.own_tokens))


def burden(one: Inspection) -> str:
    """What an image and earlier context add to what is read, and whether they move the route."""
    query = one.decision.query
    if not one.plain or query is None:
        return ""
    image = IMAGE_TOKENS if query.has_image else 0
    added, spec = further_tokens(one), one.catalog.model(one.decision.model)
    cost = spec.price.usd_of_one(added, 0.0, size=added + text_tokens(query.text))
    parts = [f"{image:,} for the image (estimated)"] if image else []
    earlier = _earlier_tokens(query)
    parts += [f"{earlier:,} of earlier context"] if earlier else []
    parts += [f"{query.harness_tokens:,} of harness text"] if query.harness_tokens else []
    reads = f"Reads {added:,} more tokens, {' and '.join(parts)}: {usd(cost)} on {spec.id}."
    if one.plain == spec.id:
        return f"{reads} The message alone would go there too."
    return f"{reads} The message alone would go to {one.plain}."


def reopen(
    catalog: Catalog,
    requirements: tuple[float, ...],
    query: Query,
    predicted: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Inspection:
    """The decision for requirements that a link carried; raises as `Router.decide`.

    Without `predicted`, the success and the cost in USD of each model, the shortfall rule decides.
    """
    if predicted is None:
        catalog = replace(catalog, policy=replace(catalog.policy, rule=Rule.SHORTFALL))
    decision = Router(catalog).decide(
        np.asarray(requirements), replace(query, text=""), predicted=predicted
    )
    return Inspection(decision, catalog, flips.flips(decision, catalog))


def cost_order(decision: Decision) -> tuple[str, ...]:
    """Model ids, cheapest first."""
    order = np.argsort(decision.pool.cost, kind="stable")
    return tuple(decision.pool.ids[i] for i in order)


def requirements_view(shown: dict[str, Inspection]) -> RequirementsView:
    """Requirements of one or two inspections (label -> inspection) on the catalog's bands."""
    first = next(iter(shown.values()))
    decision = first.decision
    order = np.argsort(decision.pool.cost, kind="stable")
    return RequirementsView(
        dimensions=decision.dimensions,
        bands=first.catalog.bands,
        needs={name: one.decision.requirements for name, one in shown.items()},
        models=cost_order(decision),
        capabilities=decision.pool.capabilities[order],
        chosen=decision.model,
    )


def strips(shown: dict[str, Inspection]) -> tuple[Strip, ...]:
    """The strip of each inspection, over tau or V; one alone has no label."""
    single = len(shown) == 1
    return tuple(
        Strip(
            "" if single else name,
            tuple(Part(p.model, p.start, p.end) for p in flips.strip(one.decision)),
        )
        for name, one in shown.items()
    )


def strip_scale(one: Inspection) -> Scale:
    """How the knob of the rule that decided is drawn."""
    valued = one.decision.valuation
    if valued is None:
        return TAU
    ends = [part.end for part in flips.strip(one.decision) if np.isfinite(part.end)]
    least = min(min(ends, default=valued.value_usd) / 10, valued.value_usd)
    return Scale("V", "V, what one more resolved query is worth, USD", least)


def value_table(one: Inspection) -> pd.DataFrame:
    """One row per model, cheapest first: predicted success with its interval, cost, and why."""
    valued, rows = one.decision.valuation, one.candidates
    assert valued is not None
    at = [one.decision.pool.ids.index(row.model) for row in rows]
    frame = pd.DataFrame(
        {
            "Model": [row.model for row in rows],
            "": [FATES[row.fate] for row in rows],
            "Predicted success": [success_text(valued, i) for i in at],
            COST: [one.cost_text(row.model) for row in rows],
            "Worth": [f"{signed(100 * valued.net[i]).lstrip('+')} pp" for i in at],
            "Why": [row.reason for row in rows],
        }
    )
    _add_bases(frame, one)
    return frame


def _add_bases(frame: pd.DataFrame, one: Inspection) -> None:
    """Name the model that each effort level belongs to, where there are levels."""
    variants = one.decision.pool.variants
    if variants:
        frame.insert(1, "Effort level of", [variants.get(name, "") for name in frame["Model"]])


def success_text(valued: Valuation, i: int) -> str:
    """The predicted success of one model of the pool, with its 95 % interval where it has one."""
    ends = valued.range_of(i)
    share = f"{100 * valued.success[i]:.0f} %"
    if ends is None:
        placed = valued.valuer.ids[i] in valued.valuer.predictions.placed
        return f"{share}, from its profile only" if placed else share
    return f"{share} [{100 * ends[0]:.0f}, {100 * ends[1]:.0f}]"


def neighbour_table(one: Inspection, texts: Mapping[str, str]) -> pd.DataFrame:
    """The learned queries most like this message: text (by id, where known), likeness, outcomes."""
    valued = one.decision.valuation
    assert valued is not None
    found = valued.neighbours()
    frame = pd.DataFrame(
        {
            "query": [near.query_id for near in found],
            "text": [texts.get(near.query_id, "") for near in found],
            "likeness": [near.likeness for near in found],
        }
    )
    for model in cost_order(one.decision):
        frame[model] = [100 * near.outcomes.get(model, np.nan) for near in found]
    return frame


def order_name(one: Inspection) -> str:
    """What the column of costs that order the models is called."""
    return f"Order, {one.decision.cost_basis.unit}"


def candidate_table(one: Inspection) -> pd.DataFrame:
    """One row per model, cheapest first: fate, price, deficit per dimension, shortfall, why."""
    rows = one.candidates
    frame = pd.DataFrame(
        {
            "Model": [row.model for row in rows],
            "": [FATES[row.fate] for row in rows],
            order_name(one): [row.cost for row in rows],
        }
    )
    if one.costs is not None:
        frame.insert(2, COST, [one.costs.usd[row.model] for row in rows])
    _add_bases(frame, one)
    for k, dimension in enumerate(one.decision.dimensions):
        frame[titled(dimension)] = [row.deficits[k] for row in rows]
    frame["Shortfall"] = [row.shortfall for row in rows]
    frame["Why"] = [row.reason for row in rows]
    return frame


def compare_table(shown: dict[str, Inspection]) -> pd.DataFrame:
    """One row per model: shortfall and fate for each message."""
    first = next(iter(shown.values()))
    frame = pd.DataFrame(
        {
            "Model": [row.model for row in first.candidates],
            order_name(first): [row.cost for row in first.candidates],
        }
    )
    for name, one in shown.items():
        by_model = {row.model: row for row in one.candidates}
        rows = [by_model[model] for model in frame["Model"]]
        frame[f"Shortfall {name}"] = [row.shortfall for row in rows]
        if one.costs is not None:
            frame[f"Cost {name}"] = [one.costs.usd[model] for model in frame["Model"]]
        frame[f"Fate {name}"] = [FATES[row.fate] for row in rows]
    return frame


#: Three pixels each on the page.
_STEPS = 240


def knob_of(one: Inspection) -> tuple[Rule, float]:
    """The rule that decided, and where its knob stands."""
    if one.decision.valuation is None:
        return Rule.SHORTFALL, one.decision.tau
    return Rule.VALUE, one.decision.valuation.value_usd


def settable(knob: float, rule: Rule) -> float:
    """A setting off the axis as short as it should be read: tau to 1e-4, V in three digits."""
    return round(knob, 4) if rule is Rule.SHORTFALL else float(f"{knob:.3g}")


def message_steps(
    strips: tuple[Strip, ...], scale: Scale, models: tuple[str, ...], rule: Rule, knob: float
) -> pd.DataFrame:
    """The model chosen for each message at steps that lie evenly along the strip's axis.

    Returns:
        A row a step: `knob`, `place` on the axis, and `model_0`, ... the number in `models` of
        what each message is given.
    """
    end = strip_end(strips, scale, knob)
    settings = [settable(float(v), rule) for v in scale.back(np.linspace(0.0, end, _STEPS))]
    knobs = np.unique([*settings, knob])  # what is said at rest is exact
    columns: dict[str, object] = {"knob": knobs, "place": [scale.place(v) for v in knobs]}
    for i, strip in enumerate(strips):
        starts = [part.start for part in strip.parts]
        # tau: a model is chosen from its start on; V: above it
        if rule is Rule.SHORTFALL:
            parts = np.searchsorted(starts, knobs, side="right") - 1
        else:
            parts = (np.searchsorted(starts, knobs, side="left") - 1).clip(min=0)
        numbers = np.array([models.index(part.model) for part in strip.parts])
        columns[f"model_{i}"] = numbers[parts].astype(np.int32)
    return pd.DataFrame(columns)


def facts(shown: Mapping[str, Inspection], models: tuple[str, ...]) -> list[list[str]]:
    """What decides about each of `models`, by message, in a few words; no knob changes it."""
    return [[_fact(one, model) for model in models] for one in shown.values()]


def _fact(one: Inspection, model: str) -> str:
    valued, i = one.decision.valuation, one.decision.pool.ids.index(model)
    if valued is not None:
        return f"predicted success {success_text(valued, i)} for {one.cost_text(model)}"
    row = next(row for row in one.candidates if row.model == model)
    per = "Mtok, blended" if one.decision.cost_basis is CostBasis.LIST_PRICE else "query"
    cost = one.cost_text(model) or f"{usd(row.cost)} per {per}"
    return f"shortfall {row.shortfall:.3f}, {cost}"


@dataclass(frozen=True, slots=True)
class Answers:
    """Tokens of a mean answer by model, of one eval set; empty where no set here has tokens."""

    tokens: Mapping[str, float]
    evalset: str = ""

    def of(self, model: str) -> float:
        """A model's mean, else the mean of the other models, else 0."""
        others = list(self.tokens.values())
        return self.tokens.get(model, float(np.mean(others)) if others else 0.0)

    @property
    def basis(self) -> str:
        """Where the tokens come from, to end a sentence with."""
        if not self.tokens:
            return "without the answer: no eval set here has the tokens of answers"
        return f"with each model's mean answer in {self.evalset}"


@dataclass(frozen=True, slots=True)
class MessageCosts:
    """One message on every model in USD, and where its tokens come from, in one sentence."""

    usd: Mapping[str, float]
    basis: str


def predicted_costs(
    catalog: Catalog, valuation: Valuation, further: int, size: float
) -> MessageCosts:
    """As the catalog predicts for the value rule, plus `further` tokens that it does not count.

    Args:
        size: Input tokens of the whole request, by which a price is chosen.
    """
    valuer = valuation.valuer
    usd = {
        name: cost + catalog.model(name).price.usd_of_one(further, 0.0, size=size)
        for name, cost in zip(valuer.ids, valuation.cost_usd.tolist(), strict=True)
    }
    basis = (
        f"Cost of this message: tokens predicted by the {valuer.source.words}, at the catalog's "
        "prices."
        if valuer.predictions.priced
        else f"Cost of this message: predicted by the {valuer.source.words} from the costs of "
        f"{valuer.evalset}."
    )
    return MessageCosts(usd, basis + (f" Plus {further:,} further tokens read." * (further > 0)))


def counted_costs(catalog: Catalog, tokens: int, further: int, answers: Answers) -> MessageCosts:
    """The message's own tokens, and a mean answer, at the catalog's prices."""

    def cost(model: ModelSpec) -> float:
        return model.price.usd_of_one(tokens + further, round(answers.of(model.id)))

    basis = (
        f"Cost of this message: {tokens + further:,} tokens read, counted with the predictor's "
        f"tokenizer, {answers.basis}."
    )
    return MessageCosts({model.id: cost(model) for model in catalog.models}, basis)
