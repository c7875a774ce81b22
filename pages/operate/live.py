"""Live: what is routed right now, and does it still hold what was tuned?"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.console import widgets
from hydra_core.console.live import checks, traffic
from hydra_core.console.live.traffic import choose_log, looked, teach

_PARTS = {
    "Traffic": traffic.traffic,
    "Cost": traffic.cost,
    "Shadow": checks.shadowing,
    "Drift": checks.drifting,
    "Unknown": checks.unknown,
    "Feedback": traffic.rated,
    "Canary": checks.canary,
}
_EVERY_S = 5.0


@st.fragment(run_every=_EVERY_S)
def live(folder: Path, window_s: int) -> None:
    """The figures, and the part that is asked for; looked at again every few seconds."""
    try:
        look = looked(folder, window_s)
        if look is None:
            return
        traffic.figures(look)
        part = st.segmented_control(
            "Part", list(_PARTS), default="Traffic", key="live.part", required=True,
            label_visibility="collapsed", persist_state="session", bind="query-params",
        )  # fmt: skip
        _PARTS[part or "Traffic"](look)
    except (HydraError, OSError) as error:
        widgets.problem(error)


left, right = st.columns([3, 7], vertical_alignment="bottom")
left.title("Live", anchor=False)
with right:
    chosen = choose_log()
if chosen is None:
    teach()
else:
    live(*chosen)
