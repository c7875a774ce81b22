"""OpenTelemetry spans. The GenAI names are not stable yet: they stand only here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hydra_core.base.errors import ExtraError
from hydra_core.server.deciding import Decided, Result

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


#: Called with every finished request.
OnFinish = Callable[[Decided, Result], None]


def spans(tracer: Tracer | None = None) -> OnFinish:
    """A span of OpenTelemetry for every finished request; by default of the process's own tracer.

    Raises:
        ExtraError: opentelemetry-api is not installed.
    """
    try:
        from opentelemetry import trace
    except ModuleNotFoundError as error:
        raise ExtraError("tracing (--spans)", "tracing") from error
    source = tracer or trace.get_tracer("hydra_core.server")

    def record(decided: Decided, result: Result) -> None:
        start = int(decided.at.timestamp() * 1e9)
        length = int(1e6 * (result.latency_ms or decided.decide_ms))
        asked = decided.request.model
        name = f"chat {asked}" if result.status != "decided" else f"route {asked}"
        kind = trace.SpanKind.CLIENT
        span = source.start_span(name, kind=kind, start_time=start)
        for key, value in _attributes(decided, result).items():
            if value not in (None, ""):
                span.set_attribute(key, value)
        if result.status in ("failed", "cancelled"):
            span.set_status(trace.StatusCode.ERROR, result.status)
        span.end(end_time=start + length)

    return record


def _attributes(decided: Decided, result: Result) -> dict[str, Any]:
    served = result.served or decided.model
    provider = {spec.id: spec.provider for spec in decided.serving.catalog.models}
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider.get(served, ""),
        "gen_ai.request.model": decided.request.model,
        "gen_ai.response.model": result.served,
        "gen_ai.conversation.id": decided.request.query.conversation_id,
        "gen_ai.usage.input_tokens": result.input_tokens,
        "gen_ai.usage.output_tokens": result.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": result.cached_tokens,
        "hydra.decision_id": decided.id,
        "hydra.rule": decided.rule,
        "hydra.cause": decided.decision.cause.value,
        "hydra.catalog_revision": decided.serving.label,
        "hydra.attempts": len(result.attempts),
    }
