"""Monotone recalibration fitted on validation, bands, reliability data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

FloatArray = NDArray[np.float32]
_KNOTS = np.linspace(0.0, 1.0, 41)


@dataclass(frozen=True, slots=True)
class Knots:
    """A monotone piecewise-linear map raw -> said, both (p,) in [0, 1]."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    def __call__(self, raw: FloatArray) -> FloatArray:
        """(n,) -> (n,)."""
        return np.asarray(np.interp(raw, self.x, self.y), np.float32)


def fit_knots(
    raw: FloatArray, truth: FloatArray, weight: FloatArray, *, absolute: float = 0.0
) -> Knots:
    """A smooth monotone map of one dimension, (n,), (n,), (n,) -> Knots.

    y = top * sigmoid(scale * logit(x) + shift), three numbers, so that some
    hundred validation texts cannot be overfitted. The loss is the squared
    error, or by the share `absolute` the absolute one: that takes the pedestal
    off the many labels of 0, but stretches the scores, and with them their
    spread over languages.
    """
    safe = np.clip(raw.astype(np.float64), 1e-4, 1 - 1e-4)
    logit = np.log(safe / (1 - safe))
    share = weight / weight.sum()

    def curve(p: FloatArray, z: FloatArray) -> FloatArray:
        said: FloatArray = np.clip(p[2], 0.5, 1.2) / (1 + np.exp(-(np.exp(p[0]) * z + p[1])))
        return said

    def loss(p: FloatArray) -> float:
        gap = curve(p, logit) - truth
        return float(
            (share * (absolute * np.abs(gap) * 0.2 + (1 - absolute) * gap**2)).sum()
            + 1e-4 * (p[0] ** 2 + p[1] ** 2)
        )

    found = minimize(loss, np.array([0.0, 0.0, 1.0]), method="Nelder-Mead").x
    inner = np.clip(_KNOTS, 1e-4, 1 - 1e-4)
    said = np.clip(curve(found, np.log(inner / (1 - inner))), 0.0, 1.0)
    y = np.maximum.accumulate(np.round(said, 5))
    return Knots(tuple(_KNOTS.round(5).tolist()), tuple(y.tolist()))


def fit_all(raw: FloatArray, truth: FloatArray, weight: FloatArray) -> list[Knots]:
    """(n, K), (n, K), (n,) -> K maps."""
    return [fit_knots(raw[:, k], truth[:, k], weight) for k in range(raw.shape[1])]


def apply_all(curves: Sequence[Knots], raw: FloatArray) -> FloatArray:
    """(n, K) -> (n, K)."""
    return np.stack([curve(raw[:, k]) for k, curve in enumerate(curves)], 1)


def bands_of(scores: FloatArray) -> list[tuple[float, float]]:
    """(n, K) -> K pairs (5th, 95th percentile), as the profiles need them."""
    low, high = np.percentile(scores, [5, 95], axis=0)
    return [(round(float(a), 4), round(float(b), 4)) for a, b in zip(low, high, strict=True)]


@dataclass(frozen=True, slots=True)
class Reliability:
    """Means of score and label in bins of equal count, each (bins,)."""

    score: tuple[float, ...]
    label: tuple[float, ...]
    count: tuple[int, ...]


def reliability(scores: FloatArray, truth: FloatArray, bins: int = 10) -> Reliability:
    """(n,), (n,) -> points of a reliability plot."""
    blocks = [b for b in np.array_split(np.argsort(scores, kind="stable"), bins) if len(b)]
    return Reliability(
        tuple(round(float(scores[b].mean()), 4) for b in blocks),
        tuple(round(float(truth[b].mean()), 4) for b in blocks),
        tuple(len(b) for b in blocks),
    )


def bias_by_group(
    scores: FloatArray, truth: FloatArray, groups: Sequence[str]
) -> dict[str, list[float]]:
    """Mean score minus mean label of every group, (K,) each."""
    names = np.array(groups)
    return {
        name: [round(float(v), 4) for v in (scores - truth)[names == name].mean(0)]
        for name in sorted(set(groups))
    }
