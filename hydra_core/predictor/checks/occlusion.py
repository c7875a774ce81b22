"""Which words raised which requirement: the change of every score when a word is left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.types import FloatArray

__all__ = ["Occlusion", "occlude", "spans"]

#: Runs of letters or digits with what hangs on them; scripts without spaces go by two characters.
_WORD = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{1,2}|\S+?(?=[\s\u0e00-"
                   r"\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|$)")  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Occlusion:
    """Effect of each span on each requirement.

    Attributes:
        spans: (s,) start and end character of each span.
        effect: (s, K) score with the span minus score without it; > 0 means the span raised it.
        requirements: (K,) scores of the whole message.
        looked_at: Characters looked at; the rest of a long message is left as it is.
    """

    spans: tuple[tuple[int, int], ...]
    effect: FloatArray
    requirements: FloatArray
    looked_at: int


def spans(text: str, most: int = 64, chars: int = 2_000) -> tuple[tuple[int, int], ...]:
    """Words of the first `chars` characters, neighbours joined until there are at most `most`."""
    words = [match.span() for match in _WORD.finditer(text[:chars])]
    size = -(-len(words) // most) if words else 1
    groups = [words[i : i + size] for i in range(0, len(words), size)]
    return tuple((group[0][0], group[-1][1]) for group in groups)


def occlude(
    predictor: Predictor,
    text: str,
    *,
    turn: int = 1,
    most: int = 64,
    progress: Callable[[int, int], None] | None = None,
) -> Occlusion:
    """Score the message once whole and once without each span, on all cores.

    Args:
        predictor: A loaded predictor.
        text: The message.
        turn: Its user turn.
        most: Most spans, so most runs.
        progress: Called with (done, total).
    """
    parts = spans(text, most)
    texts = [text, *(text[:start] + text[end:] for start, end in parts)]
    scores = predictor.predict_batches(texts, turns=[turn] * len(texts), progress=progress)
    whole = scores.requirements[0]
    effect = np.asarray(whole[None, :] - scores.requirements[1:], dtype=np.float64)
    looked_at = parts[-1][1] if parts else 0
    return Occlusion(parts, effect, whole, looked_at)
