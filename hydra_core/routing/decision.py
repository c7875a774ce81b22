"""What comes out of a decision, spelt out: candidates with their reasons, the receipt.

The receipt is plain JSON and holds everything that decided; `redecide` recomputes
the model from it alone.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hydra_core.base.spelling import set_usd, usd
from hydra_core.base.types import CostBasis, FloatArray, Pool, Rule
from hydra_core.predictor.signals import signals
from hydra_core.routing.gates import ONLY_CHEAPEST
from hydra_core.routing.matcher import choose, contenders, shortfall, value_shortfall
from hydra_core.routing.query import Query
from hydra_core.routing.valuation import Valuation


class Cause(StrEnum):
    """Why the chosen model was chosen."""

    CHEAPEST_ELIGIBLE = "cheapest_eligible"
    FAIL_OPEN = "fail_open"
    GATEWAY_FALLBACK = "gateway_fallback"
    HIGHEST_VALUE = "highest_value"
    KEPT_BY_SESSION = "kept_by_session"
    KEPT_BELOW_THRESHOLD = "kept_below_threshold"
    KEPT_WITHIN_MARGIN = "kept_within_margin"

    @property
    def keeps(self) -> bool:
        """Whether the conversation kept its model."""
        return self.value.startswith("kept")


#: The cause of a decision in which chance, not the rule, chose the model.
EXPLORED: Final = "explored"
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


class Fate(StrEnum):
    """What became of one candidate."""

    CHOSEN = "chosen"
    DEARER = "dearer"
    SHORT = "short"
    GATED = "gated"
    UNHEALTHY = "unhealthy"
    WORTH_LESS = "worth_less"


@dataclass(frozen=True, slots=True)
class Origin:
    """The catalog revision that decided; `weights` are (K,) as stored.

    Attributes:
        outside: Model id -> which tags it lacks that the policy requires.
    """

    catalog: str
    catalog_digest: str
    predictor_fingerprint: str
    weights: tuple[float, ...]
    outside: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """What the predictor read of the message, and how long it took.

    Attributes:
        capped: Dimensions whose score was above the catalog's cap and counted as the cap.
        distance: From the messages that the predictor was trained on; None where its bundle has
            nothing to compare with.
    """

    tokens: int
    truncated: bool
    ignored_chars: int
    predict_ms: float
    capped: tuple[str, ...] = ()
    distance: float | None = None

    @property
    def unusual(self) -> bool:
        """Whether the message is unlike those that the predictor was trained on."""
        return self.distance is not None and self.distance > 1.0

    def receipt(self) -> dict[str, Any]:
        """JSON-ready values; distance and flag only where there is something to compare with."""
        found = asdict(self)
        if self.distance is None:
            return {name: value for name, value in found.items() if name != "distance"}
        return {**found, "unusual": self.unusual}


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """A route and everything that decided it.

    Attributes:
        dimensions: (K,) names.
        requirements: (K,) predicted requirements, NaN when the session kept the model unscored.
        shortfalls: (m,) weighted shortfalls, NaN likewise; where they decided nothing they are
            worked out when they are first asked for (`forget_shortfalls`).
        gates: Model id -> why a hard gate took it out.
        health: (m,) in [0, 1].
        health_floor: Models below it are vetoed.
        cost_basis: Whether the pool's cost is list price (USD per Mtok) or realised (per query).
        query: What was asked, None when only requirements were given.
        reading: What the predictor read, None when it was not asked.
        kept: The conversation's model where it was kept.
        session_note: What the session store has to say, such as that Redis does not answer.
        valuation: Predicted success and cost under the value rule; None under the shortfall rule,
            and where the session kept the model unscored.
        rule: The rule that decided; of the policy where the session kept the model.
        raised: How often a stall has raised the requirements (or V) that stand here.
    """

    model: str
    cause: Cause
    pool: Pool
    dimensions: tuple[str, ...]
    requirements: FloatArray
    shortfalls: FloatArray
    gates: Mapping[str, str]
    health: FloatArray
    health_floor: float
    tau: float
    cost_basis: CostBasis
    origin: Origin
    query: Query | None = None
    reading: Reading | None = None
    kept: str | None = None
    session_note: str = ""
    valuation: Valuation | None = None
    rule: Rule = Rule.SHORTFALL
    raised: int = 0

    @property
    def index(self) -> int:
        """Row of the chosen model in the pool."""
        return self.pool.ids.index(self.model)

    if not TYPE_CHECKING:  # it would take any name

        def __getattr__(self, name: str) -> FloatArray:
            """The shortfalls that `forget_shortfalls` has left out."""
            if name != "shortfalls":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            need, pool = self.requirements[None, :], self.pool
            found = shortfall(need, pool.capabilities, pool.weights)[0]
            object.__setattr__(self, name, found)
            return found

    def forget_shortfalls(self) -> None:
        """Leave them out of a new decision by value: they take a fifth of its time."""
        object.__delattr__(self, "shortfalls")

    @property
    def scored(self) -> bool:
        """Whether the predictor was asked: of a kept model no requirement is known."""
        return not math.isnan(self.requirements[0])


def _fate(decision: Facts, i: int) -> Fate:
    """What became of the pool's model i."""
    name = decision.pool.ids[i]
    if name == decision.model:
        return Fate.CHOSEN
    if name in decision.gates:
        return Fate.GATED
    if decision.health[i] < decision.health_floor:
        return Fate.UNHEALTHY
    if not decision.scored:
        return Fate.DEARER
    if decision.valuation is not None:
        return Fate.WORTH_LESS
    return Fate.SHORT if decision.shortfalls[i] > decision.tau else Fate.DEARER


