"""The knob of the Tune page: which rule decides, and its setting, tau or V."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.types import Catalog, Rule
from hydra_core.ui import state, widgets
from hydra_core.views.numbers import RULES, usd

__all__ = ["LEARN", "knob", "rule"]

LEARN = "pages/evaluate/learn.py"


@dataclass(frozen=True, slots=True)
class _Words:
    """How the knob of one rule is asked for."""

    label: str
    help: str
    along: str
    least: float
    step: float | None


_WORDS = {
    Rule.SHORTFALL: _Words(
        "Threshold τ",
        "Largest weighted shortfall a model may have and still be eligible. The cheapest "
        "eligible model gets the query.",
        "τ along the curve",
        0.0,
        0.005,
    ),
    Rule.VALUE: _Words(
        "V: one more resolved query is worth, USD",
        "What you would pay for one more resolved query. The model with the largest predicted "
        "success minus predicted cost / V gets the query.",
        "V along the curve, on a log scale",
        1e-9,
        None,
    ),
}
#: What was found or typed under one rule says nothing under the other.
_OF_THE_RULE = ("tune.stop",)


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
    widgets.forget(*_OF_THE_RULE)
    state.put(rule=Rule(st.session_state["tune.rule"]), aim=None)


def knob(sweep: Sweep, at: float) -> None:
    """The setting as a number and as a stop along the curve."""
    words, name = _WORDS[sweep.rule], "value" if sweep.rule is Rule.VALUE else "tau"
    shown, slider = f"tune.{name}", "tune.slider" if name == "tau" else "tune.slider_value"
    st.session_state[shown] = at
    st.number_input(
        words.label,
        min_value=words.least,
        max_value=max(sweep.steps[-1], at, 0.01),
        step=words.step or float(f"{at / 10:.1g}"),
        format="%.6g",
        key=shown,
        help=words.help,
        on_change=lambda: state.turn(sweep.rule, float(st.session_state[shown])),
    )
    if at not in sweep.steps:  # stays a stop of the slider until another is typed or clicked
        st.session_state["tune.stop"] = at
    stop = st.session_state.get("tune.stop", sweep.steps[0])
    st.session_state[slider] = at
    st.select_slider(
        words.along,
        sorted({*sweep.steps, stop}),
        format_func=usd if name == "value" else lambda step: f"{step:.4g}",
        key=slider,
        label_visibility="collapsed",
        on_change=lambda: state.turn(sweep.rule, float(st.session_state[slider])),
    )
