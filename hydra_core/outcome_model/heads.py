"""The fitted parts of an outcome model, as plain arrays: linear heads and forests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hydra_core.base.types import Float32Array, IntArray

_CHUNK = 1_024
#: Predicted success nearer to 0 or 1 than this counts as this near.
_CERTAIN = 0.03


def log_odds(success: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Success in [0, 1] -> its log odds, within +-3.5."""
    inside = np.clip(success, _CERTAIN, 1.0 - _CERTAIN)
    result: npt.NDArray[np.floating] = np.log(inside / (1.0 - inside))
    return result


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """(n, p) columns -> (n, q): columns @ weights + offset.

    Attributes:
        weights: (p, q).
        offset: (q,).
    """

    weights: Float32Array
    offset: Float32Array

    def __call__(self, columns: Float32Array) -> Float32Array:
        """(n, p) -> (n, q)."""
        result: Float32Array = columns @ self.weights + self.offset
        return result


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """The mean of regression trees, all in one set of arrays.

    A node sends a message to `left` where its column is at most the threshold, else to `left + 1`;
    a leaf sends everything to itself (threshold infinity), so every tree is walked `depth` steps.

    Attributes:
        column: (nodes,) which column is looked at.
        threshold: (nodes,) infinity at a leaf.
        left: (nodes,) the next node.
        value: (nodes, q) what a leaf says; 0 elsewhere.
        roots: (trees,) first node of each tree.
        depth: Steps to the deepest leaf.
    """

    column: IntArray
    threshold: Float32Array
    left: IntArray
    value: Float32Array
    roots: IntArray
    depth: int

    def __call__(self, columns: Float32Array) -> Float32Array:
        """(n, p) -> (n, q)."""
        if len(columns) == 1:
            return self._one(columns[0])
        result = np.empty((len(columns), self.value.shape[1]), dtype=np.float32)
        for start in range(0, len(columns), _CHUNK):
            part = slice(start, start + _CHUNK)
            self._many(columns[part], result[part])
        return result

    def _one(self, row: Float32Array) -> Float32Array:
        at = self.roots
        for _ in range(self.depth):
            at = self.left[at] + (row[self.column[at]] > self.threshold[at])
        mean: Float32Array = self.value[at].mean(axis=0, keepdims=True, dtype=np.float64)
        return mean.astype(np.float32)

    def _many(self, columns: Float32Array, out: npt.NDArray[np.float32]) -> None:
        total = np.zeros(out.shape)
        flat, start = columns.reshape(-1), columns.shape[1] * np.arange(len(columns))
        for root in self.roots:
            at = np.full(len(columns), root)
            for _ in range(self.depth):
                at = self.left[at] + (flat[start + self.column[at]] > self.threshold[at])
            total += self.value[at]
        out[:] = total / len(self.roots)
