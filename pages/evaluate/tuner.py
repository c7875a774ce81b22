"""Tuner: weights, tau and, if asked for, profile cells; chosen on one part, kept on the other."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from hydra_core.errors import HydraError
from hydra_core.evaluation.choose.policy_search import FoundPolicy
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.types import Catalog, Rule
from hydra_core.ui import cache, selectors, state, widgets
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.tuner import cells as tuner_cells
from hydra_core.ui.tuner import panels as tuner_panels
from hydra_core.ui.tuner import result as tuner_result
from hydra_core.ui.tuner import take as tuner_take

_FEWEST = 20


def tuner(entry: SetEntry, catalog: Catalog) -> None:
    """The wishes on the left; the search or what it found on the right."""
    try:
        sweep = cache.sweep(entry, catalog, catalog.policy.weights)
    except HydraError as error:
        st.warning(widgets.literal(str(error)), icon=":material/link_off:")
        st.page_link(
            "pages/evaluate/eval_sets.py", label="Go to Eval sets", icon=":material/arrow_forward:"
        )
        return
    if state.get().rule_for(catalog) is Rule.VALUE:
        tuner_panels.by_value()
        return
    if len(sweep.data.rows) < _FEWEST:
        st.info(f"Fewer than {_FEWEST} queries cannot be cut in two and tuned on.")
        return
    search(entry, sweep)


def search(entry: SetEntry, sweep: Sweep) -> None:
    """Controls above, so that the result has the whole width."""
    with st.container(border=True):
        places = st.columns([4, 2, 4, 2], vertical_alignment="bottom", gap="small")
        want = tuner_panels.wanted(sweep, places)
        cells, reach = tuner_cells.wanted(sweep)
        want = replace(want, cells=cells, reach=reach)
        with places[3]:
            task = tuner_panels.search(entry, sweep, want)
    tuner_take.basis()
    widgets.notes(sweep)
    if task is None:
        tuner_panels.nothing_yet(sweep, want)
    elif task.running:
        widgets.waiting(task, "Searching", unit="settings tried")
    elif isinstance(task.result, FoundPolicy):
        tuner_result.found(task.result, entry, sweep, want)
    else:
        tuner_panels.stopped(task, sweep, want)


selectors.page("Tuner", tuner, baseline=False, link={})
