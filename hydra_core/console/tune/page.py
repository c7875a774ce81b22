"""Tune: what routing does to quality and cost on one eval set, by hand, searched or learned."""

from __future__ import annotations

from hydra_core.console import frame
from hydra_core.console.frame import Part
from hydra_core.console.tune import by_hand, learned, search

PARTS = {
    "by-hand": Part("By hand", by_hand.show, (5.0, 7.0)),
    "search": Part("Search", search.show, (5.0, 7.0)),
    "learned": Part("Learned", learned.show, (5.0, 7.0)),
}


def show() -> None:
    """The whole page."""
    frame.show("Tune", PARTS)
