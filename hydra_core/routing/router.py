"""The router: hard gates -> scores -> shortfall -> health veto -> cheapest (Algorithms 2 and 4).

One immutable state per catalog revision; `route` reads it once, so that a reload never mixes two
revisions in one decision.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Protocol

import numpy as np

from hydra_core.base.errors import MismatchError, OutcomeModelError, RoutingError
from hydra_core.base.types import (
    BoolArray,
    Catalog,
    FloatArray,
    IntArray,
    ModelSpec,
    Policy,
    Pool,
    Rule,
    StickyMode,
)
from hydra_core.catalog.profiles import pool as build_pool
from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.routing.decision import Cause, Decision, Origin, Reading
from hydra_core.routing.gates import (
    Common,
    common_of,
    expected_s,
    gate_reasons,
    require_open,
    within_budget,
)
from hydra_core.routing.matcher import (
    choose_one,
    contenders,
    shortfall_of_one,
    value_shortfall_of_one,
)
from hydra_core.routing.query import Query
from hydra_core.routing.sessions import (
    SessionKeys,
    Sessions,
    kept_because,
    missing_prefix,
    session_keys,
)
from hydra_core.routing.valuation import Valuation, Valuer, valuer_of


class Scorer(Protocol):
    """What the router needs of a predictor."""

    def predict(
        self, texts: list[str], turns: list[int] | None = None, contexts: list[str] | None = None
    ) -> Prediction:
        """(n,) messages -> requirements (n, K), tokens (n,), truncated (n,)."""


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """One catalog revision, ready to route with.

    Attributes:
        common: What all of its models allow.
        by_dimension: (K, m) capabilities, as lists.
        weights: (K,) w~, likewise.
        every, rows: (m,) True, and the numbers of the models.
        healthy: (m,) 1.
        knob: V in USD for one query; None for the policy's.
    """

    catalog: Catalog
    pool: Pool
    models: tuple[ModelSpec, ...]
    day: date
    valuer: Valuer | None
    common: Common
    by_dimension: list[list[float]]
    weights: list[float]
    every: BoolArray
    rows: IntArray
    healthy: FloatArray
    origin: Origin
    knob: float | None = None


class Router:
    """Routes queries with one catalog and one predictor. Safe to share between threads.

    Args:
        catalog: A validated catalog, or a callable that returns the newest one (hot reload).
        predictor: Scores messages; None when only `decide` is used.
        sessions: Where conversations' models are remembered; None for no stickiness.
        realised_cost: Mean realised cost by model, for the cost basis `realised`.
    """

    def __init__(
        self,
        catalog: Catalog | Callable[[], Catalog],
        predictor: Scorer | None = None,
        *,
        sessions: Sessions | None = None,
        realised_cost: Mapping[str, float] | None = None,
        today: Callable[[], date] = date.today,
    ) -> None:
        self._source: Callable[[], Catalog] = catalog if callable(catalog) else (lambda: catalog)
        self._predictor, self._sessions = predictor, sessions
        self._realised_cost, self._today = realised_cost, today
        self._refused: tuple[Catalog, date] | None = None
        #: Why the newest catalog is not in use, '' when it is.
        self.problem = ""
        self._state = self._build(self._source(), today())

    @property
    def models(self) -> tuple[ModelSpec, ...]:
        """The models that are routable today."""
        return self._current().models

    def route(
        self,
        query: Query,
        *,
        health: Mapping[str, float] | None = None,
        remember: bool = True,
        knob: float | None = None,
    ) -> Decision:
        """Choose the model for one query.

        Args:
            health: Model id -> health in [0, 1]; a model that is not named is healthy (1.0), one
                that this pool does not have is ignored.
            remember: Whether the conversation is on the chosen model from now on.
            knob: tau, or V in USD, for this query alone; None for the policy's.

        Raises:
            RoutingError: No model can serve the query (`http_status` for the gateway).
        """
        state = self._current()
        if knob is not None:
            state = _turned(state, knob)
        gates = _gates(state, query)
        levels = _health(state, health)
        policy = state.catalog.policy
        keys = session_keys(policy.sticky.mode, query)
        kept = self._kept(keys, query)
        current = _if_able(state, kept or query.current, gates, levels)
        adaptive = policy.sticky.mode is StickyMode.ADAPTIVE and not query.continues
        raised = _raised(policy, query)
        if kept and current and not query.compacted and not adaptive and not raised:
            decision = _keep(state, query, current, gates, levels)
            return self._remember(state, keys, decision) if remember else decision
        decision = self._score_and_decide(state, query, gates, levels)
        if current and current != decision.model:
            if raised:  # a stalled conversation does not go to a cheaper model than it is on
                cost, i = decision.pool.cost, decision.pool.ids.index(current)
                cause = Cause.KEPT_BY_SESSION if cost[i] >= cost[decision.index] else None
            else:
                cause = kept_because(decision, current, state.catalog, fresh=query.compacted)
            if cause is not None:
                decision = replace(decision, model=current, cause=cause, kept=current)
        return self._remember(state, keys, decision) if remember else decision

    def decide(
        self,
        requirements: FloatArray,
        query: Query | None = None,
        *,
        health: Mapping[str, float] | None = None,
        predicted: tuple[Sequence[float], Sequence[float]] | None = None,
    ) -> Decision:
        """Choose for known requirements (K,), without predictor or session.

        Args:
            predicted: (m,) success and (m,) cost in USD, in the order of the pool, for the value
                rule. Without them success profiles predict; success heads cannot from requirements
                alone, and then the shortfall rule decides.

        Raises:
            RoutingError: No model can serve it, or the predictions are not one a model.
        """
        state = self._current()
        asked = query or Query("")
        gates = _gates(state, asked)
        valued = None
        if state.valuer is not None and predicted is not None:
            valued = state.valuer.of_predictions(*predicted)
        elif state.valuer is not None:
            valued = state.valuer.from_requirements(
                np.asarray(requirements), _sizes(state.valuer, asked)
            )
        valued = _timed(state, asked, valued)
        need = np.asarray(requirements, dtype=np.float64)
        return _decide(state, need, gates, _health(state, health), valued)

    def _current(self) -> _State:
        state = self._state
        catalog, day = self._source(), self._today()
        current = catalog is state.catalog and day == state.day
        if not current and (catalog, day) != self._refused:
            try:
                state = self._state = self._build(catalog, day)
                self.problem = ""
            except (OutcomeModelError, MismatchError) as error:
                self._refused = catalog, day  # the last good revision stays in use
                self.problem = str(error)
        return state

    def _build(self, catalog: Catalog, day: date) -> _State:
        pool = build_pool(catalog, today=day, realised_cost=self._realised_cost)
        models = tuple(catalog.model(name) for name in pool.ids)
        rows = np.arange(len(models))
        every, healthy = rows >= 0, np.ones(len(models))
        for array in (rows, every, healthy):
            array.setflags(write=False)
        return _State(
            catalog, pool, models, day, valuer_of(catalog, pool), common_of(models),
            pool.capabilities.T.tolist(), pool.weights.tolist(), every, rows, healthy,
            _origin(catalog),
        )  # fmt: skip

    def _kept(self, keys: SessionKeys, query: Query) -> str | None:
        if self._sessions is None or keys.look_up is None:
            return None
        if query.turn == 1 and not query.continues:
            return None
        return self._sessions.get(keys.look_up)

    def _score_and_decide(
        self, state: _State, query: Query, gates: Mapping[str, str], levels: FloatArray
    ) -> Decision:
        if self._predictor is None:
            raise RoutingError("this router has no predictor: use decide()", http_status=500)
        start = time.perf_counter()
        prediction = self._predictor.predict([query.text], [query.turn], [query.context])
        reading = Reading(
            tokens=int(prediction.tokens[0]),
            truncated=bool(prediction.truncated[0]),
            ignored_chars=0 if prediction.ignored is None else int(prediction.ignored[0]),
            predict_ms=1e3 * (time.perf_counter() - start),
            capped=_capped(state, prediction.requirements[0]),
            distance=None if prediction.distances is None else float(prediction.distances[0]),
        )
        valuer, valued = state.valuer, None
        if valuer is not None:
            valued = valuer.value(query.text, prediction, _sizes(valuer, query))
        valued = _timed(state, query, valued)
        if valued is not None and state.knob is not None:
            valued = replace(valued, value_usd=state.knob)
        needs, stall = prediction.requirements[0], state.catalog.policy.stall
        raised = _raised(state.catalog.policy, query)
        if stall is not None and raised:
            needs = np.minimum(needs + raised * stall.requirement_step, 1.0)
            if valued is not None:
                valued = replace(valued, value_usd=stall.worth(valued.value_usd, raised))
        return _decide(
            state, needs, gates, levels, valued, query=query, reading=reading, raised=raised
        )

    def _remember(self, state: _State, keys: SessionKeys, decision: Decision) -> Decision:
        if self._sessions is None or keys.remember is None:
            return decision
        self._sessions.put(keys.remember, decision.model, state.catalog.policy.sticky.ttl_s)
        unknown = missing_prefix(state.catalog.policy.sticky.mode, decision.query)
        note = "; ".join(filter(None, (self._sessions.note, unknown)))
        return replace(decision, session_note=note) if note else decision


def _decide(
    state: _State,
    requirements: FloatArray,
    gates: Mapping[str, str],
    levels: FloatArray,
    valued: Valuation | None = None,
    **of_request: Any,  # noqa: ANN401 (fields of `Decision`)
) -> Decision:
    """Algorithms 2 and 4 over the models that passed the gates, or the value rule over them."""
    pool, policy = state.pool, state.catalog.policy
    need = pool.capped(requirements)
    short = None
    past_gates, rows, fallback = state.every, state.rows, False
    if gates or levels is not state.healthy:
        past_gates = np.asarray([name not in gates for name in pool.ids])
        rows, fallback = contenders(past_gates, levels, policy.health_floor)

    def open_(every: list[float]) -> list[float]:
        return every if rows is state.rows else [every[i] for i in rows]

    if valued is not None:
        success, cost_usd = open_(valued.success.tolist()), open_(valued.weighed_usd.tolist())
        behind = value_shortfall_of_one(success, cost_usd, valued.value_usd)
        best = choose_one(behind, cost_usd, 0.0)
        cause = Cause.GATEWAY_FALLBACK if fallback else Cause.HIGHEST_VALUE
        of_request |= {"valuation": valued, "rule": Rule.VALUE}
    else:
        short = shortfall_of_one(need.tolist(), state.by_dimension, state.weights)
        best = choose_one(open_(short), open_(pool.cost.tolist()), policy.tau)
        if short[rows[best]] <= policy.tau and not fallback:
            cause = Cause.CHEAPEST_ELIGIBLE
        elif fallback or any(short[i] <= policy.tau for i in np.flatnonzero(past_gates)):
            cause = Cause.GATEWAY_FALLBACK
        else:
            cause = Cause.FAIL_OPEN
    known = None if short is None else np.array(short)
    return _decision(state, pool.ids[rows[best]], cause, need, known, gates, levels, **of_request)


def _capped(state: _State, scores: FloatArray) -> tuple[str, ...]:
    if state.pool.caps is None:
        return ()
    cut = state.pool.capped(scores)[: scores.size] < scores
    return tuple(name for name, c in zip(state.catalog.dimensions, cut, strict=False) if c)


def _sizes(valuer: Valuer, query: Query) -> FloatArray | None:
    """(1,) input tokens of the request, where a model's price depends on them."""
    return np.array([query.input_tokens]) if valuer.reads_sizes else None


