"""The result of routing against the best fixed mix in plain words, and the terms it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hydra_core.base.spelling import signed, usd
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


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether routing helps: a tone of `widgets.toned`, a title and one or two sentences.

    `short` is the title where there is room for a few words only.
    """

    tone: str
    icon: str
    title: str
    text: str
    short: str


def answer(verdict: Verdict) -> Answer:
    """Whether routing helps at this setting, and by how much."""
    found = verdict.judged_by.scaled(100.0)
    quality, mix = 100 * verdict.quality, 100 * verdict.constant.quality
    interval = f"95 % interval {signed(found.lo)} to {signed(found.hi)}"
    if verdict.unknown and verdict.moved and verdict.label is VerdictLabel.TIES:
        return Answer(
            "info", "help", "The result is not known",
            f"{100 * verdict.unknown:.1f} % of the queries go to models without outcomes in this "
            f"set. The difference from the best fixed mix is {signed(found.lo)} to "
            f"{signed(found.hi)} points.",
            "not known",
        )  # fmt: skip
    if verdict.moved == 0:
        return Answer(
            "info", "balance", "This setting does not route",
            f"Every query gets the same shares: {verdict.constant}, at "
            f"{usd(verdict.mean_cost_usd)} per query.",
            "does not route",
        )  # fmt: skip
    if verdict.label is VerdictLabel.BEATS:
        return Answer(
            "success", "trending_up", "Routing helps here",
            f"The router reaches {quality:.1f} % quality, {found.value:.1f} points more than the "
            f"best fixed mix at the same cost ({interval}).",
            "router better",
        )  # fmt: skip
    if verdict.label is VerdictLabel.LOSES:
        return Answer(
            "warning", "trending_down", "A fixed mix of models does better here",
            f"Sending {shares(verdict)} costs the same and reaches {mix:.1f} % quality, against "
            f"{quality:.1f} % with the router ({signed(found.value)} points, {interval}).",
            "fixed mix better",
        )  # fmt: skip
    if verdict.moved < MIN_MOVED:
        return Answer(
            "info", "balance", "Too few queries to tell",
            f"Only {verdict.moved:,} of {verdict.independent:,} independent queries go elsewhere "
            f"than with a fixed mix; a result needs {MIN_MOVED}.",
            "too few queries",
        )  # fmt: skip
    return Answer(
        "info", "balance", "No measurable difference from a fixed mix",
        f"The router reaches {quality:.1f} % quality, the best fixed mix at the same cost "
        f"{mix:.1f} % ({signed(found.value)} points, {interval}).",
        "no measurable difference",
    )  # fmt: skip


def shares(verdict: Verdict) -> str:
    """The fixed mix in words: 80 % to A and 20 % to B."""
    mix = verdict.constant
    if mix.cheap.model == mix.strong.model or mix.strong_share in (0.0, 1.0):
        return f"everything to {mix.strong.model if mix.strong_share else mix.cheap.model}"
    strong = round(100 * mix.strong_share)
    return f"{100 - strong} % to {mix.cheap.model} and {strong} % to {mix.strong.model}"


def difference(verdict: Verdict) -> str:
    """Quality against the best fixed mix in points with its interval; – where nothing is routed."""
    if verdict.moved == 0:
        return "–"
    found = verdict.judged_by.scaled(100.0)
    return f"{signed(found.value)} points ({signed(found.lo)} to {signed(found.hi)})"
