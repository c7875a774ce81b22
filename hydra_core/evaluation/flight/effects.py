"""Two arms compared: Welch's test on linearised units, CUPED, strata, any moment or a fixed one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import stats

from hydra_core.evaluation.flight.moments import Moments, linear, pooled_slope
from hydra_core.types import FloatArray

__all__ = ["Effect", "Reading", "always_valid_multiplier", "always_valid_p", "compare"]

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
        units: Units in both arms.
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
    level: float = 0.95,
) -> Effect:
    """Compare two arms.

    Args:
        control, treatment: (..., s) moments, the last axis being strata (1 where there are none).
        adjust: Take the covariate's part out (CUPED).
        level: Two-sided confidence level.
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


def always_valid_multiplier(units: FloatArray, level: float = 0.95) -> FloatArray:
    """Standard errors that an interval reaches to either side so that any look may be the last.

    Asymptotic confidence sequence of a normal mixture (Waudby-Smith, Arbour, Sinha, Kennedy and
    Ramdas 2021, theorem 2.2), in units of the standard error of the difference.
    """
    scaled = np.asarray(units, dtype=float) * _rho_squared(level)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.log(np.sqrt(scaled + 1.0) / (1.0 - level))
        return np.asarray(np.sqrt(2.0 * (scaled + 1.0) / scaled * inside), dtype=float)


def always_valid_p(statistic: FloatArray, units: FloatArray, level: float = 0.95) -> FloatArray:
    """The smallest level at which the interval of that mixture leaves out 0."""
    scaled = np.asarray(units, dtype=float) * _rho_squared(level)
    with np.errstate(over="ignore", invalid="ignore"):
        shrunk = np.asarray(statistic, dtype=float) ** 2 * scaled / (2.0 * (scaled + 1.0))
        found = np.sqrt(scaled + 1.0) * np.exp(-shrunk)
    return np.asarray(np.minimum(1.0, found), dtype=float)
