"""Tuner: weights, tau and, if asked for, profile cells; chosen on one part, kept on the other."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog, Rule
from hydra_core.choosing.policy_search import FoundPolicy
from hydra_core.console import cache, selectors, state, widgets
from hydra_core.console.cache import SetEntry
from hydra_core.console.tune import search_form as tuner_cells
from hydra_core.console.tune import search_form as tuner_panels
from hydra_core.console.tune import search_result as tuner_result
from hydra_core.console.tune import search_result as tuner_take
from hydra_core.replay.sweep import Sweep

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
        cells, reach = tuner_cells.cells_wanted(sweep)
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
