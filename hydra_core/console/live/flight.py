"""The parts of the Flight page: results, the days so far, the plan."""

from __future__ import annotations

import math
import re

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.shipped import SAMPLE_DATA
from hydra_core.console import cache, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.demo import session
from hydra_core.console.figures.intervals import intervals_figure
from hydra_core.console.frame import Head
from hydra_core.console.live import cache as live_cache
from hydra_core.console.live.figure_effect_by_day import effect_by_day_figure
from hydra_core.console.live.view_flight import (
    arm_results,
    changes_view,
    effect_by_day_view,
    headline,
    plan_frame,
    results_frame,
)
from hydra_core.console.widgets import literal, metric_row
from hydra_core.live.flight.analysis import Alarm, FlightReport, all_metrics
from hydra_core.live.flight.effects import Reading
from hydra_core.live.flight.folders import FlightFolder, save_flight
from hydra_core.live.flight.planning import plans
from hydra_core.store.roles import Action

_SUFFIXES = ["csv", "tsv", "jsonl", "ndjson", "parquet", "gz", "zip"]
_EXAMPLE = SAMPLE_DATA / "paper_flight" / "flight.yaml"


@st.dialog("Load a flight", width="medium")
def load_dialog() -> None:
    """Two files and a name; a flight that is not valid changes nothing."""
    st.markdown(
        "A flight is a table (a row per user or per request; a decision log too) and a "
        "`flight.yaml` that says what its columns are."
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
        st.caption("A viewer may look at flights, not keep one.")
    if not st.button("Check and keep", type="primary", disabled=not ready, key="flight.keep"):
        return
    if settings is None or table is None:
        return
    try:
        text = settings.getvalue().decode("utf-8-sig", "replace")
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
    """The sentence, then the row of figures."""
    tone, title, text = headline(report, arm)
    widgets.toned(tone, text, title)
    said = [one.verdict() for one in arm_results(report, arm)]
    control = report.flight.control
    counts = f"{report.units[control]:,} and {report.units[arm]:,}"
    entries = [
        ("Units", f"{sum(report.units.values()):,}", counts,
         f"Users or conversations. Below: in {control} and in {arm}."),
        ("Sample ratio", _RATIO[report.ratio.alarm], f"p = {report.ratio.p_value:.2g}",
         "Whether the arms hold the shares of units they were promised (chi-square): a warning "
         "below .01, a stop below .001."),
        ("Better", f"{said.count('better')}", f"{said.count('worse')} worse",
         "Metrics that differ after Holm's correction over all metrics and arms."),
        ("Guards kept", f"{said.count('holds')}", f"{said.count('open')} open",
         "Guards whose interval stays within the worsening that flight.yaml allows."),
    ]  # fmt: skip
    if arm in report.goods:
        saved = report.goods[arm].scaled(100.0)
        entries.append(
            ("Under the flagship", f"{saved.value:.1f} %", f"{saved.lo:.1f} – {saved.hi:.1f} %",
             "1 − cost / what the flagship would have cost. Below: 95 % interval.")
        )  # fmt: skip
    metric_row(entries)


_RATIO = {Alarm.NONE: "as promised", Alarm.YELLOW: "doubtful", Alarm.RED: "broken"}


def results(report: FlightReport, arm: str) -> None:
    """Every metric's change with its interval, then the figures."""
    wide, narrow = st.columns([4, 6], gap="small")
    with wide.container(border=True):
        widgets.figure(
            intervals_figure(changes_view(report, arm), widgets.colors()),
            "flight.changes",
            alt="Relative change of every metric with its 95 % interval",
        )
    column = st.column_config
    with narrow:
        st.dataframe(
            tables.spelled(results_frame(report, arm), {"control": _three, "arm": _three}),
            hide_index=True,
            height="content",
            column_order=("metric", "control", "arm", "interval", "p", "verdict"),
            column_config={
                "metric": column.TextColumn("Metric", width=168),
                "control": column.NumberColumn(report.flight.control, width=58),
                "arm": column.NumberColumn(arm, width=56),
                "interval": column.TextColumn("Change, 95 %", width=138),
                "p": column.TextColumn("p", width=58, help="After Holm's correction"),
                "verdict": column.TextColumn("Verdict", width=62),
            },
        )
        tables.offer_downloads(results_frame(report, arm), "flight.results")
    left_out = {one.metric.name: one.left_out for one in arm_results(report, arm) if one.left_out}
    if left_out:
        told = ", ".join(f"{name} {count:,}" for name, count in left_out.items())
        st.caption(f":material/info: Units with an empty cell are left out: {literal(told)}.")
    adjusted = f"adjusted for {report.flight.covariate} (CUPED); " if report.adjusted else ""
    strata = f"{len(report.strata)} strata; " if len(report.strata) > 1 else ""
    any_time = "at any time" if report.reading is Reading.ALWAYS else "once, at the end"
    said = f"Intervals: 95 %, valid {any_time}; {adjusted}{strata}"
    st.caption(literal(f"{said}↓: lower is better, ↑: higher."))


def _three(value: float) -> str:
    """Three digits, zeros at the end too: 1.40 beside 1.34."""
    whole = math.floor(math.log10(abs(value))) if value else 0
    return f"{value:,.{max(2 - whole, 0)}f}"


def over_time(folder: FlightFolder, report: FlightReport, arm: str) -> None:
    """One metric after every day."""
    flight, rows = live_cache.opened(folder)
    if not flight.day or len(rows.days) < 2:
        st.info("Name the column with the day in flight.yaml (day: ...) to see every look.")
        return
    metrics = {metric.name: metric for metric in all_metrics(flight)}
    name = st.selectbox(
        "Metric", list(metrics), key="flight.metric", width=320, persist_state="session",
        bind="query-params",
    )  # fmt: skip
    path = live_cache.path(folder, metrics[name], arm, report.reading, report.adjusted)
    with st.container(border=True):
        widgets.figure(
            effect_by_day_figure(
                effect_by_day_view(rows.days, path, name, report.reading), widgets.colors()
            ),
            "flight.looks",
            alt=f"Change of {name} after every day with its interval",
        )
    if report.reading is Reading.ALWAYS:
        st.caption("Any day may be the last: the chance that the band ever leaves out the truth is "
                   "at most 5 %.")  # fmt: skip
    else:
        st.caption(":material/warning: Read once, these bands hold at the planned end alone. "
                   "Stopping at the first day that leaves out 0 is wrong in about a third of "
                   "flights without a difference.")  # fmt: skip


def planning(folder: FlightFolder, report: FlightReport) -> None:
    """How many units and days it takes until a change is shown."""
    flight, rows = live_cache.opened(folder)
    left, middle, right = st.columns(3)
    change = left.number_input(
        "Change to be shown, %", 0.1, 100.0, 2.0, 0.5, key="flight.change",
        help="Relative to the metric's value now.",
    )  # fmt: skip
    per_day = middle.number_input(
        "New units a day, all arms", 1, 100_000_000, _per_day(rows.days, report), 100,
        key="flight.per_day",
    )  # fmt: skip
    wanted = right.number_input(
        "Power, %", 50, 99, 80, 5, key="flight.power",
        help="Chance that a change of that size is shown by then.",
    )  # fmt: skip
    found = plans(
        rows, flight, change / 100, units_per_day=float(per_day), reading=report.reading,
        adjust=report.adjusted, wanted=wanted / 100,
    )  # fmt: skip
    column = st.column_config
    tables.kept(
        plan_frame(found),
        "flight.plan",
        height="content",
        column_config={
            "metric": column.TextColumn("Metric", width=260),
            "value": column.NumberColumn("Now", format="%.4g"),
            "units": column.NumberColumn("Units, all arms", format="localized"),
            "days": column.NumberColumn("Days", format="localized"),
        },
    )
    st.caption("From the spread in this table, all arms together. Reading at any time costs units: "
               "switch to one reading at the end to see how many.")  # fmt: skip


def _per_day(days: tuple[str, ...], report: FlightReport) -> int:
    return max(1, round(sum(report.units.values()) / max(1, len(days))))


_VIEWS = ("Results", "Over time", "Plan")
_READINGS = {Reading.ALWAYS: "Any time", Reading.FIXED: "Once, at the end"}


def choose() -> FlightFolder | None:
    """The flight to look at; a freshly loaded one is chosen."""
    known = {folder.name: folder for folder in live_cache.flights()}
    wanted = st.session_state.pop("flight.wanted", None)
    if wanted in known:
        st.session_state["flight.chosen"] = wanted
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="bottom"):
        name = st.selectbox(
            "Flight", list(known), key="flight.chosen", width=240, bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
        if st.button("Load a flight", icon=":material/upload:", key="flight.load"):
            load_dialog()
    return known.get(name) if name else None


def experiment(folder: FlightFolder) -> None:
    """Settings of the reading, the verdict, and the view that is asked for."""
    try:
        settings, _ = live_cache.opened(folder)
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            view = st.segmented_control(
                "View", _VIEWS, default=_VIEWS[0], key="flight.view", required=True,
                label_visibility="collapsed", persist_state="session", bind="query-params",
            )  # fmt: skip
            reading = st.segmented_control(
                "Read", list(_READINGS), format_func=_READINGS.__getitem__, default=Reading.ALWAYS,
                key="flight.reading", required=True, label_visibility="collapsed",
                persist_state="session", bind="query-params",
                help="Any time: look daily, stop when you like. Once: narrower, for one planned "
                "look.",
            )  # fmt: skip
            adjust = bool(settings.covariate) and st.toggle(
                "Adjust for what was known before", True, key="flight.adjust",
                persist_state="session", bind="query-params",
                help=f"CUPED with {settings.covariate}: takes out what the covariate explains.",
            )  # fmt: skip
            others = list(settings.arms)[1:]
            arm = others[0] if len(others) == 1 else st.selectbox(
                "Arm", others, key="flight.arm", persist_state="session", bind="query-params",
            )  # fmt: skip
        report = live_cache.report(folder, reading or Reading.ALWAYS, adjust)
        verdict(report, arm)
        if view == "Over time":
            over_time(folder, report, arm)
        elif view == "Plan":
            planning(folder, report)
        else:
            results(report, arm)
    except (HydraError, OSError) as error:
        widgets.problem(error)


def show(head: Head) -> None:
    """The part Experiments: one flight and what it shows."""
    with head.right:
        chosen = choose()
    if chosen is None:
        widgets.empty(
            "No experiment yet",
            "Load a table with a row per user or per request, and a flight.yaml that names its "
            "arms and metrics. The dialog has a commented example.",
        )
        return
    try:
        if live_cache.opened(chosen)[0].synthetic:
            with head.left:
                widgets.synthetic_badge()
    except (HydraError, OSError):
        pass
    experiment(chosen)