def _because(decision: Facts, i: int, fate: Fate) -> str:
    """Why the pool's model i came to its fate, in one sentence."""
    if fate is Fate.CHOSEN:
        return _chosen_because(decision, i)
    if fate is Fate.GATED:
        return decision.gates[decision.pool.ids[i]]
    if fate is Fate.UNHEALTHY:
        return f"Health {decision.health[i]:.2f} is below the floor {decision.health_floor:.2f}."
    if not decision.scored:
        return "Not considered: the conversation keeps its model."
    if decision.valuation is not None:
        return _worth_less_because(decision, decision.valuation, i)
    if fate is Fate.SHORT:
        return _short_because(decision, i)
    if decision.cause.keeps:
        return f"Capable enough, but the conversation stays on {decision.model}."
    return f"Capable enough, but {decision.model} is as well and comes first by cost."


def _worth_less_because(decision: Facts, valued: Valuation, i: int) -> str:
    more = 100 * (valued.net[i] - valued.net[decision.index])
    if decision.cause.keeps and more > 0:
        return f"Worth {more:.1f} pp more, but the conversation stays on {decision.model}."
    return valued.why_not(i, decision.index)


def _short_because(decision: Facts, i: int) -> str:
    need, has = decision.requirements, decision.pool.capabilities[i]
    worst = int((decision.pool.weights * np.maximum(need - has, 0.0)).argmax())
    missing, allowed = _beside_tau(decision, i)
    return (
        f"Shortfall {missing} is above τ {allowed}; most of it on "
        f"{decision.dimensions[worst].replace('_', ' ')} (needs {need[worst]:.2f}, "
        f"has {has[worst]:.2f})."
    )


def _beside_tau(decision: Facts, i: int) -> tuple[str, str]:
    """Shortfall of model i and tau in as few digits as show which is larger; tau as it is set."""
    missing, allowed = float(decision.shortfalls[i]), decision.tau
    for digits in range(3, 10):
        shown, tau = f"{missing:.{digits}f}", f"{allowed:.{max(digits, 5)}f}"
        if (float(shown) > float(tau)) == (missing > allowed):
            break
    return shown, tau.rstrip("0").rstrip(".")


