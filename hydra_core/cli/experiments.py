"""The verbs canary, shadow and flight: experiments on live and logged traffic."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat

from hydra_core.base.errors import HydraError, ProblemsError
from hydra_core.base.spelling import counted
from hydra_core.cli.options import WINDOW, Verbs, verb
from hydra_core.cli.output import (
    mix_table,
    percent_range,
    print_json,
    quality_lines,
    say,
    show,
    table,
    value_and_ends,
)
from hydra_core.cli.score import open_predictor
from hydra_core.cli.workspace import (
    acting,
    catalog_source,
    existing,
    log_folder,
    open_catalog,
    require_account,
    store_of,
)

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog
    from hydra_core.decision_log.canaries_and_alerts import CanaryOrder
    from hydra_core.live.flight.analysis import FlightReport, MetricResult, TeamParts
    from hydra_core.live.flight.effects import Reading
    from hydra_core.live.flight.files import Flight, Rows
    from hydra_core.live.off_policy import LoggedValue
    from hydra_core.live.shadow import Predict, Shadow
    from hydra_core.predictor.onnx_predictor import Prediction

_RELATIVE = ("relative", "relative_lo", "relative_hi")
_CANARY = """begin, stop or resume a canary of a running service
Says which second catalog gets a share of the conversations of the services that write this log.
They follow within a second, without a restart, and an order goes before their --canary.

begin takes a catalog, or another share or limit for it; stop and resume are for the newest canary;
end leaves the services without one; show says how it stands.

examples:
  hydra-router canary begin log --catalog candidate --share 0.1
  hydra-router canary stop log --why "prices changed"
  hydra-router canary resume log
  hydra-router canary end log
  hydra-router canary show log
"""
_SHADOW = """a second catalog on logged traffic: agreement, mix, cost, value
Replays a second catalog on the traffic of a decision log (serve --log), from the logged
requirements: how often it chooses the model that was served, its mix, and the change of cost: both
by the catalog's prices, and against what was billed then.
Its quality is estimated (doubly robust, SNIPS, IPS, with the effective sample size) only where the
log has feedback and true probabilities (serve --explore); otherwise it says what is missing. Where
part of the traffic has no support in the log, quality is bounded instead.
The models and the knob of a team hold for its requests; what its budget had used does not count.
A catalog that routes by value is replayed from the logged predictions where only V differs,
otherwise from the messages where the log holds them (serve --log-text).

examples:
  hydra-router shadow log --catalog candidate
  hydra-router shadow log --catalog candidate.yaml --json
  hydra-router shadow log --catalog candidate --since 24h --arm main
"""
_FLIGHT = """compare the arms of an A/B flight
Compares the arms of an A/B flight: relative difference with a 95 % interval for every metric, Holm
correction over all of them, guardrail metrics, sample-ratio mismatch, cost against the flagship.
The intervals are valid at any time: read them daily and stop when you like (--fixed: read once at
the planned end, narrower).

FLIGHT.yaml names the table's columns (CSV, TSV, JSONL or Parquet, a row per user or per request; or
the folder of a decision log, of which the decisions of the arms are read, with --since and --until
those of a time, such as one of several canaries); sample_data/paper_flight/flight.yaml is a
commented example. --table reads another table than the one it names. Where it names a column of
teams (team: team), every metric is compared inside each team too; these intervals are
corrected for the number of teams.

With --plan it says, from earlier data, how many users and days are needed until a change of that
size is detected with 80 % power.

examples:
  hydra-router flight sample_data/paper_flight/flight.yaml
  hydra-router flight flight.yaml --table users.csv --json
  hydra-router flight canary.yaml --since 2026-11-20
  hydra-router flight flight.yaml --plan 0.02 --per-day 3000
