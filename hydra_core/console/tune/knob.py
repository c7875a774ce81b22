"""The knob of the Tune page: which rule decides, and its setting, tau or V."""

from __future__ import annotations

from functools import partial

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import signed, usd
from hydra_core.base.types import Catalog, Rule
from hydra_core.console import replays, state, widgets
from hydra_core.console.components.live_knob import Bar, LiveKnob, Point, live_knob
from hydra_core.console.figures.theme import model_colors
from hydra_core.console.frame import LEARNED, link
from hydra_core.console.numbers import RULES, SYMBOLS
from hydra_core.console.view_frontier import XAxis, YAxis
from hydra_core.console.view_result import Measure, mean_seconds, step_table, tiles
from hydra_core.console.widgets import literal
from hydra_core.replay.evaluation import Evaluation
from hydra_core.replay.operating_point import Aim, CrossFit, InfeasibleError, aim_at
from hydra_core.replay.sweep import Sweep

_CHECKED = "tune.checked"


def held_out(evaluation: Evaluation) -> CrossFit | None:
    """What the aim in force comes to on queries its setting was not chosen on.

    None where no aim was set, or the knob is not where the aim puts it.
    """
    aim, sweep = state.get().aim, evaluation.sweep
    if aim is None:
        return None
    try:
        serves = setting(sweep, aim) == evaluation.knob
    except InfeasibleError:
        return None
    return replays.held_out(sweep, aim) if serves else None


def setting(sweep: Sweep, aim: Aim) -> float:
    """The knob that serves an aim.

    Raises:
        InfeasibleError: None does.
    """
    at = aim_at(sweep.curve, aim, sweep.oracle.quality.value, sweep.data, strict=True)
    return sweep.curve.tidy(at.knob)


def result(evaluation: Evaluation, held_out: CrossFit | None) -> None:
    """The result at the point, what its interval does not cover, and the check that covers it."""
    widgets.verdict_box(evaluation.verdict)
    if held_out is not None and not evaluation.weights_edited:
        _on_other_queries(held_out, evaluation.sweep.rule)
    if not evaluation.caution:
        return
    if evaluation.sweep.rule is Rule.VALUE:
        st.caption(literal(evaluation.caution))
        link(LEARNED, "See the cross-fitted gain", ":material/school:")
        return
    sweep, tuning = evaluation.sweep, state.get()
    here = tuning.evalset, tuning.catalog, sweep.rule, evaluation.knob, sweep.weights
    left, right = st.columns([8, 2], vertical_alignment="center", gap="small")
    left.caption("This interval does not cover weights, profiles or a pool tuned on this set.")
    right.button(
        "Check cross-fitted",
        icon=":material/fact_check:",
        key="tune.check",
        width="stretch",
        help="Chooses weights and τ anew on one half of the queries for the same QR, and "
        "measures them on the other half; both ways round.",
        on_click=lambda: st.session_state.__setitem__(_CHECKED, here),
    )
    if st.session_state.get(_CHECKED) != here:
        return
    try:
        qr = round(evaluation.router.qr.value, 4)
        found = replays.cross_fitted_check(evaluation.sweep, qr)
    except (HydraError, ValueError) as error:
        st.warning(literal(str(error)), icon=":material/error:")
        return
    st.markdown("**Tuned weights on queries they were not tuned on**")
    widgets.verdict_box(found)


def _on_other_queries(held_out: CrossFit, rule: Rule) -> None:
    """What Find's choice comes to where it was not made; a second figure, so it says why."""
    metrics, judged = held_out.metrics, held_out.verdict
    difference = judged.judged_by.scaled(100.0)
    st.caption(
        literal(
            f"On queries it was not tuned on (cross-fitted): {100 * metrics.quality.value:.1f} % "
            f"quality at {usd(metrics.mean_cost_usd.value)} per query, "
            f"{signed(difference.value)} points against the fixed mix at that cost "
            f"({difference.bounds(signed)}). It differs from the figures "
            f"above because each half of the queries gets the {SYMBOLS[rule]} of the other half."
        )
    )


#: Keys of what follows the knob, and of the place of the plot, or of its curve alone at first.
PLOT, VERDICT, PLACE = "tune.plot", "tune.verdict", "tune.place"


def rule(catalog: Catalog) -> None:
    """The toggle between both rules; where there is only one, the way to the other."""
    if catalog.success_source is None:
        st.caption("Routes by profiles. With outcomes learned it can route by value as well.")
        link(LEARNED, "Learn from outcomes", ":material/school:")
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
        "most τ. Value: the largest predicted success minus predicted cost / V, by success "
        "profiles or by the outcome model that was learned.",
        on_change=lambda: state.put(rule=Rule(st.session_state["tune.rule"]), aim=None),
    )


def knob(sweep: Sweep, at: float) -> None:
    """The setting as a number."""
    key, label, least, step = "tune.tau", "Threshold τ", 0.0, 0.005
    text = (
        "Largest weighted shortfall a model may have and still be eligible. The cheapest "
        "eligible model gets the query."
    )
    if sweep.rule is Rule.VALUE:
        key, label = "tune.value", "V: one more resolved query is worth, USD"
        least, step = 1e-9, float(f"{at / 10:.1g}")
        text = (
            "What you would pay for one more resolved query. The model with the largest predicted "
            "success minus predicted cost / V gets the query."
        )
    st.session_state[key] = at
    st.number_input(
        label, least, max(sweep.steps[-1], at, 0.01), step=step, format="%.6g", key=key, help=text,
        on_change=lambda: state.turn(sweep.rule, float(st.session_state[key])),
    )  # fmt: skip


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
    seconds = mean_seconds(evaluation)
    if seconds is not None:
        st.caption(f":material/schedule: {literal(seconds)}")
    widgets.cautions(evaluation.router, sweep.data)
