"""The `realised_costs` section: what the models really cost, measured on an eval set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hydra_core.catalog.reading.fields import Interval, Section
from hydra_core.types import CostBasis, ModelSpec, Policy, RealisedCosts

__all__ = ["read_realised_costs"]

_REMEDY: Final = "mean realised cost in USD per query, such as 0.0123"


def read_realised_costs(
    root: Section, models: Sequence[ModelSpec], policy: Policy | None
) -> RealisedCosts | None:
    """The section, None where there is none; a routable model without a cost is a problem."""
    if root.node.get("realised_costs") is None:
        return None
    section = root.section("realised_costs", "give evalset, digest and usd_per_query")
    if section is None:
        return None
    section.known(("evalset", "digest", "usd_per_query"))
    evalset = section.text("evalset", "the name of the eval set they were measured on", limit=200)
    digest = section.text("digest", "that eval set's digest in quotes", limit=128)
    costs = section.section("usd_per_query", "model: mean cost in USD per query")
    if costs is None:
        return None
    names = [model.id for model in models]
    costs.known(names, "model")
    found = {
        name: costs.checked_number(name, node, Interval(0.0), _REMEDY)
        for name in names
        if (node := costs.node.get(name)) is not None
    }
    if policy is not None and policy.cost_basis is CostBasis.REALISED:
        for model in models:
            if model.id not in found and model.status.in_pool:
                costs.wrong(model.id, "has no realised cost", _REMEDY)
    known = {name: cost for name, cost in found.items() if cost is not None}
    return RealisedCosts(evalset, digest, known)
