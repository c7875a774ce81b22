"""What the Inspect page remembers, and the link that reopens it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hydra_core.routing.decision import Query
from hydra_core.types import Catalog
from hydra_core.ui import state
from hydra_core.views import samples

__all__ = ["LINK_CHARS", "Inspecting", "from_link", "get", "put", "to_link"]

#: Longer texts do not go into a link: servers and chats cut long addresses.
LINK_CHARS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Inspecting:
    """What is looked at.

    Attributes:
        catalog: Key of the catalog, '' for the default.
        tau: None for that of the policy being tuned, else of the catalog.
        weights: None likewise.
        text: The message; '' for none.
        other: The message to compare with.
        compare: Whether two messages are looked at.
        share_text: Whether the link carries the text.
        requirements: (K,) from a link that came without its text.
    """

    catalog: str = ""
    tau: float | None = None
    weights: tuple[float, ...] | None = None
    text: str = ""
    other: str = ""
    compare: bool = False
    share_text: bool = False
    turn: int = 1
    has_image: bool = False
    needs_tools: bool = False
    deny: tuple[str, ...] = ()
    requirements: tuple[float, ...] | None = None

    def query(self, text: str) -> Query:
        """The request that is routed."""
        return Query(
            text,
            self.turn,
            has_image=self.has_image,
            needs_tools=self.needs_tools,
            deny=frozenset(self.deny),
        )

    def tau_for(self, key: str, catalog: Catalog) -> float:
        """The tau in force: set here, else that of the policy being tuned, else the catalog's."""
        if self.tau is not None:
            return self.tau
        tuning = state.get()
        return tuning.tau_for(catalog) if tuning.catalog == key else catalog.policy.tau

    def weights_for(self, key: str, catalog: Catalog) -> tuple[float, ...]:
        """The stored weights in force, likewise."""
        if self.weights is not None and len(self.weights) == len(catalog.dimensions):
            return self.weights
        tuning = state.get()
        return tuning.weights_for(catalog) if tuning.catalog == key else catalog.policy.weights


def get() -> Inspecting:
    """The session's record."""
    return _INSPECTING.get()


def put(**changes: object) -> None:
    """Change some fields; a new text replaces requirements that a link had brought."""
    if "text" in changes:
        changes.setdefault("requirements", None)
    _INSPECTING.put(**changes)


def from_link(params: Mapping[str, str]) -> Inspecting:
    """Read a link's parameters; what cannot be read is ignored, never an error.

    A link without message and scores starts with a shipped example.
    """
    text = params.get("text", "")
    needs = None if text else _shares(params.get("r", ""))
    if not text and needs is None:
        text = samples.examples()[1].text
    return Inspecting(
        catalog=params.get("catalog", ""),
        tau=state.number(params.get("tau", "")),
        weights=state.numbers(params.get("w", "")),
        text=text,
        other=params.get("other", ""),
        compare=params.get("compare") == "1",
        share_text="text" in params,
        turn=_turn(params.get("turn", "")),
        has_image=params.get("image") == "1",
        needs_tools=params.get("tools") == "1",
        deny=tuple(name for name in params.get("deny", "").split(",") if name),
        requirements=needs,
    )


_INSPECTING = state.Remembered("inspect", from_link)


def to_link(
    now: Inspecting,
    key: str,
    tau: float,
    weights: tuple[float, ...],
    requirements: tuple[float, ...],
) -> dict[str, str]:
    """The parameters that reopen what is on screen; `from_link` reads them back.

    Without the text the link carries the requirements, so that the decision is the same.

    Args:
        key: Of the catalog used.
        requirements: (K,) of the message, empty when there is none.
    """
    link = {"catalog": key, "tau": repr(tau), "w": ",".join(map(repr, weights))}
    if now.share_text and now.text and len(now.text) + len(now.other) <= LINK_CHARS:
        link |= {"text": now.text, "other": now.other if now.compare else ""}
        link["compare"] = "1" if now.compare else ""
    else:
        link["r"] = ",".join(map(repr, requirements))
    link["turn"] = str(now.turn) if now.turn > 1 else ""
    link["image"] = "1" if now.has_image else ""
    link["tools"] = "1" if now.needs_tools else ""
    link["deny"] = ",".join(now.deny)
    return {name: value for name, value in link.items() if value}


def _turn(text: str) -> int:
    return min(max(int(text), 1), 99) if text.isascii() and text.isdigit() and len(text) < 4 else 1


def _shares(text: str) -> tuple[float, ...] | None:
    values = [state.number(part) for part in text.split(",")] if text else []
    known = tuple(value for value in values if value is not None and value <= 1.0)
    return known if known and len(known) == len(values) else None
