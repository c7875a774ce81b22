"""Experiments: the results of an A/B flight, its days so far, and the plan of the next."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.shipped import SAMPLE_DATA
from hydra_core.base.spelling import signed
from hydra_core.console import cache, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.demo import session
from hydra_core.console.figures.intervals import (
    IntervalsView,
    effect_by_day_figure,
    one_series,
)
from hydra_core.console.frame import Head
from hydra_core.console.live import cache as cache_live
from hydra_core.console.numbers import percent
from hydra_core.console.widgets import literal, metric_row
from hydra_core.live.flight.analysis import (
    LEAST_UNITS,
    Alarm,
    FlightReport,
    MetricResult,
    TeamParts,
    all_metrics,
    plans,
)
from hydra_core.live.flight.effects import Effect, Reading
from hydra_core.live.flight.kept import FlightFolder, save_flight
from hydra_core.replay.significance_table import p_text
from hydra_core.store.roles import Action

_SUFFIXES = ["csv", "tsv", "md", "jsonl", "ndjson", "parquet", "gz", "zip"]
_EXAMPLE = SAMPLE_DATA / "paper_flight" / "flight.yaml"


@st.dialog("Load an experiment", width="medium")
def load_dialog() -> None:
    """Ask for two files and a name; an experiment that is not valid changes nothing."""
    st.markdown(
        "An experiment is a table with a row per user or per request, and a `flight.yaml` that "
        "names its columns. A decision log works as the table."
    )
    st.download_button(
        "Commented example",
        _EXAMPLE.read_text(encoding="utf-8"),
        "flight.yaml",
        icon=":material/download:",
        key="flight.example",
    )
    settings = st.file_uploader("flight.yaml", ["yaml", "yml"], key="flight.settings")
    table = st.file_uploader("Table", _SUFFIXES, key="flight.table")
    name = st.text_input("Name", "my-flight", key="flight.name", max_chars=60)
    allowed = identity.may(Action.KEEP_FLIGHT)
    ready = settings is not None and table is not None and allowed
    if not allowed:
        st.caption("A viewer can look at experiments, but not load one.")
    asked = st.button("Check and load", type="primary", disabled=not ready, key="flight.keep")
    if not asked or settings is None or table is None:
        return
    try:
        text = widgets.uploaded_text(settings)
        folder = re.sub(r"[^a-z0-9_-]+", "-", name.strip().lower()).strip("-")
        root = session.folder() / "flights"
        kept = save_flight(
            root, folder, text, table.getvalue(), table.name,
            actor=identity.actor(), store=cache.store(),
        )  # fmt: skip
    except HydraError as error:
        widgets.problem(error)
        return
    st.session_state["flight.wanted"] = kept.name
    st.rerun()


def verdict(report: FlightReport, arm: str) -> None:
    """Draw the answer, then the row of figures."""
    tone, title, text = headline(report, arm)
    widgets.toned(tone, text, title)
    verdicts = [one.verdict() for one in arm_results(report, arm)]
    control = report.flight.control
    counts = f"{report.units[control]:,} and {report.units[arm]:,}"
    entries = [
        ("Users", f"{sum(report.units.values()):,}", counts,
         f"Users or conversations. Below: in {control} and in {arm}."),
        ("Sample ratio", _RATIO[report.ratio.alarm], f"p {_p(report.ratio.p_value)}",
         "Whether the arms have their planned shares of users (chi-square test): a warning below "
         "p = .01, an error below .001."),
        ("Better", f"{verdicts.count('better')}", f"{verdicts.count('worse')} worse",
         "Metrics with a difference after Holm's correction over all metrics and arms."),
        ("Guardrails kept", f"{verdicts.count('holds')}", f"{verdicts.count('open')} undecided",
         "Guardrails whose interval stays within the loss that flight.yaml allows."),
    ]  # fmt: skip
    if arm in report.savings:
        entries.append(
            ("Saved", *percent(report.savings[arm]),
             "Cost saved against the flagship model for everything. Below: 95 % interval.")
        )  # fmt: skip
    metric_row(entries)


def _p(value: float) -> str:
    text = p_text(value)
    return text if text.startswith("<") else f"= {text}"


_RATIO = {Alarm.NONE: "as planned", Alarm.YELLOW: "doubtful", Alarm.RED: "broken"}


def results(_: FlightFolder, report: FlightReport, arm: str) -> None:
    """Draw every metric's change with its interval, then the figures."""
    wide, narrow = st.columns([4, 6], gap="small")
    with wide:
        widgets.intervals(
            changes_view(report, arm),
            "flight.changes",
            "Relative change of every metric with its 95 % interval",
        )
    column = st.column_config
    with narrow:
        tables.kept(
            results_frame(report, arm),
            "flight.results",
            {"control": _three, "arm": _three},
            columns={
                "metric": column.TextColumn("Metric", width=168),
                "control": column.NumberColumn(report.flight.control, width=58),
                "arm": column.NumberColumn(arm, width=56),
                "interval": column.TextColumn("Change, 95 %", width=132),
                "p": column.TextColumn("p", width=58, help="After Holm's correction"),
                "verdict": column.TextColumn("Result", width=74),
            },
        )
    left_out = {one.metric.name: one.left_out for one in arm_results(report, arm) if one.left_out}
    if left_out:
        counts = ", ".join(f"{name} {count:,}" for name, count in left_out.items())
        st.caption(f":material/info: Left out because their cell is empty: {literal(counts)}.")
    adjusted = f"adjusted for {report.flight.covariate} (CUPED); " if report.adjusted else ""
    strata = f"{len(report.strata)} strata; " if len(report.strata) > 1 else ""
    any_time = "at any time" if report.reading is Reading.ALWAYS else "once, at the end"
    basis = f"95 % intervals, valid {any_time}; {adjusted}{strata}"
    st.caption(literal(f"{basis}↓: lower is better, ↑: higher is better."))


