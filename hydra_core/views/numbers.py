"""Numbers as every page spells them. No streamlit."""

from __future__ import annotations

__all__ = ["signed"]


def signed(value: float, digits: int = 1) -> str:
    """A difference with its sign: +1.8, −0.7, and 0.0 for what rounds to nothing."""
    shown = f"{value:+.{digits}f}"
    if not float(shown):
        return shown[1:]
    return shown.replace("-", "−")
