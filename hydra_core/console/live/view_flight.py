"""What Experiments shows of an A/B flight, as plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from hydra_core.base.spelling import signed
from hydra_core.console.figures.intervals import EffectByDayView, IntervalsView, one_series
from hydra_core.live.flight.analysis import Alarm, FlightReport, MetricPlan, MetricResult, TeamParts
from hydra_core.live.flight.effects import Effect, Reading
from hydra_core.replay.significance_table import p_text


def arm_results(report: FlightReport, arm: str) -> tuple[MetricResult, ...]:
    """The results of one arm, in the order of the settings."""
    return tuple(one for one in report.results if one.arm == arm)


def headline(report: FlightReport, arm: str) -> tuple[str, str, str]:
    """(tone, title, sentence): success, info, warning or error."""
    if report.ratio.alarm is Alarm.RED:
        shares = ", ".join(f"{arm} {count:,}" for arm, count in report.units.items())
        return (
            "error",
            "The arms do not have the planned shares of users",
            f"{shares} (p = {report.ratio.p_value:.2g}). Find what loses or doubles users in one "
            "arm before you trust any figure below.",
        )
    verdicts = [one.verdict() for one in arm_results(report, arm)]
    better, worse, broken = (verdicts.count(word) for word in ("better", "worse", "broken"))
    held, opened = verdicts.count("holds"), verdicts.count("open")
    guards = held + opened + broken
    parts = [f"{better} metric{'s' * (better != 1)} better", f"{worse} worse"]
    if guards:
        parts.append(f"{held} of {guards} guardrails kept")
    text = ", ".join(parts) + "."
    if opened == 1:
        text += " One guardrail is undecided; collect more users."
    elif opened:
        text += f" {opened} guardrails are undecided; collect more users."
    if broken or worse:
        return "warning", f"{arm} makes something worse", text
    if better:
        return "success", f"{arm} improves on {report.flight.control}", text
    return "info", f"No measurable difference between {arm} and {report.flight.control} yet", text


def changes_view(report: FlightReport, arm: str) -> IntervalsView:
    """Relative change of every metric in percent."""
    results = arm_results(report, arm)
    named = [(f"{one.metric.name} {_ARROWS[one.metric.better.value]}", one) for one in results]
    return _changes(named, arm, f"Change against {report.flight.control}, %")


def _changes(named: Sequence[tuple[str, MetricResult]], arm: str, title: str) -> IntervalsView:
    rows = [(name, *_relative(one.effect)) for name, one in named]
    return one_series(arm, rows, title, " %", "+.1f", ((0.0, "no change"),))


_ARROWS = {"lower": "↓", "higher": "↑"}


def results_frame(report: FlightReport, arm: str) -> pd.DataFrame:
    """One row a metric: values, change and interval in %, p after Holm, verdict."""
    return pd.DataFrame(
        [
            {
                "metric": ", ".join(filter(None, (one.metric.name, one.metric.unit))),
                "wanted": one.metric.better.value,
                "control": float(one.effect.control),
                "arm": float(one.effect.treatment),
                **_change(one),
                "left_out": one.left_out,
            }
            for one in arm_results(report, arm)
        ]
    )


def _change(one: MetricResult) -> dict[str, object]:
    """Change and interval in %, p after Holm, verdict."""
    change, low, high = _relative(one.effect)
    return {
        "change": change,
        "interval": f"{signed(change)} % [{signed(low)}, {signed(high)}]",
        "p": p_text(one.p_holm),
        "verdict": _SHORT.get(one.verdict(), one.verdict()),
    }


def teams_view(teams: TeamParts, metric: str, arm: str, control: str) -> IntervalsView:
    """One metric's relative change in percent, one row a team that is large enough."""
    named = [
        (part.team or "No team", one)
        for part in teams.parts
        if part.report is not None
        for one in arm_results(part.report, arm)
        if one.metric.name == metric
    ]
    return _changes(named, arm, f"Change of {metric.lower()} against {control}, %")


def teams_frame(teams: TeamParts, metric: str, arm: str, control: str) -> pd.DataFrame:
    """One row a team: units by arm, one metric's change, and how its guardrails stand."""
    rows = []
    for part in teams.parts:
        row: dict[str, object] = {
            "team": part.team or "No team",
            "control": part.units[control],
            "arm": part.units[arm],
        }
        results = () if part.report is None else arm_results(part.report, arm)
        guards = [one.verdict() for one in results if one.metric.guard is not None]
        counts = Counter(_SHORT.get(word, word) for word in guards)
        row["guardrails"] = ", ".join(f"{count} {word}" for word, count in counts.items())
        row |= next((_change(one) for one in results if one.metric.name == metric), _TOO_FEW)
        rows.append(row)
    return pd.DataFrame(rows)


_TOO_FEW = {"change": np.nan, "interval": "too few users", "p": "", "verdict": ""}


def all_teams_frame(teams: TeamParts, arm: str) -> pd.DataFrame:
    """One row a team and metric, as `results_frame`; teams that are large enough."""
    return pd.concat(
        [
            results_frame(part.report, arm).assign(
                team=part.team, **{f"users_{name}": count for name, count in part.units.items()}
            )
            for part in teams.parts
            if part.report is not None
        ]
        or [pd.DataFrame()],
        ignore_index=True,
    )


_SHORT = {
    "no difference shown": "no difference",
    "holds": "kept",
    "open": "undecided",
}


def _relative(effect: Effect) -> tuple[float, float, float]:
    """A change that is read once, and its bounds, in percent."""
    ends = effect.relative, effect.relative_lo, effect.relative_hi
    change, low, high = (100.0 * float(end) for end in ends)
    return change, low, high


def effect_by_day_view(
    days: Sequence[str], effect: Effect, metric: str, reading: Reading
) -> EffectByDayView:
    """The change in percent after each day with its interval."""
    parts = (effect.relative, effect.relative_lo, effect.relative_hi)
    value, low, high = (100.0 * np.asarray(part, dtype=float) for part in parts)
    return EffectByDayView(
        tuple(days), value, low, high, effect.units, f"Change of {metric.lower()}, %",
        valid=reading is Reading.ALWAYS,
    )  # fmt: skip


def plan_frame(plans: Sequence[MetricPlan]) -> pd.DataFrame:
    """One row a metric: its value now, and the users and days needed to show the change."""
    rows = [
        (", ".join(filter(None, (one.metric, one.unit))), one.value, one.need.units, one.need.days)
        for one in plans
    ]
    return pd.DataFrame(rows, columns=["metric", "value", "units", "days"])
