"""Does the router beat the best constant policy at its own cost? Said with an interval, or not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hydra_core.evaluation.replay.metrics import (
    ConstantPolicy,
    picked,
    single_models,
    upper_hull,
)
from hydra_core.evaluation.replay.replay import ReplayData
from hydra_core.evaluation.significance import Interval, influence_interval
from hydra_core.types import FloatArray, IntArray

__all__ = ["Mix", "Verdict", "VerdictLabel", "matched_cost_mix", "verdict"]


class VerdictLabel(StrEnum):
    """`ties` means: cannot be told from the constant at this sample size."""

    BEATS = "beats"
    TIES = "ties"
    LOSES = "loses"


@dataclass(frozen=True, slots=True)
class Mix:
    """The best constant policy at one cost: a share of `strong`, the rest to `cheap`.

    Attributes:
        strong_share: In [0, 1]; 0 means always `cheap`.
        quality: Mean quality it reaches, in [0, 1].
        mean_cost_usd: USD per query it spends.
    """

    cheap: ConstantPolicy
    strong: ConstantPolicy
    strong_share: float
    quality: float
    mean_cost_usd: float

    def __str__(self) -> str:
        if self.strong_share <= 0.0 or self.cheap.model == self.strong.model:
            return f"always {self.cheap.model}"
        if self.strong_share >= 1.0:
            return f"always {self.strong.model}"
        percent = 100 * self.strong_share
        return f"{100 - percent:.0f} % {self.cheap.model}, {percent:.0f} % {self.strong.model}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer in one word, one number and one sentence.

    Attributes:
        label: beats, ties or loses.
        delta: Mean quality of the router minus that of the constant at the same cost.
        interval: 95 % interval of delta, paired by query.
        constant: The constant policy compared with.
        text: The sentence shown to an operator.
    """

    label: VerdictLabel
    delta: float
    interval: Interval
    constant: Mix
    text: str


def matched_cost_mix(hull: tuple[ConstantPolicy, ...], mean_cost_usd: float) -> Mix:
    """The best random mixture of constants that spends no more than this per query.

    Below the cheapest model there is no such mixture: the cheapest is returned as it is.
    """
    costs = [point.mean_cost_usd for point in hull]
    upper = int(np.searchsorted(costs, mean_cost_usd, side="left"))
    if upper == 0:
        only = hull[0]
        return Mix(only, only, 0.0, only.quality, only.mean_cost_usd)
    if upper == len(hull):
        only = hull[-1]
        return Mix(only, only, 0.0, only.quality, only.mean_cost_usd)
    cheap, strong = hull[upper - 1], hull[upper]
    share = (mean_cost_usd - cheap.mean_cost_usd) / (strong.mean_cost_usd - cheap.mean_cost_usd)
    quality = cheap.quality + share * (strong.quality - cheap.quality)
    return Mix(cheap, strong, share, quality, mean_cost_usd)


def verdict(data: ReplayData, choice: IntArray) -> Verdict:
    """Compare an assignment with the best constant policy at the same mean cost.

    The constant is picked in hindsight on the same queries, which favours the constant, so
    "beats" is not said lightly. The interval is paired by query and counts the uncertainty of
    the matched cost (delta method; over clusters where the set has them).

    Args:
        data: Replayed set.
        choice: (n,) index of the chosen model.
    """
    quality, cost = picked(data.quality, choice), picked(data.cost_usd, choice)
    mix = matched_cost_mix(upper_hull(single_models(data)), float(cost.mean()))
    delta = float(quality.mean()) - mix.quality
    influence = _influence(data, quality, cost, mix)
    interval = influence_interval(delta, influence, data.clusters)
    if not np.abs(influence).max() > 1e-12:  # the router is this constant
        delta, interval = 0.0, Interval(0.0, 0.0, 0.0)
    label = VerdictLabel.TIES
    if interval.lo > 0:
        label = VerdictLabel.BEATS
    elif interval.hi < 0:
        label = VerdictLabel.LOSES
    text = _sentence(label, float(quality.mean()), float(cost.mean()), mix, interval)
    return Verdict(label, delta, interval, mix, text)


def _influence(data: ReplayData, quality: FloatArray, cost: FloatArray, mix: Mix) -> FloatArray:
    """(n,) influence values of Q - [Qa + (C - Ca) / (Cb - Ca) (Qb - Qa)]."""
    a, b, share = mix.cheap.index, mix.strong.index, mix.strong_share
    mixed_quality = (1 - share) * data.quality[:, a] + share * data.quality[:, b]
    result = quality - mixed_quality
    if a != b:
        spread = mix.strong.mean_cost_usd - mix.cheap.mean_cost_usd
        slope = (mix.strong.quality - mix.cheap.quality) / spread
        mixed_cost = (1 - share) * data.cost_usd[:, a] + share * data.cost_usd[:, b]
        result = result - slope * (cost - mixed_cost)
    centred: FloatArray = result - result.mean()
    return centred


def _sentence(
    label: VerdictLabel, quality: float, cost: float, mix: Mix, interval: Interval
) -> str:
    facts = (
        f"At ${cost:.4g} per query the router reaches {100 * quality:.1f} % quality; the best "
        f"constant policy at that cost ({mix}) reaches {100 * mix.quality:.1f} %: "
        f"{100 * interval.value:+.1f} pp [{100 * interval.lo:+.1f}, {100 * interval.hi:+.1f}]."
    )
    if interval.lo == interval.hi == 0.0:
        return f"Here the router is a constant policy: {mix} at ${cost:.4g} per query."
    ending = {
        VerdictLabel.BEATS: "The router beats the constant.",
        VerdictLabel.TIES: "That cannot be told from noise on this set.",
        VerdictLabel.LOSES: "The constant is better: do not route at this setting.",
    }[label]
    return f"{facts} {ending}"
