"""What stands beside the plot of Tune: controls, details."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import counted, signed, titled, usd
from hydra_core.base.types import Policy, Rule, Team, TeamBudget, WhenSpent
from hydra_core.console import cache, replays, selectors, state, tables, widgets
from hydra_core.console import view_frontier as frontier
from hydra_core.console.access import identity
from hydra_core.console.cache import SetEntry
from hydra_core.console.compare.view import group_table
from hydra_core.console.figures.intervals import languages_figure
from hydra_core.console.figures.shares import shares_figure
from hydra_core.console.numbers import knob_text
from hydra_core.console.state import Pin
from hydra_core.console.tune import knob as tune_knob
from hydra_core.console.widgets import colors, figure, literal
from hydra_core.replay.conversations import replay_conversations, why_per_query
from hydra_core.replay.evaluation import Evaluation
from hydra_core.replay.imported_policies import ImportedPolicies
from hydra_core.replay.metrics import picked
from hydra_core.replay.operating_point import CrossFit
from hydra_core.replay.pricing import Prices
from hydra_core.replay.sweep import Sweep
from hydra_core.store.roles import Action

#: Shares of a team's budget, as it is used up.
_USED: Final = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_Option = TypeVar("_Option")


def conversations(evaluation: Evaluation) -> None:
    """Every sticky mode with cache reads and switch losses, or why replay is per query."""
    sweep = evaluation.sweep
    found = replay_conversations(sweep, evaluation.knob, evaluation.baseline)
    if found is None:
        st.caption(literal(why_per_query(sweep)))
        return
    st.markdown(
        f"**{counted(found.conversations, 'conversation')}, {counted(found.turns, 'turn')}, "
        "cache reads counted**"
    )
    money = tables.dollars([one.usd_per_turn.value for one in found.modes])
    column = st.column_config
    rows = [
        (one.mode.value.replace("_", " "), 100 * one.quality.value, one.usd_per_turn.value,
         100 * one.cs.value, one.cs.scaled(100.0).bounds(between=" – ") if one.cs.known else "",
         100 * one.cached_share, one.switches, one.lost_usd)
        for one in found.modes
    ]  # fmt: skip
    tables.kept(
        rows,
        "tune.table.sessions",
        columns={
            "mode": "Sticky mode",
            "quality": column.NumberColumn("Quality", format="%.1f %%"),
            "cost": column.NumberColumn("Cost per turn", format=money),
            "cs": column.NumberColumn("CS", format="%.1f %%"),
            "ends": "95 % interval",
            "cached": column.NumberColumn("Cache reads", format="%.1f %%"),
            "switches": column.NumberColumn("Switches", format="%.2f"),
            "lost": column.NumberColumn(
                "Lost to switches", format=tables.dollars([one.lost_usd for one in found.modes])
            ),
        },
    )
    text = f"Savings against {found.strong} with a warm cache; the rest per conversation."
    if found.without_price:
        text += f" No cached price is known of {', '.join(found.without_price)}."
    st.caption(literal(text))


_COSTS = {Prices.TODAY: "Costs at today's prices", Prices.RECORDED: "As recorded"}
_DETAILS = ("Traffic", "Languages", "Numbers", "Budgets")


def toggle(
    key: str,
    label: str,
    labels: Mapping[_Option, str],
    now: _Option,
    changed: Callable[[_Option], None],
) -> None:
    """One of several ways to look at the figures: option -> name, and what takes the picked one."""
    st.segmented_control(
        label, list(labels), format_func=labels.__getitem__, required=True,
        label_visibility="collapsed", **state.bound(key, now, changed),
    )  # fmt: skip


def controls(
    evaluation: Evaluation,
    pinned: tuple[Sweep, float] | None,
    held_out: CrossFit | None,
    entry: SetEntry,
) -> None:
    """The controls: rule and knob, the constraint solver, weights and the pin."""
    with st.container(border=True):
        tune_knob.rule(evaluation.sweep.catalog)
        tune_knob.knob(evaluation.sweep, evaluation.knob)
    with st.container(border=True):
        tune_knob.solver(evaluation.sweep, held_out)
    with st.expander("Promise a quality", icon=":material/verified:", key="tune.promise_box"):
        tune_knob.promise(evaluation.sweep, entry, weights_edited=evaluation.weights_edited)
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
        keys = [f"tune.w.{name}" for name in sweep.catalog.dimensions]

        def weigh() -> None:
            state.put(weights=tuple(float(st.session_state[key]) for key in keys))

        for dimension, key, weight in zip(
            sweep.catalog.dimensions, keys, sweep.weights, strict=True
        ):
            st.session_state[key] = weight
            st.number_input(
                titled(dimension), min(0.05, weight), max(10.0, weight), step=0.05, format="%.4g",
                key=key, on_change=weigh,
            )  # fmt: skip
        text = zip(sweep.catalog.dimensions, sweep.compensated, strict=True)
        each = " · ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in text)
        st.caption(f"After compensation for the width of the score bands, w~: {each}")
        st.button(
            "Back to the catalog's weights",
            on_click=lambda: state.put(weights=None),
            disabled=not changed,
            width="stretch",
        )


def _keep(evaluation: Evaluation) -> None:
    """The policy as it stands under a name, for Compare."""
    sweep, now = evaluation.sweep, evaluation.router
    here = replace(sweep.catalog.policy, rule=sweep.rule)
    if sweep.rule is Rule.VALUE:
        here = replace(here, value_usd=evaluation.knob)
    else:
        here = replace(here, tau=evaluation.knob, weights=sweep.weights)
    metrics = {"qr": now.qr.value, "mean_cost_usd": now.mean_cost_usd.value}
    keep_under_name(here, sweep.evalset.digest, metrics, "tune")
    widgets.show_error()
    if text := kept_message():
        st.caption(f":material/check: {literal(text)}")


def _pin(evaluation: Evaluation, pinned: tuple[Sweep, float] | None) -> None:
    sweep = evaluation.sweep
    here = Pin(evaluation.knob, sweep.weights, sweep.rule)
    pin = partial(
        st.button, icon=":material/keep:", width="stretch", key="tune.pin",
        on_click=lambda: state.put(pin=here),
    )  # fmt: skip
    if pinned is None:
        pin("Pin to compare", help="Keeps this policy on the plot while you try another.")
        _keep(evaluation)
        return
    with st.container(horizontal=True, gap="small"):
        pin("Pin this", disabled=state.get().pin == here)
        st.button("Unpin", width="stretch", key="tune.unpin", on_click=lambda: state.put(pin=None))
    other, knob = pinned
    before, now = other.curve.at(knob), sweep.curve.at(evaluation.knob)
    qr, gained = other.qr(before.quality), sweep.qr(now.quality) - other.qr(before.quality)
    cost = f"{usd(now.mean_cost_usd)} per query"  # of nothing there is no share
    if before.mean_cost_usd:
        cost = f"{signed(100 * (now.mean_cost_usd / before.mean_cost_usd - 1))} % cost"
    st.caption(
        literal(
            f"Pinned {knob_text(other.rule, knob)}: QR {100 * qr:.1f} % at "
            f"{usd(before.mean_cost_usd)}. Now {signed(100 * gained)} pp at {cost}."
        )
    )


def details(evaluation: Evaluation, imported: ImportedPolicies, entry: SetEntry) -> None:
    """Traffic, languages or numbers; only the one on screen is computed."""
    part = state.get().view
    shown = part if part in _DETAILS else _DETAILS[0]
    with st.container(horizontal=True, horizontal_alignment="distribute", gap="small"):
        names = {name: name for name in _DETAILS}
        toggle("tune.details", "Details", names, shown, lambda name: state.put(view=name))
        if set(evaluation.sweep.data.recorded) < set(evaluation.sweep.data.pool.ids):
            toggle(
                "tune.costs", "Costs", _COSTS, state.get().costs,
                lambda prices: state.put(costs=prices),
            )  # fmt: skip
    if shown == "Traffic":
        chart = shares_figure(frontier.shares_view(evaluation), colors())
        figure(chart, "tune.shares", alt="Share of traffic by model for every setting of the knob")
        if evaluation.served_note:
            st.caption(literal(evaluation.served_note))
    elif shown == "Languages":
        frame = frontier.language_table(evaluation)
        figure(
            languages_figure(frame, 100 * evaluation.router.qr.value, colors()),
            "tune.languages",
            alt="Quality retention by language against its number of queries",
        )
        tables.languages(frame, "tune.table.languages")
        if evaluation.spreads:
            tables.groups(group_table(evaluation), "tune.table.groups")
        _least_possible(evaluation.router.unknown, evaluation.sweep)
    elif shown == "Budgets":
        _budgets(evaluation, entry)
    else:
        tables.policies(frontier.policy_table(evaluation, imported.metrics), "tune.table.policies")
        _least_possible(evaluation.router.unknown, evaluation.sweep)
        conversations(evaluation)


def _least_possible(unknown: float, sweep: Sweep) -> None:
    """Say that quality in a table is the least possible, where traffic leaves it open."""
    if unknown and sweep.data.unmeasured:
        names = ", ".join(sweep.data.unmeasured)
        st.caption(literal(f"Quality is the least possible: no outcomes of {names} here."))


def _budgets(evaluation: Evaluation, entry: SetEntry) -> None:
    """How routes get cheaper as a team's budget is used up."""
    teams = evaluation.sweep.catalog.policy.teams
    shown = {name: team for name, team in teams.items() if team.budget is not None}
    if shown:
        name = st.selectbox("Team", list(shown), key="tune.team", width=260)
        team = shown[name]
    else:
        st.caption(
            "No team has a budget. This is how one would work as it stands by default; set it "
            "under Catalog, Policy, Teams."
        )
        team = Team(budget=TeamBudget(1.0))
    assert team.budget is not None
    sweep = evaluation.sweep
    if team.models is not None:
        st.caption(literal(f"Only {', '.join(sorted(team.models))} may serve this team."))
        own, prices = replays.cut_to(sweep.catalog, sorted(team.models)), sweep.data.prices
        try:
            sweep = replays.ruled_sweep(entry, own, sweep.rule, sweep.weights, prices)
        except HydraError as error:
            widgets.problem(error)
            return
    frame = budget_frame(sweep, evaluation.knob, team, team.budget)
    st.markdown(literal(budget_text(frame, team.budget)))
    _least_possible(1.0, sweep)
    column = st.column_config
    tables.kept(
        frame, "tune.table.budgets", {"change": tables.change()},
        column_config={
            "used": column.NumberColumn("Budget used", format="%.0f %%"),
            "setting": column.TextColumn("Setting", width=220),
            "quality": column.NumberColumn("Quality", format="%.1f %%"),
            "change": column.NumberColumn("Change, points"),
            "cost": column.NumberColumn("Cost per query", format=tables.dollars(frame["cost"])),
        },
    )  # fmt: skip


