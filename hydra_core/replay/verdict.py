"""Does the router do better than the best fixed mix of models at its own cost?"""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from hydra_core.base.intervals import DIFFERENCE, Interval
from hydra_core.base.spelling import signed, usd
from hydra_core.base.types import IntArray, Selection
from hydra_core.replay.band import MIN_MOVED
from hydra_core.replay.fixed_mix import MatchedCost, Mix, matched_cost_mix
from hydra_core.replay.metrics import picked, single_models, upper_hull
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.significance import influence_interval, sample_size, student_quantile

#: Half of the last digit shown: a smaller effect is printed as 0.0 points, so it is none.
_SMALLEST_SHOWN = 0.0005
_MOST_QUERIES = 1_000_000
#: Costs nearer than this share are one cost.
_SAME_COST = 0.005


class VerdictLabel(StrEnum):
    """How the router does against the best fixed mix of models at its own cost."""

    BETTER = "better"
    SAME = "no measurable difference"
    WORSE = "worse"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a point: a label, one difference with its interval, and the sentences on it.

    `quality` and `mean_cost_usd` are those of the point's metrics, to the last digit; where
    `cross_fitted` is set they are those of the cross-fitted metrics, and `note` says so.

    Attributes:
        delta: Mean quality of the router minus that of the fixed mix at the same cost.
        interval: 95 % interval of delta for this point alone, paired by query.
        simultaneous: 95 % interval that holds along the whole curve; None where it was not asked.
        moved: Independent queries that go elsewhere than the fixed mix's nearer end.
        independent: Independent queries (clusters) in all.
        dependence: What is known about undeclared dependence; empty where nothing is suspected.
        origin: Where the point was chosen, and who says so, in one sentence; '' if nobody does.
        knob: What was set: tau or V.
        cross_fitted: Two settings, each picked on one half and measured on the other, gave these
            figures (`cross_fit`).
        unknown: Fraction of queries that go to models without outcomes. Quality and delta are the
            least possible then, and the intervals reach to the most possible.
        tuned_here: Whether more than the knob was chosen on these queries, such as profiles or
            weights: no interval covers that.
        alone: Whether the pool has one model, so that no setting routes.
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
    knob: str = "tau"
    cross_fitted: bool = False
    unknown: float = 0.0
    tuned_here: bool = False
    alone: bool = False

    @property
    def label(self) -> VerdictLabel:
        """Better, worse or no measurable difference, which it is where too few queries move."""
        if self._thin:
            return VerdictLabel.SAME
        if self.judged_by.lo > 0:
            return VerdictLabel.BETTER
        return VerdictLabel.WORSE if self.judged_by.hi < 0 else VerdictLabel.SAME

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
        return replace(known, hi=known.hi + self.unknown).clipped(*DIFFERENCE)

    @property
    def title(self) -> str:
        """The result in one line."""
        if self.moved == 0:
            return "One model leaves no choice" if self.alone else "The router is a fixed mix here"
        if self._open:
            return "Not known: some models have no outcomes"
        if self.moved < MIN_MOVED:
            return "Too few queries move for a result"
        return {
            VerdictLabel.BETTER: "The router does better here",
            VerdictLabel.SAME: "No measurable difference from the best fixed mix",
            VerdictLabel.WORSE: "A fixed mix does better here"
            if self.constant.mixed
            else f"{self.constant.model} alone does better here",
        }[self.label]

    @property
    def text(self) -> str:
        """The comparison and what to do next, in two sentences at most."""
        return f"{self.comparison} {self.next}"

    @property
    def comparison(self) -> str:
        """The fixed mix, the two qualities, their difference and its interval."""
        if self.moved == 0:
            return (
                f"It sends every query where always using {self.constant.model} would, at "
                f"{self._cost} per query."
            )
        shown = self.judged_by.scaled(100.0)
        if self._open:
            return (
                f"{100 * self.unknown:.1f} % of the queries go to models without outcomes in this "
                f"set, so the difference from {self.constant} lies between "
                f"{shown.bounds(signed, ' and ')} points."
            )
        ends = f"95 % interval {shown.bounds(signed)}" if shown.known else shown.reason
        return (
            f"{self.constant.action} costs {self._mix_cost} and reaches "
            f"{100 * self.constant.quality:.1f} %, against {100 * self.quality:.1f} % with the "
            f"router ({signed(shown.value)} points, {ends})."
        )

    @property
    def next(self) -> str:
        """What to do with this result."""
        if self.alone:
            return "Add or enable a second model in the catalog."
        if self.moved == 0:
            return "Choose a setting at which several models share the traffic."
        if self._open:
            return "Collect outcomes of these models: Eval sets, Collect."
        if self._thin:
            return "Choose a setting that moves more queries, or collect more."
        if self.label is VerdictLabel.BETTER and self.tuned_here:
            return "Before you publish it, check its cross-fitted gain."
        if self.label is VerdictLabel.BETTER:
            return "Publish it, and check it on new traffic."
        if self.label is VerdictLabel.WORSE or self.delta <= 0:
            return f"Serve {self.constant}, or change the weights or the pool."
        if self.selection is Selection.LOOKED and self.interval.lo > 0:
            return "Let Find choose a setting, and check it on queries that it did not see."
        return f"Until a larger set shows a difference, {self.constant} is as good."

    @property
    def details(self) -> tuple[str, ...]:
        """What the result rests on, one sentence each."""
        if self.moved == 0:
            return tuple(filter(None, [self.dependence]))
        cost = f"The router costs {self._cost} per query."
        return tuple(
            filter(None, [cost, self.how, self.origin, self.note, self._evidence, self.dependence])
        )

    @property
    def how(self) -> str:
        """How the point came about, and which interval that calls for."""
        return {
            Selection.FIXED: f"{self.knob} was fixed beforehand, so the interval is for it alone.",
            Selection.CROSS_FITTED: f"{self.knob} was picked on other queries than it is judged "
            "on (cross-fitted), so the interval is for it alone.",
            Selection.LOOKED: f"{self.knob} was picked on these queries, so the interval covers "
            "the whole curve.",
        }[self.selection]

    @property
    def note(self) -> str:
        """Why these figures differ from those of the setting itself; '' where they do not."""
        if not self.cross_fitted:
            return ""
        return (
            "Quality and cost here are cross-fitted, so they can differ from those of "
            f"one {self.knob} on all queries."
        )

    @property
    def _cost(self) -> str:
        return usd(self.mean_cost_usd)

    @property
    def _mix_cost(self) -> str:
        """What the mix costs; beyond the ends of the hull it cannot cost the same."""
        mix = self.constant.mean_cost_usd
        same = abs(mix - self.mean_cost_usd) <= _SAME_COST * self.mean_cost_usd
        return "the same" if same else f"{usd(mix)} per query"

    @property
    def _open(self) -> bool:
        return bool(self.unknown) and self.moved > 0 and self.label is VerdictLabel.SAME

    @property
    def _thin(self) -> bool:
        return self.moved < MIN_MOVED or abs(self.delta) < _SMALLEST_SHOWN

    @property
    def _evidence(self) -> str:
        """What a result lacks, or how many queries would show a difference of this size."""
        if self.moved < MIN_MOVED:
            return (
                f"{self.moved} of {self.independent:,} independent queries go elsewhere; a result "
                f"needs {MIN_MOVED}."
            )
        if self._thin:
            return "The difference is under 0.05 points."
        if self.label is not VerdictLabel.SAME or self.delta <= 0 or self.unknown:
            return ""  # more queries do not tell what models without outcomes achieve
        deviation = self.interval.standard_error * np.sqrt(self.independent)
        needed = sample_size(float(deviation), self.delta)
        if needed > _MOST_QUERIES:
            return "No set of a practical size would show so small a difference."
        count = f"{float(f'{needed:.2g}'):,.0f}"
        return f"About {count} independent queries would show a difference of this size."


