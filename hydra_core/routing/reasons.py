"""Why a model was chosen, or was not: its fate, and one sentence for each."""

from __future__ import annotations

import numpy as np

from hydra_core.routing.facts import Cause, Facts, Fate
from hydra_core.routing.valuation import Valuation
from hydra_core.spelling import usd
from hydra_core.types import Rule

__all__ = ["fate_of"]


def fate_of(decision: Facts, i: int) -> tuple[Fate, str]:
    """What became of the pool's model i, and one sentence on why."""
    name = decision.pool.ids[i]
    if name == decision.model:
        return Fate.CHOSEN, _chosen_because(decision, i)
    if name in decision.gates:
        return Fate.GATED, decision.gates[name]
    if decision.health[i] < decision.health_floor:
        return (
            Fate.UNHEALTHY,
            f"Health {decision.health[i]:.2f} is below the floor {decision.health_floor:.2f}.",
        )
    if not decision.scored:
        return Fate.DEARER, "Not considered: the conversation keeps its model."
    if decision.valuation is not None:
        return Fate.WORTH_LESS, _worth_less_because(decision, decision.valuation, i)
    if decision.shortfalls[i] > decision.tau:
        return Fate.SHORT, _short_because(decision, i)
    if decision.cause.keeps:
        return Fate.DEARER, f"Capable enough, but the conversation stays on {decision.model}."
    return (
        Fate.DEARER,
        f"Capable enough, but {decision.model} is as well and comes first by cost.",
    )


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
    missing, allowed = _beside_tau(decision, i)
    if cause is Cause.CHEAPEST_ELIGIBLE:
        return f"Cheapest model within τ: shortfall {missing} ≤ {allowed}."
    if cause is Cause.HIGHEST_VALUE and decision.valuation is not None:
        valued = decision.valuation
        return (
            f"Worth most: {100 * valued.success[i]:.0f} % predicted success for "
            f"{usd(float(valued.cost_usd[i]))}, at ${valued.value_usd:.3g} for one more resolved "
            "query."
        )
    if cause is Cause.FAIL_OPEN:
        return f"No model is within τ {allowed}; this one falls short least ({missing})."
    if cause is Cause.GATEWAY_FALLBACK:
        whole = "every model" if decision.rule is Rule.VALUE else "every model within τ"
        return f"Fallback: {whole} is unhealthy; best of what is left."
    if cause is Cause.KEPT_BELOW_THRESHOLD:
        return "Kept: the requirements are below the sticky threshold."
    if cause is Cause.KEPT_WITHIN_MARGIN and decision.valuation is not None:
        return "Kept: no other model is worth more than the prompt cache that leaving would lose."
    if cause is Cause.KEPT_WITHIN_MARGIN:
        return (
            f"Kept: it falls short by {missing}, not enough beyond τ {allowed} to give up its "
            "prompt cache."
        )
    return "Kept: the conversation stays on its model, so the prompt cache stays warm."
