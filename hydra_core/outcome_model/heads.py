"""Success heads: what they read of a message, their fitted arrays, and what they say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra_core.base.types import Float32Array, FloatArray, IntArray
from hydra_core.predictor.signals import COUNTS, CountArray

#: What can be read, in this order of columns; a model reads some of them.
BLOCKS: Final = ("requirements", "length", "words", "vectors")

_AnyFloat = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    """What is known of n messages before they are answered.

    Attributes:
        requirements: (n, K) scores of the predictor bundle.
        vectors: (n, d) text vectors of the same bundle, half precision.
        counts: (n, 6) surface counts.
    """

    requirements: FloatArray
    vectors: npt.NDArray[np.float16]
    counts: CountArray

    def take(self, rows: IntArray) -> Messages:
        return Messages(self.requirements[rows], self.vectors[rows], self.counts[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """The way from messages to columns, fixed when the model was learned.

    Attributes:
        blocks: Which of `BLOCKS` are read.
        centre: (d,) mean unit vector of what was learned on.
        directions: (d, k) principal directions that the vector is reduced to.
        mean: (p,) of the columns, to standardise them.
        scale: (p,) likewise, > 0.
    """

    blocks: tuple[str, ...]
    centre: Float32Array
    directions: Float32Array
    mean: Float32Array
    scale: Float32Array

    def columns(self, messages: Messages) -> Float32Array:
        """(n, p) standardised columns: small blocks first, then the reduced vector."""
        raw = self.raw(messages)
        return (raw - self.mean) / self.scale

    def raw(self, messages: Messages) -> Float32Array:
        """(n, p) columns before they are standardised."""
        parts = [small_columns(messages, self.blocks)]
        if "vectors" in self.blocks:
            moved = unit_rows(messages.vectors) - self.centre
            parts.append(np.asarray(moved @ self.directions, dtype=np.float32))
        return np.concatenate(parts, axis=1)

    def with_products(self, columns: Float32Array) -> Float32Array:
        """The columns and all products of two of the small ones, for the linear heads."""
        small = columns[:, : columns.shape[1] - self.directions.shape[1]]
        first, second = np.triu_indices(small.shape[1])
        return np.concatenate([columns, small[:, first] * small[:, second]], axis=1)


def small_columns(messages: Messages, blocks: Sequence[str]) -> Float32Array:
    """(n, s) requirements, log length, and log counts and densities of words, as asked for."""
    counts = messages.counts.astype(np.float32)
    logs = np.log1p(counts)
    parts = [np.empty((len(counts), 0), dtype=np.float32)]
    if "requirements" in blocks:
        parts.append(messages.requirements.astype(np.float32))
    if "length" in blocks:
        parts.append(logs[:, :1])
    if "words" in blocks:
        size = np.maximum(counts[:, :1], 1.0)
        parts += [logs[:, 1:], np.minimum(counts[:, _DENSE] / size, 1.0)]
    return np.concatenate(parts, axis=1)


#: Counts whose share of the characters is read as well.
_DENSE: Final = [COUNTS.index(name) for name in ("digits", "marks", "capitals")]


def unit_rows(vectors: _AnyFloat) -> Float32Array:
    """(n, d) rows of length 1 in single precision, whatever precision they came in."""
    # through half precision, so that a message read now and one kept in a file are the same
    rows = vectors.astype(np.float16).astype(np.float32)
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    result: Float32Array = rows / np.maximum(length, 1e-12)
    return result


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
        return columns @ self.weights + self.offset


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


@dataclass(frozen=True, slots=True, eq=False)
class Raw:
    """What the heads say of n messages, before a pool and its prices are known.

    Attributes:
        shared: (n, 1) f0.
        difference: (n, m) each model's difference from it.
        cost_usd: (n, m) log of the cost as it was when the heads were learned.
        input_tokens: (n, m) log of the tokens read; (n, 0) where they are not known.
        output_tokens: (n, m) log of the tokens written; likewise.
    """

    shared: Float32Array
    difference: Float32Array
    cost_usd: Float32Array
    input_tokens: Float32Array
    output_tokens: Float32Array

    def take(self, rows: IntArray) -> Raw:
        return Raw(*(getattr(self, name)[rows] for name in Raw.__slots__))


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """Predictions for n messages and the m models of a pool.

    Attributes:
        success: (n, m) in [0, 1].
        cost_usd: (n, m) USD of the query.
    """

    success: FloatArray
    cost_usd: FloatArray

    def take(self, rows: IntArray) -> Predicted:
        return Predicted(self.success[rows], self.cost_usd[rows])
