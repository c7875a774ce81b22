"""The policy of a catalog, field by field: its text and what it does to a set. No streamlit."""

from __future__ import annotations

from dataclasses import replace

from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.editing.render import Value
from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.types import Catalog, FloatArray, Policy

__all__ = ["ROUTES", "alone", "conversation_note", "value_of", "with_field"]

#: The fields that decide routes of single queries, so that a replay shows their effect.
ROUTES = ("rule", "tau", "value_usd", "cost_basis", "price_ratio")


def value_of(policy: Policy, name: str) -> object:
    """The value of `tau`, `sticky.mode` and so on."""
    head, _, tail = name.partition(".")
    value = getattr(policy, head)
    return getattr(value, tail) if tail else value


def alone(before: Catalog, after: Catalog, name: str) -> Catalog:
    """`before` with this one field of its policy as `after` has it."""
    head = name.partition(".")[0]
    policy = replace(before.policy, **{head: getattr(after.policy, head)})
    changed = replace(before, policy=policy)
    if head in ("rule", "value_usd"):  # the value rule cannot do without what it predicts with
        return replace(changed, outcome_model=after.outcome_model)
    return changed


def with_field(text: str, name: str, value: Value) -> str:
    """The catalog text with one field of its policy written.

    Raises:
        CatalogError: It cannot be written there.
    """
    document = CatalogDocument.parse(text)
    head, _, tail = name.partition(".")
    data = document.data()
    policy = data.get("policy") if isinstance(data, dict) else None
    section = policy.get(head) if isinstance(policy, dict) else None
    if tail and not isinstance(section, dict):
        document.set("policy", head, {tail: value})
    else:
        document.set("policy", head, *([tail] if tail else []), value)
    return document.text()


def conversation_note(name: str, policy: Policy, evalset: EvalSet, requirements: FloatArray) -> str:
    """What a field on conversations or health would act on; replays route every query alone.

    Args:
        name: One of the fields that are not in `ROUTES`.
        policy: The policy worked on.
        evalset: The set in use.
        requirements: (n, K) of its queries.
    """
    if name == "health_floor":
        return "Eval sets carry no health, so no route here changes."
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
