"""Lift of any policy over the best fixed mix of models at the same cost, cross-fitted.

A source of shortfalls is fitted on each training part and routes the queries it has not seen. The
lift is read at 25, 50 and 75 % of the cost range, with an interval of the mean and a confidence
band that holds at all points of the curve at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from hydra_core.base.types import ChoiceArray, FloatArray, IntArray, Progress
from hydra_core.choosing.heads import grouped_parts
from hydra_core.choosing.lift import GRID, Lift, hull_of, lift_of, lift_of_choices
from hydra_core.choosing.material import Outcomes
from hydra_core.choosing.sources.profiles import FittedProfiles, FittedSuccess
from hydra_core.outcome_model.heads import Predicted
from hydra_core.replay.metrics import picked
from hydra_core.routing.matcher import choices_in_order

#: Settings of the knob that are tried to meet a cost.
_SETTINGS: Final = 400


#: Fitted sources that stand in YAML.
Profiles: TypeAlias = FittedProfiles | FittedSuccess


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Queries with the shortfalls and the order of their models.

    Attributes:
        shortfalls: (n, m).
        order: (n, m) models from cheapest to dearest.
    """

    outcomes: Outcomes
    shortfalls: FloatArray
    order: IntArray

    def taus_at(self, positions: FloatArray, settings: int = _SETTINGS) -> FloatArray:
        """Return (p,) the taus that spend these shares of the cost range on these queries."""
        low, high = cost_range(self.outcomes)
        wanted = low + np.asarray(positions, np.float64) * (high - low)
        levels = settings_of(self.shortfalls, self.order, settings)
        costs = picked(self.outcomes.cost_usd, self.choices(levels)).mean(axis=0)
        nearest = np.abs(costs[:, None] - wanted[None, :]).argmin(axis=0)
        result: FloatArray = levels[nearest]
        return result

    def choices(self, taus: FloatArray) -> ChoiceArray:
        """Return (n, p) routes at each tau."""
        return choices_in_order(self.shortfalls, self.order, taus)


@dataclass(frozen=True, slots=True, eq=False)
class CrossFitted:
    """Queries ranked by sources that have not seen them.

    Attributes:
        ranked: All queries.
        part: (n,) the fold of each.
        training: The training queries of each fold as its own source ranks them; empty where tau
            means the same in every fold.
        predicted: Success and cost that the queries are ranked by; None where there are none.
    """

    ranked: Ranked
    part: IntArray
    training: tuple[Ranked, ...] = ()
    predicted: Predicted | None = None

    def at(self, positions: FloatArray) -> ChoiceArray:
        """Return (n, p) routes at shares of the cost range; the knob is set by cost alone.

        Where tau means the same in every fold, one tau serves all queries; otherwise each fold
        takes the tau that spends so much on its own training queries.
        """
        if not self.training:
            return self.ranked.choices(self.ranked.taus_at(positions))
        choice = np.empty((len(self.part), len(positions)), dtype=np.uint8)
        for number, train in enumerate(self.training):
            rows = np.flatnonzero(self.part == number)
            choice[rows] = choices_in_order(
                self.ranked.shortfalls[rows], self.ranked.order[rows], train.taus_at(positions)
            )
        return choice

    def lift(self, rng: np.random.Generator) -> Lift | None:
        """Return the lift over the best fixed mix; None where there is no cost range."""
        outcomes, positions = self.ranked.outcomes, np.asarray(GRID) / 100
        if self.predicted is not None:  # as `learn` says it, to the last digit
            return lift_of(
                outcomes.quality, outcomes.cost_usd, self.predicted, outcomes.clusters, rng
            )
        return lift_of_choices(
            outcomes.quality, outcomes.cost_usd, self.at(positions), outcomes.clusters, rng
        )


def cost_range(outcomes: Outcomes) -> tuple[float, float]:
    """Return the mean cost of the cheapest and of the best fixed model on the hull, USD."""
    hull = hull_of(outcomes.quality, outcomes.cost_usd)
    return hull[0].mean_cost_usd, hull[-1].mean_cost_usd


def settings_of(shortfalls: FloatArray, order: IntArray, count: int) -> FloatArray:
    """Return (s,) ascending values of tau at which the routes differ; from predictions alone.

    They lie evenly among the settings at which a query changes its model.
    """
    ranked = np.take_along_axis(shortfalls, order, 1)
    least = np.minimum.accumulate(ranked, axis=1)
    changes = least[:, :-1][least[:, 1:] < least[:, :-1]]
    changes = np.sort(changes[np.isfinite(changes)])
    if not changes.size:
        return np.zeros(1)
    at = np.unique(np.linspace(0, changes.size - 1, count).astype(np.intp))
    return np.unique(np.concatenate([[0.0], changes[at]]))


def cross_fit(
    outcomes: Outcomes,
    fit: Callable[[Outcomes], Profiles],
    *,
    folds: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> CrossFitted:
    """Rank the models of every query by a source that was fitted without it and its cluster.

    Args:
        folds: Parts, at least two.
        progress: Called with (done, total) folds.

    Raises:
        ValueError: Fewer clusters than folds.
    """
    if np.unique(outcomes.clusters).size < folds:
        raise ValueError(f"{outcomes.n} queries cannot be cut into {folds} parts")
    part = grouped_parts(outcomes.clusters, folds, np.random.default_rng(seed))
    n, m = outcomes.quality.shape
    shortfalls, order = np.empty((n, m)), np.empty((n, m), dtype=np.intp)
    training = []
    absolute = True
    for number in range(folds):
        # a fold's means are low where its test queries' are high: without the level of all queries
        # every lift is too low. The fixed mix that it is held against has that level, too
        train = outcomes.take(np.flatnonzero(part != number)).levelled(outcomes)
        rows = np.flatnonzero(part == number)
        source = fit(train)
        absolute = source.absolute
        shortfalls[rows], order[rows] = source.rank(outcomes.requirements[rows])
        if not absolute:
            training.append(Ranked(train, *source.rank(train.requirements)))
        if progress is not None:
            progress(number + 1, folds)
    whole = Ranked(outcomes, shortfalls, order)
    return CrossFitted(whole, part, tuple(training))
