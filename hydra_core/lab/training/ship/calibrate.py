"""Monotone recalibration fitted on validation, and the bias that is left by group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hydra_core.base.types import Float32Array
from hydra_core.predictor.bundle import Curve

# Knots lie closer where the curve bends.
_KNOTS = np.concatenate([np.linspace(0.0, 0.3, 31), np.linspace(0.34, 1.0, 34)])

# The pedestal fades over this much of the raw score.
_FADE = 0.1
_PEDESTALS = np.linspace(0.0, 0.9 * _FADE, 31)
_GAINS = np.linspace(0.7, 1.6, 46)

# How much a gain must earn: it also spreads a score over the languages of a task.
_PULL = 0.03
_ABSOLUTE = 0.25


def fit_knots(raw: Float32Array, truth: Float32Array, weight: Float32Array) -> Curve:
    """A smooth monotone map of one dimension, (n,), (n,), (n,) -> Curve.

    y = gain * (x - pedestal * exp(-x / .1)), two numbers, so that some hundred validation texts
    cannot be overfitted. Most labels are 0 while the blended raw scores stand on a small pedestal
    there; taking it off lowers the error without stretching the hard end. The loss is the squared
    error and, by the share `_ABSOLUTE`, a fifth of the absolute one.
    """
    x = raw.astype(np.float64)
    share = weight / weight.sum()
    best = (np.inf, 0.0, 1.0)
    for pedestal in _PEDESTALS:
        said = np.clip(_GAINS[:, None] * _curve(x, pedestal), 0.0, 1.0)
        gap = said - truth
        loss = ((_ABSOLUTE * 0.2 * np.abs(gap) + (1 - _ABSOLUTE) * gap**2) * share).sum(1)
        loss += _PULL * np.log(_GAINS) ** 2
        at = int(loss.argmin())
        best = min(best, (float(loss[at]), float(pedestal), float(_GAINS[at])))
    y = np.clip(best[2] * _curve(_KNOTS, best[1]), 0.0, 1.0)
    y = np.maximum.accumulate(np.round(y, 5))
    return Curve(tuple(_KNOTS.round(5).tolist()), tuple(y.tolist()))


def _curve(x: NDArray[np.float64], pedestal: float) -> NDArray[np.float64]:
    return x - pedestal * np.exp(-x / _FADE)


def fit_all(raw: Float32Array, truth: Float32Array, weight: Float32Array) -> list[Curve]:
    """(n, K), (n, K), (n,) -> K maps."""
    return [fit_knots(raw[:, k], truth[:, k], weight) for k in range(raw.shape[1])]


def apply_all(curves: Sequence[Curve], raw: Float32Array) -> Float32Array:
    """(n, K) -> (n, K)."""
    said = [np.interp(raw[:, k], curve.x, curve.y) for k, curve in enumerate(curves)]
    return np.stack(said, 1).astype(np.float32)


def bias_by_group(
    scores: Float32Array, truth: Float32Array, groups: Sequence[str]
) -> dict[str, list[float]]:
    """Mean score minus mean label of every group, (K,) each."""
    names = np.array(groups)
    return {
        name: [round(float(v), 4) for v in (scores - truth)[names == name].mean(0)]
        for name in sorted(set(groups))
    }
