"""Counting tokens, and where the predictor stopped reading a long message."""

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import Tokenizer

from hydra_core.predictor.bundle import Bundle
from hydra_core.predictor.inputs import CHARS_PER_TOKEN, TAIL_SHARE, model_text
from hydra_core.predictor.signals import signal_prefix

__all__ = ["Gap", "TokenCounter"]

#: A text is tokenised up to this many characters; the rest is estimated in proportion.
_EXACT_CHARS = 100_000


@dataclass(frozen=True, slots=True)
class Gap:
    """The part of a message that the predictor did not see, as characters [start, end)."""

    start: int
    end: int


class TokenCounter:
    """Counts with a bundle's tokenizer; other providers' tokenizers count differently.

    Args:
        bundle: A checked bundle.
    """

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._tokenizer = Tokenizer.from_file(str(bundle.path / bundle.tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

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
