"""Sums of one arm's units that every figure of a flight is a function of.

A metric is numerator over denominator, both summed by unit (a user, a conversation); a plain mean
has the denominator 1. The covariate z was known before the flight. Leading axes are free: looks,
strata, simulated flights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hydra_core.types import FloatArray, IntArray

__all__ = ["Linear", "Moments", "linear", "moments", "pooled_slope"]

#: The columns of `Moments.sums`.
_N, _Y, _X, _Z, _YY, _XX, _ZZ, _YX, _YZ, _XZ = range(10)


@dataclass(frozen=True, slots=True)
class Moments:
    """(..., 10) sums of n, y, x, z and their products, about `origin` (3,) for precision."""

    sums: FloatArray
    origin: FloatArray

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.sums + other.sums, self.origin)

    def over_strata(self) -> Moments:
        """Summed over the last leading axis."""
        return Moments(np.asarray(self.sums.sum(axis=-2), dtype=float), self.origin)

    @property
    def count(self) -> FloatArray:
        """Units."""
        return self.sums[..., _N]

    @property
    def means(self) -> FloatArray:
        """(..., 3) means of y, x and z."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.origin + self.sums[..., _Y : _Z + 1] / self.count[..., None]

    def covariance(self, a: int, b: int) -> FloatArray:
        """Covariance (n - 1) of two of y, x, z, numbered 0 to 2."""
        low, high = min(a, b), max(a, b)
        product = {(0, 0): _YY, (1, 1): _XX, (2, 2): _ZZ, (0, 1): _YX, (0, 2): _YZ, (1, 2): _XZ}
        s = self.sums
        with np.errstate(divide="ignore", invalid="ignore"):
            centred = s[..., product[low, high]] - s[..., _Y + a] * s[..., _Y + b] / self.count
            return np.where(self.count > 1, centred / (self.count - 1.0), np.nan)


def moments(
    y: FloatArray, x: FloatArray, z: FloatArray, cells: IntArray, shape: tuple[int, ...],
    origin: FloatArray,
) -> Moments:  # fmt: skip
    """Sums by cell.

    Args:
        y, x, z: (n,) numerator, denominator and covariate of each unit.
        cells: (n,) flat index of each unit's cell in `shape`.
        origin: (3,) values that are taken off before summing.
    """
    y, x, z = y - origin[0], x - origin[1], z - origin[2]
    columns = (np.ones_like(y), y, x, z, y * y, x * x, z * z, y * x, y * z, x * z)
    size = int(np.prod(shape))
    sums = [np.bincount(cells, weights=column, minlength=size) for column in columns]
    return Moments(np.stack(sums, axis=-1).reshape(*shape, 10).astype(float), origin)


@dataclass(frozen=True, slots=True)
class Linear:
    """A ratio made linear about its own value: one number a unit, of which these are the moments.

    Attributes:
        value: sum(y) / sum(x), over all strata.
        mean, variance: Of the linearised unit values, leading axes kept.
        with_covariate: Their covariance with z.
    """

    value: FloatArray
    mean: FloatArray
    variance: FloatArray
    with_covariate: FloatArray


def linear(whole: Moments, parts: Moments) -> Linear:
    """L = R + (y - R x) / mean(x) with R and mean(x) of `whole` (delta method), by part.

    Args:
        whole: (...) moments of the arm.
        parts: (..., s) its strata; may be `whole` with a last axis of 1.
    """
    means = whole.means
    with np.errstate(divide="ignore", invalid="ignore"):
        value = means[..., 0] / means[..., 1]
        r, below = value[..., None], means[..., 1, None]
        mean = r + (parts.means[..., 0] - r * parts.means[..., 1]) / below
        spread = parts.covariance(0, 0) - 2.0 * r * parts.covariance(0, 1)
        variance = (spread + r**2 * parts.covariance(1, 1)) / below**2
        shared = (parts.covariance(0, 2) - r * parts.covariance(1, 2)) / below
    return Linear(value, mean, variance, shared)


def pooled_slope(both: Moments) -> FloatArray:
    """CUPED's theta of both arms thrown together: cov(L, z) / var(z), 0 where z does not vary."""
    whole = Moments(both.sums[..., None, :], both.origin)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = linear(both, whole).with_covariate[..., 0] / both.covariance(2, 2)
    return np.nan_to_num(slope, nan=0.0, posinf=0.0, neginf=0.0)
