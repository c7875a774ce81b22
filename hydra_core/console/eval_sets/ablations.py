"""What each part of reading a message is worth on this set, measured on demand."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import date

import streamlit as st

from hydra_core.console import cache, replays, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.cache import SetEntry
from hydra_core.console.eval_sets.view_routing_help import ablation_table, ablation_view
from hydra_core.console.figures.intervals import intervals_figure
from hydra_core.console.tasks import Task
from hydra_core.console.widgets import literal
from hydra_core.lab.ablation import AblatedReading, reading_ablation, readings
from hydra_core.predictor.bundle import SHIPPED_SMALL, load_bundle
from hydra_core.replay.sweep import Sweep


def ablations(entry: SetEntry, sweep: Sweep) -> None:
    """Fewer tokens, no signal prefix, the other bundle: agreement with labels, and routing."""
    key = ("readings", replays.sweep_key(entry, sweep))
    task = replays.tasks().get(key)
    if task is not None and task.running:
        widgets.waiting(task, "Reading every message in every way")
        return
    if task is not None and task.error:
        st.error(literal(task.error), icon=":material/error:")
    found = task.result if task is not None else None
    if not isinstance(found, tuple):
        _offer(key, sweep)
        return
    _shown(found)


def _offer(key: Hashable, sweep: Sweep) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"**What does each part of reading a message add?** The console scores all "
            f"{sweep.evalset.n:,} messages again: with fewer tokens, without the signal prefix, "
            "and with its other predictor.",
            width="stretch",
        )
        if st.button("Measure", type="primary", key="explore.ablate"):
            _start(key, sweep)
            st.rerun()


def _start(key: Hashable, sweep: Sweep) -> None:
    bundle, other = cache.bundle(), load_bundle(SHIPPED_SMALL)

    def work(task: Task) -> tuple[AblatedReading, ...]:
        return reading_ablation(
            sweep.evalset, sweep.catalog, readings(bundle, [other]), today=date.today(),
            progress=task.step,
        )  # fmt: skip

    replays.tasks().start(key, work, owner=identity.actor().name)


def _shown(found: tuple[AblatedReading, ...]) -> None:
    widgets.figure(
        intervals_figure(ablation_view(found), widgets.colors()),
        "explore.ablations",
        alt="Quality retention of every way of reading against the predictor as it is",
    )
    column = st.column_config
    tables.kept(
        ablation_table(found), "explore.ablations.table", height="content",
        column_config={
            "reading": column.TextColumn("Reading"),
            "pearson": column.NumberColumn("Pearson", format="%.3f", help="Against the labels"),
            "mae": column.NumberColumn("MAE", format="%.3f", help="Against the labels"),
            "qr": column.NumberColumn("QR", format="%.1f %%"),
            "cost": column.NumberColumn("Cost per query", format="$%.4g"),
        },
    )  # fmt: skip
    st.caption(
        "All rows route at about the same cost: τ is chosen on one half of the queries and "
        "measured on the other half. Lines are 95 % intervals, paired by query."
    )
