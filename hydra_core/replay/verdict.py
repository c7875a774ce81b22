"""Does the router beat the best constant policy at its own cost? Said with an interval, or not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from hydra_core.base.types import IntArray, Selection
from hydra_core.replay.band import MIN_MOVED
from hydra_core.replay.matched_cost import MatchedCost, Mix, matched_cost_mix
from hydra_core.replay.metrics import picked, single_models, upper_hull
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.significance import (
    Interval,
    influence_interval,
    sample_size,
    student_quantile,
)

#: Half of the last digit shown: a smaller effect is printed as +0.0 pp, so it is none.
_SMALLEST_SHOWN = 0.0005
_MOST_QUERIES = 1_000_000


class VerdictLabel(StrEnum):
    """`ties` means: cannot be told from the constant at this sample size."""

    BEATS = "beats"
    TIES = "ties"
    LOSES = "loses"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer in one word, one number and a few sentences.

    Attributes:
        delta: Mean quality of the router minus that of the constant at the same cost.
        interval: 95 % interval of delta for this point alone, paired by query.
        simultaneous: 95 % interval that holds along the whole curve; None where it was not asked.
        selection: How the point came about.
        moved: Independent queries that go elsewhere than the constant mixture's nearer end.
        independent: Independent queries (clusters) in all.
        constant: The constant policy compared with.
        quality: Mean quality of the router.
        mean_cost_usd: Its cost, USD per query.
        dependence: What is known about undeclared dependence; empty where nothing is suspected.
        origin: Who says how the point came about, and where it was chosen; '' if nobody does.
        unknown: Fraction of queries that go to models without outcomes. Quality and delta are the
            least possible then, and the intervals reach to the most possible.
    """

    delta: float
    interval: Interval
    simultaneous: Interval | None
    selection: Selection
    moved: int
    independent: int
    constant: Mix
    quality: float
    mean_cost_usd: float
    dependence: str = ""
    origin: str = ""
    unknown: float = 0.0

    @property
    def label(self) -> VerdictLabel:
        """Beats, ties or loses; neither of the sharp words where too few queries move."""
        if self._thin:
            return VerdictLabel.TIES
        if self.judged_by.lo > 0:
            return VerdictLabel.BEATS
        return VerdictLabel.LOSES if self.judged_by.hi < 0 else VerdictLabel.TIES

    @property
    def judged_by(self) -> Interval:
        """The interval that the label stands on."""
        if self.selection is Selection.LOOKED and self.simultaneous is not None:
            return self.simultaneous
        return self.interval

    def over_the_curve(self, critical: float) -> Interval:
        """The interval with so many standard errors to each side instead of Student's."""
        factor = critical / student_quantile(max(self.independent, 2))
        known = replace(self.interval, hi=self.interval.hi - self.unknown).widened(factor)
        return replace(known, hi=known.hi + self.unknown)

    @property
    def text(self) -> str:
        """Everything that is said to an operator: what, against what, how chosen, what next."""
        return " ".join(part for part in (self.facts, self.how, self.dependence, self.next) if part)

    @property
    def facts(self) -> str:
        """The policy compared with, the cost, the difference and its interval."""
        if self.moved == 0:
            return (
                f"Here the router is a constant policy: {self.constant} at "
                f"${self.mean_cost_usd:.4g} per query."
            )
        said = self.judged_by
        return (
            f"At ${self.mean_cost_usd:.4g} per query the router reaches "
            f"{100 * self.quality:.1f} % quality; the best constant policy at that cost "
            f"({self.constant}) reaches {100 * self.constant.quality:.1f} %: "
            f"{said.scaled(100.0).text('pp')}. "
            f"{self._conclusion}"
        )

    @property
    def how(self) -> str:
        """How the point came about, and which interval that calls for."""
        if self.moved == 0:
            return ""
        judged, interval = {
            Selection.FIXED: ("The point was fixed beforehand", "its own 95 % interval"),
            Selection.CROSS_FITTED: (
                "Judged on queries it was not chosen on (cross-fitted)", "its own 95 % interval",
            ),
            Selection.LOOKED: (
                "The point was chosen by looking", "the 95 % band over the whole curve"
            ),
        }[self.selection]  # fmt: skip
        return f"{judged}{self.origin and f' ({self.origin})'}: {interval}."

    @property
    def next(self) -> str:
        """What to do with this answer."""
        if self.moved == 0:
            return "Next: choose a setting at which several models share the traffic."
        if self._open:
            return "Next: collect outcomes of these models, on Eval sets under Collect."
        if self._thin:
            return "Next: take a setting that moves more queries, or collect more."
        if self.label is VerdictLabel.BEATS:
            return "Next: publish it, and check it on new traffic."
        if self.label is VerdictLabel.LOSES:
            return f"Next: serve {self.constant}, or change the weights or the pool."
        if self.selection is Selection.LOOKED and self.interval.lo > 0:
            return "Next: let Find choose a point and check it on queries it did not see."
        if self.delta <= 0:
            return f"Next: serve {self.constant}, or change the weights or the pool."
        return f"Next: {self._needed}; until then {self.constant} is as good."

    @property
    def _open(self) -> bool:
        """Whether the result hangs on models without outcomes."""
        return bool(self.unknown) and self.moved > 0 and self.label is VerdictLabel.TIES

    @property
    def _thin(self) -> bool:
        return self.moved < MIN_MOVED or abs(self.delta) < _SMALLEST_SHOWN

    @property
    def _conclusion(self) -> str:
        if self._open:
            return (
                f"{100 * self.unknown:.1f} % of the queries go to models without outcomes in this "
                "set, so the result is not known: these queries count as unresolved here, and the "
                "interval holds all that they may turn out to be."
            )
        if self.moved < MIN_MOVED:
            return (
                f"Too few queries move: {self.moved} of {self.independent:,} independent ones, "
                f"and a verdict needs {MIN_MOVED}."
            )
        if self._thin:
            return "Too few queries move: the difference is under 0.05 pp."
        return {
            VerdictLabel.BEATS: "The router beats the constant.",
            VerdictLabel.TIES: "That cannot be told from noise on this set.",
            VerdictLabel.LOSES: "The constant is better: do not route at this setting.",
        }[self.label]

    @property
    def _needed(self) -> str:
        """How many queries would show a difference of this size (80 % power)."""
        deviation = self.interval.standard_error * np.sqrt(self.independent)
        needed = sample_size(float(deviation), self.delta)
        if needed > _MOST_QUERIES:
            return "no set of a practical size would show so small a difference"
        return f"about {float(f'{needed:.2g}'):,.0f} independent queries would show it"


