"""Ridge regression for every penalty at once, from one eigendecomposition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra_core.outcome_model.heads import Linear
from hydra_core.types import FloatArray

__all__ = ["PENALTIES", "Path", "ridge_path"]

#: Penalties tried, each times the number of queries (columns have unit spread).
PENALTIES: Final = np.geomspace(1e-3, 30.0, 19)
_AnyFloat = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """All ridge solutions of one regression.

    Attributes:
        values: (p,) eigenvalues of the centred columns' Gram matrix.
        vectors: (p, p) its eigenvectors.
        rotated: (p, q) what the targets say along them.
        centre: (p,) mean of the columns.
        mean: (q,) mean of the targets.
        n: Rows.
    """

    values: FloatArray
    vectors: FloatArray
    rotated: FloatArray
    centre: FloatArray
    mean: FloatArray
    n: int

    def predict_all(self, columns: _AnyFloat) -> FloatArray:
        """(n, p) -> (penalties, n, q)."""
        turned = (columns - self.centre) @ self.vectors
        scaled = self.rotated[None] / (self.values + self.n * PENALTIES[:, None])[:, :, None]
        result: FloatArray = turned @ scaled + self.mean
        return result

    def heads(self, penalty: float) -> Linear:
        """The solution at one penalty."""
        weights = self.vectors @ (self.rotated / (self.values + self.n * penalty)[:, None])
        offset = self.mean - self.centre @ weights
        return Linear(weights.astype(np.float32), offset.astype(np.float32))


def ridge_path(columns: _AnyFloat, wanted: FloatArray) -> Path:
    """(n, p), (n, q) -> the solutions; the intercept is not penalised."""
    centre = columns.mean(axis=0, dtype=np.float64)
    mean = wanted.mean(axis=0)
    moved = columns - centre.astype(columns.dtype)
    gram = (moved.T @ moved).astype(np.float64)
    values, vectors = np.linalg.eigh(gram)
    rotated = vectors.T @ (moved.T @ (wanted - mean).astype(columns.dtype)).astype(np.float64)
    return Path(np.maximum(values, 0.0), vectors, rotated, centre, mean, len(columns))