"""


def add_verbs(verbs: Verbs) -> None:
    parser = verb(verbs, "canary", _canary, _CANARY)
    parser.add_argument("action", choices=["begin", "stop", "resume", "end", "show"])
    parser.option(
        "log", "LOG", "the service's log: a name in the workspace, or a folder", type=log_folder
    )
    parser.option(
        "--catalog", "CATALOG", "name in the workspace, a YAML file or store:NAME", default=""
    )
    parser.option("--share", "SHARE", type=float, default=0.1)
    said = "stop it when it is so many times as expensive or as slow"
    parser.option("--limit", "X", said, type=float, default=2.0)
    parser.option("--why", "TEXT", default="stopped by hand")
    parser = verb(verbs, "shadow", _shadow, _SHADOW)
    parser.option(
        "log", "LOG", "folder of a decision log; `log` is the workspace's", type=log_folder
    )
    parser.shared("--catalog", *WINDOW, "--bundle")
    parser = verb(verbs, "flight", _flight, _FLIGHT)
    parser.option("flight", "FLIGHT.yaml", type=Path)
    parser.option("--table", "FILE", "default: the one it names", type=Path)
    parser.shared("--since", "--until")
    parser.flag("--fixed", "read once, at the planned end")
    parser.flag("--plain", "without the covariate (no CUPED)")
    parser.option("--plan", "CHANGE", "relative change to detect", type=float)
    parser.option("--per-day", "N", "new units a day", type=float, default=0.0)


def _canary(options: argparse.Namespace) -> None:
    from hydra_core.decision_log import canaries_and_alerts as kept
    from hydra_core.live.canary import CanaryChanges

    if options.action != "show":
        require_account("CANARY")
    if not options.log.is_dir():
        raise HydraError(f"{options.log}: there is no such log folder")
    if options.action != "show":
        changes = CanaryChanges(options.log, acting(), store_of(options.log))
        act = {
            "begin": lambda: changes.begin(*_order(options)),
            "end": changes.end,
            "stop": lambda: changes.stop(options.why),
            "resume": changes.resume,
        }
        act[options.action]()
    order, records = kept.ordered_canary(options.log), kept.canaries(options.log)
    if options.json:
        ordered = None if order is None else asdict(order)
        print_json({"order": ordered, "canaries": [asdict(one) for one in records]})
        return
    if order is None and not records:
        say("no canary has begun here")
    if order is not None:
        said = f"{order.catalog}, share {order.share:g}, limit {order.limit:g}"
        say(f"ordered: {said if order.catalog else 'no canary'}")
    if order is not None and (why := kept.refused_order(options.log, order)):
        say(f"not followed: {why}")
    ended = order is not None and not order.catalog
    for place, one in enumerate(records):
        over = "ended" if ended or place else "running"  # the newest alone runs
        state = f"stopped: {one.stopped}" if one.stopped else over
        print(f"{one.catalog} ({one.digest[:12]}), share {one.share:g}, since {one.began}, {state}")


def _order(options: argparse.Namespace) -> tuple[CanaryOrder, str]:
    """The order, and the digest of its catalog."""
    from hydra_core.decision_log.canaries_and_alerts import CanaryOrder
    from hydra_core.live.canary import require_order
    from hydra_core.server.live import source_of

    require_order(CanaryOrder(options.catalog, options.share, options.limit))
    source = catalog_source(options.catalog)
    digest = source_of(source).load().catalog.digest
    catalog = source if source.startswith("store:") else str(Path(source).resolve())
    return CanaryOrder(catalog, options.share, options.limit), digest


def _shadow(options: argparse.Namespace) -> None:
    from hydra_core.decision_log.reading import read_log
    from hydra_core.live.off_policy import NoOverlapError, logged_value
    from hydra_core.live.shadow import predicted, shadow
    from hydra_core.live.traffic import traffic_of

    catalog, today = open_catalog(options.catalog), date.today()
    window = {"since": options.since, "until": options.until, "arm": options.arm}
    traffic = traffic_of(read_log(existing(options.log), **window))
    traffic = predicted(traffic, catalog, today, _scorer(catalog, options.bundle))
    replay = shadow(traffic, catalog, today)
    try:
        value, why = logged_value(traffic, catalog, today), ""
    except NoOverlapError as error:
        value, why = None, str(error)
    show(options, _document(replay, value, why), _text(replay, value, why))


def _scorer(catalog: Catalog, bundle: Path | None) -> Predict:
    """Scores logged messages again, with the catalog's bundle."""
    from hydra_core.catalog import require_bundle

    def scored(texts: list[str], turns: list[int], contexts: list[str]) -> Prediction:
        predictor = open_predictor(bundle)
        require_bundle(catalog, predictor.bundle.fingerprint)
        say(f"scoring {len(texts):,} logged messages")
        return predictor.predict_batches(texts, turns=turns, contexts=contexts)

    return scored


