"""What is said of a promise on Tune, as plain text. No streamlit."""

from __future__ import annotations

from hydra_core.base.types import Rule
from hydra_core.choosing.sources.promise import Promise


def promise_text(made: Promise, rule: Rule) -> tuple[str, str]:
    """Return a title and a sentence."""
    claim = f"{made.claim[:1].upper()}{made.claim[1:]}"
    if not made.kept:
        return (
            "Nothing can be promised yet",
            f"{claim}: {made.n:,} queries are too few, or the loss is too large.",
        )
    if made.knob(rule) is None:
        return "No saving can be promised yet", f"{claim}: only the dearest setting holds."
    saved = f"{100 * made.saving:.0f} %"
    return f"Promised: {saved} saved", f"{claim}, and {saved} cheaper than it."


def forecast_text(made: Promise) -> str:
    """Say what other numbers of queries would allow, and what it was calibrated on."""
    more = [one for one in made.forecast if one.queries > made.n]
    said = ", ".join(f"with {one.queries:,} {100 * one.saving:.0f} %" for one in more)
    now = f"{100 * made.saving:.0f} % with these {made.n:,} queries"
    growth = f"Saved: {now}; {said}, if they are like these. " if said else ""
    return (
        f"{growth}Calibrated on {made.n:,} independent queries of {made.evalset} "
        f"({made.calibrated_on}). It does not hold under drift: Live watches it."
    )
