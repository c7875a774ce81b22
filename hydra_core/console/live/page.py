"""Live: what is routed right now, experiments on live traffic, and eval sets of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.console import frame, widgets
from hydra_core.console.frame import Head, Part
from hydra_core.console.live import canary, checks, connect, flight, log, traffic
from hydra_core.console.live.traffic import LogView, by_team, choose_log, log_view, teach

_VIEWS: dict[str, Callable[[LogView], None]] = {
    "Traffic": traffic.traffic,
    "Cost": traffic.cost,
    "Teams": traffic.teams,
    "Shadow": checks.shadowing,
    "Drift": checks.drifting,
    "Unknown": checks.unknown,
    "Feedback": traffic.rated,
    "Alerts": checks.alerted,
    "Connect": lambda _: connect.show(),
}
_EVERY_S = 5.0


@st.fragment(run_every=_EVERY_S)
def live(folder: Path, window_s: int) -> None:
    """The figures, and the view that is asked for; looked at again every few seconds."""
    try:
        look = log_view(folder, window_s)
        if look is None:
            return
        look = by_team(look)
        traffic.figures(look)
        checks.promised(look)
        view = st.segmented_control(
            "View", list(_VIEWS), default="Traffic", key="live.view", required=True,
            label_visibility="collapsed", persist_state="session", bind="query-params",
        )  # fmt: skip
        _VIEWS[view or "Traffic"](look)
    except (HydraError, OSError) as error:
        widgets.problem(error)


def _traffic(head: Head) -> None:
    with head.right:
        chosen = choose_log()
    if chosen is None:
        teach()
        connect.show()
    else:
        live(*chosen)


PARTS = {
    "traffic": Part("Traffic", _traffic),
    "canary": Part("Canary", canary.show),
    "experiments": Part("Experiments", flight.show, (6.4, 5.6)),
    "log": Part("Log", log.show),
}


def show() -> None:
    """The whole page."""
    frame.show("Live", PARTS)
