"""The verdict of the Tune page: how its point came about, and the check that covers weights."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from hydra_core.errors import HydraError
from hydra_core.evaluation.choose.aims import Aim, aim_at
from hydra_core.evaluation.replay.evaluation import Evaluation
from hydra_core.evaluation.replay.operating_point import CrossFit, InfeasibleError
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.types import Rule
from hydra_core.ui import cache_evaluate, state, widgets
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.widgets import literal

__all__ = ["found", "judged", "setting", "verdict"]

_CHECKED = "tune.checked"
#: Eval set, catalog, rule, knob and weights.
Where = tuple[str, str, Rule, float, tuple[float, ...]]


def _where(sweep: Sweep, knob: float) -> Where:
    tuning = state.get()
    return tuning.evalset, tuning.catalog, sweep.rule, knob, sweep.weights


def found(entry: SetEntry, evaluation: Evaluation) -> CrossFit | None:
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
    return cache_evaluate.held_out(entry, sweep, aim) if serves else None


def setting(sweep: Sweep, aim: Aim) -> float:
    """The knob that serves an aim.

    Raises:
        InfeasibleError: None does.
    """
    at = aim_at(sweep.curve, aim, sweep.oracle.quality.value, sweep.data, strict=True)
    return sweep.curve.tidy(at.knob)


def judged(evaluation: Evaluation, held_out: CrossFit | None) -> Evaluation:
    """The evaluation with the cross-fitted verdict where Find chose its setting.

    Not where the weights are edited: they were chosen on every query, so the knob alone being
    found on one half and measured on the other would prove nothing.
    """
    if held_out is None or evaluation.weights_edited:
        return evaluation
    return replace(evaluation, verdict=held_out.verdict)


def verdict(evaluation: Evaluation, entry: SetEntry) -> None:
    """The verdict, what its interval does not cover, and the check that covers it."""
    widgets.verdict_box(evaluation.verdict)
    if not evaluation.caution:
        return
    here = _where(evaluation.sweep, evaluation.knob)
    left, right = st.columns([8, 2], vertical_alignment="center", gap="small")
    left.caption(literal(evaluation.caution))
    right.button(
        "Check cross-fitted",
        icon=":material/fact_check:",
        key="tune.check",
        width="stretch",
        help="Chooses weights and τ anew on one half of the queries for the same QR, and "
        "measures them on the other half; both ways round.",
        on_click=lambda: st.session_state.__setitem__(_CHECKED, here),
    )
    if st.session_state.get(_CHECKED) == here:
        _checked(evaluation, entry)


def _checked(evaluation: Evaluation, entry: SetEntry) -> None:
    try:
        found = cache_evaluate.cross_fitted_check(entry, evaluation)
    except (HydraError, ValueError) as error:
        st.warning(literal(str(error)), icon=":material/error:")
        return
    st.markdown("**What tuned weights keep on queries they were not chosen on**")
    widgets.verdict_box(found)
