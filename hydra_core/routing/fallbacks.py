"""Which models to ask, in order, when the chosen one does not answer."""

from __future__ import annotations

from hydra_core.routing.decision import Decision, Fate

_OUT = (Fate.CHOSEN, Fate.GATED, Fate.UNHEALTHY)


def fallbacks(decision: Decision) -> tuple[str, ...]:
    """The other models that can serve the query, best first; never one that a gate took out.

    Models that are capable enough come by cost, as the rule would have taken them; then the others
    by how little they fall short. Under the value rule they come by what they are worth. A
    conversation that was kept unscored goes to the next dearer model, step by step, then to cheaper
    ones: nothing is known of what this turn asks.
    """
    rows = [row for row in decision.candidates() if row.fate not in _OUT]
    if decision.valuation is not None:
        worth = dict(zip(decision.pool.ids, decision.valuation.net.tolist(), strict=True))
        return tuple(sorted((row.model for row in rows), key=lambda name: -worth[name]))
    if decision.scored:
        enough = [row.model for row in rows if row.fate is Fate.DEARER]
        short = [row for row in rows if row.fate is not Fate.DEARER]
        return (*enough, *(row.model for row in sorted(short, key=lambda row: row.shortfall)))
    cost = dict(zip(decision.pool.ids, decision.pool.cost.tolist(), strict=True))
    dearer = [row.model for row in rows if cost[row.model] >= cost[decision.model]]
    cheaper = [row.model for row in rows if cost[row.model] < cost[decision.model]]
    return (*dearer, *reversed(cheaper))
