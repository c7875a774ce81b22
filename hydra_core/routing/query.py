"""One request to route."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Query"]


@dataclass(frozen=True, slots=True)
class Query:
    """One request to route.

    Attributes:
        text: The current user message.
        turn: Number of the user turn, from 1.
        conversation_id: Key of the conversation, None for a single request.
        prefix: The earlier user messages, oldest first (per-content stickiness only).
        has_image: An image is attached: only models with vision can serve it.
        needs_tools: The request declares tools: only models with tool use can serve it.
        context_tokens: Tokens the chosen model must take in (history included), if known.
        allow: Only these models, None for all.
        deny: Never these models.
        compacted: This turn follows an explicit compaction or a background summarisation.
        current: The model the caller is on now, where no session store knows it.
        spent_usd: What the conversation has cost so far, as the caller knows it.
        context: What came before, in the form of `conversations/context.py`; only a bundle that
            was trained on it reads it.
    """

    text: str
    turn: int = 1
    conversation_id: str | None = None
    prefix: tuple[str, ...] = ()
    has_image: bool = False
    needs_tools: bool = False
    context_tokens: int = 0
    allow: frozenset[str] | None = None
    deny: frozenset[str] = frozenset()
    compacted: bool = False
    current: str | None = None
    spent_usd: float = 0.0
    context: str = ""
