"""Tokens that an upstream reports, believed only where they can be true; else estimated.

What is more than the request and the model allow is no count: the cost is then unknown, never $0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from hydra_core.base.tokens import BYTES_PER_TOKEN
from hydra_core.base.types import ModelSpec
from hydra_core.routing.query import is_count
from hydra_core.server.chat import ChatRequest
from hydra_core.server.wire import counts_of

#: Tokens that providers add to a request of their own accord (templates, results of their tools).
_ADDED_TOKENS: Final = 20_000
_MOST_CHOICES: Final = 128


class Counted(StrEnum):
    """How a request's tokens are known."""

    COUNTED = "counted"
    ESTIMATED = "estimated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer; `cached` are those of `input` that came from the prompt cache."""

    input: int
    cached: int
    output: int


def usage_of(said: object, chat: ChatRequest, spec: ModelSpec) -> Usage | None:
    """The tokens that an answer's decoded `usage` reports, None where none can be true."""
    if not isinstance(said, Mapping):
        return None
    given, cached, output = map(_count, counts_of(said, chat.form))
    if given is None or output is None or cached is None:
        return None
    possible = 0 < given <= _most_input(chat, spec) and output <= _most_output(chat, spec)
    return Usage(given, cached, output) if possible and cached <= given else None


def estimate_of(chat: ChatRequest, written: int) -> Usage:
    """About how many tokens a request took whose answer has so many bytes."""
    return Usage(max(1, chat.input_tokens), 0, round(written / BYTES_PER_TOKEN))


def _most_input(chat: ChatRequest, spec: ModelSpec) -> int:
    """More tokens cannot have been read: a token has at least a byte, unless an image is behind."""
    if not chat.size:
        return spec.context_window
    estimated = max(chat.size, chat.input_tokens)
    return min(spec.context_window, estimated + _ADDED_TOKENS)


def _most_output(chat: ChatRequest, spec: ModelSpec) -> int:
    choices = _count(chat.body.get("n")) or 1
    limit = chat.query.output_tokens or spec.context_window
    return min(limit, spec.context_window) * min(choices, _MOST_CHOICES)


def _count(value: Any) -> int | None:  # noqa: ANN401 (decoded JSON)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if is_count(value) else None
