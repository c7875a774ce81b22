"""Tokens of a text where nobody counted them, and of an answer where not all were counted."""

import json
from collections.abc import Mapping
from typing import Any, Final

#: UTF-8 bytes to a token; suits English prose, and is within about a third for code and scripts.
BYTES_PER_TOKEN: Final = 4.0
#: Tokens counted for one image; providers bill some hundreds to about 1,500.
IMAGE_TOKENS: Final = 1_000
#: The most that a provider bills one image as: gpt-4o-mini bills 2,833 tokens and 5,667 for each of
#: at most eight tiles, 48,169 in all.
MOST_IMAGE_TOKENS: Final = 50_000
#: Fewer bytes to a token than any ordinary text has: for an upper bound.
_FEWEST_BYTES_PER_TOKEN: Final = 3


def text_tokens(text: str) -> float:
    """Estimate a text's tokens from its length."""
    return len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN


def most_text_tokens(text: str) -> int:
    """Estimate a text's tokens on the high side, at least 1."""
    return len(text.encode("utf-8", "replace")) // _FEWEST_BYTES_PER_TOKEN + 1


#: Where DeepSeek and Moonshot say what came from the prompt cache.
_CACHED: Final = ("prompt_cache_hit_tokens", "cached_tokens")


def cached_input(usage: Mapping[str, Any], details: str) -> object:
    """What a provider says came from the prompt cache, not yet checked; 0 where it says nothing.

    Args:
        details: Where OpenAI says it.
    """
    inner = usage.get(details)
    found = inner.get("cached_tokens") if isinstance(inner, Mapping) else None
    if found is not None:
        return found
    return next((usage[name] for name in _CACHED if usage.get(name) is not None), 0)


def output_with_thinking(read: int, written: int, total: object, cached: object = 0) -> int:
    """Output tokens with those of thinking: Gemini and xAI count these in the total alone.

    Args:
        total: What a provider says, if it does.
        cached: What of the input came from the cache; some count it beside `read`.
    """
    beside = total - read - written if isinstance(total, int) else 0
    return written + beside if beside > 0 and beside != cached else written


def most_turn_tokens(turn: Mapping[str, Any], *, seen: bool) -> int:
    """The most tokens that a message counts as; an image's bytes or address say nothing of it.

    Args:
        seen: Whether its images are sent, too: a judge gets the text alone.
    """
    content = turn.get("content")
    parts = content if isinstance(content, list) else []
    images = [one for one in parts if isinstance(one, Mapping) and "image" in str(one.get("type"))]
    if images:
        turn = {**turn, "content": [one for one in parts if one not in images]}
    return most_text_tokens(json.dumps(turn)) + seen * MOST_IMAGE_TOKENS * len(images)
