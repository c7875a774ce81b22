"""One policy on one eval set: every figure that a page, the command line or a report shows.

Pages draw it, `evaluate` prints it as text, and `replay/report` writes it as the JSON document
`hydra.evaluation/v1` and as HTML.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hydra_core.base.intervals import Interval
from hydra_core.base.types import IntArray, Rule, Selection
from hydra_core.replay.languages import Slice, Spread, by_group, by_language, spread
from hydra_core.replay.metrics import PolicyMetrics, evaluate_choice
from hydra_core.replay.operating_point import CrossFit, cheapest_with_quality, cross_fit
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.step_curve import StepCurve
from hydra_core.replay.sweep import Sweep
from hydra_core.replay.verdict import Verdict, verdict

_FEWEST_TO_HALVE = 20
#: Where the operator says how the point came about.
STATED = "The operator states this; nothing here can check it."


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The policy at one value of the knob; what takes longer is computed when first asked for.

    Attributes:
        knob: Where on the sweep the policy stands: tau, or V under the value rule.
        choice: (n,) pool index of the model each query goes to.
    """

    sweep: Sweep
    knob: float
    choice: IntArray
    router: PolicyMetrics
    verdict: Verdict

    @property
    def baseline(self) -> str:
        """The model that savings are measured against."""
        return self.router.baseline

    @cached_property
    def oracle(self) -> PolicyMetrics:
        """The best choice in hindsight."""
        if self.sweep.oracle.baseline == self.baseline:
            return self.sweep.oracle
        return self._metrics(self.sweep.data.oracle)

    @cached_property
    def constants(self) -> dict[str, PolicyMetrics]:
        """Every measured model used alone, from cheapest to dearest."""
        n, data = len(self.choice), self.sweep.data
        order = [i for i in self.sweep.order if data.measured[i]]
        return {data.pool.ids[i]: self._metrics(np.full(n, i)) for i in order}

    @cached_property
    def served_shares(self) -> dict[str, float]:
        """Traffic that the router itself gives these queries; {} where it is that of `router`.

        Its heads have learned from these queries; those behind `choice` had not seen them.
        """
        if self.sweep.rule is Rule.SHORTFALL:
            return {}
        served = self.sweep.served(self.knob)
        if np.array_equal(served, self.choice):
            return {}
        counts = np.bincount(served, minlength=len(self.sweep.data.pool.ids))
        shares = (counts / served.size).tolist()
        return dict(zip(self.sweep.data.pool.ids, shares, strict=True))

    @property
    def served_note(self) -> str:
        """Why the traffic that is served differs from the traffic shown; '' where it does not."""
        if not self.served_shares:
            return ""
        listed = ", ".join(
            f"{model} {100 * share:.1f} %" for model, share in self.served_shares.items() if share
        )
        return (
            "Quality, cost and traffic are cross-fitted, as new queries meet the router. It has "
            f"learned from these queries and sends them to {listed}."
        )

    @cached_property
    def cross_fit(self) -> CrossFit | None:
        """The same quality aimed at on one half and measured on the other; None if n is small."""
        data, quality = self.sweep.data, self.router.quality.value
        if data.independent < _FEWEST_TO_HALVE:
            return None

        def aim(half: ReplayData, curve: StepCurve) -> float:
            del half
            return cheapest_with_quality(curve, min(quality, float(curve.quality.max()))).knob

        rng = np.random.default_rng(0)
        return cross_fit(data, aim, rng=rng, rule=self.sweep.rule, baseline=self.baseline)

    @cached_property
    def languages(self) -> tuple[Slice, ...]:
        """By language, the largest first."""
        return by_language(self.sweep.data, self.choice, baseline=self.baseline)

    @cached_property
    def groups(self) -> tuple[Slice, ...]:
        """By language group."""
        return by_group(self.sweep.data, self.choice, baseline=self.baseline)

    @cached_property
    def spreads(self) -> tuple[Spread, ...]:
        """Every language group against English."""
        return spread(self.sweep.data, self.choice, baseline=self.baseline)

    @property
    def simultaneous(self) -> Interval:
        """The interval of the verdict's difference that holds along the whole curve."""
        return self.verdict.over_the_curve(self.sweep.band().critical)

    @property
    def weights_edited(self) -> bool:
        """Whether the weights are not the catalog's: the band covers the knob, not their choice."""
        return self.sweep.weights != self.sweep.catalog.policy.weights

    @property
    def caution(self) -> str:
        """What the verdict's interval does not cover; empty where it covers everything.

        An outcome model's predictions are cross-fitted.
        """
        if self.sweep.outcome_model is not None:
            return ""
        chosen = any(not one.knob_alone for one in self.sweep.chosen_here)
        if not ((self.weights_edited or chosen) and self.verdict.selection is Selection.LOOKED):
            return ""
        if self.sweep.rule is Rule.VALUE:
            return (
                "This interval does not cover success profiles fitted to this set: Tune, Learned "
                "has their cross-fitted gain."
            )
        what = "weights" if self.weights_edited else "weights, profiles or a pool"
        return (
            f"This interval does not cover {what} tuned on this set. Check them cross-fitted on "
            "Tune, part Search."
        )

    def _metrics(self, choice: IntArray) -> PolicyMetrics:
        return evaluate_choice(self.sweep.data, choice, baseline=self.baseline)


def evaluate(
    sweep: Sweep,
    knob: float,
    baseline: str | None = None,
    *,
    selection: Selection | None = None,
) -> Evaluation:
    """Evaluate the policy at one value of the knob.

    Args:
        knob: Tau >= 0, or V > 0 in USD under the value rule.
        baseline: Model that savings are measured against; the costliest where it is not replayed.
        selection: How this point came about, stated by the operator; by default the catalog's own
            policy counts as fixed beforehand on queries that it was not chosen on, and any other
            as picked on these queries.
    """
    chosen = selection or sweep.selection(knob)
    critical = sweep.band().critical if chosen is Selection.LOOKED else None
    origin = sweep.origin(knob) if selection is None else STATED
    choice = sweep.route(knob)
    named = baseline if baseline in sweep.data.pool.ids else None
    return Evaluation(
        sweep=sweep,
        knob=knob,
        choice=choice,
        router=evaluate_choice(sweep.data, choice, baseline=named),
        verdict=verdict(
            sweep.data, choice, chosen, critical=critical, knob=sweep.curve.symbol, origin=origin
        ),
    )