_KEPT = "compare.kept"


def keep_under_name(policy: Policy, digest: str, metrics: Mapping[str, Any], key: str) -> None:
    """A name and a button; nothing where the catalog was never published or the role may not.

    Args:
        policy: Its rule, knob and weights are kept.
        digest: Of the eval set that `metrics` were measured on.
        key: Of the widgets, unique on the page.
    """
    entry = selectors.current_catalog()
    if entry is None or not entry.revision or not identity.may(Action.PIN):
        return

    def keep() -> None:
        name = str(st.session_state.get(f"{key}.name") or "")
        point = cache.store().points.pin(
            entry.key, name, actor=identity.actor(), revision=entry.revision,
            evalset_digest=digest, tau=policy.tau, weights=policy.weights, rule=policy.rule,
            value_usd=policy.value_usd, metrics=metrics,
        )  # fmt: skip
        st.session_state[_KEPT] = f"Kept as “{point.name}”; Compare offers it."

    with st.popover("Keep under a name", icon=":material/bookmark:", width="stretch"):
        st.text_input("Name", key=f"{key}.name", placeholder="nightly batch, cheap")
        st.button("Keep", key=f"{key}.keep", width="stretch", on_click=widgets.later, args=(keep,))


def kept_message() -> str:
    """What was kept by the last click, once; ''."""
    return str(st.session_state.pop(_KEPT, ""))


