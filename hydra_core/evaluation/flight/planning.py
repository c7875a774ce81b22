"""A flight planned from data of before: what each metric needs until a change is shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hydra_core.evaluation.flight.analysis import moments_of
from hydra_core.evaluation.flight.effects import Reading
from hydra_core.evaluation.flight.moments import Moments, linear, pooled_slope
from hydra_core.evaluation.flight.power import Plan, plan
from hydra_core.evaluation.flight.settings import Flight, Metric
from hydra_core.evaluation.flight.table import Rows, by_unit

__all__ = ["MetricPlan", "deviation", "plans"]


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