def verdict(
    data: ReplayData,
    choice: IntArray,
    selection: Selection,
    *,
    critical: float | None = None,
    knob: str = "tau",
    origin: str = "",
) -> Verdict:
    """Compare an assignment with the best fixed mix of models at the same mean cost.

    The mix is picked in hindsight on the same queries, which favours it, so "better" is not said
    lightly. The interval is paired by query and counts the uncertainty of the matched cost (delta
    method; over clusters where the set has them); at vertices of the hull a bootstrap that picks
    the hull again covers no better (`benchmarks/quality/kink_coverage.py`). Neither "better" nor
    "worse" is said of fewer than `MIN_MOVED` moved queries, or of an effect too small to print.

    Args:
        choice: (n,) index of the chosen model.
        critical: Half width of the simultaneous band over the curve that the point was chosen
            from, in standard errors (`CurveBand.critical`); needed if it was picked here.
        origin: Where the point was chosen, in one sentence.

    Raises:
        ValueError: Picked on these queries, and no band given.
    """
    if selection is Selection.LOOKED and critical is None:
        raise ValueError("a point picked here is judged by a band: give its critical value")
    quality, cost = picked(data.quality, choice), picked(data.cost_usd, choice)
    mix = matched_cost_mix(upper_hull(single_models(data)), float(cost.mean()))
    against = MatchedCost.of([mix], len(data.pool.ids))
    moved, independent = against.moved(choice, data.clusters, data.stand_in), data.independent
    delta = float(quality.mean()) - mix.quality
    differences = against.differences(*data.fixed, choice[:, None])[:, 0]
    influence = differences - differences.mean()
    interval = influence_interval(delta, influence, data.clusters)
    unknown = data.unknown(choice)
    if unknown.any():
        most = differences + unknown
        possible = delta + float(unknown.mean())
        spread = influence_interval(possible, most - most.mean(), data.clusters)
        interval = interval.spanning(spread)
    interval = interval.clipped(*DIFFERENCE)
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
        origin=origin,
        knob=knob,
        unknown=float(unknown.mean()),
        alone=len(data.pool.ids) == 1,
    )
    if critical is None:
        return found
    return replace(found, simultaneous=found.over_the_curve(critical))