def _chosen_because(decision: Facts, i: int) -> str:
    cause = decision.cause
    spent = (why for why in decision.gates.values() if why.endswith(ONLY_CHEAPEST))
    if cause in (Cause.HIGHEST_VALUE, Cause.FAIL_OPEN) and (why := next(spent, "")):
        return why
    if cause is Cause.CHEAPEST_ELIGIBLE:
        missing, allowed = _beside_tau(decision, i)
        return f"Cheapest model within τ: shortfall {missing} ≤ {allowed}."
    if cause is Cause.HIGHEST_VALUE and decision.valuation is not None:
        valued = decision.valuation
        return (
            f"Worth most: {100 * valued.success[i]:.0f} % predicted success for "
            f"{usd(float(valued.cost_usd[i]))}, at {set_usd(valued.value_usd)} for one more "
            "resolved query."
        )
    if cause is Cause.FAIL_OPEN:
        missing, allowed = _beside_tau(decision, i)
        left = "No model that may serve this" if decision.gates else "No model"
        return f"{left} is within τ {allowed}; the closest one is used ({missing})."
    if cause is Cause.GATEWAY_FALLBACK:
        whole = "every model" if decision.rule is Rule.VALUE else "every model within τ"
        return f"Fallback: {whole} is unhealthy; best of what is left."
    if cause is Cause.KEPT_BELOW_THRESHOLD:
        return "Kept: the requirements are below the sticky threshold."
    if cause is Cause.KEPT_WITHIN_MARGIN and decision.valuation is not None:
        return "Kept: no other model is worth more than the prompt cache that leaving would lose."
    if cause is Cause.KEPT_WITHIN_MARGIN:
        missing, allowed = _beside_tau(decision, i)
        return (
            f"Kept: it falls short by {missing}, not enough beyond τ {allowed} to give up its "
            "prompt cache."
        )
    return "Kept: the conversation stays on its model, so the prompt cache stays warm."


