"""Releases: publish a draft as a revision, look back, roll back, export and import files."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.console import drafts, frame, selectors, widgets
from hydra_core.console.cache import CatalogEntry
from hydra_core.console.drafts import Working
from hydra_core.console.frame import Head, Part
from hydra_core.console.releases import exports as ship_exports
from hydra_core.console.releases import history as ship_history
from hydra_core.console.releases import publish as ship_publish

_EXPORTS = {"Export": ship_exports.export, "Import": ship_exports.adopt}


def _exports(entry: CatalogEntry, working: Working) -> None:
    view = st.segmented_control(
        "View", list(_EXPORTS), default="Export", key="exports.view", required=True,
        persist_state="session", label_visibility="collapsed",
    )  # fmt: skip
    _EXPORTS[view or "Export"](entry, working)


def _on_draft(
    draw: Callable[[CatalogEntry, Working], None],
) -> Callable[[Head], None]:
    """Return a part about one catalog and its draft."""

    def part(head: Head) -> None:
        entry = selectors.choose_catalog(head.right)
        if entry is None:
            st.warning("There is no catalog yet.")
            return
        try:
            working = drafts.load(entry)
        except HydraError as error:
            widgets.problem(error)
            return
        drafts.status_line(working, tools=False)
        draw(entry, working)

    return part


PARTS = {
    "publish": Part("Publish", _on_draft(ship_publish.publish), (8.0, 4.0)),
    "history": Part("History", _on_draft(ship_history.show), (8.0, 4.0)),
    "exports": Part("Exports", _on_draft(_exports), (8.0, 4.0)),
}


def show() -> None:
    """Draw the page."""
    frame.show("Releases", PARTS)
