"""Two arms compared: Welch's test on linearised units, CUPED, strata, any moment or a fixed one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import stats

from hydra_core.base.intervals import LEVEL
from hydra_core.base.types import FloatArray, IntArray

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


#: Units at which the always-valid interval is narrowest (GrowthBook's tuning parameter).
TUNED_FOR = 5_000.0


class Reading(StrEnum):
    """When the figures may be read: at any look, or once at the planned end."""

    ALWAYS = "always"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class Effect:
    """Treatment against control; every field has the moments' leading axes.

    Attributes:
        control, treatment: The metric in each arm (adjusted where there is a covariate).
        difference, lo, hi: treatment - control with its interval.
        relative, relative_lo, relative_hi: treatment / control - 1, interval on the log scale; NaN
            where a value is not above 0.
        p_value: Always valid, or of Welch's test.
    """

    control: FloatArray
    treatment: FloatArray
    difference: FloatArray
    lo: FloatArray
    hi: FloatArray
    relative: FloatArray
    relative_lo: FloatArray
    relative_hi: FloatArray
    p_value: FloatArray
    units: FloatArray


def compare(
    control: Moments,
    treatment: Moments,
    *,
    reading: Reading = Reading.ALWAYS,
    adjust: bool = False,
    level: float = LEVEL,
) -> Effect:
    """Compare two arms.

    Args:
        control, treatment: (..., s) moments, the last axis being strata (1 where there are none).
        adjust: Take the covariate's part out (CUPED).
    """
    units = control.over_strata().count + treatment.over_strata().count
    slope = pooled_slope((control + treatment).over_strata()) if adjust else np.zeros_like(units)
    with np.errstate(divide="ignore", invalid="ignore"):
        sides = [_arm(arm, control + treatment, slope) for arm in (control, treatment)]
        (at_c, var_c, free_c), (at_t, var_t, free_t) = sides
        variance = var_c + var_t
        error = np.sqrt(variance)
        freedom = variance**2 / (var_c**2 / free_c + var_t**2 / free_t)
        difference = at_t - at_c
        rel_c, rel_t = var_c / at_c**2, var_t / at_t**2
        log_error = np.sqrt(rel_c + rel_t)
        log_freedom = (rel_c + rel_t) ** 2 / (rel_c**2 / free_c + rel_t**2 / free_t)
        half = _multiplier(reading, units, freedom, level) * error
        log_half = _multiplier(reading, units, log_freedom, level) * log_error
        ratio = np.where((at_c > 0) & (at_t > 0), at_t / at_c, np.nan)
        statistic = difference / error
        p_value = (
            always_valid_p(statistic, units, level)
            if reading is Reading.ALWAYS
            else 2.0 * stats.t.sf(np.abs(statistic), freedom)
        )
        shrink, grow = ratio * np.exp(-log_half), ratio * np.exp(log_half)
    return Effect(
        at_c, at_t, difference, difference - half, difference + half,
        ratio - 1.0, shrink - 1.0, grow - 1.0, p_value, units,
    )  # fmt: skip


def _arm(
    arm: Moments, both: Moments, slope: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(value, its variance, degrees of freedom) of one arm; strata weighted by all their units."""
    found = linear(arm.over_strata(), arm)
    weight = both.count / both.count.sum(axis=-1, keepdims=True)
    theta, pooled = slope[..., None], both.over_strata().means[..., 2, None]
    mean = found.mean - theta * (arm.means[..., 2] - pooled)
    variance = found.variance - 2.0 * theta * found.with_covariate
    variance = variance + theta**2 * arm.covariance(2, 2)
    of_mean = weight**2 * variance / arm.count
    value, total = (weight * mean).sum(axis=-1), of_mean.sum(axis=-1)
    freedom = total**2 / (of_mean**2 / (arm.count - 1.0)).sum(axis=-1)
    return value, total, freedom


def _multiplier(
    reading: Reading, units: FloatArray, freedom: FloatArray, level: float
) -> FloatArray:
    if reading is Reading.ALWAYS:
        return always_valid_multiplier(units, level)
    return np.asarray(stats.t.ppf(0.5 + level / 2.0, freedom), dtype=float)


def _rho_squared(level: float) -> float:
    """Mixture precision that makes the interval narrowest at `TUNED_FOR` units."""
    alpha = 1.0 - level
    return float((-2.0 * np.log(alpha) + np.log(-2.0 * np.log(alpha) + 1.0)) / TUNED_FOR)


def always_valid_multiplier(units: FloatArray, level: float = LEVEL) -> FloatArray:
    """Standard errors that an interval reaches to either side so that any look may be the last.

    Asymptotic confidence sequence of a normal mixture (Waudby-Smith, Arbour, Sinha, Kennedy and
    Ramdas 2021, theorem 2.2), in units of the standard error of the difference.
    """
    scaled = np.asarray(units, dtype=float) * _rho_squared(level)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.log(np.sqrt(scaled + 1.0) / (1.0 - level))
        return np.asarray(np.sqrt(2.0 * (scaled + 1.0) / scaled * inside), dtype=float)


def always_valid_p(statistic: FloatArray, units: FloatArray, level: float = LEVEL) -> FloatArray:
    """The smallest level at which the interval of that mixture leaves out 0."""
    scaled = np.asarray(units, dtype=float) * _rho_squared(level)
    with np.errstate(over="ignore", invalid="ignore"):
        shrunk = np.asarray(statistic, dtype=float) ** 2 * scaled / (2.0 * (scaled + 1.0))
        found = np.sqrt(scaled + 1.0) * np.exp(-shrunk)
    return np.asarray(np.minimum(1.0, found), dtype=float)