def _timed(state: _State, query: Query, valued: Valuation | None) -> Valuation | None:
    """The valuation with expected times, where the policy gives a second a price."""
    second_usd = state.catalog.policy.second_usd
    if valued is None or not second_usd:
        return valued
    said = [expected_s(spec, query)[1] for spec in state.models]
    known = [
        spec.latency_s if np.isnan(s) else s for s, spec in zip(said, state.models, strict=True)
    ]
    return replace(valued, seconds=np.asarray(known, dtype=np.float64), second_usd=second_usd)


def _turned(state: _State, knob: float) -> _State:
    if state.valuer is not None:
        return replace(state, knob=knob)
    policy = replace(state.catalog.policy, tau=knob)
    return replace(state, catalog=replace(state.catalog, policy=policy))


def _origin(catalog: Catalog) -> Origin:
    """The revision as its decisions name it, with the models that required tags keep out."""
    require = catalog.policy.require
    lacking = {one.id: require - one.tags for one in catalog.models if one.status.in_pool}
    outside = {
        name: f"The policy requires the tags {', '.join(sorted(tags))}, which it does not have."
        for name, tags in lacking.items()
        if tags
    }
    return Origin(
        catalog=catalog.name,
        catalog_digest=catalog.digest,
        predictor_fingerprint=catalog.predictor_fingerprint,
        weights=catalog.policy.weights,
        outside=outside,
    )


