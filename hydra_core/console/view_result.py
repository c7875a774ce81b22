"""What pages add to a result: its tone, a few words for it, and the terms it needs."""

from __future__ import annotations

from typing import Final

from hydra_core.base.spelling import signed
from hydra_core.replay.band import MIN_MOVED
from hydra_core.replay.verdict import Verdict, VerdictLabel

TAU: Final = (
    "**τ (tau)**: how far a model may fall short of what a message requires and still be chosen; "
    "a larger τ sends more messages to cheaper models."
)
VALUE: Final = (
    "**V**: what one more resolved query is worth to you, in dollars; a larger V sends more "
    "messages to stronger models."
)
RETENTION: Final = (
    "**Quality retention (QR)**: the router's quality as a share of what the best model for each "
    "query would reach, which is known only afterwards."
)
FIXED_MIX: Final = (
    "**Fixed mix**: the best fixed shares of all traffic for each model that cost as much as the "
    "router, whatever the messages say."
)

#: Tone of the box, and its Material symbol.
TONES: Final = {
    VerdictLabel.BETTER: ("success", "trending_up"),
    VerdictLabel.SAME: ("info", "balance"),
    VerdictLabel.WORSE: ("warning", "trending_down"),
}


def short(verdict: Verdict) -> str:
    """The result where there is room for a few words only."""
    if verdict.moved == 0:
        return "does not route"
    if verdict.label is VerdictLabel.SAME and verdict.unknown:
        return "not known"
    if verdict.moved < MIN_MOVED:
        return "too few queries"
    return {
        VerdictLabel.BETTER: "router better",
        VerdictLabel.SAME: "no measurable difference",
        VerdictLabel.WORSE: "fixed mix better",
    }[verdict.label]


def difference(verdict: Verdict) -> str:
    """Quality against the best fixed mix in points with its interval; – where nothing is routed."""
    if verdict.moved == 0:
        return "–"
    shown = verdict.judged_by.scaled(100.0)
    return f"{signed(shown.value)} points ({shown.bounds(signed)})"
