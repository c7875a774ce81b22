"""What Inspect keeps through a session, and the link that reopens a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import streamlit as st

from hydra_core.base.tokens import text_tokens
from hydra_core.base.types import Catalog, Policy, Rule
from hydra_core.console import cache, state
from hydra_core.routing.conversations.harness import said
from hydra_core.routing.query import Query

#: Longer texts do not go into a link: servers and chats cut long addresses.
LINK_CHARS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Inspecting:
    """What the part Message shows.

    Attributes:
        catalog: Key of the catalog that tau, weights, rule and V belong to, '' for any.
        tau: None for that of the policy being tuned, else of the catalog.
        weights, rule, value_usd: None likewise.
        text: The message; '' for none.
        other: The message to compare with.
        compare: Whether two messages are compared.
        share_text: Whether the link carries the text.
        requirements: (K,) from a link that came without its text.
        predicted: (m,) success and (m,) cost in USD, likewise, under the value rule.
        left_out: Tokens of the text that a link came without.
        part: The dimension whose words are shown; '' for the first.
        example: Whether the page still has to put in an example that fits the pool.
    """

    catalog: str = ""
    tau: float | None = None
    weights: tuple[float, ...] | None = None
    rule: Rule | None = None
    value_usd: float | None = None
    text: str = ""
    other: str = ""
    compare: bool = False
    share_text: bool = False
    turn: int = 1
    has_image: bool = False
    needs_tools: bool = False
    context_tokens: int = 0
    deny: tuple[str, ...] = ()
    requirements: tuple[float, ...] | None = None
    predicted: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    left_out: int = 0
    part: str = ""
    example: bool = False

    def query(self, text: str) -> Query:
        """The request that is routed; harness text is not scored, as in `serve`."""
        message, harness_tokens = said(text)
        query = Query(
            message,
            self.turn,
            harness_tokens=harness_tokens,
            has_image=self.has_image,
            needs_tools=self.needs_tools,
            deny=frozenset(self.deny),
        )
        beside = self.context_tokens + (0 if text else self.left_out)
        whole = beside + round(query.own_tokens) if beside else 0
        return replace(query, context_tokens=whole)


def get() -> Inspecting:
    """The session's record."""
    return _INSPECTING.get()


def put(**changes: object) -> None:
    """Change some fields; a new text replaces requirements that a link had brought."""
    if "text" in changes:
        changes.setdefault("requirements", None)
        changes.setdefault("predicted", None)
        changes.setdefault("left_out", 0)
        changes.setdefault("example", False)
    _INSPECTING.put(**changes)


def follow_link() -> None:
    """Use the catalog of the address that the page was opened with, on every page."""
    if "inspect" in st.session_state:
        return
    named = get().catalog
    if named != state.get().catalog and any(one.key == named for one in cache.catalogs()):
        state.put(catalog=named, tau=None, weights=None, rule=None, value_usd=None)


def policy_for(key: str, catalog: Catalog) -> Policy:
    """The policy in force: set here for this catalog, else that being tuned, else the catalog's."""
    now, tuning = get(), state.get()
    if now.catalog != key:
        fresh = {"tau": None, "weights": None, "rule": None, "value_usd": None, "deny": ()}
        put(catalog=key, **(fresh if now.catalog else {}))
        now = get()
    base = tuning.policy_for(catalog)
    weights = base.weights
    if now.weights is not None and len(now.weights) == len(catalog.dimensions):
        weights = now.weights
    values = (now.value_usd, tuning.value_usd, catalog.policy.value_usd)
    value_usd = next((value for value in values if value is not None), None)
    known = catalog.success_source is not None and value_usd is not None
    rule = (now.rule or base.rule) if known else Rule.SHORTFALL
    tau = base.tau if now.tau is None else now.tau
    return replace(base, rule=rule, tau=tau, weights=weights, value_usd=value_usd)


def from_link(params: Mapping[str, str]) -> Inspecting:
    """Read a link's parameters; what cannot be read is ignored, never an error.

    A link without message and scores starts with an example.
    """
    text = params.get("text", "")
    needs = None if text else _shares(params.get("r", ""))
    return Inspecting(
        catalog=params.get("catalog", ""),
        tau=state.number(params.get("tau", "")),
        weights=state.numbers(params.get("w", "")),
        rule=state.rule_named(params.get("rule", "")),
        value_usd=state.dollars(params.get("v", "")),
        text=text,
        other=params.get("other", ""),
        compare=params.get("compare") == "1",
        share_text="text" in params,
        turn=_turn(params.get("turn", "")),
        has_image=params.get("image") == "1",
        needs_tools=params.get("tools") == "1",
        context_tokens=_context(params.get("context", "")),
        deny=tuple(name for name in params.get("deny", "").split(",") if name),
        requirements=needs,
        predicted=_predicted(params) if needs is not None else None,
        left_out=_context(params.get("size", "")) if needs is not None else 0,
        part=params.get("words", ""),
        example=not text and needs is None,
    )


def _predicted(
    params: Mapping[str, str],
) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    success = _shares(params.get("p", ""))
    read = [state.dollars(part) for part in params.get("c", "").split(",")]
    cost = tuple(value for value in read if value is not None)
    if success is None or len(cost) != len(read) or len(success) != len(cost):
        return None
    return success, cost


_INSPECTING = state.Remembered("inspect", from_link)


def to_link(
    now: Inspecting,
    key: str,
    policy: Policy,
    requirements: tuple[float, ...],
    predicted: tuple[Sequence[float], Sequence[float]] | None = None,
) -> dict[str, str]:
    """The parameters that reopen what is on screen; `from_link` reads them back.

    Without the text the link carries its tokens, (K,) requirements and, under the value rule, (m,)
    success and (m,) cost in USD, so that the decision is the same.
    """
    link = {"catalog": key, "tau": repr(policy.tau), "w": ",".join(map(repr, policy.weights))}
    if policy.value_usd is not None:
        link |= {"rule": policy.rule.value, "v": repr(policy.value_usd)}
    if now.share_text and now.text and len(now.text) + len(now.other) <= LINK_CHARS:
        link |= {"text": now.text, "other": now.other if now.compare else ""}
        link["compare"] = "1" if now.compare else ""
    else:
        link["r"] = ",".join(map(repr, requirements))
        link["size"] = str(_tokens(*said(now.text)) or now.left_out or "")
        if predicted is not None:
            link |= {name: ",".join(map(repr, one))
                     for name, one in zip("pc", predicted, strict=True)}  # fmt: skip
    link["turn"] = str(now.turn) if now.turn > 1 else ""
    link["image"] = "1" if now.has_image else ""
    link["tools"] = "1" if now.needs_tools else ""
    link["context"] = str(now.context_tokens or "")
    link["deny"] = ",".join(now.deny)
    link["words"] = now.part
    return {name: value for name, value in link.items() if value}


def _tokens(message: str, harness_tokens: int) -> int:
    return round(text_tokens(message)) + harness_tokens


def _context(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


def _turn(text: str) -> int:
    return min(max(int(text), 1), 99) if text.isascii() and text.isdigit() and len(text) < 4 else 1


def _shares(text: str) -> tuple[float, ...] | None:
    values = [state.number(part) for part in text.split(",")] if text else []
    known = tuple(value for value in values if value is not None and value <= 1.0)
    return known if known and len(known) == len(values) else None
