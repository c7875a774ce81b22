"""A flight's figures: every metric in every arm against the control, now and after every day.

Inside each team they are looks at parts, corrected for how many parts there are. A plan says what
each metric needs until a change is shown, from data of before.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
from scipy import optimize, stats

from hydra_core.base.errors import FlightError, Problem
from hydra_core.base.intervals import LEVEL, Interval
from hydra_core.live.flight.effects import (
    Effect,
    Moments,
    Reading,
    always_valid_multiplier,
    compare,
    linear,
    moments,
    pooled_slope,
)
from hydra_core.live.flight.files import Better, Flight, Level, Metric, Rows, Units, by_unit
from hydra_core.replay.significance import holm, saving_interval

#: Units that a team needs in every arm before its arms are compared.
LEAST_UNITS: Final = 20


class Alarm(StrEnum):
    """None, a warning below .01, a stop below .001."""

    NONE = "none"
    YELLOW = "yellow"
    RED = "red"


@dataclass(frozen=True, slots=True)
class SampleRatio:
    """The chi-square test of the units in each arm against their shares."""

    p_value: float

    @property
    def alarm(self) -> Alarm:
        if self.p_value < 0.001:
            return Alarm.RED
        return Alarm.YELLOW if self.p_value < 0.01 else Alarm.NONE


def sample_ratio(observed: Sequence[int], shares: Sequence[float]) -> SampleRatio:
    """Chi-square test of the units in each arm against the shares, which sum to 1."""
    counts = np.asarray(observed, dtype=float)
    expected = counts.sum() * np.asarray(shares, dtype=float)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    p_value = float(stats.chi2.sf(statistic, df=len(counts) - 1))
    return SampleRatio(p_value)


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One metric in one arm.

    Attributes:
        effect: Scalars (0-dimensional arrays).
        p_holm: Adjusted over all metrics and arms.
        units: Units that have the metric, in both arms; `left_out` have an empty cell.
    """

    metric: Metric
    arm: str
    effect: Effect
    p_holm: float
    left_out: int

    def verdict(self, level: float = LEVEL) -> str:
        """better, worse or no difference shown; a guard holds, is broken or stays open."""
        lower = self.metric.better is Better.LOWER
        lo, hi = float(self.effect.lo), float(self.effect.hi)
        good, bad = (hi < 0, lo > 0) if lower else (lo > 0, hi < 0)
        if self.metric.guard is not None:
            margin = self.metric.guard
            ahead = float(self.effect.relative_hi if lower else -self.effect.relative_lo)
            behind = float(self.effect.relative_lo if lower else -self.effect.relative_hi)
            return "holds" if ahead <= margin else "broken" if behind > margin else "open"
        if self.p_holm >= 1.0 - level:
            return "no difference shown"
        return "better" if good else "worse" if bad else "no difference shown"


@dataclass(frozen=True, slots=True)
class FlightReport:
    """All of a flight; `savings` are 1 - cost / what the flagship would have cost, by arm."""

    flight: Flight
    reading: Reading
    adjusted: bool
    units: dict[str, int]
    ratio: SampleRatio
    results: tuple[MetricResult, ...]
    savings: dict[str, Interval]
    strata: tuple[str, ...]


def analyse(
    rows: Rows,
    flight: Flight,
    *,
    reading: Reading = Reading.ALWAYS,
    adjust: bool = True,
    level: float = LEVEL,
) -> FlightReport:
    """Compare every arm with the control.

    Args:
        reading: Whether the figures may be read at any look, or once at the end.
        adjust: Take the covariate's part out, where the flight has one.
        level: Of each metric's interval; guards are judged by it.

    Raises:
        FlightError: An arm or a stratum of it has fewer than two units.
    """
    adjust = adjust and bool(flight.covariate)
    whole = by_unit(rows, flight)
    counts = np.bincount(whole.arm, minlength=len(flight.arms))
    problems = too_few(whole, flight, rows.strata)
    FlightError.raise_any(flight.name, problems)
    metrics = all_metrics(flight)
    results = [one for metric in metrics for one in _now(whole, flight, metric, reading, adjust,
                                                         len(rows.strata), level)]  # fmt: skip
    adjusted = holm([float(np.nan_to_num(one.effect.p_value, nan=1.0)) for one in results])
    return FlightReport(
        flight,
        reading,
        adjust,
        dict(zip(flight.arms, counts.tolist(), strict=True)),
        sample_ratio(counts.tolist(), list(flight.arms.values())),
        tuple(replace(one, p_holm=p) for one, p in zip(results, adjusted, strict=True)),
        _savings(whole, flight),
        rows.strata,
    )