def _document(replay: Shadow, value: LoggedValue | None, why: str) -> dict[str, Any]:
    live, here = replay.mixes
    return {
        "replayed": len(replay.traffic),
        "left_out": replay.left_out,
        "agreement": value_and_ends(replay.agreement),
        "live_mix": live,
        "mix": here,
        "cost_change": value_and_ends(replay.cost.change if replay.cost else None),
        "cost_change_from_billed": value_and_ends(replay.billed.change if replay.billed else None),
        "no_value_because": why or None,
        "value": None if value is None else _value(value),
    }


def _value(logged: LoggedValue) -> dict[str, Any]:
    value = logged.value
    return {
        "n": value.n,
        "effective": value.effective,
        "explored": logged.explored,
        "live": value_and_ends(logged.live),
        "doubly_robust": value_and_ends(value.dr),
        "snips": value_and_ends(value.snips),
        "ips": value_and_ends(value.ips),
        "bounds": value_and_ends(value.bounds),
        "unsupported": value.unsupported,
        "caution": logged.caution or None,
    }


def _text(replay: Shadow, value: LoggedValue | None, why: str) -> str:
    lines = [f"{counted(len(replay.traffic), 'decision')} replayed"]
    lines += [f"  left out, {reason}: {count:,}" for reason, count in replay.left_out.items()]
    lines += [f"agreement: {percent_range(replay.agreement)}"]
    for cost, against, known in (
        (replay.cost, "live, both at its prices", "tokens"),
        (replay.billed, "what was billed then", "a bill"),
    ):
        if cost is not None:
            change = percent_range(cost.change, "+")
            lines += [f"cost against {against}: {change}, {cost.counted:,} with {known}"]
    lines += ["", mix_table(["live", "this catalog"], replay.mixes), ""]
    if value is None:
        return "\n".join([*lines, f"quality: not estimated, {why}"])
    lines += [f"quality, live: {percent_range(value.live)}", *quality_lines(value.value)]
    size = f"{value.value.n:,} rated decisions are worth {value.value.effective:,.0f}"
    caution = [f"  {value.caution}"] if value.caution else []
    return "\n".join([*lines, f"  {size} (effective sample size)", *caution])


def _flight(options: argparse.Namespace) -> None:
    from hydra_core.live.flight.analysis import analyse, by_team
    from hydra_core.live.flight.effects import Reading
    from hydra_core.live.flight.files import load_flight, read_rows

    flight = load_flight(existing(options.flight))
    file = existing(options.table or options.flight.parent / flight.table)
    rows = read_rows(file, flight, since=options.since, until=options.until)
    reading = Reading.FIXED if options.fixed else Reading.ALWAYS
    if options.plan is not None:
        _plan(options, flight, rows, reading)
        return
    report = analyse(rows, flight, reading=reading, adjust=not options.plain)
    teams = by_team(rows, flight, reading=reading, adjust=not options.plain)
    document, text = _flight_json(report), _flight_text(report)
    if teams is not None:
        document |= {"teams": _teams_json(teams)}
        text += "\n\n" + _teams_text(teams)
    show(options, document, text)


