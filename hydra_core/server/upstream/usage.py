"""Tokens that an upstream reports, found on the way through; an answer's bytes stay as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_MOST_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer; `cached` are those of `input` that came from the prompt cache."""

    input: int
    cached: int
    output: int


def usage_of(body: bytes) -> Usage | None:
    """The usage in an answer, None where it holds none."""
    if len(body) > _MOST_BYTES or b'"usage"' not in body:
        return None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return _usage(found.get("usage")) if isinstance(found, dict) else None


class StreamTap:
    """Watches a stream of server-sent events go by.

    Args:
        strip: Take out the last event that holds nothing but the usage, where HyDRA asked for it
            and the client did not.
    """

    def __init__(self, *, strip: bool) -> None:
        self._strip = strip
        self._rest = b""
        self.usage: Usage | None = None

    def feed(self, piece: bytes) -> bytes:
        """What of the stream so far may go on: whole events."""
        waiting = self._rest + piece
        blank = b"\r\n\r\n" if b"\r\n\r\n" in waiting else b"\n\n"
        whole, end, self._rest = waiting.rpartition(blank)
        if not end:
            if len(self._rest) > _MOST_BYTES:
                piece, self._rest = self._rest, b""
                return piece
            return b""
        events = whole + end
        if b'"usage"' not in events:
            return events
        return b"".join(event + end for event in whole.split(end) if self._goes_on(event))

    def rest(self) -> bytes:
        """What is left when the stream has ended."""
        return self._rest

    def _goes_on(self, event: bytes) -> bool:
        _, data, text = event.partition(b"data:")
        if not data or b'"usage"' not in text:
            return True
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return True
        usage = _usage(found.get("usage")) if isinstance(found, dict) else None
        if usage is None:
            return True
        self.usage = usage
        return not (self._strip and found.get("choices") == [])


def _usage(found: object) -> Usage | None:
    if not isinstance(found, Mapping):
        return None
    details = found.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else 0
    given = _count(found.get("prompt_tokens"))
    return Usage(given, min(cached, given), _count(found.get("completion_tokens")))


def _count(value: Any) -> int:  # noqa: ANN401 (decoded JSON)
    counted = isinstance(value, int) and not isinstance(value, bool)
    return value if counted and 0 < value < 2**53 else 0