def verdict(
    data: ReplayData, choice: IntArray, selection: Selection, *, critical: float | None = None
) -> Verdict:
    """Compare an assignment with the best constant policy at the same mean cost.

    The constant is picked in hindsight on the same queries, which favours the constant, so
    "beats" is not said lightly. The interval is paired by query and counts the uncertainty of
    the matched cost (delta method; over clusters where the set has them); at kinks of the hull a
    bootstrap that picks the hull again covers no better (`benchmarks/quality/kink_coverage.py`).
    Neither "beats" nor "loses" is said of fewer than `MIN_MOVED` moved queries, or of an effect
    too small to print.

    Args:
        data: Replayed set.
        choice: (n,) index of the chosen model.
        selection: How the point came about.
        critical: Half width of the simultaneous band over the curve that the point was chosen
            from, in standard errors (`CurveBand.critical`); needed if it was chosen by looking.

    Raises:
        ValueError: Chosen by looking, and no band given.
    """
    if selection is Selection.LOOKED and critical is None:
        raise ValueError("a point chosen by looking is judged by a band: give its critical value")
    quality, cost = picked(data.quality, choice), picked(data.cost_usd, choice)
    mix = matched_cost_mix(upper_hull(single_models(data)), float(cost.mean()))
    against = MatchedCost.of([mix], len(data.pool.ids))
    moved, independent = against.moved(choice, data.clusters), data.independent
    delta = float(quality.mean()) - mix.quality
    differences = against.differences(data.quality, data.cost_usd, choice[:, None])[:, 0]
    interval = influence_interval(delta, differences - differences.mean(), data.clusters)
    unknown = data.unknown(choice)
    if unknown.any():
        most = differences + unknown
        spread = influence_interval(
            delta + float(unknown.mean()), most - most.mean(), data.clusters
        )
        interval = interval.up_to(spread)
    if moved == 0:  # the router is this constant
        delta, interval = 0.0, Interval(0.0, 0.0, 0.0)
    found = Verdict(
        delta=delta,
        interval=interval,
        simultaneous=None,
        selection=selection,
        moved=moved,
        independent=independent,
        constant=mix,
        quality=float(quality.mean()),
        mean_cost_usd=float(cost.mean()),
        dependence=data.dependence,
        unknown=float(unknown.mean()),
    )
    if critical is None:
        return found
    return replace(found, simultaneous=found.over_the_curve(critical))
