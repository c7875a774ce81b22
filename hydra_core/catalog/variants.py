"""Effort levels: models that are variants of another one and are shown beside it."""

from __future__ import annotations

from collections.abc import Sequence


def together(bases: Sequence[str]) -> list[int]:
    """The places of the models, with those of one base side by side where its first one stands.

    Args:
        bases: What each model is a variant of; itself where it is none.
    """
    behind: dict[str, list[int]] = {}
    for place, base in enumerate(bases):
        behind.setdefault(base, []).append(place)
    return [place for places in behind.values() for place in places]
