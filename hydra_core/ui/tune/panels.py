"""The panels of the Tune page beside its plot: controls, details."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from hydra_core.evaluation.replay.evaluation import Evaluation
from hydra_core.evaluation.replay.imported_policies import ImportedPolicies
from hydra_core.evaluation.replay.operating_point import CrossFit
from hydra_core.evaluation.replay.pricing import Prices
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.figures.languages import languages_figure
from hydra_core.figures.shares import shares_figure
from hydra_core.types import Rule
from hydra_core.ui import drafts, state, tables, widgets
from hydra_core.ui.compare import keep
from hydra_core.ui.state import Pin
from hydra_core.ui.tune import knob as tune_knob
from hydra_core.ui.tune import solver
from hydra_core.ui.tune.conversations import conversations
from hydra_core.ui.widgets import colors, figure, literal
from hydra_core.views.comparison_slices import group_table
from hydra_core.views.frontier import (
    language_table,
    languages_view,
    policy_table,
    shares_view,
)
from hydra_core.views.numbers import knob_text, signed, usd

__all__ = ["controls", "details", "toggle"]

_COSTS: dict[str, str] = {Prices.TODAY: "Costs at today's prices", Prices.RECORDED: "As recorded"}
_DETAILS = ("Traffic", "Languages", "Numbers")


def toggle(field: str, labels: Mapping[str, str], label: str) -> None:
    """One of two ways to look, kept in the tuning under `field`."""
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


def controls(
    evaluation: Evaluation, pinned: tuple[Sweep, float] | None, held_out: CrossFit | None
) -> None:
    """The controls: rule and knob, the constraint solver, weights and the pin."""
    with st.container(border=True):
        tune_knob.rule(evaluation.sweep.catalog)
        tune_knob.knob(evaluation.sweep, evaluation.knob)
    with st.container(border=True):
        solver.solver(evaluation.sweep, held_out)
    with st.container(border=True):
        _weights(evaluation.sweep)
        _pin(evaluation, pinned)


def _weights(sweep: Sweep) -> None:
    if sweep.rule is Rule.VALUE:
        st.caption("Weights and profiles do not decide here: V alone is to be tuned.")
        return
    changed = sweep.weights != sweep.catalog.policy.weights
    with st.expander("Weights", icon=":material/balance:", key="tune.weights"):
        st.caption(
            f"{'Changed from the catalog. ' * changed}A larger weight makes a deficit on that "
            "dimension count more."
        )
        for k, dimension in enumerate(sweep.catalog.dimensions):
            key = f"tune.w.{dimension}"
            st.session_state[key] = sweep.weights[k]
            st.number_input(
                dimension.replace("_", " ").capitalize(), 0.05, 10.0, step=0.05, key=key,
                on_change=_weigh, args=(sweep.catalog.dimensions,),
            )  # fmt: skip
        told = zip(sweep.catalog.dimensions, sweep.compensated, strict=True)
        each = " · ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in told)
        st.caption(f"After compensation for the width of the score bands, w~: {each}")
        st.button(
            "Back to the catalog's weights",
            on_click=lambda: state.put(weights=None),
            disabled=not changed,
            width="stretch",
        )


def _weigh(dimensions: tuple[str, ...]) -> None:
    state.put(weights=tuple(float(st.session_state[f"tune.w.{name}"]) for name in dimensions))


def _keep(evaluation: Evaluation) -> None:
    """The policy as it stands under a name, for Compare."""
    sweep, now = evaluation.sweep, evaluation.router
    if sweep.rule is Rule.VALUE:
        here = replace(sweep.catalog.policy, rule=sweep.rule, value_usd=evaluation.knob)
    else:
        here = replace(
            sweep.catalog.policy, rule=sweep.rule, tau=evaluation.knob, weights=sweep.weights
        )
    metrics = {"qr": now.qr.value, "mean_cost_usd": now.mean_cost_usd.value}
    keep.keep(here, sweep.evalset.digest, metrics, "tune")
    problem, told = drafts.kept_error(), keep.told()
    if problem is not None:
        widgets.problem(problem)
    if told:
        st.caption(f":material/check: {literal(told)}")


def _pin(evaluation: Evaluation, pinned: tuple[Sweep, float] | None) -> None:
    sweep = evaluation.sweep
    here = Pin(evaluation.knob, sweep.weights, sweep.rule)
    if pinned is None:
        st.button(
            "Pin to compare", icon=":material/keep:", width="stretch", key="tune.pin",
            on_click=lambda: state.put(pin=here),
            help="Keeps this policy on the plot while you try another.",
        )  # fmt: skip
        _keep(evaluation)
        return
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Pin this", icon=":material/keep:", width="stretch", key="tune.pin",
            on_click=lambda: state.put(pin=here), disabled=state.get().pin == here,
        )  # fmt: skip
        st.button("Unpin", width="stretch", key="tune.unpin", on_click=lambda: state.put(pin=None))
    other, knob = pinned
    before, now = other.curve.at(knob), sweep.curve.at(evaluation.knob)
    qr, gained = other.qr(before.quality), sweep.qr(now.quality) - other.qr(before.quality)
    st.caption(
        literal(
            f"Pinned {knob_text(other.rule, knob)}: QR {100 * qr:.1f} % at "
            f"{usd(before.mean_cost_usd)}. Now {signed(100 * gained)} pp at "
            f"{signed(100 * (now.mean_cost_usd / before.mean_cost_usd - 1))} % cost."
        )
    )


def details(evaluation: Evaluation, imported: ImportedPolicies) -> None:
    """Traffic, languages or numbers; only the one on screen is computed."""
    part = state.get().part
    shown = part if part in _DETAILS else _DETAILS[0]
    with st.container(horizontal=True, horizontal_alignment="distribute", gap="small"):
        st.session_state["tune.details"] = shown
        st.segmented_control(
            "Details", _DETAILS, key="tune.details", required=True,
            label_visibility="collapsed",
            on_change=lambda: state.put(part=st.session_state["tune.details"]),
        )  # fmt: skip
        toggle("costs", _COSTS, "Costs")
    if shown == "Traffic":
        chart = shares_figure(shares_view(evaluation), colors())
        figure(chart, "tune.shares", alt="Share of traffic by model for every setting of the knob")
    elif shown == "Languages":
        frame = language_table(evaluation)
        figure(
            languages_figure(languages_view(frame, evaluation), colors()),
            "tune.languages",
            alt="Quality retention by language against its number of queries",
        )
        tables.languages(frame)
        tables.take_along(frame, "tune.table.languages")
        if evaluation.spreads:
            groups = group_table(evaluation)
            tables.groups(groups)
            tables.take_along(groups, "tune.table.groups")
    else:
        frame = policy_table(evaluation, imported.metrics)
        tables.policies(frame)
        tables.take_along(frame, "tune.table.policies")
        conversations(evaluation)
