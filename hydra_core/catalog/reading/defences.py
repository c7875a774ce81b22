"""The `policy.defences` section: what holds where a predictor is fooled or a user is greedy."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hydra_core.catalog.reading.fields import POSITIVE, SHARE, Section
from hydra_core.types import Defences

__all__ = ["read_defences"]

_REMEDY: Final = "give score_caps, budget_usd or both"


def read_defences(policy: Section, dimensions: tuple[str, ...]) -> Defences:
    """The defences that are switched on; none where the section is not there."""
    if policy.node.get("defences") is None:
        return Defences()
    section = policy.section("defences", _REMEDY)
    if section is None:
        return Defences()
    section.known(("score_caps", "budget_usd"))
    budget = section.number("budget_usd", POSITIVE, "USD, such as 0.50", required=False)
    return Defences(_caps(section, dimensions), budget)


def _caps(section: Section, dimensions: tuple[str, ...]) -> Mapping[str, float]:
    if section.node.get("score_caps") is None:
        return MappingProxyType({})
    remedy = "the largest score that counts, in [0, 1], for one or more dimensions"
    caps = section.section("score_caps", remedy)
    if caps is None:
        return MappingProxyType({})
    if dimensions:
        caps.known(dimensions, "dimension")
    given = [name for name in dimensions if caps.node.get(name) is not None]
    found = {name: caps.number(name, SHARE, remedy) for name in given}
    return MappingProxyType({name: cap for name, cap in found.items() if cap is not None})
