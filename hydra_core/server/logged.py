"""The decision log's records of what the service did: decisions with their ends, and refusals."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Any, Final

from hydra_core.base.digests import text_sha256
from hydra_core.decision_log.records import DecisionRecord
from hydra_core.server.chat import ChatRequest
from hydra_core.server.deciding import NAMED, Decided, Result, vetoed_choice
from hydra_core.server.live import Serving
from hydra_core.server.settings import AUTO

#: A client may send any number of tags, of any length.
_MOST_TAGS: Final = 20
_LONGEST_TAG: Final = 100


def record_of(decided: Decided, result: Result, *, text: bool) -> DecisionRecord:
    """The log's record of a decision and what became of it.

    Args:
        text: Whether the message itself may be in it.
    """
    decision, serving = decided.decision, decided.serving
    fell_back = bool(result.served) and result.served != decided.model
    place, valued = decision.pool.ids.index(decided.model), decision.valuation
    return DecisionRecord(
        decision_id=decided.id,
        at=decided.at,
        rule=decided.rule,
        knob=decided.knob,
        dimensions=decision.dimensions,
        requirements=tuple(decision.requirements.tolist()) if decision.scored else None,
        candidates=decision.pool.ids,
        shortfalls=tuple(decision.shortfalls.tolist()) if decision.scored else None,
        predicted_success=None if valued is None else tuple(valued.success.tolist()),
        predicted_cost_usd=None if valued is None else tuple(valued.cost_usd.tolist()),
        valued_by=None if valued is None else valued.valuer.digest,
        chosen=decided.model,
        cause=decision.cause.value,
        served=result.served,
        attempts=tuple(result.attempts),
        propensity=None if fell_back else decided.propensities[place],
        propensities=None if fell_back else decided.propensities,
        keep_probability=1.0 if decision.cause.keeps else 0.0,
        status=result.status,
        input_tokens=result.input_tokens,
        output_tokens=result.output_tokens,
        cached_tokens=result.cached_tokens,
        cost_usd=result.cost_usd,
        latency_ms=result.latency_ms,
        decide_ms=decided.decide_ms,
        distance=None if decision.reading is None else decision.reading.distance,
        arm=decided.arm,
        usage=result.usage,
        about_usd=result.about_usd,
        upstream_status=result.upstream_status,
        vetoed=vetoed_choice(decided.decision),
        **_asked(serving, decided.request, text=text),
    )


def refusal_record(
    serving: Serving, request: ChatRequest, why: str, at: datetime, *, text: bool
) -> DecisionRecord:
    """The log's record of a request that no model may serve.

    Args:
        text: Whether the message itself may be in it.
    """
    policy = serving.catalog.policy
    return DecisionRecord(
        decision_id=secrets.token_hex(12),
        at=at,
        rule=NAMED if request.model != AUTO else policy.rule.value,
        knob=policy.knob,
        dimensions=serving.catalog.dimensions,
        requirements=None,
        candidates=(),
        shortfalls=None,
        predicted_success=None,
        predicted_cost_usd=None,
        chosen="",
        cause="",
        served="",
        attempts=(),
        propensity=None,
        propensities=None,
        keep_probability=0.0,
        status="refused",
        refusal=why[:1_000],
        **_asked(serving, request, text=text),
    )


def _asked(serving: Serving, request: ChatRequest, *, text: bool) -> dict[str, Any]:
    """The fields that say who asked what, of which catalog."""
    query, catalog = request.query, serving.catalog
    return {
        "catalog": catalog.name,
        "catalog_digest": catalog.digest,
        "revision": serving.revision,
        "policy_digest": serving.policy_digest,
        "conversation_id": query.conversation_id,
        "turn": query.turn,
        "text_sha256": text_sha256(query.text),
        "text": query.text if text else None,
        "context": query.context or None if text else None,
        "predictor": catalog.predictor_fingerprint,
        "has_image": query.has_image,
        "needs_tools": query.needs_tools,
        "context_tokens": query.window_tokens,
        "allow": _listed(serving, query.allow),
        "deny": _listed(serving, query.deny) or (),
        "caller": request.caller,
        "team": request.team,
        "harness_tokens": query.harness_tokens,
        "stalled": query.stalled,
        "needs": tuple(sorted(query.needs)),
        "require": tuple(tag[:_LONGEST_TAG] for tag in sorted(query.require)[:_MOST_TAGS]),
    }


def _listed(serving: Serving, names: frozenset[str] | None) -> tuple[str, ...] | None:
    """Those of the names that the catalog knows: a client may send any number of others."""
    if names is None:
        return None
    return tuple(sorted(spec.id for spec in serving.catalog.models if spec.id in names))