RECEIPT_SCHEMA: Final = "hydra.receipt/v1"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model in a decision.

    Attributes:
        cost: What orders the models, in the unit of the decision's `cost_basis`.
        deficits: (K,) before weighting.
    """

    model: str
    fate: Fate
    reason: str
    cost: float
    health: float
    capabilities: tuple[float, ...]
    deficits: tuple[float, ...]
    shortfall: float


@dataclass(frozen=True, slots=True, eq=False)
class Decision(Facts):
    """A route and everything that decided it (see `Facts`); spelt out on demand."""

    @property
    def reason(self) -> str:
        """Why the model was chosen, in one sentence, and what a stall has raised."""
        why = _chosen_because(self, self.index)
        if not self.raised or self.query is None:
            return why
        what = "V" if self.rule is Rule.VALUE else "The requirement"
        times = "once" if self.raised == 1 else f"{self.raised} times"
        return (
            f"{why} {what} was raised {times}: {self.query.stalled} tool results in a row failed "
            "or repeat a call."
        )

    def candidates(self) -> tuple[Candidate, ...]:
        """Every model with its fate and one plain sentence, cheapest first."""
        deficits = np.maximum(self.requirements[None, :] - self.pool.capabilities, 0.0)
        rows, shortfalls = [], self.shortfalls.tolist()
        for i in np.argsort(self.pool.cost, kind="stable"):
            fate = _fate(self, int(i))
            rows.append(
                Candidate(
                    model=self.pool.ids[i],
                    fate=fate,
                    reason=_because(self, int(i), fate),
                    cost=float(self.pool.cost[i]),
                    health=float(self.health[i]),
                    capabilities=tuple(self.pool.capabilities[i].tolist()),
                    deficits=tuple(deficits[i].tolist()),
                    shortfall=shortfalls[i],
                )
            )
        return tuple(rows)

    def receipt(self) -> dict[str, Any]:
        """JSON-ready record; `redecide` needs nothing else."""
        variants, query = self.pool.variants, self.query
        return {
            "schema": RECEIPT_SCHEMA,
            "model": self.model,
            "cause": self.cause.value,
            "dimensions": list(self.dimensions),
            "requirements": _numbers(self.requirements),
            "weights_compensated": self.pool.weights.tolist(),
            "tau": self.tau,
            "health_floor": self.health_floor,
            "catalog_order": list(self.pool.ids),
            "candidates": [
                {
                    "model": row.model,
                    **({"variant_of": variants[row.model]} if row.model in variants else {}),
                    "fate": row.fate.value,
                    "reason": row.reason,
                    "cost": row.cost,
                    "health": row.health,
                    "gate": self.gates.get(row.model),
                    "capabilities": list(row.capabilities),
                    "deficits": _numbers(row.deficits),
                    "shortfall": None if np.isnan(row.shortfall) else row.shortfall,
                    **self._predicted(self.pool.ids.index(row.model)),
                }
                for row in self.candidates()
            ],
            "rule": self.rule.value,
            **({} if self.valuation is None else self.valuation.receipt()),
            "signals": None if query is None else asdict(signals(query.text, query.turn)),
            "cost_basis": self.cost_basis.value,
            **_origin(self.origin),
            **({} if self.reading is None else self.reading.receipt()),
            **({} if self.kept is None else {"kept": self.kept}),
            **self._agent(),
            **({"session_store": self.session_note} if self.session_note else {}),
        }

    def _agent(self) -> dict[str, Any]:
        """What an agent's turn adds; nothing for a person's own message."""
        query = self.query
        if query is None or not (query.harness_tokens or query.continues or query.stalled):
            return {}
        return {
            "harness_tokens": query.harness_tokens,
            "ignored": harness_text(query.harness_tokens),
            "tool_results_only": query.continues,
            "stalled": query.stalled,
            "raised": self.raised,
        }

    def _predicted(self, i: int) -> dict[str, Any]:
        """Success and cost, and time where a second has a price."""
        valued = self.valuation
        if valued is None:
            return {}
        ends = valued.range_of(i)
        found: dict[str, Any] = {
            "success": float(valued.success[i]),
            "success_range": None if ends is None else list(ends),
            "predicted_cost_usd": float(valued.cost_usd[i]),
        }
        if valued.seconds is not None:
            found["expected_s"] = float(valued.seconds[i])
            found["weighed_usd"] = float(valued.weighed_usd[i])
        return found


def _origin(origin: Origin) -> dict[str, Any]:
    found = {**asdict(origin), "weights": list(origin.weights)}
    outside = found.pop("outside")
    return {**found, "outside_policy": outside} if outside else found


def harness_text(tokens: int) -> str:
    """What is said of harness text, '' where there was none."""
    return f"{tokens:,} tokens of harness text ignored" if tokens else ""


def _numbers(values: FloatArray | tuple[float, ...]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


_OUT = (Fate.CHOSEN, Fate.GATED, Fate.UNHEALTHY)


def fallbacks(decision: Decision) -> tuple[str, ...]:
    """The other models that can serve the query, best first; never one that a gate took out.

    Models that are capable enough come by cost, as the rule would have taken them; then the others
    by how little they fall short. Under the value rule they come by what they are worth. A
    conversation that was kept unscored goes to the next dearer model, step by step, then to cheaper
    ones: nothing is known of what this turn asks.
    """
    ids, cost = decision.pool.ids, decision.pool.cost.tolist()
    fates = {i: _fate(decision, i) for i in sorted(range(len(ids)), key=cost.__getitem__)}
    rows = [i for i, fate in fates.items() if fate not in _OUT]
    if decision.valuation is not None:
        worth = decision.valuation.net.tolist()
        rows.sort(key=lambda i: -worth[i])
    elif decision.scored:
        short = decision.shortfalls.tolist()
        rows.sort(key=lambda i: 0.0 if fates[i] is Fate.DEARER else short[i])
    else:
        now = cost[decision.index]
        cheaper = [i for i in rows if cost[i] < now]
        rows = [*(i for i in rows if cost[i] >= now), *reversed(cheaper)]
    return tuple(ids[i] for i in rows)


def redecide(receipt: Mapping[str, Any]) -> str:
    """The model that the numbers of a receipt (`Decision.receipt`) lead to.

    Raises:
        ValueError: The receipt is of another schema.
    """
    if receipt.get("schema") != RECEIPT_SCHEMA:
        raise ValueError(f"not a {RECEIPT_SCHEMA} receipt: schema is {receipt.get('schema')!r}")
    if Cause(receipt["cause"]).keeps:
        return str(receipt["kept"])
    order = {name: i for i, name in enumerate(receipt["catalog_order"])}
    rows = sorted(receipt["candidates"], key=lambda row: order[row["model"]])
    health = np.asarray([row["health"] for row in rows])
    past_gates = np.asarray([row["gate"] is None for row in rows])
    alive, _ = contenders(past_gates, health, receipt["health_floor"])
    open_ = [rows[i] for i in alive]
    if receipt.get("rule") == "value":
        success = np.asarray([[row["success"] for row in open_]])
        cost = np.asarray([[row.get("weighed_usd", row["predicted_cost_usd"]) for row in open_]])
        short, tau = value_shortfall(success, cost, receipt["value_usd"]), 0.0
    else:
        need = np.asarray([receipt["requirements"]])
        capabilities = np.asarray([row["capabilities"] for row in open_])
        short = shortfall(need, capabilities, np.asarray(receipt["weights_compensated"]))
        cost, tau = np.asarray([row["cost"] for row in open_]), receipt["tau"]
    return str(open_[choose(short, cost, tau)[0]]["model"])
