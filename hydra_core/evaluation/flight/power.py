"""How long a flight must run, and what it would show: power, units and days before the start."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from hydra_core.evaluation.flight.effects import Reading, always_valid_multiplier

__all__ = ["Plan", "plan", "power"]

_MOST_UNITS = 1e10


@dataclass(frozen=True, slots=True)
class Plan:
    """Units a flight needs in both arms together, and days at the traffic there is.

    Attributes:
        units: None where even ten thousand million would not do.
    """

    units: int | None
    days: int | None
    power: float


def power(
    effect: float, deviation: float, units: float, *, share: float = 0.5,
    reading: Reading = Reading.ALWAYS, level: float = 0.95,
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
        reach = float(always_valid_multiplier(np.array(units), level))
    else:
        reach = float(stats.norm.ppf(0.5 + level / 2.0))
    if error == 0.0:
        return float(effect != 0.0)
    away = abs(effect) / error
    return float(stats.norm.sf(reach - away) + stats.norm.cdf(-reach - away))


def plan(
    effect: float, deviation: float, *, wanted: float = 0.80, share: float = 0.5,
    units_per_day: float, reading: Reading = Reading.ALWAYS, level: float = 0.95,
) -> Plan:  # fmt: skip
    """The fewest units with at least the wanted power, and the days they take to come."""

    def short(log_units: float) -> float:
        units = math.exp(log_units)
        found = power(effect, deviation, units, share=share, reading=reading, level=level)
        return found - wanted

    low, high = math.log(4.0), math.log(_MOST_UNITS)
    if effect == 0.0 or short(high) < 0.0:
        return Plan(None, None, 0.0)
    log_units = low if short(low) >= 0.0 else float(optimize.brentq(short, low, high))
    units = math.ceil(math.exp(log_units) - 1e-9)
    days = math.ceil(units / units_per_day) if units_per_day > 0 else None
    reached = power(effect, deviation, units, share=share, reading=reading, level=level)
    return Plan(units, days, reached)
