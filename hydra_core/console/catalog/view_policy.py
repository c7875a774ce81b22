"""The policy of a catalog, field by field: its text and what it does to a set. No streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from hydra_core.base.types import Catalog, Defences, FloatArray, Policy
from hydra_core.catalog.editing.document import CatalogDocument, Data
from hydra_core.catalog.editing.render import Value
from hydra_core.evalsets.evalset import EvalSet

#: The score caps of the defences, one a dimension.
CAPS: Final = "defences.score_caps"
#: Whether agents' stalls raise anything.
STALL: Final = "stall.after"
_ROUTES: Final = (
    "require",
    "second_usd",
    "rule",
    "tau",
    "value_usd",
    "success_from",
    "cost_basis",
    "price_ratio",
)


def decides_routes(name: str) -> bool:
    """Whether a field decides routes of single queries, so that a replay shows its effect."""
    return name in _ROUTES or name.startswith(f"{CAPS}.")


def value_of(policy: Policy, name: str) -> object:
    """The value of `tau`, `sticky.mode` and so on; None for what is not there."""
    found: object = policy
    for step in name.split("."):
        found = found.get(step) if isinstance(found, Mapping) else getattr(found, step, None)
    return found


def defences_text(policy: Policy) -> str:
    """The defences that are switched on, in a few words."""
    caps = [f"{name.replace('_', ' ')} {cap:g}" for name, cap in policy.defences.score_caps.items()]
    told = [f"scores count up to {', '.join(caps)}"] if caps else []
    if policy.defences.budget_usd is not None:
        told.append(f"${policy.defences.budget_usd:g} a conversation")
    return "; ".join(told) or "none"


def alone(before: Catalog, after: Catalog, name: str) -> Catalog:
    """`before` with this one field of its policy as `after` has it."""
    head, _, tail = name.partition(".")
    given = getattr(after.policy, head)
    if name.startswith(f"{CAPS}."):
        given = _one_cap(before.policy.defences, given, tail.partition(".")[2])
    changed = replace(before, policy=replace(before.policy, **{head: given}))
    if head in (
        "rule",
        "value_usd",
        "success_from",
    ):  # the value rule cannot do without what it predicts with
        policy = replace(changed.policy, success_from=after.policy.success_from)
        return replace(
            changed, policy=policy, outcome_model=after.outcome_model,
            success_profiles=after.success_profiles,
        )  # fmt: skip
    return changed


def _one_cap(before: Defences, after: Defences, dimension: str) -> Defences:
    caps = {name: cap for name, cap in before.score_caps.items() if name != dimension}
    if dimension in after.score_caps:
        caps[dimension] = after.score_caps[dimension]
    return replace(before, score_caps=caps)


def with_field(text: str, name: str, value: Value) -> str:
    """The catalog text with one field of its policy written; None takes it out.

    Raises:
        CatalogError: It cannot be written there.
    """
    document = CatalogDocument.parse(text)
    steps = ["policy", *name.split(".")]
    if value is None:
        steps = steps[:2] if name == STALL else steps  # without it the section means nothing
        if _at(document.data(), steps) is not None:
            document.remove(*steps)
        return document.text()
    # Sections that are not there yet are written around the value.
    while len(steps) > 2 and not isinstance(_at(document.data(), steps[:-1]), dict):
        value = {steps.pop(): value}
    document.set(*steps, value)
    return document.text()


def _at(data: Data, steps: Sequence[str]) -> Data:
    for step in steps:
        data = data.get(step) if isinstance(data, dict) else None
    return data


def conversation_note(name: str, policy: Policy, evalset: EvalSet, requirements: FloatArray) -> str:
    """What a field on conversations or health would act on; replays route every query alone.

    Args:
        name: One of the fields that decide no route of a single query.
        policy: The policy worked on.
        evalset: The set in use.
        requirements: (n, K) of its queries.
    """
    if name == "health_floor":
        return "Eval sets carry no health, so no route here changes."
    if name == "defences.budget_usd":
        return (
            "Eval sets carry no spending, so no route here changes. A request says spent_usd; from "
            "the budget on only the cheapest model is left."
        )
    if name.startswith("stall."):
        return "Eval sets carry no tool results, so no route here changes."
    if name == "sticky.ttl_s":
        return "Eval sets carry no times, so no route here changes."
    if name == "sticky.threshold":
        below = float((requirements.max(axis=1) < policy.sticky.threshold).mean())
        return f"{100 * below:.0f} % of the queries ask for less than this on every dimension."
    later = 0
    if "conversation_id" in evalset.queries.columns:
        known = evalset.queries["conversation_id"].dropna()
        later = len(known) - known.nunique()
    if not later:
        return "No query of this set continues a conversation, so no route here changes."
    return (
        f"{later:,} of {evalset.n:,} queries continue a conversation: what the mode is about. "
        "A replay routes each by itself; play one on the page Conversation."
    )
