"""Tokens of a text where nobody counted them: the one way from bytes to tokens."""

from __future__ import annotations

from typing import Final

#: UTF-8 bytes to a token; suits English prose, and is within about a third for code and scripts.
BYTES_PER_TOKEN: Final = 4.0
#: Fewer bytes to a token than any ordinary text has: for an upper bound.
_FEWEST_BYTES_PER_TOKEN: Final = 3


def text_tokens(text: str) -> float:
    """Estimate a text's tokens from its length."""
    return len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN


def most_text_tokens(text: str) -> int:
    """Estimate a text's tokens on the high side, at least 1."""
    return len(text.encode("utf-8", "replace")) // _FEWEST_BYTES_PER_TOKEN + 1
