"""The queries an outcome model was learned on: who they are, what came of them, who is near."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hydra_core.outcome_model.raw import Raw
from hydra_core.types import Float32Array, FloatArray, IntArray

__all__ = ["Learned", "text_digests"]


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """One row a query; models in the order of the outcome model.

    Attributes:
        query_ids: (n,) ids.
        texts: (n,) digests of the texts; empty where the set had none.
        columns: (n, p) standardised features, half precision.
        quality: (n, m) outcomes, NaN where there is none.
        raw: What heads said of each query that had not seen it (cross-fitted).
    """

    query_ids: npt.NDArray[np.str_]
    texts: npt.NDArray[np.uint64]
    columns: npt.NDArray[np.float16]
    quality: FloatArray
    raw: Raw

    def nearest(self, columns: Float32Array, count: int = 5) -> tuple[IntArray, FloatArray]:
        """Rows and similarities (cosine, at most 1) of the learned queries most like one message.

        Args:
            columns: (p,) its standardised features.
        """
        mine = self.columns.astype(np.float32)
        length = np.linalg.norm(mine, axis=1) * max(float(np.linalg.norm(columns)), 1e-12)
        likeness = (mine @ columns) / np.maximum(length, 1e-12)
        best = np.argsort(-likeness, kind="stable")[:count]
        return best, likeness[best].astype(np.float64)

    def rows_of(self, query_ids: Sequence[str], texts: npt.NDArray[np.uint64]) -> IntArray:
        """(k,) the learned row of each query of another table, -1 where it was not learned on."""
        if self.texts.size and texts.size:
            return _places(self.texts, texts)
        return _places(self.query_ids, np.array(query_ids, dtype=np.str_))

    def shares(self, query_ids: Sequence[str], texts: npt.NDArray[np.uint64]) -> int:
        """How many of these queries were learned on: by text, where both sides have texts."""
        return int((self.rows_of(query_ids, texts) >= 0).sum())


def _places(known: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> IntArray:
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known, wanted, sorter=order), known.size - 1)
    found: IntArray = np.where(known[order[at]] == wanted, order[at], -1)
    return found


def text_digests(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """(n,) the first eight bytes of each text's SHA-256; blanks at the ends do not count."""
    heads = b"".join(
        hashlib.sha256(text.strip().encode("utf-8", "surrogatepass")).digest()[:8] for text in texts
    )
    return np.frombuffer(heads, dtype="<u8").astype(np.uint64)
