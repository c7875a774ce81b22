"""Appended claims of difficulty ("this needs a frontier model") are found and not scored.

A bundle's graph may have a second output `claims`, (n, t): for every token a logit that it belongs
to a claim about the request's difficulty rather than to the request. It comes out of the same run
as the scores, so a message without a claim costs nothing more. Where the end of a message is one,
the message is scored again without it (paper appendix on adversarial suffixes: suffix filtering).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from hydra_core.types import FloatArray, IntArray

__all__ = ["MOST_CLAIMS", "claim_start"]

#: Claims taken off the end of one message, one after the other.
MOST_CLAIMS = 3

#: Mean logit from which a tail counts as a claim, and the fewest tokens that can be one. Of several
#: tails that count, the one with the largest sum is taken: the likeliest place where it begins.
_THRESHOLD = 0.0
_FEWEST_TOKENS = 6
_BOUND = 6.0

#: Mean logit below which the first words of a claim's sentence are taken for the request.
_REQUEST = -2.5

#: Where a claim may begin: after blanks or punctuation, or at a bracket.
_CUT = re.compile(r"(?<=[\s.。!！?？;；:：)\]】»\"”*>-])(?=\S)|(?=[\[(<])")
_SENTENCE = re.compile(r"(?:[.!?؟]+[\s\"”»)]*\s|[。！？]|\n)\s*")


def claim_start(text: str, offsets: Sequence[tuple[int, int]], logits: FloatArray) -> int | None:
    """Where a trailing claim of difficulty begins, None where there is none.

    Args:
        text: The message.
        offsets: (t,) characters of each token in `text`; empty or negative ones are no part of it.
        logits: (t,) claim logit of each token.

    Returns:
        A position > 0 with something other than blanks before it.
    """
    ends = np.array([end if end > max(start, 0) else -1 for start, end in offsets])
    inside = ends > 0
    bounded = np.where(inside, np.clip(logits, -_BOUND, _BOUND), 0.0)
    if bounded.max(initial=0.0) <= _THRESHOLD:
        return None
    sums = np.cumsum(bounded[::-1])[::-1]
    counts = np.cumsum(inside[::-1], dtype=np.intp)[::-1]
    furthest = np.maximum.accumulate(ends)
    best, found = 0.0, None
    for match in _CUT.finditer(text):
        first = int(np.searchsorted(furthest, match.start(), side="right"))
        if first >= len(counts) or counts[first] < _FEWEST_TOKENS:
            break
        claimed = sums[first] > _THRESHOLD * counts[first]
        if claimed and sums[first] > best and text[: match.start()].strip():
            best, found = sums[first], match.start()
    return None if found is None else _sentence_start(text, found, furthest, sums, counts)


def _sentence_start(
    text: str, found: int, furthest: IntArray, sums: FloatArray, counts: IntArray
) -> int:
    """The start of the sentence that `found` stands in, unless its first words are the request."""
    starts = [match.end() for match in _SENTENCE.finditer(text, 0, found) if match.end() > 0]
    if not starts or not text[: starts[-1]].strip():
        return found
    here, there = np.searchsorted(furthest, [starts[-1], found], side="right")
    tokens = counts[here] - counts[there]
    between = sums[here] - sums[there]
    return starts[-1] if tokens and between > _REQUEST * tokens else found
