"""A result in plain words: a title, at most two sentences, what stands behind Details; the terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hydra_core.base.spelling import signed, usd
from hydra_core.base.types import Rule, Selection
from hydra_core.console.numbers import SYMBOLS
from hydra_core.replay.band import MIN_MOVED
from hydra_core.replay.significance import Interval
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

_TITLES = {
    VerdictLabel.BEATS: "Routing does better here",
    VerdictLabel.TIES: "No measurable difference from a fixed mix",
    VerdictLabel.LOSES: "A fixed mix of models does better here",
}
_SHORT = {
    VerdictLabel.BEATS: "router better",
    VerdictLabel.TIES: "no measurable difference",
    VerdictLabel.LOSES: "fixed mix better",
}
_TONES = {
    VerdictLabel.BEATS: ("success", "trending_up"),
    VerdictLabel.TIES: ("info", "balance"),
    VerdictLabel.LOSES: ("warning", "trending_down"),
}


@dataclass(frozen=True, slots=True)
class Result:
    """What a box says.

    Attributes:
        tone: success, info or warning.
        icon: A Material symbol.
        short: The title where there is room for a few words only.
    """

    title: str
    text: str
    details: str
    tone: str
    icon: str
    short: str


def result(verdict: Verdict, rule: Rule = Rule.SHORTFALL) -> Result:
    """The comparison with the best fixed mix at the same cost.

    Args:
        rule: Whose setting was chosen.
    """
    (tone, icon), short = _TONES[verdict.label], _SHORT[verdict.label]
    if verdict.moved == 0:
        short = "does not route"
        title = "Here routing is a fixed model"
        text = f"Every query goes to {_mix(verdict)} at {usd(verdict.mean_cost_usd)}."
    elif verdict.unknown and verdict.label is VerdictLabel.TIES:
        title, icon, short = "Not known: some models have no outcomes", "help", "not known"
        text = (
            f"{100 * verdict.unknown:.1f} % of the queries go to models without outcomes in this "
            f"set. The difference from {_mix(verdict)} at the same cost lies between "
            f"{_range(verdict.judged_by)}."
        )
    elif verdict.moved < MIN_MOVED:
        title, short = "Too few queries to tell", "too few queries"
        text = (
            f"Only {verdict.moved:,} of {verdict.independent:,} independent queries go elsewhere "
            f"than in the fixed mix; a result needs {MIN_MOVED}."
        )
    else:
        title = _TITLES[verdict.label]
        text = f"{_compared(verdict)} {_next(verdict)}"
    details = (_how(verdict, rule), _few(verdict), verdict.dependence)
    return Result(title, text, " ".join(filter(None, details)), tone, icon, short)


def _compared(verdict: Verdict) -> str:
    other, ours = 100 * verdict.constant.quality, 100 * verdict.quality
    said = verdict.judged_by.scaled(100.0)
    apart = f"({signed(said.value)} points, 95 % interval {_range(verdict.judged_by)})"
    if verdict.label is VerdictLabel.BEATS:
        return (
            f"Routing reaches {ours:.1f} % quality; {_mix(verdict)} costs the same and reaches "
            f"{other:.1f} % {apart}."
        )
    mix = _mix(verdict)
    return (
        f"{mix[0].upper()}{mix[1:]} costs the same and reaches {other:.1f} % quality, against "
        f"{ours:.1f} % by routing {apart}."
    )


def _next(verdict: Verdict) -> str:
    """What to do with this answer."""
    if verdict.label is VerdictLabel.BEATS:
        return "Publish it, and check it on new traffic."
    if verdict.label is VerdictLabel.LOSES:
        return "Serve that mix, or change the weights or the pool."
    step = verdict.next.removeprefix("Next: ")
    return f"{step[:1].upper()}{step[1:]}"


def _mix(verdict: Verdict) -> str:
    mix = verdict.constant
    strong, cheap = mix.strong.model, mix.cheap.model
    if mix.strong_share <= 0.0 or cheap == strong:
        return f"always {cheap}"
    if mix.strong_share >= 1.0:
        return f"always {strong}"
    percent = round(100 * mix.strong_share)
    return f"sending {100 - percent} % to {cheap} and {percent} % to {strong}"


def _range(interval: Interval) -> str:
    return f"{signed(100 * interval.lo)} to {signed(100 * interval.hi)}"


def _how(verdict: Verdict, rule: Rule) -> str:
    """How the setting came about, and which interval that calls for."""
    if verdict.moved == 0:
        return ""
    said = {
        Selection.FIXED: "The setting was fixed beforehand, so the point's own interval holds",
        Selection.CROSS_FITTED: "Picked on one half of the queries and measured on the other "
        "(cross-fitted), so the point's own interval holds",
        Selection.LOOKED: f"{SYMBOLS[rule]} was picked on these queries, so the interval covers "
        "the whole curve",
    }[verdict.selection]
    origin = f" ({verdict.origin})" if verdict.origin else ""
    return f"{said}{origin}. Cost: {usd(verdict.mean_cost_usd)} per query."


def _few(verdict: Verdict) -> str:
    """How many queries the result stands on."""
    if verdict.moved == 0:
        return ""
    return (
        f"{verdict.moved:,} of {verdict.independent:,} independent queries go elsewhere than in "
        "the fixed mix."
    )


def difference(verdict: Verdict) -> str:
    """Quality against the best fixed mix in points with its interval; – where nothing is routed."""
    if verdict.moved == 0:
        return "–"
    found = verdict.judged_by.scaled(100.0)
    return f"{signed(found.value)} points ({signed(found.lo)} to {signed(found.hi)})"
