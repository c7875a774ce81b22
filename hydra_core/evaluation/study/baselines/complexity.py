"""A free score of how complex a message looks, in the manner of LiteLLM's complexity router.

Weighted signs in the text, no model and no labels: length, code, words of reasoning and of
technique, several steps, questions, and words of a plain request, which count against.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from hydra_core.types import FloatArray

__all__ = ["complexity"]

_SHORT, _LONG = 15, 400
_LOOKED_AT: Final = 8_000
#: Weight, how many hits count in full, and what is looked for.
_SIGNS: Final = (
    (0.30, 2, r"```|\bdef \w+\(|\bclass \w+|\bimport \w+|function\s*\(|\bSELECT\b|#include|"
              r"=>|\{\s*$"),
    (0.25, 2, r"\b(step by step|reason|prove|proof|derive|analy[sz]e|explain why|think|deduce|"
              r"justify|trade-?offs?|compare)\b"),
    (0.25, 4, r"\b(algorithm|architecture|database|distributed|concurren\w+|encrypt\w*|latency|"
              r"kubernetes|api|complexity|optimi[sz]\w+|theorem|integral|matrix|protocol|"
              r"equation|probability|regression|compiler)\b"),
    (-0.05, 1, r"\b(what is|who is|when (is|was)|define|hello|hi|thanks|translate)\b"),
    (0.03, 1, r"\b(first|then|next|finally)\b.*\b(then|next|finally)\b|^\s*\d+[.)]\s"),
    (0.02, 4, r"\?"),
)  # fmt: skip
_FOUND: Final = tuple(
    (weight, full, re.compile(pattern, re.IGNORECASE | re.MULTILINE))
    for weight, full, pattern in _SIGNS
)
_LENGTH: Final = 0.10


def complexity(texts: Sequence[str]) -> FloatArray:
    """(n,) messages -> (n,) scores, higher for what looks harder; only their order matters."""
    return np.array([_score(text[:_LOOKED_AT]) for text in texts], dtype=np.float64)


def _score(text: str) -> float:
    words = len(text.split())
    score = _LENGTH * min(max((words - _SHORT) / (_LONG - _SHORT), 0.0), 1.0)
    for weight, full, pattern in _FOUND:
        hits = sum(1 for _ in zip(range(full), pattern.finditer(text), strict=False))
        score += weight * hits / full
    return score
