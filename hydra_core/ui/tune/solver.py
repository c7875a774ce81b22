"""Find on the Tune page: the setting that serves an aim, and what it keeps on other queries."""

from __future__ import annotations

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.evaluation.choose.aims import Aim, AimKind
from hydra_core.evaluation.replay.operating_point import CrossFit, InfeasibleError
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.ui import state
from hydra_core.ui.tune import judgement
from hydra_core.ui.widgets import literal
from hydra_core.views.numbers import SYMBOLS, usd

__all__ = ["solver"]

_AIMS = {
    AimKind.CHEAPEST_WITH_QR: "QR ≥",
    AimKind.BEST_WITH_COST: "Cost ≤",
    AimKind.HYPERVOLUME: "Knee",
}
#: The aim that the widgets were last seeded with.
_SEEDED = "tune.aim_shown"


def solver(sweep: Sweep, held_out: CrossFit | None) -> None:
    """Ask for an aim, and say what the setting found keeps on queries it was not tuned on."""
    aim = state.get().aim
    if aim is not None and st.session_state.get(_SEEDED) != aim:
        _seed(aim)
    st.session_state.setdefault("tune.aim", AimKind.CHEAPEST_WITH_QR)
    chosen = st.segmented_control(
        "Find an operating point",
        list(_AIMS),
        format_func=_AIMS.__getitem__,
        key="tune.aim",
        required=True,
        persist_state="session",
        help="The cheapest point that keeps QR, the best one within a cost, or the knee of the "
        "curve.",
    )
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    kind = chosen or AimKind.CHEAPEST_WITH_QR
    asked = Aim(kind, _goal(sweep, kind, left))
    right.button(
        f"Find {SYMBOLS[sweep.rule]}", on_click=_find, args=(sweep, asked), width="stretch",
        key="tune.find",
    )  # fmt: skip
    if aim is not None:
        _answer(sweep, aim, held_out)


def _seed(aim: Aim) -> None:
    """Show the aim of a link where it was asked for."""
    st.session_state[_SEEDED] = aim
    st.session_state["tune.aim"] = aim.kind
    if aim.kind is AimKind.CHEAPEST_WITH_QR:
        st.session_state["tune.goal_qr"] = min(round(100 * aim.value, 10), 100.0)
    elif aim.kind is AimKind.BEST_WITH_COST:
        st.session_state["tune.goal_cost"] = aim.value


def _goal(sweep: Sweep, kind: AimKind, place: DeltaGenerator) -> float:
    if kind is AimKind.CHEAPEST_WITH_QR:
        st.session_state.setdefault("tune.goal_qr", float(np.floor(97 * sweep.best_qr)))
        percent = place.number_input(
            "QR in %", 0.0, 100.0, step=0.5, format="%.1f", key="tune.goal_qr",
            persist_state="session", label_visibility="collapsed",
        )  # fmt: skip
        return percent / 100
    if kind is AimKind.BEST_WITH_COST:
        costs = sweep.curve.mean_cost_usd
        st.session_state.setdefault("tune.goal_cost", float((costs[0] + costs[-1]) / 2))
        return place.number_input(
            "USD per query", 0.0, step=float(costs.max() / 50), format="%.4f",
            key="tune.goal_cost", persist_state="session", label_visibility="collapsed",
        )  # fmt: skip
    place.caption("farthest above the straight line")
    return 0.0


def _find(sweep: Sweep, aim: Aim) -> None:
    st.session_state[_SEEDED] = aim
    try:
        knob = judgement.setting(sweep, aim)
    except InfeasibleError:
        state.put(aim=aim)  # why not is said beside it
        return
    state.turn(sweep.rule, knob)
    state.put(aim=aim)


def _answer(sweep: Sweep, aim: Aim, held_out: CrossFit | None) -> None:
    if held_out is None:
        _infeasible(sweep, aim)
        return
    metrics = held_out.metrics
    qr, cost = metrics.qr.scaled(100.0), metrics.mean_cost_usd.value
    told = (
        f"On queries it was not tuned on: QR {qr.value:.1f} % [{qr.lo:.1f}, {qr.hi:.1f}] at "
        f"{usd(cost)} per query."
    )
    if aim.met_by(metrics.qr.value, cost):
        st.caption(literal(told))
        return
    limit = (
        f"QR {100 * aim.value:.1f} %"
        if aim.kind is AimKind.CHEAPEST_WITH_QR
        else f"{usd(aim.value)} per query"
    )
    st.warning(literal(f"{told} That misses the aim of {limit}: leave some margin."))


def _infeasible(sweep: Sweep, aim: Aim) -> None:
    """Say why nothing serves an aim; nothing where the knob was merely moved elsewhere."""
    try:
        judgement.setting(sweep, aim)
    except InfeasibleError as error:
        told = (
            f"No {SYMBOLS[sweep.rule]} reaches QR {100 * aim.value:.1f} %: the most is "
            f"{100 * sweep.best_qr:.1f} %. Ask for less, or change the catalog."
            if aim.kind is AimKind.CHEAPEST_WITH_QR
            else str(error)
        )
        st.caption(literal(told))
