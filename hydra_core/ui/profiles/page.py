"""The Profiles page's views: Algorithm 1 step by step, and what it does to routing."""

from __future__ import annotations

import streamlit as st

from hydra_core.ui.cache import CatalogEntry
from hydra_core.ui.catalog import panels as catalog_panels
from hydra_core.ui.drafts import Working
from hydra_core.ui.profiles import bands as profile_bands
from hydra_core.ui.profiles import panels as profile_panels
from hydra_core.ui.profiles import sensitivity as profile_sensitivity
from hydra_core.ui.what_if import draft as draft_what_if

__all__ = ["VIEWS", "show"]

VIEWS = ("Evidence", "Capabilities", "Score bands, weights", "Sensitivity")


def show(entry: CatalogEntry, working: Working, view: str) -> None:
    """One view of the profiles."""
    if view == "Evidence":
        profile_panels.evidence(entry, working)
        catalog_panels.problems(working)
        draft_what_if.strip(working, knob=True)
        return
    catalog_panels.problems(working)
    catalog = working.catalog
    if catalog is None:
        st.caption("Undo the last edit, or correct it here or on the Catalog page.")
        return
    if view == "Sensitivity":
        profile_sensitivity.show(catalog)
        return
    if view == "Capabilities":
        profile_panels.capability_table(entry, catalog)
        draft_what_if.strip(working, knob=True)
        with st.container(border=True):
            profile_panels.contribution_plot(catalog)
        return
    profile_panels.scales(entry, catalog)
    draft_what_if.strip(working, knob=True)
    profile_bands.from_evalset(entry, working, catalog)
