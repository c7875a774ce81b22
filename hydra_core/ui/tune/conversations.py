"""What whole conversations come to in every sticky mode, below the numbers of the Tune page."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from hydra_core.evaluation.replay.evaluation import Evaluation
from hydra_core.evaluation.study.conversations import replay_conversations, why_per_query
from hydra_core.ui import tables
from hydra_core.ui.widgets import literal

__all__ = ["conversations"]


def conversations(evaluation: Evaluation) -> None:
    """Every sticky mode with cache reads and switch losses, or why replay is per query."""
    sweep = evaluation.sweep
    found = replay_conversations(sweep, evaluation.knob, evaluation.baseline)
    if found is None:
        st.caption(literal(why_per_query(sweep)))
        return
    st.markdown(
        f"**{found.conversations:,} conversations, {found.turns:,} turns, cache reads counted**"
    )
    column = st.column_config
    frame = pd.DataFrame(
        {
            "mode": [one.mode.value.replace("_", " ") for one in found.modes],
            "quality": [100 * one.quality.value for one in found.modes],
            "cost": [one.usd_per_turn.value for one in found.modes],
            "cs": [100 * one.cs.value for one in found.modes],
            "ends": [f"{100 * one.cs.lo:.1f} – {100 * one.cs.hi:.1f}" for one in found.modes],
            "cached": [100 * one.cached_share for one in found.modes],
            "switches": [one.switches for one in found.modes],
            "lost": [one.lost_usd for one in found.modes],
        }
    )
    tables.kept(
        frame,
        "tune.table.sessions",
        height="content",
        column_config={
            "mode": "Sticky mode",
            "quality": column.NumberColumn("Quality", format="%.1f %%"),
            "cost": column.NumberColumn("Cost per turn", format="$%.4f"),
            "cs": column.NumberColumn("CS", format="%.1f %%"),
            "ends": "95 % interval",
            "cached": column.NumberColumn("Cache reads", format="%.1f %%"),
            "switches": column.NumberColumn("Switches", format="%.2f"),
            "lost": column.NumberColumn("Lost to switches", format="$%.4f"),
        },
    )
    told = f"Savings against {found.strong} with a warm cache; the rest per conversation."
    if found.without_price:
        told += f" No cached price is known of {', '.join(found.without_price)}."
    st.caption(literal(told))
