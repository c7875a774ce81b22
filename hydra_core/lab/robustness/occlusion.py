"""Which words raised which requirement: the change of every score when a word is left out."""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import numpy as np

from hydra_core.base.types import FloatArray
from hydra_core.predictor.onnx_predictor import Predictor

#: Scripts that put no spaces between words: Thai, Japanese, Chinese.
_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff"
#: A run of such a script, or what stands between spaces.
_WORD = re.compile(rf"([{_UNSPACED}]+)|\S+?(?=[\s{_UNSPACED}]|$)")
#: Characters that are looked at, and most spans, so most runs.
_CHARS, _SPANS = 2_000, 64


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


def spans(
    text: str, most: int = _SPANS, *, starts: Collection[int] | None = None
) -> tuple[tuple[int, int], ...]:
    """Words of the first 2,000 characters, neighbours joined until there are at most `most`.

    Args:
        starts: Where a tokenizer begins a piece: what parts scripts without spaces. Without it
            they go by two characters.
    """
    words: list[tuple[int, int]] = []
    for match in _WORD.finditer(text[:_CHARS]):
        first, last = match.span()
        cuts: Iterable[int] = ()
        if match[1]:
            inner = range(first + 2, last, 2) if starts is None else range(first + 1, last)
            cuts = [at for at in inner if starts is None or at in starts]
        edges = [first, *cuts, last]
        words += zip(edges, edges[1:], strict=False)
    size = -(-len(words) // most) if words else 1
    groups = [words[i : i + size] for i in range(0, len(words), size)]
    return tuple((group[0][0], group[-1][1]) for group in groups)


def occlude(
    predictor: Predictor,
    text: str,
    *,
    turn: int = 1,
    starts: Collection[int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Occlusion:
    """Score the message once whole and once without each span, on all cores.

    Args:
        starts: See `spans`.
        progress: Called with (done, total).
    """
    parts = spans(text, starts=starts)
    texts = [text, *(text[:start] + text[end:] for start, end in parts)]
    scores = predictor.predict_batches(texts, turns=[turn] * len(texts), progress=progress)
    whole = scores.requirements[0]
    effect = np.asarray(whole[None, :] - scores.requirements[1:], dtype=np.float64)
    looked_at = parts[-1][1] if parts else 0
    return Occlusion(parts, effect, whole, looked_at)
