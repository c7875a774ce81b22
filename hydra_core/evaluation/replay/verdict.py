"""Does the router beat the best constant policy at its own cost? Said with an interval, or not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hydra_core.evaluation.replay.matched_cost import MatchedCost, Mix, matched_cost_mix
from hydra_core.evaluation.replay.metrics import picked, single_models, upper_hull
from hydra_core.evaluation.replay.replay import ReplayData
from hydra_core.evaluation.significance import Interval, influence_interval
from hydra_core.types import IntArray

__all__ = ["Verdict", "VerdictLabel", "verdict"]


class VerdictLabel(StrEnum):
    """`ties` means: cannot be told from the constant at this sample size."""

    BEATS = "beats"
    TIES = "ties"
    LOSES = "loses"


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
    against = MatchedCost.of([mix], len(data.pool.ids))
    differences = against.differences(data.quality, data.cost_usd, choice[:, None])[:, 0]
    influence = differences - differences.mean()
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