def all_metrics(flight: Flight) -> tuple[Metric, ...]:
    back = (
        Metric(f"Back after {days} days", f"back after {days} days", "", Better.HIGHER)
        for days in flight.retention
    )
    return (*flight.metrics, *back)


def too_few(units: Units, flight: Flight, strata: Sequence[str]) -> list[Problem]:
    """The arms' strata that have fewer than the two units that a variance needs."""
    arms = list(flight.arms)
    counts = np.zeros((len(arms), len(strata)), dtype=int)
    np.add.at(counts, (units.arm, units.stratum), 1)
    return [
        Problem(f"arm {arms[a]!r}, stratum {strata[s]!r}", f"has {counts[a, s]} units",
                "at least two are needed; merge strata or wait")
        for a, s in np.argwhere(counts < 2)
    ]  # fmt: skip


def moments_of(
    units: Units, flight: Flight, metric: Metric, arms: int, strata: int
) -> tuple[Moments, int]:
    """(arms, strata) moments of a metric, and how many units have an empty cell."""
    y = units.values[metric.numerator]
    x = units.values[metric.denominator] if metric.denominator else np.ones_like(y)
    z = units.values[flight.covariate] if flight.covariate else np.zeros_like(y)
    known = np.isfinite(y) & np.isfinite(x) & np.isfinite(z)
    y, x, z = y[known], x[known], z[known]
    cells = units.arm[known] * strata + units.stratum[known]
    origin = np.array([v.mean() if v.size else 0.0 for v in (y, x, z)])
    return moments(y, x, z, cells, (arms, strata), origin), int((~known).sum())


def _now(
    units: Units,
    flight: Flight,
    metric: Metric,
    reading: Reading,
    adjust: bool,
    strata: int,
    level: float = LEVEL,
) -> list[MetricResult]:
    arms = list(flight.arms)
    found, left_out = moments_of(units, flight, metric, len(arms), strata)
    control = Moments(found.sums[0], found.origin)
    results = []
    for number, arm in enumerate(arms[1:], 1):
        effect = compare(
            control, Moments(found.sums[number], found.origin), reading=reading, adjust=adjust,
            level=level,
        )  # fmt: skip
        results.append(MetricResult(metric, arm, effect, 1.0, left_out))
    return results


def looks(
    rows: Rows, flight: Flight, metric: Metric, arm: str, *, reading: Reading, adjust: bool
) -> Effect:
    """One metric's effect after every day; the effect's arrays are (days,).

    Requests count day by day; rows of units, which hold a unit's whole flight, from its first day.
    """
    whole, found = by_unit(rows, flight), []
    for day in range(len(rows.days)):
        units = by_unit(rows, flight, day) if flight.level is Level.REQUESTS else _since(whole, day)
        with np.errstate(all="ignore"):
            every = _now(units, flight, metric, reading, adjust, len(rows.strata))
        found.append(next(one.effect for one in every if one.arm == arm))
    names = Effect.__slots__
    return Effect(**{n: np.array([float(getattr(e, n)) for e in found]) for n in names})


def _since(units: Units, day: int) -> Units:
    come = units.first_day <= day
    values = {name: value[come] for name, value in units.values.items()}
    return Units(units.arm[come], units.stratum[come], units.first_day[come], values)


