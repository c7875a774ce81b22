"""Which queries a set holds, so that a catalog knows them again: a digest, and some marks.

A mark is the start of a query's SHA-256. A catalog keeps the smallest marks of the queries it was
chosen on: whatever part of them comes back, in a renamed or cut-down list, brings its share of
these marks with it (a bottom-k sketch, Cohen & Kaplan 2007).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hydra_core.digests import text_sha256

__all__ = ["SAMPLE", "digest_of", "marks_of", "sample_of"]

#: How many marks are kept.
SAMPLE: Final = 16
_HEX: Final = 12


def digest_of(ids: Sequence[str], texts: Sequence[str] | None) -> str:
    """SHA-256 (hex) of the queries in any order: their ids, and texts where there are."""
    said = [""] * len(ids) if texts is None else texts
    parts = sorted(f"{name}\0{text}" for name, text in zip(ids, said, strict=True))
    return text_sha256("\0\0".join(parts))


def marks_of(ids: Sequence[str], texts: Sequence[str] | None) -> frozenset[str]:
    """The mark of every query: of its text, or of its id in a set without texts."""
    said = ids if texts is None else (" ".join(text.split()) for text in texts)
    return frozenset(text_sha256(text)[:_HEX] for text in said)


def sample_of(marks: Iterable[str]) -> tuple[str, ...]:
    """The smallest `SAMPLE` marks, in order."""
    return tuple(sorted(marks)[:SAMPLE])
