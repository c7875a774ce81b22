"""What one step of training reads."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Example", "Family"]


@dataclass(frozen=True, slots=True)
class Example:
    """One training text: (K,) targets in [0, 1] and its weight in the loss."""

    text: str
    target: tuple[float, ...]
    weight: float = 1.0


Family = list[Example]
"""Wordings of one request, whose scores must be equal: translations, or a text
with and without an appended claim of difficulty. Mostly a single wording."""
