"""Low-rank product of text features and model vectors, fitted by gradient descent."""

from __future__ import annotations

import numpy as np

from hydra_core.types import FloatArray

__all__ = ["factorise"]

_RANK = 16
_STEPS = 300
_RATE = 0.05
_RIDGE = 1e-3


def factorise(
    text: FloatArray, quality: FloatArray, other: FloatArray, *, seed: int, rank: int = _RANK
) -> FloatArray:
    """Predicted quality of other queries: sigmoid((x W) V_m + b_m), by Adam on cross entropy.

    Args:
        text: (n, d) features of the training queries.
        quality: (n, m) outcomes in [0, 1].
        other: (k, d) features of the queries to predict.
        seed: Draws the start.
        rank: Length of a model's vector.

    Returns:
        (k, m) in (0, 1).
    """
    rng = np.random.default_rng(seed)
    n, m = quality.shape
    share = np.clip(quality.mean(axis=0), 0.5 / n, 1 - 0.5 / n)
    weights = [
        rng.normal(0, 0.3, (text.shape[1], rank)),
        rng.normal(0, 0.3, (rank, m)),
        np.log(share / (1 - share)),
    ]
    first = [np.zeros_like(w) for w in weights]
    second = [np.zeros_like(w) for w in weights]
    for step in range(1, _STEPS + 1):
        for i, slope in enumerate(_slopes(text, quality, weights)):
            first[i] = 0.9 * first[i] + 0.1 * slope
            second[i] = 0.999 * second[i] + 0.001 * slope**2
            scaled = np.sqrt(second[i] / (1 - 0.999**step)) + 1e-8
            weights[i] = weights[i] - _RATE * first[i] / (1 - 0.9**step) / scaled
    return _predict(other, weights)


def _predict(text: FloatArray, weights: list[FloatArray]) -> FloatArray:
    logits = text @ weights[0] @ weights[1] + weights[2]
    result: FloatArray = 1.0 / (1.0 + np.exp(-np.clip(logits, -30, 30)))
    return result


def _slopes(
    text: FloatArray, quality: FloatArray, weights: list[FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    error = (_predict(text, weights) - quality) / len(text)
    hidden = text @ weights[0]
    return (
        text.T @ (error @ weights[1].T) + _RIDGE * weights[0],
        hidden.T @ error + _RIDGE * weights[1],
        error.sum(axis=0),
    )
