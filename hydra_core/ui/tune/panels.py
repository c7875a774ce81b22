"""The panels of the Tune page: plot, rail of controls, details."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.evaluation.choose.operating_point import InfeasibleError
from hydra_core.evaluation.replay.sweep import Aim, Bench, Point, held_out, solve, tidy_tau
from hydra_core.figures.frontier import frontier_figure
from hydra_core.figures.languages import languages_figure
from hydra_core.figures.shares import shares_figure
from hydra_core.ui import state, tables
from hydra_core.ui.state import Pin
from hydra_core.ui.widgets import colors, figure, literal
from hydra_core.views.frontier import (
    Axes,
    XAxis,
    YAxis,
    frontier_view,
    language_table,
    languages_view,
    policy_table,
    shares_view,
    usd,
)

__all__ = ["details", "plot", "rail"]

_AIMS = {Aim.QR: "QR ≥", Aim.COST: "Cost ≤", Aim.KNEE: "Knee"}
_DETAILS = ("Traffic", "Languages", "Numbers")


def plot(bench: Bench, point: Point, pinned: tuple[Bench, Point] | None) -> None:
    """The frontier with its axis toggles; a click on the curve sets tau."""
    tuning = state.get()
    with st.container(horizontal=True, horizontal_alignment="distribute", gap="small"):
        _toggle(
            "y",
            {YAxis.QR: "Quality retention", YAxis.RESOLVED: "Resolved"},
            "Vertical axis",
        )
        _toggle("x", {XAxis.COST: "Cost", XAxis.SAVINGS: "Savings"}, "Horizontal axis")
    axes = Axes(tuning.x, tuning.y, point.metrics.baseline)
    chart = frontier_figure(frontier_view(bench, point, axes, pinned=pinned), colors())
    figure(
        chart,
        "tune.plot",
        alt="Quality against cost of the router for every tau, with single models and oracle",
        on_select=_clicked,
        selection_mode="points",
    )


def _toggle(field: str, labels: Mapping[str, str], label: str) -> None:
    key = f"tune.{field}"
    st.session_state[key] = getattr(state.get(), field)
    st.segmented_control(
        label,
        list(labels),
        format_func=lambda option: labels[option],
        key=key,
        required=True,
        label_visibility="collapsed",
        on_change=lambda: state.put(**{field: st.session_state[key]}),
    )


def _clicked() -> None:
    points = st.session_state["tune.plot"]["selection"]["points"]
    taus = [p["customdata"] for p in points if isinstance(p.get("customdata"), int | float)]
    if taus:
        state.put(tau=float(taus[0]))


def rail(bench: Bench, point: Point, pinned: tuple[Bench, Point] | None) -> None:
    """The controls: tau, the constraint solver, weights and the pin."""
    with st.container(border=True):
        _tau(bench, point.tau)
    with st.container(border=True):
        _solver(bench)
    with st.container(border=True):
        _weights(bench)
        _pin(bench, point, pinned)


def _tau(bench: Bench, tau: float) -> None:
    top = max(bench.steps[-1], tau, 0.01)
    st.session_state["tune.tau"] = tau
    st.number_input(
        "Threshold τ",
        min_value=0.0,
        max_value=top,
        step=0.005,
        format="%.6g",
        key="tune.tau",
        help="Largest weighted shortfall a model may have and still be eligible. The cheapest "
        "eligible model gets the query.",
        on_change=lambda: state.put(tau=st.session_state["tune.tau"]),
    )
    if tau not in bench.steps:  # stays a stop of the slider until another is typed or clicked
        st.session_state["tune.stop"] = tau
    stop = st.session_state.get("tune.stop", 0.0)
    st.session_state["tune.slider"] = tau
    st.select_slider(
        "τ along the curve",
        sorted({*bench.steps, stop}),
        format_func=lambda step: f"{step:.4g}",
        key="tune.slider",
        label_visibility="collapsed",
        on_change=lambda: state.put(tau=st.session_state["tune.slider"]),
    )


def _solver(bench: Bench) -> None:
    st.session_state.setdefault("tune.aim", Aim.QR)
    chosen = st.segmented_control(
        "Find an operating point",
        list(_AIMS),
        format_func=_AIMS.__getitem__,
        key="tune.aim",
        required=True,
        persist_state="session",
        help="The cheapest τ that keeps QR, the best τ within a cost, or the knee of the curve.",
    )
    aim = chosen or Aim.QR
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    goal = _goal(bench, aim, left)
    right.button(
        "Find τ", on_click=_find, args=(bench, aim, goal), width="stretch", key="tune.find"
    )
    told = st.session_state.get("tune.told")
    if told:
        st.caption(literal(told))


def _goal(bench: Bench, aim: Aim, place: DeltaGenerator) -> float:
    if aim is Aim.QR:
        best = 100 * float(bench.curve.quality.max()) / (bench.oracle.quality.value or 1.0)
        st.session_state.setdefault("tune.goal_qr", float(np.floor(0.97 * best)))
        return place.number_input(
            "QR in %", 0.0, 100.0, step=0.5, format="%.1f", key="tune.goal_qr",
            persist_state="session", label_visibility="collapsed",
        )  # fmt: skip
    if aim is Aim.COST:
        costs = bench.curve.mean_cost_usd
        st.session_state.setdefault("tune.goal_cost", float((costs[0] + costs[-1]) / 2))
        return place.number_input(
            "USD per query", 0.0, step=float(costs.max() / 50), format="%.4f",
            key="tune.goal_cost", persist_state="session", label_visibility="collapsed",
        )  # fmt: skip
    place.caption("farthest above the straight line")
    return 0.0


def _find(bench: Bench, aim: Aim, goal: float) -> None:
    try:
        found = solve(bench.data, bench.curve, aim, goal)
    except InfeasibleError as error:
        most = 100 * float(bench.curve.quality.max()) / bench.oracle.quality.value
        st.session_state["tune.told"] = (
            f"No τ reaches QR {goal:.1f} %: the most is {most:.1f} %. Ask for less, or change "
            "weights or profiles."
            if aim is Aim.QR
            else str(error)
        )
        return
    state.put(tau=tidy_tau(bench.curve, found))
    fair = held_out(bench, aim, goal)
    qr = fair.metrics.qr.scaled(100.0)
    st.session_state["tune.told"] = (
        f"On queries it was not tuned on: QR {qr.value:.1f} % [{qr.lo:.1f}, {qr.hi:.1f}] at "
        f"{usd(fair.metrics.mean_cost_usd.value)} per query."
    )


def _weights(bench: Bench) -> None:
    changed = bench.weights != bench.catalog.policy.weights
    label = "Weights (changed)" if changed else "Weights"
    with st.popover(label, icon=":material/balance:", width="stretch"):
        st.caption(
            "A larger weight makes a deficit on that dimension count more. w~ is the weight "
            "after compensation for the width of its score band."
        )
        for k, dimension in enumerate(bench.catalog.dimensions):
            key = f"tune.w.{dimension}"
            st.session_state[key] = bench.weights[k]
            left, right = st.columns([3, 1], vertical_alignment="bottom")
            left.number_input(
                dimension.replace("_", " ").capitalize(), 0.05, 10.0, step=0.05, key=key,
                on_change=_weigh, args=(bench.catalog.dimensions,),
            )  # fmt: skip
            right.caption(f"w~ **{bench.compensated[k]:.3f}**")
        st.button(
            "Back to the catalog's weights",
            on_click=lambda: state.put(weights=None),
            disabled=not changed,
            width="stretch",
        )


def _weigh(dimensions: tuple[str, ...]) -> None:
    state.put(weights=tuple(float(st.session_state[f"tune.w.{name}"]) for name in dimensions))


def _pin(bench: Bench, point: Point, pinned: tuple[Bench, Point] | None) -> None:
    here = Pin(point.tau, bench.weights)
    if pinned is None:
        st.button(
            "Pin to compare", icon=":material/keep:", width="stretch", key="tune.pin",
            on_click=lambda: state.put(pin=here),
            help="Keeps this policy on the plot while you try another.",
        )  # fmt: skip
        return
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Pin this", icon=":material/keep:", width="stretch", key="tune.pin",
            on_click=lambda: state.put(pin=here), disabled=state.get().pin == here,
        )  # fmt: skip
        st.button("Unpin", width="stretch", key="tune.unpin", on_click=lambda: state.put(pin=None))
    before, now = pinned[1].metrics, point.metrics
    st.caption(
        literal(
            f"Pinned τ {pinned[1].tau:.4g}: QR {100 * before.qr.value:.1f} % at "
            f"{usd(before.mean_cost_usd.value)}. "
            f"Now {100 * (now.qr.value - before.qr.value):+.1f} pp at "
            f"{100 * (now.mean_cost_usd.value / before.mean_cost_usd.value - 1):+.1f} % cost."
        )
    )


def details(bench: Bench, point: Point) -> None:
    """Traffic, languages or numbers; only the one on screen is computed."""
    st.session_state.setdefault("tune.details", _DETAILS[0])
    shown = st.segmented_control(
        "Details", _DETAILS, key="tune.details", required=True, persist_state="session",
        label_visibility="collapsed",
    )  # fmt: skip
    baseline = point.metrics.baseline
    if shown == "Traffic":
        chart = shares_figure(shares_view(bench, point.tau), colors())
        figure(chart, "tune.shares", alt="Share of traffic by model for every tau")
    elif shown == "Languages":
        frame = language_table(bench, point, baseline)
        figure(
            languages_figure(languages_view(frame, point), colors()),
            "tune.languages",
            alt="Quality retention by language against its number of queries",
        )
        tables.languages(frame)
    else:
        tables.policies(policy_table(bench, point, baseline))