def _savings(units: Units, flight: Flight) -> dict[str, Interval]:
    """1 - cost / flagship cost in each arm (delta method over units)."""
    if not flight.cost:
        return {}
    found = {}
    for number, arm in enumerate(flight.arms):
        mine = units.arm == number
        cost, flagship = units.values[flight.cost][mine], units.values[flight.flagship][mine]
        known = np.isfinite(cost) & np.isfinite(flagship)
        found[arm] = (
            saving_interval(cost[known], flagship[known])
            if known.any()
            else Interval.none(math.nan, "no unit has both costs")
        )
    return found


@dataclass(frozen=True, slots=True)
class TeamPart:
    """One team's part of a flight.

    Attributes:
        team: Its name; '' holds the rows without a team.
        report: None where the part is too small to compare.
    """

    team: str
    units: dict[str, int]
    report: FlightReport | None


@dataclass(frozen=True, slots=True)
class TeamParts:
    """A flight split by team.

    Attributes:
        level: Of each interval, so that those of one metric and arm hold in all teams together
            with 95 % (Bonferroni). The p values are adjusted over all teams, metrics and arms,
            and below 0.05 only where the interval leaves out 0.
        shared: Units that are in several teams; each counts in all of them.
    """

    level: float
    parts: tuple[TeamPart, ...]
    shared: int

    @property
    def compared(self) -> int:
        """Teams that are large enough."""
        return sum(part.report is not None for part in self.parts)


def by_team(
    rows: Rows, flight: Flight, *, reading: Reading = Reading.ALWAYS, adjust: bool = True
) -> TeamParts | None:
    """Compare the arms inside each team; None where the flight names no column of teams.

    The arm is drawn by unit, so that a comparison inside one team is still one of random halves;
    two teams were not drawn and are not compared with each other.
    """
    if not flight.team:
        return None
    parts = [_only(rows, number) for number in range(len(rows.teams))]
    units = [by_unit(part, flight) for part in parts]
    counts = [np.bincount(one.arm, minlength=len(flight.arms)).tolist() for one in units]
    large = [
        min(count) >= LEAST_UNITS and not too_few(one, flight, part.strata)
        for count, one, part in zip(counts, units, parts, strict=True)
    ]
    level = 1.0 - (1.0 - LEVEL) / max(1, sum(large))
    reports = [
        analyse(part, flight, reading=reading, adjust=adjust, level=level) if enough else None
        for part, enough in zip(parts, large, strict=True)
    ]
    named = [dict(zip(flight.arms, count, strict=True)) for count in counts]
    pairs = np.unique(np.column_stack([rows.unit, rows.team]), axis=0)
    return TeamParts(
        level,
        tuple(map(TeamPart, rows.teams, named, _adjusted(reports))),
        int((np.bincount(pairs[:, 0]) > 1).sum()),
    )


def _only(rows: Rows, team: int) -> Rows:
    """The rows of one team, with the strata that it has."""
    mine = rows.team == team
    strata, stratum = np.unique(rows.stratum[mine], return_inverse=True)
    return replace(
        rows,
        unit=rows.unit[mine],
        arm=rows.arm[mine],
        day=rows.day[mine],
        stratum=stratum,
        strata=tuple(rows.strata[number] for number in strata),
        team=rows.team[mine],
        values={name: value[mine] for name, value in rows.values.items()},
    )


def _adjusted(reports: Sequence[FlightReport | None]) -> list[FlightReport | None]:
    """With p by Holm over all, but no less than what the interval of a team allows."""
    every = [one for report in reports if report for one in report.results]
    known = [float(np.nan_to_num(one.effect.p_value, nan=1.0)) for one in every]
    teams = sum(report is not None for report in reports)
    left = iter(max(p, min(1.0, teams * raw)) for p, raw in zip(holm(known), known, strict=True))
    return [
        report and replace(
            report, results=tuple(replace(one, p_holm=next(left)) for one in report.results)
        )
        for report in reports
    ]  # fmt: skip


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
