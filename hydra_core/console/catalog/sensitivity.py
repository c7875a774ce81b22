"""Catalog, Profiles, Sensitivity: who gets traffic, and which numbers move routing."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import short_number, signed_usd
from hydra_core.base.types import Catalog, Rule
from hydra_core.console import replays, selectors, tables, widgets
from hydra_core.console.cache import SetEntry
from hydra_core.console.widgets import literal
from hydra_core.replay.catalog_changes import Cell, Effect, Reach, Steps, reach

_STEPS = Steps()


def show(catalog: Catalog) -> None:
    """Reach of every model, then every number by how many queries it moves."""
    place, _ = st.columns([4, 7])
    chosen = selectors.choose_evalset(place, catalog)
    if chosen is None:
        widgets.no_evalset()
        return
    try:
        found = replays.replayed(chosen, catalog)
        effects = replays.sensitivity(chosen, catalog)
    except HydraError as error:
        widgets.problem(error)
        return
    tau = catalog.policy.tau
    if catalog.policy.rule is Rule.VALUE:
        st.info(
            f"The policy routes by the value rule, so its traffic is another. All figures here "
            f"are those of the shortfall rule at τ {short_number(tau)}: capabilities "
            "decide there alone."
        )
    left, right = st.columns([4, 7], gap="medium")
    with left:
        st.subheader("Who gets traffic", anchor=False)
        shares = reach(found.data, tau)
        _reach(shares, tau, chosen)
    with right:
        st.subheader("Which numbers move routing", anchor=False)
        _effects(effects, found.metrics.n, catalog)


def _reach(found: tuple[Reach, ...], tau: float, chosen: SetEntry) -> None:
    column = st.column_config
    rows = [(one.model, 100 * one.share, 100 * one.at_some_tau) for one in found]
    frame = pd.DataFrame(rows, columns=["model", "share", "some"])
    tables.kept(
        frame, "profiles.reach", {"model": tables.named(125, frame["model"])},
        column_config={
            "model": column.TextColumn("Cheapest first", width=125),
            "share": column.ProgressColumn(
                f"Traffic at τ {short_number(tau)}", width=115,
                format="%.1f %%", min_value=0, max_value=100,
            ),
            "some": column.NumberColumn(
                "At some τ", format="%.1f %%", width=72,
                help="Share of queries that some τ would send to this model.",
            ),
        },
    )  # fmt: skip
    for one in found:
        name = f"**{literal(one.model)}**"
        if one.model not in chosen.info.models:
            st.markdown(
                f":material/new_releases: {name} has no outcomes in this eval set: its traffic "
                "is known, what it would resolve and cost is not."
            )
        if one.dominated_by:
            st.markdown(
                f":material/block: {name} can never be chosen: {literal(one.dominated_by)} ranks "
                "before it and is at least as capable on every dimension."
            )
        elif one.at_some_tau == 0:
            st.markdown(f":material/block: {name} is chosen at no τ on this eval set.")
    widgets.synthetic_badge(chosen.info.synthetic)


def _effects(effects: tuple[Effect, ...], n: int, catalog: Catalog) -> None:
    moving = [effect for effect in effects if effect.flips]
    if not moving:
        by_hand = all(set(catalog.dimensions) <= set(m.overrides) for m in catalog.models)
        why = " All capabilities are set by hand, so no evidence counts." if by_hand else ""
        st.caption(f"No single nudge changes the model of any query.{why}")
        return
    column = st.column_config
    rows = [
        (_of(one), one.benchmark, f"{one.before:.3f} → {one.after:.3f}", 100 * one.flips / n,
         100 * one.delta_quality, one.delta_cost_usd)
        for one in moving
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["of", "benchmark", "nudge", "flips", "quality", "cost"])
    tables.kept(
        frame, "profiles.sensitivity",
        {**{name: tables.named(118, frame[name]) for name in ("of", "benchmark")},
         "quality": tables.change("+.2f"), "cost": signed_usd},
        height=420,
        column_config={
            "of": column.TextColumn("Number", width=118, help="A model's rate, α, or ω."),
            "benchmark": column.TextColumn("Benchmark", width=118),
            "nudge": column.TextColumn("Nudged", width=100),
            "flips": column.NumberColumn(
                "Moved", format="%.1f %%", width=64, help="Queries that change their model."
            ),
            "quality": column.NumberColumn("Δ quality", width=72),
            "cost": column.NumberColumn("Δ cost", width=92),
        },
    )  # fmt: skip
    quiet = len(effects) - len(moving)
    st.caption(
        f"Each alone: rates ±{_STEPS.score:g}, α ±{100 * _STEPS.importance:g} %, ω "
        f"±{_STEPS.weight:g}; the direction that moves more. Δ quality in pp. "
        f"{quiet} of {len(effects)} numbers move no query."
    )


def _of(effect: Effect) -> str:
    if effect.cell is Cell.IMPORTANCE:
        return "α"
    return f"ω on {effect.of.replace('_', ' ')}" if effect.cell is Cell.WEIGHT else effect.of
