"""Learn an outcome model from an eval set, with everything said of it on queries it had not seen.

Every figure is cross-fitted: each query is predicted by heads (features, learner and penalties
included) that were chosen and fitted without it and its cluster.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from hydra_core.base.errors import OutcomeModelError, Problem
from hydra_core.base.intervals import Interval
from hydra_core.base.list_price import ListPrice
from hydra_core.base.types import FloatArray, IntArray, Progress
from hydra_core.choosing.heads import TREES, Choice, choose, fit, grouped_parts
from hydra_core.choosing.lift import Lift, lift_of, recommendation
from hydra_core.choosing.material import Material, groups_at, known_means
from hydra_core.choosing.sources.few_outcomes import (
    FEW,
    LOG_RECIPE,
    RECIPE,
    fit_few,
    fit_logged,
    join_logged,
)
from hydra_core.choosing.sources.grader_check import GraderCheck, findings_of, grader_check
from hydra_core.choosing.sources.newcomers import Newcomer
from hydra_core.outcome_model.heads import Predicted, Raw
from hydra_core.outcome_model.model import OutcomeHeads
from hydra_core.replay.gated import used_alone
from hydra_core.replay.predictions import input_sizes
from hydra_core.replay.significance import mean_interval, standard_error

#: What heads of the material predict at its prices, from what they said.
_Combined: TypeAlias = Callable[[OutcomeHeads, Raw], Predicted]
#: Shares of the training queries that the learning curve is drawn at.
_SHARES: Final = (0.125, 0.25, 0.5)
_CURVE_TREES: Final = 60
_BINS: Final = 10
_LEAST_SLICE: Final = 50
_LOG_ALONE: Final = (
    "Keep the fixed mix: too few queries have outcomes of all models, so no gain can be measured. "
    "Have every model answer about 250 of these messages (hydra-router collect), and learn again."
)


@dataclass(frozen=True, slots=True)
class CurveStep:
    """One step of the learning curve: lift when this many queries were learned on."""

    queries: int
    lift: Interval


@dataclass(frozen=True, slots=True)
class Slice:
    """Lift within one group or language."""

    name: str
    queries: int
    lift: Interval


@dataclass(frozen=True, slots=True, eq=False)
class LoggedPart:
    """What queries with outcomes of some models only added.

    Attributes:
        raw: What heads said of each of these queries that had not seen it.
        used: Whether the heads were joined with them: they are unless that makes the cross-fitted
            error larger by more than one standard error.
        without: Lift of the complete rows alone.
        added: Lift with them minus lift without, on the complete rows; None without a lift.
    """

    raw: Raw
    used: bool
    without: Lift | None
    added: Interval | None


@dataclass(frozen=True, slots=True, eq=False)
class Learning:
    """An outcome model that was learned, and what it is worth.

    Attributes:
        heads: Fitted on all queries.
        choice: What the inner folds of all queries chose; None below `FEW` queries, where the fixed
            recipe is used.
        raw: What heads said of every row that had not seen it.
        predicted: (n, m) the same as success and cost.
        lift: Cross-fitted; None where no cost range is left to route in.
        recommend, reason: Whether to use it, and why in one sentence.
        reliability: (m, bins, 3) number, mean predicted, mean achieved success.
        curve: From few queries to as many as the folds have.
        slices: By group and by language.
        logged: What further queries added; None where there are none.
        newcomers: Models that joined by their rates.
        check: Whether the lift is about graders or difficulty; None where the set has no groups.
    """

    material: Material
    heads: OutcomeHeads
    choice: Choice | None
    raw: Raw
    predicted: Predicted
    lift: Lift | None
    recommend: bool
    reason: str
    reliability: FloatArray
    curve: tuple[CurveStep, ...]
    slices: dict[str, tuple[Slice, ...]]
    folds: int
    seed: int
    logged: LoggedPart | None = None
    check: GraderCheck | None = None
    newcomers: tuple[Newcomer, ...] = ()

    @property
    def learner(self) -> str:
        """What was fitted, in words."""
        if not self.material.compared:
            return LOG_RECIPE
        return RECIPE if self.choice is None else self.choice.candidate.name

    def expected_gain(self, more: int) -> float | None:
        """What so many more queries would be expected to add to the mean lift.

        The curve is extended along 1 / sqrt(queries); None where it has too few steps.
        """
        if len(self.curve) < 3:
            return None
        size = np.array([step.queries for step in self.curve], dtype=np.float64)
        lifts = np.array([step.lift.value for step in self.curve])
        slope = np.polyfit(size**-0.5, lifts, 1, w=np.sqrt(size))[0]
        now = float(size[-1])
        return max(float(slope * ((now + more) ** -0.5 - now**-0.5)), 0.0)


def learn(
    material: Material,
    prices: FloatArray | None,
    *,
    long: Mapping[int, ListPrice] | None = None,
    folds: int = 5,
    seed: int = 0,
    curve: bool = True,
    groups_are_traffic: bool = False,
    progress: Progress | None = None,
) -> Learning:
    """Choose, fit and cross-fit.

    Args:
        material: What to learn from.
        prices: (m, 2) USD per million tokens read and written, in the order of the material's
            models; None predicts cost as the set has it.
        long: Place among the models -> price of those that charge long requests more.
        folds: Parts of the outer cross-fit.
        seed: Draws folds and trees.
        curve: Whether to draw the learning curve (about a third of the time).
        groups_are_traffic: The operator says that the set's groups are real kinds of traffic, so
            that telling them apart counts.
        progress: Called with (done, total) steps; what it raises stops the work.

    Raises:
        OutcomeModelError: Nearly all queries are the same or depend on one another.
    """
    kinds = np.unique(material.clusters).size
    if kinds < 2 * folds:  # a fold would hold nothing that the others have not
        message = (
            f"its {material.n:,} queries count as {kinds}: texts are identical or declared "
            f"dependent, and {folds} folds need {2 * folds} that are not"
        )
        remedy = "add queries with other texts"
        raise OutcomeModelError(material.evalset.name, [Problem("", message, remedy)])
    sizes = input_sizes(material.evalset) if long else None
    if sizes is not None:
        sizes = sizes[material.rows]

    def combined(heads: OutcomeHeads, raw: Raw) -> Predicted:
        pool = heads.for_pool(material.models, np.zeros(len(material.models)), prices, long)
        return pool.combine(raw, sizes)

    with threadpool_limits(1):  # the trees use every core; small matrices gain nothing by two
        return _learn(
            material, combined, folds, seed, curve=curve, real=groups_are_traffic, progress=progress
        )


def _learn(
    material: Material,
    combined: _Combined,
    folds: int,
    seed: int,
    *,
    curve: bool,
    real: bool,
    progress: Progress | None,
) -> Learning:
    total = folds + 1 + (len(_SHARES) if curve else 0)
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    part = grouped_parts(material.clusters, folds, np.random.default_rng(seed))
    beside = _parts_of_logged(material, part, folds, seed)
    few = material.n < FEW  # once for all folds: what is judged is what is used
    levels = _levels(material, part)
    alone: Raw | None = None
    raw: Raw | None = None
    logged: Raw | None = None
    for number in range(folds):
        train = _without(material, part, beside, number)
        choice = _choice(train, few, np.random.default_rng([seed, number]))
        heads = _fit(train, choice, seed + number)
        rows = np.flatnonzero(part == number)
        alone = _said(material, rows, heads, alone, levels[number])
        if material.logged is not None:
            heads = join_logged(heads, train)
            raw = _said(material, rows, heads, raw, levels[number])
            logged = _said(material.logged, np.flatnonzero(beside == number), heads, logged)
        step()
    assert alone is not None
    chosen = _choice(material, few, np.random.default_rng([seed, folds]))
    heads = _fit(material, chosen, seed)
    step()
    predicted = combined(heads, alone)
    before = lift = _lift(material, predicted, seed)
    if raw is not None and logged is not None:
        joined = not _is_worse(raw, alone, material)
        heads, alone = (join_logged(heads, material), raw) if joined else (heads, alone)
        predicted = combined(heads, alone)
        lift = _lift(material, predicted, seed)
    steps: tuple[CurveStep, ...] = ()
    if curve and material.compared:
        steps = _curve(replace(material, logged=None), chosen, part, combined, before, seed, step)
    recommend, reason = recommendation(lift)
    check = _checked(material, lift, real=real)
    if check is not None:
        recommend, reason = check.applied(recommend, reason)
    if not material.compared:
        recommend, reason = False, _LOG_ALONE
    return Learning(
        material=material,
        heads=heads,
        choice=chosen,
        raw=alone,
        predicted=predicted,
        lift=lift,
        recommend=recommend,
        reason=reason,
        reliability=reliability(predicted.success, material.quality),
        curve=steps,
        slices=_slices(material, lift),
        folds=folds,
        seed=seed,
        logged=None if logged is None else _added(material, logged, before, lift, alone is raw),
        check=check,
    )


def _checked(material: Material, lift: Lift | None, *, real: bool) -> GraderCheck | None:
    rows = material.complete
    groups = groups_at(material.evalset, material.rows[rows])
    if groups is None or lift is None:
        return None
    return grader_check(
        groups,
        *used_alone(material.quality[rows], material.cost_usd[rows], material.gates),
        lift.choice,
        material.clusters[rows],
        findings=findings_of(material.evalset, material.models),
        groups_are_traffic=real,
    )


def _parts_of_logged(material: Material, part: IntArray, folds: int, seed: int) -> IntArray:
    """(p,) the part of each logged query: that of its cluster where complete rows are in it."""
    if material.logged is None:
        return np.empty(0, dtype=np.intp)
    clusters = material.logged.clusters
    found = grouped_parts(clusters, folds, np.random.default_rng([seed, folds, 1]))
    order = np.argsort(material.clusters, kind="stable")
    ranked = material.clusters[order]
    at = np.minimum(np.searchsorted(ranked, clusters), ranked.size - 1)
    return np.where(ranked[at] == clusters, part[order[at]], found)


def _without(material: Material, part: IntArray, beside: IntArray, number: int) -> Material:
    logged = material.logged and material.logged.take(np.flatnonzero(beside != number))
    return replace(material, logged=logged).take(np.flatnonzero(part != number))


def _choice(material: Material, few: bool, rng: np.random.Generator) -> Choice | None:
    """What inner folds choose; None where rows are too few to choose by."""
    return None if few or not material.compared else choose(material, rng)


def _fit(material: Material, choice: Choice | None, seed: int, trees: int = TREES) -> OutcomeHeads:
    if not material.compared:
        return fit_logged(material)
    if choice is None:
        return fit_few(material, seed=seed)
    return fit(material, choice, seed=seed, trees=trees)


def _is_worse(raw: Raw, other: Raw, material: Material) -> bool:
    """Whether predictions are worse than others by more than one standard error.

    What counts is the squared error of the models' differences from their mean, on which a route
    depends.
    """
    wanted, mine, theirs = (
        values - values.mean(axis=1, keepdims=True)
        for values in (
            one[:, : material.together].astype(np.float64)
            for one in (material.quality, raw.difference, other.difference)
        )
    )
    more = ((mine - wanted) ** 2 - (theirs - wanted) ** 2).mean(axis=1)
    error, _ = standard_error(more - more.mean(), material.clusters)
    return bool(more.mean() > error)


def _added(
    material: Material, raw: Raw, before: Lift | None, lift: Lift | None, used: bool
) -> LoggedPart:
    added = None
    if before is not None and lift is not None:
        clusters = material.clusters[material.complete]
        added = mean_interval(lift.contributions - before.contributions, clusters)
    return LoggedPart(raw, used, before, added)


def _levels(material: Material, part: IntArray) -> FloatArray:
    """(folds, m) what the mean outcome of all queries is above that of each fold's training ones.

    A fold's training means are low where its test queries' are high: without the level of all
    queries every lift is too low (`lift.cross_fit` has it, too).
    """
    quality = material.quality
    folds = range(int(part.max()) + 1)
    if not material.compared:
        return np.zeros((len(folds), quality.shape[1]))
    found = [known_means(quality) - known_means(quality[part != number]) for number in folds]
    return np.nan_to_num(np.stack(found))


def _said(
    material: Material,
    rows: IntArray,
    heads: OutcomeHeads,
    into: Raw | None,
    level: FloatArray | float = 0.0,
) -> Raw:
    """What heads say of some rows, put into the whole; the other rows are NaN until filled.

    Args:
        level: (m,) added to the models' differences.
    """
    found = heads.read(material.messages.take(rows))
    parts = {name: getattr(found, name) for name in Raw.__slots__}
    parts["difference"] = parts["difference"] + level
    if into is None:
        shapes = {name: (material.n, values.shape[1]) for name, values in parts.items()}
        into = Raw(**{name: np.full(of, np.nan, np.float32) for name, of in shapes.items()})
    for name, values in parts.items():
        getattr(into, name)[rows] = values
    return into


def _lift(material: Material, predicted: Predicted, seed: int) -> Lift | None:
    rows = material.complete
    if rows.size < 2 * len(material.models) or not material.compared:
        return None
    return lift_of(
        material.quality[rows],
        material.cost_usd[rows],
        predicted.take(rows),
        material.clusters[rows],
        np.random.default_rng([seed, 1]),
        material.gates,
    )


def _curve(
    material: Material,
    chosen: Choice | None,
    part: IntArray,
    combined: _Combined,
    full: Lift | None,
    seed: int,
    step: Callable[[], None],
) -> tuple[CurveStep, ...]:
    """Lift when only a share of each fold's training queries is learned on."""
    folds, levels = int(part.max()) + 1, _levels(material, part)
    steps = []
    for share in _SHARES:
        rng = np.random.default_rng([seed, int(1000 * share)])
        raw: Raw | None = None
        size = 0
        for number in range(folds):
            train = np.flatnonzero(part != number)
            kept = np.sort(rng.choice(train, max(int(share * train.size), 1), replace=False))
            known = None if chosen is None else replace(chosen, held_out=chosen.held_out[kept])
            heads = _fit(material.take(kept), known, seed + number, _CURVE_TREES)
            rows = np.flatnonzero(part == number)
            raw = _said(material, rows, heads, raw, levels[number])
            size += kept.size
        assert raw is not None
        found = _lift(material, combined(heads, raw), seed)
        if found is not None:
            steps.append(CurveStep(size // folds, found.mean))
        step()
    if full is not None:
        steps.append(CurveStep(int((part != 0).sum()), full.mean))
    return tuple(steps)


def reliability(success: FloatArray, quality: FloatArray) -> FloatArray:
    """(m, bins, 3) equally full bins of predicted success: number, said, achieved."""
    m = success.shape[1]
    result = np.zeros((m, _BINS, 3))
    for j in range(m):
        rows = np.flatnonzero(np.isfinite(quality[:, j]) & np.isfinite(success[:, j]))
        order = rows[np.argsort(success[rows, j], kind="stable")]
        for number, group in enumerate(np.array_split(order, _BINS)):
            if group.size:
                said, achieved = success[group, j].mean(), quality[group, j].mean()
                result[j, number] = group.size, said, achieved
    return result


def _slices(material: Material, lift: Lift | None) -> dict[str, tuple[Slice, ...]]:
    """Lift by group and by language, largest first; those with few queries are left out."""
    if lift is None:
        return {}
    rows = material.complete
    queries, clusters = material.evalset.queries.iloc[material.rows[rows]], material.clusters[rows]
    found: dict[str, tuple[Slice, ...]] = {}
    for column in ("group", "language"):
        if column not in queries.columns:
            continue
        names = queries[column].fillna("").astype(str).to_numpy()
        slices = []
        for name in np.unique(names):
            of = np.flatnonzero(names == name)
            if of.size >= _LEAST_SLICE and name:
                own = np.unique(clusters[of], return_inverse=True)[1]
                slices.append(Slice(str(name), of.size, mean_interval(lift.contributions[of], own)))
        found[column] = tuple(sorted(slices, key=lambda s: -s.queries))
    return found
