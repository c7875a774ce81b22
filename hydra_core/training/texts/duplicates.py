"""Near-duplicate texts by MinHash, and groups of things that belong together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

_PRIME = np.uint64((1 << 61) - 1)
_SHINGLE = 8
_BANDS, _ROWS = 12, 4


class Components:
    """Union-find over 0..n-1."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def _root(self, i: int) -> int:
        while self._parent[i] != i:
            self._parent[i] = self._parent[self._parent[i]]
            i = self._parent[i]
        return i

    def join(self, a: int, b: int) -> None:
        """Put a and b into one group."""
        a, b = sorted((self._root(a), self._root(b)))
        self._parent[b] = a

    def numbers(self) -> NDArray[np.int64]:
        """(n,) the group number (smallest member) of every item."""
        return np.array([self._root(i) for i in range(len(self._parent))], np.int64)


def near_duplicates(texts: Sequence[str], *, characters: int = 1000) -> list[tuple[int, int]]:
    """Pairs of texts whose estimated Jaccard similarity is about .65 or more.

    Args:
        texts: compared by character shingles of letters and digits only.
        characters: how much of the head of each text is looked at.
    """
    rng = np.random.default_rng(0)
    a = rng.integers(1, 1 << 31, _BANDS * _ROWS, dtype=np.uint64)
    b = rng.integers(0, 1 << 31, _BANDS * _ROWS, dtype=np.uint64)
    first: dict[tuple[int, bytes], int] = {}
    signatures = [_signature(text[:characters], a, b) for text in texts]
    pairs: dict[tuple[int, int], None] = {}
    for i, signature in enumerate(signatures):
        for band in range(_BANDS):
            key = (band, signature[band * _ROWS : (band + 1) * _ROWS].tobytes())
            j = first.setdefault(key, i)
            if j != i and np.mean(signatures[i] == signatures[j]) >= 0.65:
                pairs[j, i] = None
    return list(pairs)


def _signature(text: str, a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.uint64]:
    plain = re.sub(r"[\W_]+", " ", text.lower()).strip()
    shingles = {plain[i : i + _SHINGLE] for i in range(max(1, len(plain) - _SHINGLE + 1))}
    hashes = np.array([crc32(s.encode("utf-8", "replace")) for s in shingles], np.uint64)
    values: NDArray[np.uint64] = ((hashes[:, None] * a + b) % _PRIME).min(0)
    return values