def _raised(policy: Policy, query: Query) -> int:
    return 0 if policy.stall is None else policy.stall.steps(query.stalled)


def _gates(state: _State, query: Query) -> dict[str, str]:
    gates = {} if state.common.passes(query) else gate_reasons(state.models, query)
    require_open(state.models, gates, query)
    budget = state.catalog.policy.defences.budget_usd
    return within_budget(gates, state.pool.ids, state.pool.cost, budget, query)


def _if_able(
    state: _State, model: str | None, gates: Mapping[str, str], levels: FloatArray
) -> str | None:
    if model is None or model in gates or model not in state.pool.ids:
        return None
    healthy = levels[state.pool.ids.index(model)] >= state.catalog.policy.health_floor
    return model if healthy else None


def _keep(
    state: _State, query: Query, model: str, gates: Mapping[str, str], levels: FloatArray
) -> Decision:
    unknown = np.full(len(state.catalog.dimensions), np.nan)
    short = np.full(len(state.pool.ids), np.nan)
    named = {"query": query, "kept": model, "rule": state.catalog.policy.rule}
    cause = Cause.KEPT_BY_SESSION
    return _decision(state, model, cause, unknown, short, gates, levels, **named)


def _decision(
    state: _State,
    model: str,
    cause: Cause,
    requirements: FloatArray,
    short: FloatArray | None,
    gates: Mapping[str, str],
    levels: FloatArray,
    **of_request: Any,  # noqa: ANN401 (fields of `Decision`)
) -> Decision:
    policy = state.catalog.policy
    decision = Decision(
        model=model,
        cause=cause,
        pool=state.pool,
        dimensions=state.catalog.dimensions,
        requirements=requirements,
        shortfalls=state.healthy if short is None else short,
        gates=gates,
        health=levels,
        health_floor=policy.health_floor,
        tau=policy.tau,
        cost_basis=policy.cost_basis,
        origin=state.origin,
        **of_request,
    )
    if short is None:
        decision.forget_shortfalls()
    return decision


def _health(state: _State, health: Mapping[str, float] | None) -> FloatArray:
    if not health:
        return state.healthy
    bad = {name: value for name, value in health.items() if not 0.0 <= value <= 1.0}
    if bad:
        raise RoutingError(f"health must lie in [0, 1], got {bad}", http_status=400)
    return np.asarray([float(health.get(name, 1.0)) for name in state.pool.ids])
