"""Catalog, Profiles: Algorithm 1 step by step, and what it does to routing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import titled
from hydra_core.base.types import Band, Catalog, FloatArray
from hydra_core.catalog.binding import rebind
from hydra_core.console import (
    cache,
    chosen_on,
    drafts,
    learned_models,
    replays,
    selectors,
    tables,
    widgets,
)
from hydra_core.console.cache import CatalogEntry, SetEntry
from hydra_core.console.catalog import models as models_view
from hydra_core.console.catalog import profiles as profiles_view
from hydra_core.console.catalog import what_if as what_if_view
from hydra_core.console.drafts import Working
from hydra_core.console.widgets import literal
from hydra_core.predictor.score_bands import score_bands
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.sensitivity import Cell, Effect, Reach, Steps, reach


def band_table(
    catalog: Catalog, requirements: FloatArray, proposed: Sequence[Band]
) -> pd.DataFrame:
    """One row a dimension: both bands, and the share of queries below and above each, in percent.

    Args:
        requirements: (n, K) of the eval set, NaN where not scored.
        proposed: (K,) the other bands.
    """
    scored = requirements[np.isfinite(requirements).all(axis=1)]
    rows = []
    for k, dimension in enumerate(catalog.dimensions):
        row: dict[str, object] = {"dimension": titled(dimension)}
        for name, band in (("now", catalog.bands[k]), ("then", proposed[k])):
            row[f"{name}_band"] = f"{band.lo:.3f} to {band.hi:.3f}"
            row[f"{name}_below"] = 100 * float((scored[:, k] < band.lo).mean())
            row[f"{name}_above"] = 100 * float((scored[:, k] > band.hi).mean())
        rows.append(row)
    return pd.DataFrame(rows)


def fails_open(data: ReplayData, tau: float) -> float:
    """Share of queries, in [0, 1], for which no model is eligible at tau."""
    return float((data.shortfalls().min(axis=1) > tau).mean())


def from_evalset(entry: CatalogEntry, working: Working, catalog: Catalog) -> None:
    """Bands as the set in use has them, what they would change, and the button."""
    chosen = chosen_on.in_view(working.published or catalog)
    if chosen is None:
        return
    with st.container(border=True):
        st.markdown(
            "**Bands from your own queries**: 5th to 95th percentile of the scores of "
            + literal(chosen.info.name)
        )
        try:
            bands, text = _preview(chosen, catalog, working.text)
        except HydraError as error:
            widgets.problem(error)
            return
        left, right = st.columns([7, 4], vertical_alignment="center")
        left.caption(text)
        right.button(
            "Put into the draft", icon=":material/straighten:", key="profiles.bands",
            on_click=drafts.editing(entry, lambda t: _rebound(t, catalog, bands), working.text),
            width="stretch",
            disabled=not drafts.may_edit() or bands == catalog.bands,
            help="Writes them into the table above, where they can be edited.",
        )  # fmt: skip


def _preview(chosen: SetEntry, catalog: Catalog, text: str) -> tuple[tuple[Band, ...], str]:
    """Draw both bands; the new ones, and what they do to queries that no model is eligible for."""
    requirements = replays.requirements(chosen, catalog)
    bands = score_bands(requirements)
    _table(band_table(catalog, requirements, bands))
    after, _ = cache.parsed(_rebound(text, catalog, bands), "draft")
    if after is None:
        return bands, ""
    before_share, share = (
        100 * float((replayed.data.shortfalls().min(axis=1) > one.policy.tau).mean())
        for one in (catalog, after)
        for replayed in (learned_models.replayed(chosen, one),)
    )
    by_hand = any(model.overrides for model in catalog.models)
    kept = " Capabilities set by hand keep their place on the score band." * by_hand
    return bands, literal(
        f"Queries that no model is eligible for at τ {catalog.policy.tau:g}, so that the nearest "
        f"gets them: {before_share:.0f} % now, {share:.0f} % then. Tune τ anew afterwards.{kept}"
    )


def _table(frame: pd.DataFrame) -> None:
    column = st.column_config
    share = {
        f"{when}_{side}": column.NumberColumn(f"{side} it{blank}", format="%.0f %%", width=85)
        for when, blank in (("now", ""), ("then", " "))
        for side in ("below", "above")
    }
    tables.kept(
        frame, "profiles.bands",
        column_config={
            "dimension": column.TextColumn("Dimension", width=150),
            "now_band": column.TextColumn("Band now", width=120),
            "then_band": column.TextColumn("From this set", width=120),
            **share,
        },
    )  # fmt: skip


def _rebound(text: str, catalog: Catalog, bands: tuple[Band, ...]) -> str:
    """The text on other bands; capabilities set by hand keep their place on them."""
    predictor = catalog.predictor, catalog.predictor_fingerprint
    return rebind(text, *predictor, bands, keep_places=True)


_STEPS = Steps()


def show_sensitivity(catalog: Catalog) -> None:
    """Reach of every model, then every number by how many queries it moves."""
    place, _ = st.columns([4, 7])
    chosen = selectors.choose_evalset(place, catalog)
    if chosen is None:
        widgets.no_evalset()
        return
    try:
        found = learned_models.replayed(chosen, catalog)
        effects = replays.sensitivity(chosen, catalog)
    except HydraError as error:
        widgets.problem(error)
        return
    tau = catalog.policy.tau
    left, right = st.columns([4, 7], gap="medium")
    with left:
        st.subheader("Who gets traffic", anchor=False)
        shares = reach(found.data.requirements, found.data.pool, tau)
        _reach(shares, tau, chosen)
    with right:
        st.subheader("Which numbers move routing", anchor=False)
        _effects(effects, found.metrics.n, catalog)


def _reach(found: tuple[Reach, ...], tau: float, chosen: SetEntry) -> None:
    column = st.column_config
    rows = [(one.model, 100 * one.share, 100 * one.at_some_tau) for one in found]
    frame = pd.DataFrame(rows, columns=["model", "share", "some"])
    tables.kept(
        frame, "profiles.reach",
        column_config={
            "model": column.TextColumn("Cheapest first", width=125),
            "share": column.ProgressColumn(
                f"Traffic at τ {tau:g}", format="%.1f %%", min_value=0, max_value=100, width=115
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
        elif one.share == 0:
            st.markdown(f":material/remove_circle: {name} carries no traffic at this τ.")
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
        (_name(one), f"{one.before:.3f} → {one.after:.3f}", 100 * one.flips / n,
         100 * one.delta_quality, one.delta_cost_usd)
        for one in moving
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["number", "nudge", "flips", "quality", "cost"])
    tables.kept(
        frame, "profiles.sensitivity",
        {"quality": tables.change("+.2f"), "cost": tables.change("+.5f")},
        height=420,
        column_config={
            "number": column.TextColumn("Number", width=195),
            "nudge": column.TextColumn("Nudged", width=105),
            "flips": column.ProgressColumn(
                "Queries moved", format="%.1f %%", min_value=0, width=105,
                max_value=max(float(frame["flips"].max()), 1.0),
            ),
            "quality": column.NumberColumn("Δ quality", width=80),
            "cost": column.NumberColumn("Δ cost, $", width=76),
        },
    )  # fmt: skip
    quiet = len(effects) - len(moving)
    st.caption(
        f"Each alone: rates ±{_STEPS.score:g}, α ±{100 * _STEPS.importance:g} %, ω "
        f"±{_STEPS.weight:g}; the direction that moves more. Δ quality in pp. "
        f"{quiet} of {len(effects)} numbers move no query."
    )


def _name(effect: Effect) -> str:
    if effect.cell is Cell.IMPORTANCE:
        return f"α of {effect.benchmark}"
    if effect.cell is Cell.WEIGHT:
        return f"ω of {effect.benchmark} on {effect.of.replace('_', ' ')}"
    return f"{effect.of} on {effect.benchmark}"


VIEWS = ("Evidence", "Capabilities", "Success profiles", "Score bands, weights", "Sensitivity")


def show(entry: CatalogEntry, working: Working, view: str) -> None:
    """One view of the profiles."""
    if view == "Evidence":
        profiles_view.evidence(entry, working)
    models_view.problems(working)
    catalog = working.catalog
    if catalog is None:
        if view != "Evidence":
            st.caption("Undo the last edit, or correct it here or under Models.")
        return
    if view == "Sensitivity":
        show_sensitivity(catalog)
        return
    tables_of = {
        "Success profiles": profiles_view.success_table,
        "Capabilities": profiles_view.capability_table,
        "Score bands, weights": profiles_view.scales,
    }
    if view in tables_of:
        tables_of[view](entry, catalog)
    what_if_view.draft_effect(working, knob=True)
    if view == "Capabilities":
        with st.container(border=True):
            profiles_view.contribution_plot(catalog)
    elif view == "Score bands, weights":
        from_evalset(entry, working, catalog)
