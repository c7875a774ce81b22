"""What Home says: terms, the result of routing in one sentence, and the traffic of a day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np

from hydra_core.base.spelling import signed, usd
from hydra_core.replay.band import MIN_MOVED
from hydra_core.replay.verdict import Verdict, VerdictLabel

if TYPE_CHECKING:
    from hydra_core.live.traffic import Traffic

PURPOSE: Final = (
    "HyDRA sends each message to the cheapest model that can handle it, and measures whether "
    "that beats a fixed mix."
)
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
    """Whether routing helps: a tone of `widgets.toned`, a title and one or two sentences."""

    tone: str
    icon: str
    title: str
    text: str


def answer(verdict: Verdict) -> Answer:
    """Whether routing helps at this setting, and by how much."""
    found = verdict.judged_by.scaled(100.0)
    quality, mix = 100 * verdict.quality, 100 * verdict.constant.quality
    interval = f"95 % interval {signed(found.lo)} to {signed(found.hi)}"
    if verdict.moved == 0:
        return Answer(
            "info", "balance", "This setting does not route",
            f"Every query gets the same shares: {verdict.constant}, at "
            f"{usd(verdict.mean_cost_usd)} per query.",
        )  # fmt: skip
    if verdict.label is VerdictLabel.BEATS:
        return Answer(
            "success", "trending_up", "Routing helps here",
            f"The router reaches {quality:.1f} % quality, {found.value:.1f} points more than the "
            f"best fixed mix at the same cost ({interval}).",
        )  # fmt: skip
    if verdict.label is VerdictLabel.LOSES:
        return Answer(
            "warning", "trending_down", "A fixed mix of models does better here",
            f"Sending {shares(verdict)} costs the same and reaches {mix:.1f} % quality, against "
            f"{quality:.1f} % with the router ({signed(found.value)} points, {interval}).",
        )  # fmt: skip
    if verdict.moved < MIN_MOVED:
        return Answer(
            "info", "balance", "Too few queries to tell",
            f"Only {verdict.moved:,} of {verdict.independent:,} independent queries go elsewhere "
            f"than with a fixed mix; a result needs {MIN_MOVED}.",
        )  # fmt: skip
    return Answer(
        "info", "balance", "No measurable difference from a fixed mix",
        f"The router reaches {quality:.1f} % quality, the best fixed mix at the same cost "
        f"{mix:.1f} % ({signed(found.value)} points, {interval}).",
    )  # fmt: skip


def shares(verdict: Verdict) -> str:
    """The fixed mix in words: 80 % to A and 20 % to B."""
    mix = verdict.constant
    if mix.cheap.model == mix.strong.model or mix.strong_share in (0.0, 1.0):
        return f"everything to {mix.strong.model if mix.strong_share else mix.cheap.model}"
    strong = round(100 * mix.strong_share)
    return f"{100 - strong} % to {mix.cheap.model} and {strong} % to {mix.strong.model}"


def day(traffic: Traffic) -> str:
    """Requests, cost, failures and the largest shares, in one line each."""
    rows, n = traffic.rows, len(traffic)
    cost = rows["cost_usd"].astype(float)
    parts = [f"**{n:,} requests**"]
    if cost.notna().any():
        parts.append(usd(float(cost.sum())))
    failed = float(np.mean(rows["status"] == "failed"))
    parts.append(f"{100 * failed:.1f} % failed")
    counts = traffic.models.value_counts()
    mix = ", ".join(f"{name} {100 * k / n:.0f} %" for name, k in counts.head(3).items())
    more = f" and {len(counts) - 3} more" if len(counts) > 3 else ""
    return f"{' · '.join(parts)}\n\n{mix}{more}"


def when(at: datetime) -> str:
    """A day, as it stands beside a name: 3 November 2026."""
    return f"{at.astimezone():%-d %B %Y}"
