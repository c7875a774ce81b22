"""The verb flight: two or more arms compared, or a flight planned."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.cli.options import Verbs, verb
from hydra_core.cli.output import print_json, table
from hydra_core.cli.workspace import existing

if TYPE_CHECKING:
    from hydra_core.live.flight.analysis import FlightReport, MetricResult, TeamParts
    from hydra_core.live.flight.effects import Reading
    from hydra_core.live.flight.settings import Flight
    from hydra_core.live.flight.table import Rows


_FLIGHT = """\
Compares the arms of an A/B flight: relative difference with a 95 % interval for every metric, Holm
correction over all of them, guardrail metrics, sample-ratio mismatch, cost against the flagship.
The intervals are valid at any time: read them daily and stop when you like (--fixed: read once at
the planned end, narrower).

FLIGHT.yaml names the table's columns (CSV, TSV, JSONL or Parquet, a row per user or per request; a
decision log too); sample_data/paper_flight/flight.yaml is a commented example. --table reads
another table than the one it names. Where it names a column of teams (team: team), every metric is
compared inside each team too; these intervals are corrected for the number of teams.

With --plan it says, from earlier data, how many users and days are needed until a change of that
size is detected with 80 % power.

examples:
  hydra-router flight sample_data/paper_flight/flight.yaml
  hydra-router flight flight.yaml --table users.csv --json
  hydra-router flight flight.yaml --plan 0.02 --per-day 3000
"""


def add_verbs(verbs: Verbs) -> None:
    """Add flight."""
    parser = verb(verbs, "flight", _flight, "compare the arms of an A/B flight", _FLIGHT)
    parser.add_argument("flight", type=Path, metavar="FLIGHT.yaml")
    parser.add_argument("--table", type=Path, metavar="FILE", help="default: the one it names")
    parser.add_argument("--fixed", action="store_true", help="read once, at the planned end")
    parser.add_argument("--plain", action="store_true", help="without the covariate (no CUPED)")
    parser.add_argument("--plan", type=float, metavar="CHANGE", help="relative change to detect")
    parser.add_argument("--per-day", type=float, default=0.0, metavar="N", help="new units a day")


def _flight(options: argparse.Namespace) -> int:
    from hydra_core.live.flight.analysis import analyse, by_team
    from hydra_core.live.flight.effects import Reading
    from hydra_core.live.flight.settings import load_flight
    from hydra_core.live.flight.table import read_rows

    flight = load_flight(existing(options.flight))
    rows = read_rows(existing(options.table or options.flight.parent / flight.table), flight)
    reading = Reading.FIXED if options.fixed else Reading.ALWAYS
    if options.plan is not None:
        return _plan(options, flight, rows, reading)
    report = analyse(rows, flight, reading=reading, adjust=not options.plain)
    teams = by_team(rows, flight, reading=reading, adjust=not options.plain)
    if options.json:
        split = {} if teams is None else {"teams": _teams_json(teams)}
        print_json(as_json(report) | split)
    else:
        print(_text(report))
        if teams is not None:
            print("\n" + _teams_text(teams))
    return 0


def _plan(options: argparse.Namespace, flight: Flight, rows: Rows, reading: Reading) -> int:
    from hydra_core.live.flight.planning import plans

    needs = plans(
        rows, flight, options.plan, units_per_day=options.per_day, reading=reading,
        adjust=not options.plain,
    )  # fmt: skip
    if options.json:
        print_json([{"metric": one.metric, "value": one.value, "deviation": one.deviation,
                     "units": one.need.units, "days": one.need.days} for one in needs])  # fmt: skip
    else:
        shown = [[one.metric, f"{one.value:#.4g}", _count(one.need.units), _count(one.need.days)]
                 for one in needs]  # fmt: skip
        print(table(["metric", "now", "units", "days"], shown))
    return 0


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def as_json(report: FlightReport) -> dict[str, Any]:
    """The report's figures as plain values."""
    return {
        "flight": report.flight.name,
        "reading": report.reading.value,
        "adjusted": report.adjusted,
        "units": report.units,
        "sample_ratio": {"p": report.ratio.p_value, "alarm": report.ratio.alarm.value},
        "metrics": _metrics_json(report),
        "savings": {arm: [i.value, i.lo, i.hi] for arm, i in report.savings.items()},
    }


def _metrics_json(report: FlightReport) -> list[dict[str, Any]]:
    return [
        {
            "metric": one.metric.name,
            "arm": one.arm,
            "control": float(one.effect.control),
            "treatment": float(one.effect.treatment),
            "relative": [float(getattr(one.effect, name)) for name in _RELATIVE],
            "p": float(one.effect.p_value),
            "p_holm": one.p_holm,
            "verdict": one.verdict(),
            "left_out": one.left_out,
        }
        for one in report.results
    ]


def _teams_json(teams: TeamParts) -> dict[str, Any]:
    return {
        "level": teams.level,
        "units_in_several": teams.shared,
        "parts": [
            {
                "team": part.team,
                "units": part.units,
                "metrics": None if part.report is None else _metrics_json(part.report),
            }
            for part in teams.parts
        ],
    }


_RELATIVE = ("relative", "relative_lo", "relative_hi")


def _change(one: MetricResult) -> tuple[str, str]:
    """The relative change and its interval."""
    value, low, high = (100 * float(getattr(one.effect, name)) for name in _RELATIVE)
    return f"{value:+.2f} %", f"[{low:+.2f}, {high:+.2f}]"


def _teams_text(teams: TeamParts) -> str:
    from hydra_core.replay.report.significance import p_text

    rows = []
    for part in teams.parts:
        shown = [part.team or "(no team)", ", ".join(f"{a} {n:,}" for a, n in part.units.items())]
        if part.report is None:
            rows.append([*shown, "too few units to compare", "", "", "", "", ""])
            continue
        rows += [[*shown, one.metric.name, one.arm, *_change(one), p_text(one.p_holm),
                  one.verdict()] for one in part.report.results]  # fmt: skip
    head = ["team", "units", "metric", "arm", "change", "interval", "p (Holm)", "verdict"]
    shared = f" {teams.shared:,} units are in several teams and count in each." * (teams.shared > 0)
    return (
        f"By team: each interval at {100 * teams.level:.4g} %, so that those of one metric hold in "
        f"all {teams.compared} compared teams together with 95 %; p over all teams and metrics."
        f"{shared}\n\n{table(head, rows)}"
    )


def _text(report: FlightReport) -> str:
    from hydra_core.replay.report.significance import p_text

    rows = []
    for one in report.results:
        rows.append([one.metric.name, one.arm, f"{float(one.effect.control):#.4g}",
                     f"{float(one.effect.treatment):#.4g}", *_change(one),
                     p_text(one.p_holm), one.verdict()])  # fmt: skip
    head = ["metric", "arm", "control", "arm's", "change", "95 %", "p (Holm)", "verdict"]
    units = ", ".join(f"{arm} {count:,}" for arm, count in report.units.items())
    savings = [
        f"{arm}: {100 * i.value:.1f} % [{100 * i.lo:.1f}, {100 * i.hi:.1f}] below the flagship"
        for arm, i in report.savings.items()
    ]
    kind = "read at any time" if report.reading.value == "always" else "read once, at the end"
    alarm = report.ratio.alarm.value
    state = "as planned" if alarm == "none" else f"{alarm.upper()}: not as planned"
    ratio = f"sample ratio {state} (p = {report.ratio.p_value:.3g})"
    return "\n".join([f"{report.flight.name}: {units} units, {kind}; {ratio}", "",
                      table(head, rows), "", *savings])  # fmt: skip