def _plan(options: argparse.Namespace, flight: Flight, rows: Rows, reading: Reading) -> None:
    from hydra_core.live.flight.analysis import plans

    if not (options.plan and math.isfinite(options.plan)):
        raise ProblemsError.of("--plan", f"must not be {options.plan:g}", "such as 0.02 for 2 %")
    if not 0 <= options.per_day < math.inf:
        raise ProblemsError.of("--per-day", f"must be a number >= 0, got {options.per_day:g}")
    needs = plans(
        rows, flight, options.plan, units_per_day=options.per_day, reading=reading,
        adjust=not options.plain,
    )  # fmt: skip
    document = [
        {"metric": one.metric, "value": one.value, "deviation": one.deviation, **asdict(one.need)}
        for one in needs
    ]
    lines = [
        [one.metric, _mean(one.value), _count(one.need.units), _count(one.need.days)]
        for one in needs
    ]
    show(options, document, table(["metric", "now", "units", "days"], lines))


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _mean(value: SupportsFloat) -> str:
    return f"{float(value):#.4g}" if math.isfinite(value) else "–"


def _flight_json(report: FlightReport) -> dict[str, Any]:
    return {
        "flight": report.flight.name,
        "reading": report.reading.value,
        "adjusted": report.adjusted,
        "units": report.units,
        "sample_ratio": {"p": report.ratio.p_value, "alarm": report.ratio.alarm.value},
        "metrics": _metrics_json(report),
        "savings": {arm: value_and_ends(interval) for arm, interval in report.savings.items()},
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


def _change(one: MetricResult) -> tuple[str, str]:
    """The relative change and its interval; dashes where a mean is 0."""
    value, low, high = (100 * float(getattr(one.effect, name)) for name in _RELATIVE)
    if not all(map(math.isfinite, (low, high))):
        return "–", "–"
    return f"{value:+.2f} %", f"[{low:+.2f}, {high:+.2f}]"


def _teams_text(teams: TeamParts) -> str:
    from hydra_core.replay.significance_table import p_text

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
    empty = [
        f"{part.team or '(no team)'}, {line}"
        for part in teams.parts
        for line in _left_out(part.report.results if part.report else ())
    ]
    return (
        f"By team: each interval at {100 * teams.level:.4g} %, so that those of one metric hold in "
        f"all {teams.compared} compared teams together with 95 %; p over all teams and metrics."
        f"{shared}\n\n{table(head, rows)}\n" + "\n".join(["", *empty] if empty else [])
    ).rstrip()


def _flight_text(report: FlightReport) -> str:
    from hydra_core.replay.significance_table import p_text

    rows = [
        [one.metric.name, one.arm, _mean(one.effect.control), _mean(one.effect.treatment),
         *_change(one), p_text(one.p_holm), one.verdict()]
        for one in report.results
    ]  # fmt: skip
    head = ["metric", "arm", "control", "arm's", "change", "95 %", "p (Holm)", "verdict"]
    units = ", ".join(f"{arm} {count:,}" for arm, count in report.units.items())
    savings = [
        f"{arm}: {100 * i.value:.1f} % [{i.scaled(100.0).bounds(between=', ')}] below the flagship"
        if math.isfinite(i.value)
        else f"{arm}: no cost beside the flagship's"
        for arm, i in report.savings.items()
    ]
    kind = "read at any time" if report.reading.value == "always" else "read once, at the end"
    alarm = report.ratio.alarm.value
    state = "as planned" if alarm == "none" else f"{alarm.upper()}: not as planned"
    ratio = f"sample ratio {state} (p = {report.ratio.p_value:.3g})"
    return "\n".join([f"{report.flight.name}: {units} units, {kind}; {ratio}", "",
                      table(head, rows), "", *_left_out(report.results), *savings])  # fmt: skip


def _left_out(results: Sequence[MetricResult]) -> list[str]:
    """Which metrics do not count all units; nothing where all do."""
    counts = {one.metric.name: one.left_out for one in results if one.left_out}
    told = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    return [f"units left out because a cell of theirs is empty: {told}"] if told else []
