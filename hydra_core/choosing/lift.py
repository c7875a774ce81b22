"""What routing gains over the best mixture of constants at the same cost, and whether to use it.

A lift is read at 25, 50 and 75 % of the cost range, with an interval of the mean and a confidence
band that holds at all points of the curve at once. A source of shortfalls is cross-fitted: fitted
on each training part, it routes the queries it has not seen. Other ways to route are rivals, on the
same queries, at the same costs and on the same folds.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Protocol, TypeVar

import numpy as np

from hydra_core.base.intervals import Interval
from hydra_core.base.types import BoolArray, ChoiceArray, FloatArray, IntArray, Progress, Rule
from hydra_core.choosing.heads import grouped_parts
from hydra_core.choosing.material import Material, Outcomes, with_all_outcomes
from hydra_core.outcome_model.heads import Predicted
from hydra_core.replay.band import MIN_MOVED, CurveBand, lift_band
from hydra_core.replay.baselines import BASELINES, RANDOM_MIX, run_baselines
from hydra_core.replay.fixed_mix import MatchedCost, matched_cost_mix
from hydra_core.replay.frontier import choices, frontier
from hydra_core.replay.gated import closed_by, used_alone
from hydra_core.replay.metrics import ConstantPolicy, picked, upper_hull
from hydra_core.replay.predictions import gated
from hydra_core.replay.replay import Fold
from hydra_core.replay.significance import mean_interval
from hydra_core.replay.sweep import Sweep
from hydra_core.routing.matcher import choices_in_order, returns_on_upgrading, tau_of_value

#: Percent of the way from the cheapest to the dearest constant of the hull.
POINTS: Final = (25, 50, 75)
#: Percent of the cost range at which a lift is judged, `POINTS` among them.
GRID: Final = (10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90)


@dataclass(frozen=True, slots=True, eq=False)
class Lift:
    """Quality above the hull of constants at the same cost, along the curve of the value rule.

    Attributes:
        mean: Mean over `POINTS`, with its interval (these points are fixed beforehand).
        band: Over a grid of the cost range, with an interval that holds at all points at once.
        value_usd: (p,) the V of each position of the band.
        contributions: (n,) what each query adds to the mean.
        choice: (n, len(POINTS)) the routes that the mean is of.
    """

    mean: Interval
    band: CurveBand
    value_usd: FloatArray
    contributions: FloatArray
    choice: ChoiceArray

    def numbers(self) -> dict[str, Any]:
        """Return it JSON-ready."""
        return {
            "points": {str(p): self.at(p).value for p in POINTS},
            "mean": self.mean.value,
            "interval": ends(self.mean),
            "simultaneous": {str(p): ends(self.at(p)) for p in POINTS},
            "unit": "quality, 0 to 1",
        }

    def at(self, percent: int) -> Interval:
        """Lift at one of `POINTS`, with the interval that holds at all points at once."""
        return self.band.interval(GRID.index(percent))

    def counted(self, percent: int) -> bool:
        """Whether enough queries are moved there for any verdict."""
        return bool(self.band.counted[GRID.index(percent)])


def hull_of(quality: FloatArray, cost_usd: FloatArray) -> tuple[ConstantPolicy, ...]:
    """The constants no mixture beats: (n, m), (n, m) -> from cheapest to best."""
    means = zip(quality.mean(axis=0).tolist(), cost_usd.mean(axis=0).tolist(), strict=True)
    return upper_hull([ConstantPolicy(str(i), i, 0, q, c) for i, (q, c) in enumerate(means)])


def lift_of(
    quality: FloatArray,
    cost_usd: FloatArray,
    predicted: Predicted,
    clusters: IntArray | None,
    rng: np.random.Generator,
    stand_in: IntArray | None = None,
) -> Lift | None:
    """The lift of the value rule; None where one constant is both the cheapest and the best.

    V is set by cost alone: at each point it is the one whose mean cost is nearest.

    Args:
        quality, cost_usd: (n, m) outcomes and realised cost in USD, none missing.
        predicted: For the same queries and models, by heads that have not seen them.
        clusters: (n,) cluster numbers, or None when all queries are independent.
        stand_in: (n, m) as `ReplayData.stand_in`; None where no gate keeps a model out.
    """
    hull = hull_of(*used_alone(quality, cost_usd, stand_in))
    low, high = hull[0].mean_cost_usd, hull[-1].mean_cost_usd
    if high <= low:
        return None
    predicted = gated(predicted, closed_by(stand_in))
    by = predicted.cost_usd
    returns = returns_on_upgrading(predicted.success, by)
    curve = frontier(returns, cost_usd.mean(axis=0), quality, cost_usd, ranked_by=by)
    wanted = [low + percent / 100 * (high - low) for percent in GRID]
    rows = [int(np.abs(curve.mean_cost_usd - cost).argmin()) for cost in wanted]
    values = np.array([curve.point(row).knob for row in rows])
    choice = choices(returns, by, tau_of_value(values))
    return lift_of_choices(quality, cost_usd, choice, clusters, rng, knob=values, stand_in=stand_in)


def lift_of_choices(
    quality: FloatArray,
    cost_usd: FloatArray,
    choice: ChoiceArray,
    clusters: IntArray | None,
    rng: np.random.Generator,
    *,
    knob: FloatArray | None = None,
    stand_in: IntArray | None = None,
) -> Lift | None:
    """The lift of any routes at `GRID`; otherwise as `lift_of`.

    Args:
        choice: (n, len(GRID)) model index of each query at each position.
        knob: (len(GRID),) the setting of each position; default the positions.
    """
    quality, cost_usd = used_alone(quality, cost_usd, stand_in)
    hull = hull_of(quality, cost_usd)
    if hull[-1].mean_cost_usd <= hull[0].mean_cost_usd:
        return None
    at = np.asarray(GRID) / 100 if knob is None else knob
    band = lift_band(quality, cost_usd, choice, at, clusters, rng=rng, stand_in=stand_in)
    fixed = choice[:, [GRID.index(point) for point in POINTS]]
    added = differences_to_hull(quality, cost_usd, fixed, hull).mean(axis=1)
    return Lift(mean_interval(added, clusters), band, at, added, fixed)


def differences_to_hull(
    quality: FloatArray, cost_usd: FloatArray, choice: ChoiceArray, hull: tuple[ConstantPolicy, ...]
) -> FloatArray:
    """(n, p) what each query adds to policy minus mixture at each of p settings."""
    every = np.arange(len(quality))[:, None]
    costs = cost_usd[every, choice].mean(axis=0)
    mixes = [matched_cost_mix(hull, cost) for cost in costs.tolist()]
    against = MatchedCost.of(mixes, quality.shape[1])
    return against.differences(quality, cost_usd, choice)


def recommendation(lift: Lift | None, *, widened: float = 1.0) -> tuple[bool, str]:
    """Whether to use what has this lift, and one sentence that says why.

    Args:
        widened: So many times as wide the interval of the mean has to lie above 0; more than once
            where the best of several is looked for.
    """
    if lift is None:
        return False, "Keep one model: it is both the cheapest and the best here."
    interval = lift.mean.scaled(100.0).text("pp")
    if not all(lift.counted(percent) for percent in POINTS):
        return False, (
            f"Keep the fixed mix: fewer than {MIN_MOVED} independent queries would go to another "
            "model, too few for a result."
        )
    why = ""
    if lift.mean.lo <= 0:
        why = "no measurable gain here"
    elif lift.mean.widened(widened).lo <= 0:
        why = "the gain is too small for the best of several sources"
    elif min(lift.at(percent).value for percent in POINTS) <= 0:
        why = "the gain is not there at every cost"
    elif (lift.band.hi < 0).any():
        why = "at some costs it is measurably worse"
    if why:
        return False, f"Keep the fixed mix: {why} ({interval} at the same cost)."
    return True, f"Use it: {interval} more quality than the best fixed mix at the same cost."


def ends(interval: Interval) -> list[float | None]:
    """Return the ends of an interval, None for one that is infinite."""
    return [end if np.isfinite(end) else None for end in (interval.lo, interval.hi)]


def with_ends(interval: Interval | None) -> dict[str, Any] | None:
    """Return an estimate with its ends, JSON-ready."""
    return None if interval is None else {"value": interval.value, "interval": ends(interval)}


_SHORT, _LONG = 15, 400
_LOOKED_AT: Final = 8_000
#: Weight, how many hits count in full, and what is looked for.
_SIGNS: Final = (
    (0.30, 2, r"```|\bdef \w+\(|\bclass \w+|\bimport \w+|function\s*\(|\bSELECT\b|#include|"
              r"=>|\{\s*$"),
    (0.25, 2, r"\b(step by step|reason|prove|proof|derive|analy[sz]e|explain why|think|deduce|"
              r"justify|trade-?offs?|compare)\b"),
    (0.25, 4, r"\b(algorithm|architecture|database|distributed|concurren\w+|encrypt\w*|latency|"
              r"kubernetes|api|complexity|optimi[sz]\w+|theorem|integral|matrix|protocol|"
              r"equation|probability|regression|compiler)\b"),
    (-0.05, 1, r"\b(what is|who is|when (is|was)|define|hello|hi|thanks|translate)\b"),
    (0.03, 1, r"\b(first|then|next|finally)\b.*\b(then|next|finally)\b|^\s*\d+[.)]\s"),
    (0.02, 4, r"\?"),
)  # fmt: skip
_FOUND: Final = tuple(
    (weight, full, re.compile(pattern, re.IGNORECASE | re.MULTILINE))
    for weight, full, pattern in _SIGNS
)
_LENGTH: Final = 0.10


def _complexity(text: str) -> float:
    """A score, higher for what looks harder; only the order of messages by it matters."""
    text = text[:_LOOKED_AT]
    words = len(text.split())
    score = _LENGTH * min(max((words - _SHORT) / (_LONG - _SHORT), 0.0), 1.0)
    for weight, full, pattern in _FOUND:
        hits = sum(1 for _ in zip(range(full), pattern.finditer(text), strict=False))
        score += weight * hits / full
    return score


_NAMES: Final = {Rule.SHORTFALL: "Shortfall rule", Rule.VALUE: "Value rule"}


@dataclass(frozen=True, slots=True)
class Rival:
    """One way to route, and what it gains over the hull of constants at the same cost.

    Attributes:
        learns: Whether it learned from these outcomes (on other folds than it routes).
        lift: Mean over 25, 50 and 75 % of the cost range.
    """

    name: str
    learns: bool
    lift: Interval


def rivals(
    sweeps: Sequence[Sweep],
    material: Material,
    *,
    folds: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Rival, ...]:
    """Both rules, free scores as one threshold, and every baseline of the project.

    What needs the texts is left out for a set without.

    Args:
        sweeps: The set under each rule; the same queries and models in all of them.
        material: What the outcome model was learned from; gives clusters and folds.
        folds, seed, progress: As in `learn`, so that everyone is judged on the same parts.
    """
    sweeps = [replace(one, data=with_all_outcomes(one.data, one.evalset)) for one in sweeps]
    data = sweeps[0].data
    clusters, cut = _parts(material, data.rows, folds, seed)
    hull = hull_of(*data.fixed)
    low, high = hull[0].mean_cost_usd, hull[-1].mean_cost_usd
    costs = [low + percent / 100 * (high - low) for percent in POINTS]

    def rival(name: str, choices: Sequence[IntArray], *, learns: bool = False) -> Rival:
        choice = data.served(np.stack(choices, axis=1))
        added = differences_to_hull(*data.fixed, choice, hull).mean(axis=1)
        return Rival(name, learns, mean_interval(added, clusters))

    found = [
        rival(_NAMES[one.rule], _along(one, costs), learns=one.rule is Rule.VALUE) for one in sweeps
    ]
    mean = data.requirements.mean(axis=1)
    found.append(rival("Mean requirement", _threshold(mean, hull, costs)))
    if material.evalset.texts is None:
        return tuple(found)
    texts = material.evalset.texts.iloc[data.rows].astype(str).tolist()
    scores = np.array([_complexity(text) for text in texts])
    found.append(rival("Complexity score", _threshold(scores, hull, costs)))
    names = [name for name in BASELINES if name != RANDOM_MIX]
    for run in run_baselines(data, texts, names=names, cut=cut, seed=seed, progress=progress):
        rng = np.random.default_rng(seed)
        found.append(rival(run.name, [run.at_cost(cost, rng) for cost in costs], learns=True))
    return tuple(found)


def _parts(
    material: Material, rows: IntArray, folds: int, seed: int
) -> tuple[IntArray, tuple[Fold, ...]]:
    """Clusters and folds of the material, for the rows of a replay."""
    part = grouped_parts(material.clusters, folds, np.random.default_rng(seed))
    at = np.searchsorted(material.rows, rows)
    of_row = part[at]
    cut = [Fold(np.flatnonzero(of_row != i), np.flatnonzero(of_row == i)) for i in range(folds)]
    return material.clusters[at], tuple(cut)


def _along(sweep: Sweep, costs: Sequence[float]) -> list[IntArray]:
    """The choices at the settings whose mean cost is nearest to each cost."""
    curve = sweep.curve
    nearest = [int(np.abs(curve.mean_cost_usd - cost).argmin()) for cost in costs]
    return [sweep.route(curve.point(row).knob) for row in nearest]


def _threshold(
    score: FloatArray, hull: tuple[ConstantPolicy, ...], costs: Sequence[float]
) -> list[IntArray]:
    """One threshold along the hull: what scores highest goes to the dearer of its two models."""
    order = np.argsort(-score, kind="stable")
    choices = []
    for cost in costs:
        mix = matched_cost_mix(hull, cost)
        choice = np.full(score.size, mix.cheap.index)
        choice[order[: round(mix.strong_share * score.size)]] = mix.strong.index
        choices.append(choice)
    return choices


#: Settings of the knob that are tried to meet a cost.
_SETTINGS: Final = 400


class Source(Protocol):
    """What ranks the models of queries by shortfalls that were fitted.

    `absolute` says that tau means the same in every fit.
    """

    absolute: ClassVar[bool]

    def rank(
        self, requirements: FloatArray, closed: BoolArray | None = None
    ) -> tuple[FloatArray, IntArray]:
        """(n, K) -> (n, m) shortfalls, and (n, m) models from cheapest to dearest.

        No setting reaches a model where (n, m) `closed` says that a gate keeps it out.
        """
        ...


_Source = TypeVar("_Source", bound=Source)


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
        own, positions = self.ranked.outcomes, np.asarray(GRID) / 100
        if self.predicted is not None:  # as `learn` says it, to the last digit
            return lift_of(
                own.quality, own.cost_usd, self.predicted, own.clusters, rng, own.stand_in
            )
        choice = self.at(positions)
        return lift_of_choices(
            own.quality, own.cost_usd, choice, own.clusters, rng, stand_in=own.stand_in
        )


def cost_range(outcomes: Outcomes) -> tuple[float, float]:
    """Return the mean cost of the cheapest and of the best fixed model on the hull, USD."""
    hull = hull_of(*outcomes.alone)
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
    fit: Callable[[Outcomes], _Source],
    *,
    folds: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
    rank: Callable[[_Source, IntArray], tuple[FloatArray, IntArray]] | None = None,
    known: BoolArray | None = None,
) -> CrossFitted:
    """Rank the models of every query by a source that was fitted without it and its cluster.

    Args:
        folds: Parts, at least two.
        rank: How a source ranks some rows of the outcomes; default by their requirements and gates.
        known: (n,) queries that may be fitted to, as `own_outcomes`; None for all.
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
    known = np.ones(n, dtype=bool) if known is None else known
    whole = outcomes.take(np.flatnonzero(known))
    for number in range(folds):
        # a fold's means are low where its test queries' are high: without the level of all queries
        # every lift is too low. The fixed mix that it is held against has that level, too
        train = outcomes.take(np.flatnonzero((part != number) & known)).levelled(whole)
        rows = np.flatnonzero(part == number)
        held = outcomes.take(rows)
        source = fit(train)
        absolute = source.absolute
        shortfalls[rows], order[rows] = (
            source.rank(held.requirements, held.closed) if rank is None else rank(source, rows)
        )
        if not absolute:
            training.append(Ranked(train, *source.rank(train.requirements, train.closed)))
        if progress is not None:
            progress(number + 1, folds)
    return CrossFitted(Ranked(outcomes, shortfalls, order), part, tuple(training))