def _three(value: float) -> str:
    """Spell three significant digits with their zeros: 1.40 beside 1.34."""
    whole = math.floor(math.log10(abs(value))) if value else 0
    return f"{value:,.{max(2 - whole, 0)}f}"


def over_time(folder: FlightFolder, report: FlightReport, arm: str) -> None:
    """Draw one metric after each day."""
    flight, rows = cache_live.opened(folder)
    if not flight.day or len(rows.days) < 2:
        st.info(
            "Name the column with the day in flight.yaml (day: ...) to see the change after each "
            "day."
        )
        return
    metrics = {metric.name: metric for metric in all_metrics(flight)}
    name = _choose_metric(metrics)
    path = cache_live.path(folder, metrics[name], arm, report.reading, report.adjusted)
    any_time = report.reading is Reading.ALWAYS
    with st.container(border=True):
        widgets.figure(
            effect_by_day_figure(rows.days, path, name, widgets.colors(), valid=any_time),
            "flight.looks",
            alt=f"Change of {name} after every day with its interval",
        )
    if any_time:
        st.caption("You can stop on any day: the chance that the band ever misses the true change "
                   "is at most 5 %.")  # fmt: skip
    else:
        st.caption(":material/warning: These bands hold at the planned end alone. If you stop on "
                   "the first day that excludes 0, about a third of experiments without a "
                   "difference seem to have one.")  # fmt: skip


def _choose_metric(names: Iterable[str]) -> str:
    return st.selectbox(
        "Metric", list(names), key="flight.metric", width=320, persist_state="session",
        bind="query-params",
    )  # fmt: skip


def teams(folder: FlightFolder, report: FlightReport, arm: str) -> None:
    """Draw one metric inside each team, with the teams' users and guardrails."""
    found = cache_live.teams(folder, report.reading, report.adjusted)
    if found is None:
        st.info(
            "Name the column with the team in flight.yaml to compare the arms inside each team. "
            "A decision log has it as `team`."
        )
        widgets.commands("team: team")
        return
    name = _choose_metric(metric.name for metric in all_metrics(report.flight))
    control, column = report.flight.control, st.column_config
    tables.kept(
        teams_frame(found, name, arm, control),
        "flight.by_team",
        rows=lambda: all_teams_frame(found, arm),
        columns={
            "team": column.TextColumn("Team", width=200),
            "control": column.NumberColumn(f"Users, {control}", format="localized"),
            "arm": column.NumberColumn(f"Users, {arm}", format="localized"),
            "interval": column.TextColumn(f"Change, {100 * found.level:.4g} %", width=150),
            "p": column.TextColumn("p", help="After Holm's correction", width=60),
            "verdict": column.TextColumn("Result", width=100),
            "guardrails": column.TextColumn("Guardrails", width=160),
        },
    )
    if found.compared:
        widgets.intervals(
            teams_view(found, name, arm, control),
            "flight.teams",
            f"Change of {name} in each team with its interval",
        )
    notes = [
        f"Looks at parts of the experiment: each interval is at {100 * found.level:.4g} %, so that "
        f"those of one metric hold in all {found.compared} compared teams together with 95 %. "
        "p is corrected over all teams and metrics. Users were not drawn into teams: compare the "
        f"arms inside a team, not two teams. A team with fewer than {LEAST_UNITS} users in an arm "
        "is not compared."
    ]
    if found.shared:
        notes.append(f"{found.shared:,} users are in several teams and count in each.")
    st.caption(" ".join(notes))


