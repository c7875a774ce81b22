"""What a policy is compared with: the best fixed mix of models at the same mean cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from hydra_core.base.intervals import Interval
from hydra_core.base.types import BoolArray, ChoiceArray, FloatArray, IntArray
from hydra_core.replay.metrics import ConstantPolicy, picked, single_models, upper_hull
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.significance import (
    holm,
    mean_interval,
    standard_error,
    student_p,
)


@dataclass(frozen=True, slots=True)
class Mix:
    """The best fixed mix at one cost: a share of `strong`, the rest to `cheap`.

    Attributes:
        strong_share: In [0, 1]; 0 means always `cheap`.
    """

    cheap: ConstantPolicy
    strong: ConstantPolicy
    strong_share: float
    quality: float
    mean_cost_usd: float

    @property
    def quality_per_usd(self) -> float:
        """What one more USD per query buys along the hull here; 0 beyond its ends."""
        if self.cheap.index == self.strong.index:
            return 0.0
        spread = self.strong.mean_cost_usd - self.cheap.mean_cost_usd
        return (self.strong.quality - self.cheap.quality) / spread

    @property
    def mixed(self) -> bool:
        """Whether it is more than one model when shares are shown in whole percent."""
        return 0.005 <= self.strong_share < 0.995 and self.cheap.index != self.strong.index

    @property
    def model(self) -> str:
        """The model that has most of the traffic."""
        return (self.strong if self.strong_share >= 0.5 else self.cheap).model

    @property
    def action(self) -> str:
        """Subject of a sentence: Sending 80 % to a and 20 % to b."""
        if not self.mixed:
            return f"Always using {self.model}"
        percent = 100 * self.strong_share
        return (
            f"Sending {100 - percent:.0f} % to {self.cheap.model} and {percent:.0f} % to "
            f"{self.strong.model}"
        )

    def __str__(self) -> str:
        if not self.mixed:
            return f"always {self.model}"
        percent = 100 * self.strong_share
        return f"{100 - percent:.0f} % {self.cheap.model}, {percent:.0f} % {self.strong.model}"


def matched_cost_mix(hull: Sequence[ConstantPolicy], mean_cost_usd: float) -> Mix:
    """The best random mixture of constants that spends no more than this per query.

    Below the cheapest model there is no such mixture: the cheapest is returned as it is.
    """
    costs = [point.mean_cost_usd for point in hull]
    upper = int(np.searchsorted(costs, mean_cost_usd, side="left"))
    if upper in (0, len(hull)):
        only = hull[min(upper, len(hull) - 1)]
        return Mix(only, only, 0.0, only.quality, only.mean_cost_usd)
    cheap, strong = hull[upper - 1], hull[upper]
    share = (mean_cost_usd - cheap.mean_cost_usd) / (strong.mean_cost_usd - cheap.mean_cost_usd)
    quality = cheap.quality + share * (strong.quality - cheap.quality)
    return Mix(cheap, strong, share, quality, mean_cost_usd)


@dataclass(frozen=True, slots=True, eq=False)
class MatchedCost:
    """The mixtures that p policies are held against, as arrays.

    Attributes:
        weights: (m, p) share of each model in each mixture.
        ends: (2, p) the cheaper and the dearer model of each mixture (equal beyond the hull).
        quality_per_usd: (p,) slope of the hull there.
    """

    weights: FloatArray
    ends: IntArray
    quality_per_usd: FloatArray

    @classmethod
    def of(cls, mixes: Sequence[Mix], models: int) -> Self:
        """Line the mixtures up over a pool of so many models."""
        ends = np.array([[m.cheap.index for m in mixes], [m.strong.index for m in mixes]])
        share = np.array([mix.strong_share for mix in mixes])
        weights = np.zeros((models, len(mixes)))
        every = np.arange(len(mixes))
        weights[ends[0], every] = 1 - share
        weights[ends[1], every] += share
        return cls(weights, ends, np.array([mix.quality_per_usd for mix in mixes]))

    def differences(
        self, quality: FloatArray, cost_usd: FloatArray, choice: ChoiceArray
    ) -> FloatArray:
        """What each query adds to "policy minus mixture at the same cost".

        The mean over the queries that the hull was drawn from is the difference itself, and less
        that mean these are its influence values: Q - [Qa + (C - Ca) / (Cb - Ca) (Qb - Qa)] to
        first order, so the uncertainty of the matched cost is counted.

        Args:
            quality, cost_usd: (n, m) outcomes and realised cost in USD of each model used alone
                (`ReplayData.fixed`).
            choice: (n, p) pool index each of the p policies sends each query to.

        Returns:
            (n, p) in units of quality.
        """
        used = np.unique(self.ends)
        weights = self.weights[used]
        result: FloatArray = picked(quality, choice) - quality[:, used] @ weights
        extra_usd = picked(cost_usd, choice) - cost_usd[:, used] @ weights
        extra_usd *= self.quality_per_usd
        result -= extra_usd
        return result

    def away(self, choice: ChoiceArray, stand_in: IntArray | None = None) -> BoolArray:
        """(2, n, p) True where a query is not sent to the mixture's cheaper (dearer) end.

        Args:
            stand_in: (n, m) as `ReplayData.stand_in`.
        """
        ends = self.ends[:, None, :]
        if stand_in is not None:
            ends = np.stack([stand_in[:, end] for end in self.ends])
        result: BoolArray = choice[None] != ends
        return result

    def moved(
        self,
        choice: IntArray,
        clusters: IntArray | None = None,
        stand_in: IntArray | None = None,
    ) -> int:
        """Independent queries that one policy (p = 1) sends elsewhere than the nearer end.

        Args:
            choice: (n,) pool index of each query's model.
            clusters: (n,) cluster numbers, None when all queries are independent.
            stand_in: As in `away`.
        """
        away = self.away(choice[:, None], stand_in)[:, :, 0]
        if clusters is None:
            return int(away.sum(axis=1).min())
        return min(int(np.unique(clusters[rows]).size) for rows in away)


@dataclass(frozen=True, slots=True)
class MatchedGain:
    """One policy over another at the same cost; a cheaper but worse policy gains nothing by that.

    Both are held against the mixture of constants at their own cost, so the difference in cost is
    counted at what constants trade quality for there. It is one comparison with one interval, which
    holds all that is possible where either goes to models without outcomes.

    Attributes:
        saving: The same as a share of the first policy's cost saved at the same quality; None
            where more money buys no quality, so that quality cannot be turned into money.
    """

    quality: Interval
    saving: Interval | None

    @property
    def gains(self) -> bool:
        """Whether there is a gain beyond chance."""
        return self.quality.lo > 0


def matched_gain(data: ReplayData, before: IntArray, after: IntArray) -> MatchedGain:
    """Compare two assignments of the same queries at the same cost.

    Args:
        before, after: (n,) pool index of each query's model; neither chosen on these queries.
    """
    both = np.stack([before, after], axis=1)
    hull = upper_hull(single_models(data))
    costs = picked(data.cost_usd, both).mean(axis=0).tolist()
    mixes = [matched_cost_mix(hull, cost) for cost in costs]
    lifts = MatchedCost.of(mixes, len(data.pool.ids)).differences(*data.fixed, both)
    gained, moved = lifts[:, 1] - lifts[:, 0], before != after
    least, most = gained - (moved & data.unknown(before)), gained + (moved & data.unknown(after))
    quality = mean_interval(gained, data.clusters).spanning(
        mean_interval(least, data.clusters), mean_interval(most, data.clusters)
    )
    worth = mixes[0].quality_per_usd * costs[0]
    return MatchedGain(quality, quality.scaled(1 / worth) if worth > 0 else None)


_SURE = 0.05


@dataclass(frozen=True, slots=True)
class UnderHull:
    """A model under the hull of the others.

    Attributes:
        gap: Mean quality that the mixture has more, in [0, 1].
        mix: The mixture of other models at no more than its cost.
        p_value: One-sided, Holm-corrected.
    """

    model: str
    gap: float
    mix: Mix
    p_value: float

    def __str__(self) -> str:
        return (
            f"{self.model}: {self.mix} is {100 * self.gap:.1f} points better at no more cost "
            f"(p = {self.p_value:.2g})"
        )


def under_hull(data: ReplayData) -> tuple[UnderHull, ...]:
    """The models that lie under the hull of the others, the clearest first.

    Each is compared with the others' best mixture at its own mean cost; a model cheaper than every
    other is never under their hull. Where nothing costs anything, or no cost is known, there is no
    hull: a model may be kept for its price.
    """
    if not data.cost_usd.any():
        return ()
    singles = single_models(data)
    found: list[UnderHull] = []
    for one in singles:
        others = [other for other in singles if other.model != one.model]
        if not others or one.mean_cost_usd < min(other.mean_cost_usd for other in others):
            continue
        mix = matched_cost_mix(upper_hull(others), one.mean_cost_usd)
        gap = mix.quality - one.quality
        always = np.full((len(data.query_ids), 1), one.index)
        against = MatchedCost.of([mix], len(data.pool.ids))
        worse = -against.differences(*data.fixed, always)[:, 0]
        found.append(UnderHull(one.model, gap, mix, _p_value(gap, worse - worse.mean(), data)))
    corrected = holm([row.p_value for row in found])
    rows = [replace(row, p_value=p) for row, p in zip(found, corrected, strict=True)]
    clear = [row for row in rows if row.gap > 0 and row.p_value < _SURE]
    return tuple(sorted(clear, key=lambda row: row.p_value))


def _p_value(gap: float, influence: FloatArray, data: ReplayData) -> float:
    """One-sided: how likely a gap this wide is where there is none."""
    error, freedom = standard_error(influence, data.clusters)
    if not error > 0:
        return 0.0 if gap > 0 else 1.0
    if gap <= 0:
        return 1.0
    return student_p(gap / error, freedom) / 2
