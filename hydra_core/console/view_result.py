"""A result in plain words: a title, at most two sentences, and what stands behind Details."""

from __future__ import annotations

from dataclasses import dataclass

from hydra_core.base.spelling import signed, usd
from hydra_core.base.types import Rule, Selection
from hydra_core.console.numbers import SYMBOLS
from hydra_core.replay.significance import Interval
from hydra_core.replay.verdict import Verdict, VerdictLabel

_TITLES = {
    VerdictLabel.BEATS: "Routing does better here",
    VerdictLabel.TIES: "No measurable difference from a fixed mix",
    VerdictLabel.LOSES: "A fixed mix of models does better here",
}
_TONES = {
    VerdictLabel.BEATS: ("success", "trending_up"),
    VerdictLabel.TIES: ("info", "balance"),
    VerdictLabel.LOSES: ("warning", "trending_down"),
}


@dataclass(frozen=True, slots=True)
class Result:
    """What a box says; `tone` is success, info or warning, `icon` a Material symbol."""

    title: str
    text: str
    details: str
    tone: str
    icon: str


def result(verdict: Verdict, rule: Rule = Rule.SHORTFALL) -> Result:
    """The comparison with the best fixed mix at the same cost.

    Args:
        rule: Whose setting was chosen.
    """
    tone, icon = _TONES[verdict.label]
    if verdict.moved == 0:
        title = "Here routing is a fixed model"
        text = f"Every query goes to {_mix(verdict)} at {usd(verdict.mean_cost_usd)}."
    elif verdict.unknown and verdict.label is VerdictLabel.TIES:
        title, icon = "Not known: some models have no outcomes", "help"
        text = (
            f"{100 * verdict.unknown:.1f} % of the queries go to models without outcomes in this "
            f"set. The difference from {_mix(verdict)} at the same cost lies between "
            f"{_range(verdict.judged_by, 'and')} points."
        )
    else:
        title = _TITLES[verdict.label]
        text = f"{_compared(verdict)} {_next(verdict)}"
    details = (_how(verdict, rule), _few(verdict), verdict.dependence)
    return Result(title, text, " ".join(filter(None, details)), tone, icon)


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
    step = verdict.next.removeprefix("Next: ").replace(str(verdict.constant), "that mix")
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


def _range(interval: Interval, between: str = "to") -> str:
    return f"{signed(100 * interval.lo)} {between} {signed(100 * interval.hi)}"


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
