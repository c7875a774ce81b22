"""A flight planned from data of before: what each metric needs until a change is shown."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from hydra_core.base.intervals import LEVEL
from hydra_core.live.flight.analysis import moments_of
from hydra_core.live.flight.effects import (
    Moments,
    Reading,
    always_valid_multiplier,
    linear,
    pooled_slope,
)
from hydra_core.live.flight.settings import Flight, Metric
from hydra_core.live.flight.table import Rows, by_unit

_MOST_UNITS = 1e10


@dataclass(frozen=True, slots=True)
class Plan:
    """Units a flight needs in both arms together, and days at the traffic there is.

    Attributes:
        units: None where even ten thousand million would not do.
    """

    units: int | None
    days: int | None


def power(
    effect: float, deviation: float, units: float, *, share: float = 0.5,
    reading: Reading = Reading.ALWAYS,
) -> float:  # fmt: skip
    """Probability that the interval leaves out 0 when all units are there.

    Args:
        effect: True difference of means, in the metric's unit.
        deviation: Standard deviation of the (linearised, adjusted) unit values.
        units: In both arms together.
        share: Of the units in the treatment, in (0, 1).
    """
    error = deviation * math.sqrt(1.0 / (units * share) + 1.0 / (units * (1.0 - share)))
    if reading is Reading.ALWAYS:
        reach = float(always_valid_multiplier(np.array(units), LEVEL))
    else:
        reach = float(stats.norm.ppf(0.5 + LEVEL / 2.0))
    if error == 0.0:
        return float(effect != 0.0)
    away = abs(effect) / error
    return float(stats.norm.sf(reach - away) + stats.norm.cdf(-reach - away))


def plan(
    effect: float, deviation: float, *, wanted: float = 0.80, share: float = 0.5,
    units_per_day: float, reading: Reading = Reading.ALWAYS,
) -> Plan:  # fmt: skip
    """The fewest units with at least the wanted power, and the days they take to come."""

    def short(log_units: float) -> float:
        units = math.exp(log_units)
        return power(effect, deviation, units, share=share, reading=reading) - wanted

    low, high = math.log(4.0), math.log(_MOST_UNITS)
    if effect == 0.0 or short(high) < 0.0:
        return Plan(None, None)
    log_units = low if short(low) >= 0.0 else float(optimize.brentq(short, low, high))
    units = math.ceil(math.exp(log_units) - 1e-9)
    days = math.ceil(units / units_per_day) if units_per_day > 0 else None
    return Plan(units, days)


@dataclass(frozen=True, slots=True)
class MetricPlan:
    """One metric as it stands, and what showing a relative change of it takes."""

    metric: str
    value: float
    deviation: float
    need: Plan
    unit: str = ""


def plans(
    rows: Rows,
    flight: Flight,
    change: float,
    *,
    units_per_day: float,
    reading: Reading = Reading.ALWAYS,
    adjust: bool = True,
    wanted: float = 0.80,
) -> tuple[MetricPlan, ...]:
    """What every metric needs until a relative change is shown with the wanted power.

    All units of the table count as one arm: data of before, or a flight under way.
    """
    first, second = list(flight.arms.values())[:2]
    share = second / (first + second)
    found = []
    for metric in flight.metrics:
        value, spread = deviation(rows, flight, metric, adjust=adjust)
        need = plan(
            change * value, spread, wanted=wanted, share=share, units_per_day=units_per_day,
            reading=reading,
        )  # fmt: skip
        found.append(MetricPlan(metric.name, value, spread, need, metric.unit))
    return tuple(found)


def deviation(rows: Rows, flight: Flight, metric: Metric, *, adjust: bool) -> tuple[float, float]:
    """(value, standard deviation of the linearised, adjusted unit values) over all units."""
    arms, _ = moments_of(by_unit(rows, flight), flight, metric, len(flight.arms), len(rows.strata))
    both = Moments(arms.sums.reshape(-1, 10).sum(axis=0).astype(float)[None], arms.origin)
    whole = both.over_strata()
    found = linear(whole, both)
    slope = float(pooled_slope(whole)) if adjust and flight.covariate else 0.0
    spread = found.variance - 2.0 * slope * found.with_covariate
    spread = spread + slope**2 * both.covariance(2, 2)
    return float(found.value), float(np.sqrt(spread[0]))
