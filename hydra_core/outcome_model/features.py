"""What success heads read of a message: requirements, length, words, the encoder's vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra_core.base.types import Float32Array, FloatArray
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

    def take(self, rows: npt.NDArray[np.intp]) -> Messages:
        """Some of the messages."""
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
        result: Float32Array = (raw - self.mean) / self.scale
        return result

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
