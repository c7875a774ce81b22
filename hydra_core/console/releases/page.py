"""Releases: publish a draft as a revision, look back, roll back, export and import files."""

from __future__ import annotations

from collections.abc import Callable

from hydra_core.console import frame, selectors, widgets
from hydra_core.console.cache import CatalogEntry
from hydra_core.console.drafts import Working
from hydra_core.console.frame import Part
from hydra_core.console.releases import exports as ship_exports
from hydra_core.console.releases import history as ship_history
from hydra_core.console.releases import publish as ship_publish

_EXPORTS = {"Export": ship_exports.export, "Import": ship_exports.adopt}


def _exports(entry: CatalogEntry, working: Working) -> None:
    _EXPORTS[widgets.switch("View", _EXPORTS, "exports.view")](entry, working)


def _part(title: str, draw: Callable[[CatalogEntry, Working], None]) -> Part:
    return Part(title, lambda head: selectors.on_draft(head, draw, tools=False), (8.0, 4.0))


PARTS = {
    "publish": _part("Publish", ship_publish.publish),
    "history": _part("History", ship_history.show),
    "exports": _part("Exports", _exports),
}


def show() -> None:
    """Draw the page."""
    frame.show("Releases", PARTS)
