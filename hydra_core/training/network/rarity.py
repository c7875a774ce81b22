"""Weights for rare labels: most messages are easy, and a plain loss hardly looks at the others.

Label distribution smoothing (Yang et al. 2021): the labels of each dimension are counted in bins,
the counts are smoothed over neighbouring labels, and a label weighs the inverse of that to a power.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Rarity", "rarity_of"]

FloatArray = NDArray[np.float32]
_BINS = np.linspace(0.0, 1.0, 21)
_WIDTH = 0.08  # of the smoothing, in labels: a little under one step of the scale
_MOST = 4.0


@dataclass(frozen=True, slots=True)
class Rarity:
    """(bins, K) weights of labels at `_BINS`; the commonest label of a dimension weighs 1."""

    weights: FloatArray

    def __call__(self, targets: FloatArray) -> FloatArray:
        """(n, K) targets -> (n, K) weights."""
        each = [np.interp(targets[:, k], _BINS, w) for k, w in enumerate(self.weights.T)]
        return np.stack(each, 1).astype(np.float32)


def rarity_of(labels: FloatArray, power: float) -> Rarity:
    """(n, K) labels -> weights; `power` 0 weighs all alike, 0.5 is the usual square root."""
    edges = np.append(_BINS - 0.025, 1.025)
    near = np.exp(-0.5 * ((_BINS[:, None] - _BINS) / _WIDTH) ** 2)
    near /= near.sum(1, keepdims=True)
    columns = []
    for k in range(labels.shape[1]):
        density = near @ np.histogram(labels[:, k], edges)[0]
        common = density.max()
        columns.append(np.minimum((np.maximum(density, 1e-9) / common) ** -power, _MOST))
    return Rarity(np.stack(columns, 1).astype(np.float32))
