"""Sticky sessions: which model a conversation keeps (paper section "Prompt-cache-preserving
sticky routing").

The router is asked on turn 1, after a compaction, and when the kept model cannot serve; every other
turn reuses the kept model, so that the provider's prompt cache stays warm. In the adaptive mode
every turn is scored, and the kept model is left once it falls short by more than tau and a margin.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from hydra_core.base.types import StickyMode
from hydra_core.routing.query import Query


class Sessions(Protocol):
    """Where kept models are remembered. `note` says what is wrong, '' when nothing is."""

    def get(self, key: str) -> str | None:
        """The kept model, or None when there is none or it has expired."""

    def put(self, key: str, model: str, ttl_s: float) -> None:
        """Remember a model for `ttl_s` seconds from now."""

    @property
    def note(self) -> str: ...


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """Where to look for a kept model and where to remember this turn's, None for neither."""

    look_up: str | None
    remember: str | None


def session_keys(mode: StickyMode, query: Query) -> SessionKeys:
    """The keys of one turn.

    Per-session and adaptive: the conversation id. Per-content: the id and the SHA-256 of the user
    messages so far, so that an edited or forked history is routed anew. Per-request: none.
    """
    if mode is StickyMode.PER_REQUEST or query.conversation_id is None:
        return SessionKeys(None, None)
    if mode in (StickyMode.PER_SESSION, StickyMode.ADAPTIVE):
        key = f"session:{query.conversation_id}"
        return SessionKeys(key, key)
    before, after = query.prefix, (*query.prefix, query.text)
    remember = f"content:{query.conversation_id}:{_digest(after)}"
    if query.continues:  # the request before this one ended with the same message
        return SessionKeys(remember, remember)
    return SessionKeys(
        f"content:{query.conversation_id}:{_digest(before)}" if before else None, remember
    )


def missing_prefix(mode: StickyMode, query: Query | None) -> str:
    """What a receipt says where per-content stickiness cannot know a later turn; '' else."""
    if mode is not StickyMode.PER_CONTENT or query is None or query.conversation_id is None:
        return ""
    if query.turn == 1 or query.prefix:
        return ""
    return (
        f"turn {query.turn} came without the earlier user messages (prefix), so stickiness per "
        "content could not recognise the conversation and the turn was routed afresh"
    )


def _digest(messages: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for message in messages:
        raw = message.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return digest.hexdigest()


class MemorySessions:
    """Sessions of one process: bounded, expiring, safe between threads.

    Oldest-used conversations are forgotten beyond `max_sessions`.
    """

    note = ""

    def __init__(
        self, max_sessions: int = 100_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max, self._clock = max_sessions, clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: str) -> str | None:
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            model, expires = found
            if expires <= self._clock():
                del self._kept[key]
                return None
            self._kept.move_to_end(key)
            return model

    def put(self, key: str, model: str, ttl_s: float) -> None:
        with self._lock:
            self._kept[key] = (model, self._clock() + ttl_s)
            self._kept.move_to_end(key)
            while len(self._kept) > self._max:
                self._kept.popitem(last=False)
