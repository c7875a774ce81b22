"""The knob of the Tune page: which rule decides, and its setting, tau or V."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import streamlit as st

from hydra_core.evaluation.replay.evaluation import Evaluation
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.figures.theme import model_colors
from hydra_core.types import Catalog, Rule
from hydra_core.ui import state, widgets
from hydra_core.ui.live_knob.component import Bar, LiveKnob, Point, live_knob
from hydra_core.views.frontier import XAxis, YAxis
from hydra_core.views.numbers import RULES
from hydra_core.views.tune.operating_point import Measure, step_table, tiles

__all__ = ["LEARN", "PLACE", "PLOT", "VERDICT", "knob", "live", "rule"]

LEARN = "pages/evaluate/learn.py"
#: Keys of what follows the knob.
PLOT, VERDICT = "tune.plot", "tune.verdict"
#: Where the plot stands, or its curve alone while the band is computed.
PLACE = "tune.place"


@dataclass(frozen=True, slots=True)
class _Words:
    """How the knob of one rule is asked for."""

    label: str
    help: str
    least: float
    step: float | None


_WORDS = {
    Rule.SHORTFALL: _Words(
        "Threshold τ",
        "Largest weighted shortfall a model may have and still be eligible. The cheapest "
        "eligible model gets the query.",
        0.0,
        0.005,
    ),
    Rule.VALUE: _Words(
        "V: one more resolved query is worth, USD",
        "What you would pay for one more resolved query. The model with the largest predicted "
        "success minus predicted cost / V gets the query.",
        1e-9,
        None,
    ),
}


def rule(catalog: Catalog) -> None:
    """The toggle between both rules; where there is only one, the way to the other."""
    if catalog.outcome_model is None:
        st.caption("Routes by profiles. With outcomes learned it can route by value as well.")
        st.page_link(LEARN, label="Learn from outcomes", icon=":material/school:")
        return
    st.session_state["tune.rule"] = state.get().rule_for(catalog)
    st.segmented_control(
        "Rule",
        list(Rule),
        format_func=RULES.__getitem__,
        key="tune.rule",
        required=True,
        width="stretch",
        help="Shortfall: the cheapest model whose profile falls short of the requirements by at "
        "most τ. Value: the largest predicted success minus predicted cost / V, by the outcome "
        "model that was learned.",
        on_change=_rule_changed,
    )


def _rule_changed() -> None:
    state.put(rule=Rule(st.session_state["tune.rule"]), aim=None)


def knob(sweep: Sweep, at: float) -> None:
    """The setting as a number."""
    words = _WORDS[sweep.rule]
    key = "tune.value" if sweep.rule is Rule.VALUE else "tune.tau"
    st.session_state[key] = at
    st.number_input(
        words.label,
        min_value=words.least,
        max_value=max(sweep.steps[-1], at, 0.01),
        step=words.step or float(f"{at / 10:.1g}"),
        format="%.6g",
        key=key,
        help=words.help,
        on_change=lambda: state.turn(sweep.rule, float(st.session_state[key])),
    )


def live(evaluation: Evaluation) -> None:
    """The figures where the policy stands, and the knob that they follow while it is dragged."""
    sweep, tuning = evaluation.sweep, state.get()
    live_knob(
        LiveKnob(
            sweep.rule,
            evaluation.knob,
            step_table(sweep, evaluation.baseline),
            model_colors(sweep.models, widgets.colors()),
            tiles(evaluation),
            bars=(Bar("", "share", tuple(evaluation.router.shares[one] for one in sweep.models)),),
            point=Point(
                PLOT,
                x=Measure.COST if tuning.x is XAxis.COST else Measure.CS,
                y=Measure.QR if tuning.y is YAxis.QR else Measure.QUALITY,
            ),
            fades=(VERDICT,),
            lift=100 * evaluation.verdict.delta,
        ),
        key="tune.knob",
        on_release=partial(state.turn, sweep.rule),
    )
    widgets.recorded_costs(sweep.data)
