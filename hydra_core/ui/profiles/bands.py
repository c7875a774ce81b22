"""The Profiles page's bands from an eval set: a preview, then into the draft."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from hydra_core.catalog.binding import rebind
from hydra_core.errors import HydraError
from hydra_core.evaluation.choose.initial_catalog import bands_of
from hydra_core.types import Band, Catalog
from hydra_core.ui import cache, cache_evaluate, cache_learn, chosen_on, drafts, tables, widgets
from hydra_core.ui.cache import CatalogEntry, SetEntry
from hydra_core.ui.drafts import Working
from hydra_core.ui.widgets import literal
from hydra_core.views.catalogs.bands import band_table, fails_open

__all__ = ["from_evalset"]


def from_evalset(entry: CatalogEntry, working: Working, catalog: Catalog) -> None:
    """Bands as the set in use has them, what they would change, and the button."""
    chosen = chosen_on.in_sight(working.published or catalog)
    if chosen is None:
        return
    with st.container(border=True):
        st.markdown(
            "**Bands from your own queries**: 5th to 95th percentile of the scores of "
            + literal(chosen.info.name)
        )
        try:
            bands, told = _preview(chosen, catalog, working.text)
        except HydraError as error:
            widgets.problem(error)
            return
        left, right = st.columns([7, 4], vertical_alignment="center")
        left.caption(told)
        right.button(
            "Put into the draft", icon=":material/straighten:", key="profiles.bands",
            on_click=_take, args=(entry, working, catalog, bands), width="stretch",
            disabled=not drafts.may_edit() or bands == catalog.bands,
            help="They stand in the table above then, and can be edited there.",
        )  # fmt: skip


def _preview(chosen: SetEntry, catalog: Catalog, text: str) -> tuple[tuple[Band, ...], str]:
    """Draw both bands; the new ones, and what they do to queries that no model is eligible for.

    Raises:
        HydraError: The bands cannot be moved; the message says why.
    """
    requirements = cache_evaluate.requirements(chosen, catalog)
    bands = bands_of(requirements)
    _table(band_table(catalog, requirements, bands))
    after, _ = cache.parsed(_rebound(text, catalog, bands), "draft")
    if after is None:
        return bands, ""
    before_share, share = (
        100 * fails_open(cache_learn.replayed(chosen, one).data, one.policy.tau)
        for one in (catalog, after)
    )
    return bands, literal(
        f"Queries that no model is eligible for at τ {catalog.policy.tau:g}, so that the nearest "
        f"gets them: {before_share:.0f} % now, {share:.0f} % then. Tune τ anew afterwards."
    )


def _table(frame: pd.DataFrame) -> None:
    column = st.column_config
    share = {
        f"{when}_{side}": column.NumberColumn(f"{side} it{blank}", format="%.0f %%", width=85)
        for when, blank in (("now", ""), ("then", " "))
        for side in ("below", "above")
    }
    tables.kept(
        frame, "profiles.bands", height="content",
        column_config={
            "dimension": column.TextColumn("Dimension", width=150),
            "now_band": column.TextColumn("Band now", width=120),
            "then_band": column.TextColumn("From this set", width=120),
            **share,
        },
    )  # fmt: skip


def _rebound(text: str, catalog: Catalog, bands: tuple[Band, ...]) -> str:
    return rebind(text, catalog.predictor, catalog.predictor_fingerprint, bands)


def _take(entry: CatalogEntry, working: Working, catalog: Catalog, bands: tuple[Band, ...]) -> None:
    drafts.edit(entry, lambda text: _rebound(text, catalog, bands), seen=working.text)
