"""What can be counted in a message: characters, words, lines, digits, marks, capitals.

Success heads read these counts beside the text vector. Only the first 3,000 and the last 1,000
characters are looked at (as for the signals), so a hostile megabyte costs what 4,000 cost; the
number of characters is that of the whole message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra_core.predictor.signals import HEAD_CHARS, TAIL_CHARS

#: What is counted, in this order.
COUNTS: Final = ("chars", "words", "lines", "digits", "marks", "capitals")

CountArray = npt.NDArray[np.int32]

_LARGEST = np.iinfo(np.int32).max
_DIGITS, _CAPITALS = re.compile(r"\d+"), re.compile(r"[^\W\d_a-z]+")
_LETTERS = re.compile(r"[\w\s]+")


def surface_counts(texts: Sequence[str]) -> CountArray:
    """(n,) messages -> (n, 6) counts in the order of `COUNTS`."""
    return np.array([_counts(text) for text in texts], dtype=np.int32).reshape(-1, len(COUNTS))


def _counts(text: str) -> tuple[int, ...]:
    whole = len(text) <= HEAD_CHARS + TAIL_CHARS
    seen = text if whole else f"{text[:HEAD_CHARS]} {text[-TAIL_CHARS:]}"
    upper = sum(map(str.isupper, "".join(_CAPITALS.findall(seen))))
    return (
        min(len(text), _LARGEST),
        len(seen.split()),
        seen.count("\n"),
        len("".join(_DIGITS.findall(seen))),
        len(_LETTERS.sub("", seen)),
        upper,
    )
