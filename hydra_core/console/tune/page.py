"""Tune: what routing does to quality and cost on one eval set, by hand, searched or learned."""

from __future__ import annotations

from functools import partial

import streamlit as st

from hydra_core.base.errors import EvalSetError, HydraError, MismatchError
from hydra_core.base.types import Catalog, Rule
from hydra_core.console import cache, frame, replays, selectors, state, widgets
from hydra_core.console.cache import SetEntry
from hydra_core.console.eval_sets import make_catalog, scoring
from hydra_core.console.figures.frontier import FrontierView, frontier_figure
from hydra_core.console.frame import Head, Part
from hydra_core.console.numbers import SYMBOLS
from hydra_core.console.tune import details as tune_details
from hydra_core.console.tune import knob as tune_knob
from hydra_core.console.tune import learned, search
from hydra_core.console.view_frontier import Axes, XAxis, YAxis, frontier_view
from hydra_core.replay.evaluation import evaluate
from hydra_core.replay.sweep import Sweep


@st.fragment
def tune(entry: SetEntry, catalog: Catalog) -> None:
    """Everything that follows the knob; only this part runs again when it moves."""
    tuning = state.get()
    try:
        sweep = _sweep(entry, catalog, tuning.rule_for(catalog))
        pinned = _pinned(entry, catalog, tuning)
    except HydraError as error:
        _refused(error, entry, catalog)
        return
    knob = tuning.knob_for(sweep)
    if sweep.rule is Rule.VALUE and tuning.value_usd is None:
        state.turn(Rule.VALUE, knob)  # so that every page speaks of the same V
    axes = Axes(tuning.x, tuning.y, tuning.baseline_on(sweep.data))
    imported = replays.imported(sweep, axes.baseline)
    top = st.container()
    wide, narrow = st.columns([7, 2.6], gap="small")
    with wide.container(border=True):
        _toggles()
        place = st.container(key=tune_knob.PLACE).empty()
    view = partial(
        frontier_view, sweep, knob, axes,
        pinned=pinned, beside=_beside(entry, sweep), imported=imported.metrics,
    )  # fmt: skip
    if not sweep.has_band:  # the curve is there long before its band and the verdict
        with place.container():
            _plot(sweep, view(banded=False), key="tune.curve")
        widgets.paint()
    with top:
        replays.band(sweep)
        evaluation = evaluate(sweep, knob, axes.baseline)
        held_out = tune_knob.held_out(evaluation)
        tune_knob.live(evaluation)  # above all that changes its height, so that it never slips away
        with st.container(key=tune_knob.VERDICT):
            tune_knob.result(evaluation, held_out)
    widgets.paint()
    with narrow:
        tune_details.controls(evaluation, pinned, held_out, entry)
    with place.container():
        _plot(sweep, view(), on_select=lambda: _clicked(sweep), selection_mode="points")
    widgets.notes(sweep, imported.notes)
    tune_details.details(evaluation, imported, entry)
    state.write_link()


def _toggles() -> None:
    with st.container(horizontal=True, horizontal_alignment="distribute", gap="small"):
        tuning = state.get()
        ys = {YAxis.QR: "Quality retention", YAxis.RESOLVED: "Resolved"}
        xs = {XAxis.COST: "Cost", XAxis.SAVINGS: "Savings"}
        toggle = tune_details.toggle
        toggle("tune.y", "Vertical axis", ys, tuning.y, lambda axis: state.put(y=axis))
        toggle("tune.x", "Horizontal axis", xs, tuning.x, lambda axis: state.put(x=axis))


def _plot(sweep: Sweep, view: FrontierView, key: str = tune_knob.PLOT, **selection: object) -> None:
    """The frontier; where it is given how, a click on the curve sets the knob."""
    widgets.figure(
        frontier_figure(view, widgets.colors()),
        key,
        alt=f"Quality against cost of the router for every {SYMBOLS[sweep.rule]}, with single "
        "models and oracle",
        **selection,
    )


def _clicked(sweep: Sweep) -> None:
    points = st.session_state[tune_knob.PLOT]["selection"]["points"]
    knobs = [p["customdata"] for p in points if isinstance(p.get("customdata"), int | float)]
    if knobs:
        state.turn(sweep.rule, sweep.curve.tidy(float(knobs[0])))


def _sweep(entry: SetEntry, catalog: Catalog, rule: Rule) -> Sweep:
    tuning = state.get()
    weights = tuning.weights_for(catalog)
    return replays.ruled_sweep(entry, catalog, rule, weights, tuning.costs)


def _refused(error: HydraError, entry: SetEntry, catalog: Catalog) -> None:
    """Why this rule cannot be replayed here, and what to do; the other rule stays in reach."""
    if catalog.success_source is not None:
        tune_knob.rule(catalog)
    if isinstance(error, EvalSetError) and not scoring.vectors_now(cache.evalset(entry)):
        return
    if isinstance(error, MismatchError) and state.get().rule_for(catalog) is Rule.SHORTFALL:
        st.warning(widgets.literal(str(error)), icon=":material/link_off:")
        make_catalog.offer(entry)
    else:
        widgets.problem(error)


def _beside(entry: SetEntry, sweep: Sweep) -> Sweep | None:
    """The set under the other rule, where there is one."""
    if sweep.catalog.success_source is None:
        return None
    other = Rule.SHORTFALL if sweep.rule is Rule.VALUE else Rule.VALUE
    try:
        return _sweep(entry, sweep.catalog, other)
    except HydraError as error:
        st.caption(f":material/info: Without the other rule's curve: {widgets.literal(str(error))}")
        return None


def _pinned(entry: SetEntry, catalog: Catalog, tuning: state.Tuning) -> tuple[Sweep, float] | None:
    """The policy to compare with: its curve, and where on it."""
    pin = tuning.pin
    if pin is None or len(pin.weights) != len(catalog.dimensions):
        return None
    if pin.rule is Rule.VALUE and catalog.success_source is None:
        return None
    return replays.ruled_sweep(entry, catalog, pin.rule, pin.weights, tuning.costs), pin.knob


def _by_hand(head: Head) -> None:
    """The part By hand: what routing does to quality and cost, for every setting of a rule."""
    state.follow_link()
    selectors.on_data(head, tune)


PARTS = {
    "by-hand": Part("By hand", _by_hand, (5.0, 7.0)),
    "search": Part("Search", search.show, (5.0, 7.0)),
    "learned": Part("Learned", learned.show, (5.0, 7.0)),
}


def show() -> None:
    """The whole page."""
    frame.show("Tune", PARTS)
