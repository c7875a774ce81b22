"""Counting tokens, and where the predictor stopped reading a long message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from hydra_core.predictor.bundle import Bundle
from hydra_core.predictor.graph import first_line, foreign
from hydra_core.predictor.signals import signal_prefix

if TYPE_CHECKING:
    import tokenizers

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


#: A text is tokenised up to this many characters; the rest is estimated in proportion.
_EXACT_CHARS = 100_000


@dataclass(frozen=True, slots=True)
class Gap:
    """The part of a message that the predictor did not see, as characters [start, end)."""

    start: int
    end: int


def open_tokenizer(bundle: Bundle) -> tokenizers.Tokenizer:
    """A bundle's tokenizer, which neither pads nor truncates: `shorten` does, and keeps the end.

    Raises:
        BundleError: The file is no tokenizer.
    """
    from tokenizers import Tokenizer  # importing the package loads no runtime

    try:
        tokenizer = Tokenizer.from_file(str(bundle.path / bundle.tokenizer))
    except Exception as error:  # the library raises nothing narrower
        message = f"is not a tokenizer: {first_line(error)}"
        raise foreign(bundle, bundle.tokenizer, message) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


class TokenCounter:
    """Counts with a bundle's tokenizer; other providers' tokenizers count differently."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle, self._tokenizer = bundle, open_tokenizer(bundle)

    def count(self, text: str) -> int:
        """Tokens of a text without special tokens; estimated beyond 100,000 characters."""
        seen = text[:_EXACT_CHARS].encode("utf-8", "replace").decode("utf-8")
        if not seen:
            return 0
        tokens = len(self._tokenizer.encode(seen, add_special_tokens=False).ids)
        return round(tokens * len(text) / len(seen))

    def starts(self, text: str) -> frozenset[int]:
        """Where the tokenizer begins a piece, as characters of the text's beginning."""
        seen = text[:_EXACT_CHARS].encode("utf-8", "replace").decode("utf-8")
        encoding = self._tokenizer.encode(seen, add_special_tokens=False)
        return frozenset(start for start, _ in encoding.offsets)

    def gap(self, text: str, turn: int = 1) -> Gap | None:
        """What of the message was left out under the bundle's token cap, None if nothing."""
        cap = self._bundle.max_tokens
        before = self._bundle.before
        whole = model_text(text, turn, cap, before)
        encoding = self._tokenizer.encode(whole)
        limit = cap * CHARS_PER_TOKEN
        if len(encoding.ids) <= cap and len(text) <= limit:
            return None
        lead = len(before) + len(signal_prefix(text, turn))
        tail = int(cap * TAIL_SHARE)
        ends = [end for _, end in encoding.offsets]
        starts = [start for start, _ in encoding.offsets]
        shown = min(len(text), limit)
        if len(ends) <= cap:  # only the characters beyond the limit were dropped
            keep = int(limit * TAIL_SHARE)
            return Gap(limit - keep, len(text) - keep)
        head_end = ends[cap - tail - 1] - lead
        from_end = len(whole) - starts[len(starts) - tail]
        start = min(max(head_end, 0), shown)
        return Gap(start, max(len(text) - max(from_end, 0), start))