def budget_frame(sweep: Sweep, knob: float, team: Team, budget: TeamBudget) -> pd.DataFrame:
    """One row a share of the budget: the setting, quality in percent, its change, USD per query.

    Exact figures of the curve that Tune draws; the cheapest model that may serve a query from
    `cheapest_from`, its quality NaN where it has no outcomes.

    Args:
        knob: tau or V of a team that has none of its own.
    """
    rule = sweep.rule
    own = team.value_usd if rule is Rule.VALUE else team.tau
    start = knob if own is None else own
    first = sweep.curve.at(start).quality
    data = sweep.data
    open_ = np.broadcast_to(data.pool.cost, data.quality.shape)
    if data.closed is not None:
        open_ = np.where(data.closed, np.inf, open_)
    cheapest = open_.argmin(axis=1)  # whether or not it has outcomes: as `serve` does
    only = f"only {data.pool.ids[int(cheapest[data.pool.cost[cheapest].argmin()])]}"
    only += ", where it may serve" if np.ptp(cheapest) else ""
    known = not data.unknown(cheapest).any()
    rows = []
    for used in sorted({*_USED, budget.falls_from, budget.cheapest_from}):
        now = budget.knob(rule, start, used)
        at, setting = sweep.curve.at(now), knob_text(rule, now)
        quality, cost = at.quality, at.mean_cost_usd
        if used >= budget.cheapest_from:
            quality = float(picked(data.quality, cheapest).mean()) if known else float("nan")
            cost, setting = float(picked(data.cost_usd, cheapest).mean()), only
        rows.append((100 * used, setting, 100 * quality, 100 * (quality - first), cost))
    return pd.DataFrame(rows, columns=["used", "setting", "quality", "change", "cost"])


def budget_text(frame: pd.DataFrame, budget: TeamBudget) -> str:
    """What the table says of 80 % of the budget, and what comes after 100 %."""
    row = frame[frame["used"] == 80.0].iloc[0]
    change = "not known" if np.isnan(row["change"]) else f"{signed(row['change'])} points"
    then = (
        "requests are refused with error 429"
        if budget.when_spent is WhenSpent.REFUSE
        else "the cheapest model goes on"
    )
    return (
        f"At 80 % of the budget: {row['setting']}, quality {change}. "
        f"At 100 % {then} until the next {budget.per.value}."
    )
