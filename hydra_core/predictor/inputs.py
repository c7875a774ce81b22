"""What the model sees of a message, the same at training and at run time.

Signal prefix and message under one token cap. Of a message with more tokens than the cap, the head
and the last quarter are kept: the request itself often stands at the end, after a pasted log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hydra_core.predictor.signals import signal_prefix

__all__ = ["CHARS_PER_TOKEN", "TAIL_SHARE", "cut", "model_text", "shorten"]

#: A message is cut to this many characters per token of the cap before it is tokenised. Running
#: text has 1.5 (Chinese) to 5 (English) per token; a message of 10,000 tokens would cost 12 ms.
CHARS_PER_TOKEN = 12

#: The part of the cap that belongs to a long message's end.
TAIL_SHARE = 0.25

_GAP = " … "

_T = TypeVar("_T")


def shorten(ids: Sequence[_T], max_tokens: int) -> list[_T]:
    """At most `max_tokens` of `ids` (special tokens included): the head and the last quarter."""
    if len(ids) <= max_tokens:
        return list(ids)
    tail = int(max_tokens * TAIL_SHARE)
    return [*ids[: max_tokens - tail], *ids[len(ids) - tail :]]


def cut(text: str, max_tokens: int) -> str:
    """`text` without the middle that `shorten` would drop anyway, so that it need not be tokenised.

    Only a message of more than `CHARS_PER_TOKEN` characters per token (long runs of one sign or of
    blanks) loses something here that `shorten` would have kept.
    """
    limit = max_tokens * CHARS_PER_TOKEN
    if len(text) <= limit:
        return text
    tail = int(limit * TAIL_SHARE)
    return text[: limit - tail] + _GAP + text[-tail:]


def model_text(
    text: str,
    turn: int,
    max_tokens: int,
    before: str = "",
    *,
    prefix: bool = True,
    context: str = "",
) -> str:
    """`before`, signal prefix, context and message, valid Unicode whatever the message was.

    Args:
        text: The current user message, any string.
        turn: Its number among the user turns of the conversation, from 1.
        max_tokens: The cap that the tokens will be shortened to.
        before: Fixed text of the bundle.
        prefix: False leaves the signal prefix out, to measure what it is worth.
        context: What came before, for a bundle that reads it.
    """
    signals = signal_prefix(text, turn) if prefix else ""
    whole = f"{before}{signals}{context}{cut(text, max_tokens)}"
    return _without_lone_surrogates(whole)


def _without_lone_surrogates(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
