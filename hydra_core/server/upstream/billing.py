"""What a request cost: by the tokens that its upstream counted, else about."""

from __future__ import annotations

from dataclasses import replace

from hydra_core.base.types import ModelSpec
from hydra_core.routing.conversations.economics import TurnTokens, billed_usd
from hydra_core.server.deciding import Decided, Result
from hydra_core.server.metrics import Metrics
from hydra_core.server.upstream.events import Seen
from hydra_core.server.upstream.usage import Counted, Usage, estimate_of, usage_of


def billed(decided: Decided, result: Result, seen: Seen, metrics: Metrics) -> Result:
    """The result with tokens and cost, by the catalog's prices, counted in the metrics.

    A whole answer without counts that can be true has no cost, only `about_usd`; of a stream that
    broke off or was cancelled the tokens are estimated.
    """
    if result.status == "rejected":
        return result
    spec = decided.serving.catalog.model(result.served)
    usage = usage_of(seen.usage, decided.request, spec)
    if usage is not None:
        cost_usd = _usd(spec, usage)
        fresh = usage.input - usage.cached
        metrics.billed(result.served, fresh, usage.cached, usage.output, cost_usd)
        return _with(result, usage, cost_usd, Counted.COUNTED)
    about = estimate_of(decided.request, seen.written)
    about_usd = _usd(spec, about)
    kind = Counted.UNKNOWN if result.status == "answered" else Counted.ESTIMATED
    metrics.uncounted(result.served, kind, about_usd)
    if kind is Counted.ESTIMATED:
        result = _with(result, about, about_usd, kind)
    return replace(result, usage=kind.value, about_usd=about_usd)


def abandoned(decided: Decided, result: Result, model: str, metrics: Metrics) -> Result:
    """The result of a request whose client left while a model was asked: it has read the request.

    Args:
        model: The one that was asked.
    """
    about = estimate_of(decided.request, 0)
    about_usd = _usd(decided.serving.catalog.model(model), about)
    metrics.uncounted(model, Counted.ESTIMATED, about_usd)
    return replace(_with(result, about, about_usd, Counted.ESTIMATED), about_usd=about_usd)


def _with(result: Result, usage: Usage, cost_usd: float, kind: Counted) -> Result:
    return replace(
        result,
        input_tokens=usage.input,
        output_tokens=usage.output,
        cached_tokens=usage.cached,
        cost_usd=cost_usd,
        usage=kind.value,
    )


def _usd(spec: ModelSpec, usage: Usage) -> float:
    fresh = usage.input - usage.cached
    return billed_usd(spec, TurnTokens(usage.cached, fresh, usage.output))
