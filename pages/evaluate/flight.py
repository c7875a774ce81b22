"""Flight: two or more arms in real traffic; what changed, and may it be believed yet?"""

from __future__ import annotations

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.console import widgets
from hydra_core.console.live import cache
from hydra_core.console.live import flight as panels
from hydra_core.console.live.flight import load_dialog
from hydra_core.live.flight.effects import Reading
from hydra_core.live.flight.folders import FlightFolder

_PARTS = ("Results", "Over time", "Plan")
_READINGS = {Reading.ALWAYS: "Any time", Reading.FIXED: "Once, at the end"}


def choose() -> FlightFolder | None:
    """The flight to look at; a freshly loaded one is chosen."""
    known = {folder.name: folder for folder in cache.flights()}
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


def flight(folder: FlightFolder) -> None:
    """Settings of the reading, the verdict, and the part that is asked for."""
    try:
        settings, _ = cache.opened(folder)
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            part = st.segmented_control(
                "Part", _PARTS, default=_PARTS[0], key="flight.part", required=True,
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
        report = cache.report(folder, reading or Reading.ALWAYS, adjust)
        panels.verdict(report, arm)
        if part == "Over time":
            panels.over_time(folder, report, arm)
        elif part == "Plan":
            panels.planning(folder, report)
        else:
            panels.results(report, arm)
    except (HydraError, OSError) as error:
        widgets.problem(error)


left, right = st.columns([2.8, 7.2], vertical_alignment="bottom")
left.title("Flight", anchor=False)
with right:
    chosen = choose()
if chosen is None:
    widgets.empty(
        "No flight yet",
        "Load a table with a row per user or per request, and a flight.yaml that names its arms "
        "and metrics. The dialog has a commented example.",
    )
else:
    try:
        if cache.opened(chosen)[0].synthetic:
            with left:
                widgets.synthetic_badge()
    except (HydraError, OSError):
        pass
    flight(chosen)