def planning(folder: FlightFolder, report: FlightReport, _: str) -> None:
    """Draw how many users and days it takes to detect a change."""
    flight, rows = cache_live.opened(folder)
    per_day_now = max(1, round(sum(report.units.values()) / max(1, len(rows.days))))
    left, middle, right = st.columns(3)
    change = left.number_input(
        "Change to detect, %", 0.1, 100.0, 2.0, 0.5, key="flight.change",
        help="Relative to the metric's value now.",
    )  # fmt: skip
    per_day = middle.number_input(
        "New users a day, all arms", 1, 100_000_000, per_day_now, 100,
        key="flight.per_day",
    )  # fmt: skip
    wanted = right.number_input(
        "Power, %", 50, 99, 80, 5, key="flight.power",
        help="Chance that a change of that size is detected by then.",
    )  # fmt: skip
    found = plans(
        rows, flight, change / 100, units_per_day=float(per_day), reading=report.reading,
        adjust=report.adjusted, wanted=wanted / 100,
    )  # fmt: skip
    needs = [
        (", ".join(filter(None, (one.metric, one.unit))), one.value, one.need.units, one.need.days)
        for one in found
    ]
    column = st.column_config
    tables.kept(
        needs,
        "flight.plan",
        columns={
            "metric": column.TextColumn("Metric", width=260),
            "value": column.NumberColumn("Now", format="%.4g"),
            "units": column.NumberColumn("Users, all arms", format="localized"),
            "days": column.NumberColumn("Days", format="localized"),
        },
    )
    st.caption("From the spread in this table, all arms together. Reading at any time needs more "
               "users: switch to one reading at the end to see how many.")  # fmt: skip


_VIEWS = {"Results": results, "Teams": teams, "Over time": over_time, "Plan": planning}
_READINGS = {Reading.ALWAYS: "Any time", Reading.FIXED: "Once, at the end"}


def choose() -> FlightFolder | None:
    """Return the chosen experiment; one that was just loaded is chosen."""
    known = {folder.name: folder for folder in cache_live.flights()}
    wanted = st.session_state.pop("flight.wanted", None)
    if wanted in known:
        st.session_state["flight.chosen"] = wanted
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="bottom"):
        name = st.selectbox(
            "Experiment", list(known), key="flight.chosen", width=240, bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
        if st.button("Load an experiment", icon=":material/upload:", key="flight.load"):
            load_dialog()
    return known.get(name) if name else None


def experiment(folder: FlightFolder) -> None:
    """Draw the settings, the answer, and the chosen view."""
    try:
        settings, _ = cache_live.opened(folder)
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            view = st.segmented_control(
                "View", list(_VIEWS), default="Results", key="flight.view", required=True,
                label_visibility="collapsed", persist_state="session", bind="query-params",
            )  # fmt: skip
            reading = st.segmented_control(
                "Read", list(_READINGS), format_func=_READINGS.__getitem__, default=Reading.ALWAYS,
                key="flight.reading", required=True, label_visibility="collapsed",
                persist_state="session", bind="query-params",
                help="Any time: look daily and stop when you like. Once: narrower intervals for "
                "one planned look.",
            )  # fmt: skip
            adjust = bool(settings.covariate) and st.toggle(
                "Adjust for earlier behaviour", True, key="flight.adjust",
                persist_state="session", bind="query-params",
                help=f"CUPED with {settings.covariate}: removes what the covariate explains.",
            )  # fmt: skip
            others = list(settings.arms)[1:]
            arm = others[0] if len(others) == 1 else st.selectbox(
                "Arm", others, key="flight.arm", persist_state="session", bind="query-params",
            )  # fmt: skip
        report = cache_live.report(folder, reading or Reading.ALWAYS, adjust)
        verdict(report, arm)
        _VIEWS[view or "Results"](folder, report, arm)
    except (HydraError, OSError) as error:
        widgets.problem(error)


def show(head: Head) -> None:
    """Draw the part Experiments."""
    with head.right:
        chosen = choose()
    if chosen is None:
        widgets.empty(
            "No experiment yet",
            "Load a table with a row per user or per request, and a flight.yaml that names its "
            "arms and metrics. The dialog has an example with comments.",
        )
        return
    with suppress(HydraError, OSError), head.left:  # said below
        widgets.synthetic_badge(cache_live.opened(chosen)[0].synthetic)
    experiment(chosen)


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
            f"{shares} (p {_p(report.ratio.p_value)}). Find what loses or doubles users in one "
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
        "interval": f"{signed(change)} % [{signed(low)}, {signed(high)}]"
        if np.isfinite(change)
        else "no % of 0",
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
    """A change that is read once, and its bounds, in percent; NaN where a mean is 0."""
    ends = effect.relative, effect.relative_lo, effect.relative_hi
    change, low, high = (100.0 * float(end) for end in ends)
    return (change, low, high) if np.isfinite([low, high]).all() else (np.nan, np.nan, np.nan)
