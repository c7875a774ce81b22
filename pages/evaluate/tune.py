"""Tune: what routing would do to quality and cost on one eval set, for every tau."""

from __future__ import annotations

import streamlit as st

from hydra_core.errors import HydraError, MismatchError
from hydra_core.evaluation.replay.evaluation import Evaluation, evaluate
from hydra_core.types import Catalog
from hydra_core.ui import cache, cache_evaluate, selectors, state, widgets
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.evalsets import make_catalog
from hydra_core.ui.tune import judgement
from hydra_core.ui.tune import panels as tune_panels


@st.fragment
def tune(entry: SetEntry, catalog: Catalog) -> None:
    """Everything that follows tau; only this part runs again when it moves."""
    tuning = state.get()
    try:
        sweep = cache.sweep(entry, catalog, tuning.weights_for(catalog), tuning.costs)
        pinned = _pinned(entry, catalog, tuning)
    except MismatchError as error:
        st.warning(widgets.literal(str(error)), icon=":material/link_off:")
        make_catalog.offer(entry)
        return
    except HydraError as error:
        widgets.problem(error)
        return
    cache_evaluate.band(sweep)
    evaluation = judgement.judged(evaluate(sweep, tuning.tau_for(catalog), tuning.baseline))
    imported = cache_evaluate.imported(entry, sweep, evaluation.baseline)
    judgement.verdict(evaluation, entry)
    widgets.kpis(evaluation)
    wide, narrow = st.columns([7, 2.6], gap="small")
    with narrow:
        tune_panels.controls(evaluation, pinned)
    with wide.container(border=True):
        tune_panels.plot(evaluation, pinned, imported)
    widgets.notes(sweep, imported.notes)
    tune_panels.details(evaluation, imported)
    state.write_link()


def _pinned(entry: SetEntry, catalog: Catalog, tuning: state.Tuning) -> Evaluation | None:
    pin = tuning.pin
    if pin is None or len(pin.weights) != len(catalog.dimensions):
        return None
    sweep = cache.sweep(entry, catalog, pin.weights, tuning.costs)
    return evaluate(sweep, pin.tau, tuning.baseline)


state.follow_link()
left, right = st.columns([2.8, 7.2], vertical_alignment="bottom")
left.title("Tune", anchor=False)
with right:
    chosen = selectors.choose_data()
if chosen is not None:
    with left:
        widgets.provenance(chosen[0].info)
    tune(*chosen)
