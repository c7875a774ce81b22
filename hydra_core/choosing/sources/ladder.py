"""The four sources of shortfalls side by side: what each gains, needs and couples.

Benchmarks, fitted profiles and success profiles stand in the catalog's YAML; success heads are an
outcome model beside it. Every lift is cross-fitted on the same parts, so that rungs can be compared
query by query.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Final

import numpy as np

from hydra_core.base.intervals import Interval, normal_quantile
from hydra_core.base.types import IntArray, Progress
from hydra_core.choosing.lift import CrossFitted, Lift, Ranked, cross_fit, recommendation, with_ends
from hydra_core.choosing.material import Outcomes, groups_at, outcomes_of_replay
from hydra_core.choosing.sources.grader_check import Finding, GraderCheck, findings_of, grader_check
from hydra_core.choosing.sources.profiles import (
    LEAST_QUERIES,
    Profiles,
    Start,
    benchmark_profiles,
    fit_profiles,
    fit_success_profiles,
)
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.outcome_model.heads import Predicted
from hydra_core.replay.predictions import gated
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.significance import mean_interval
from hydra_core.routing.matcher import cost_order, returns_on_upgrading

#: Four sources are looked at: each must show its gain at 95 % after Bonferroni's correction.
_FOUR_SOURCES: Final = normal_quantile(1.0 - 0.05 / 4) / normal_quantile(0.95)


class Kind(StrEnum):
    """A source of shortfalls."""

    BENCHMARKS = "benchmarks"
    PROFILES = "profiles"
    SUCCESS = "success"
    HEADS = "heads"


NAMES: Final = {
    Kind.BENCHMARKS: "Benchmark profiles",
    Kind.PROFILES: "Fitted profiles",
    Kind.SUCCESS: "Success profiles",
    Kind.HEADS: "Success heads",
}
_HOW: Final = {
    Kind.BENCHMARKS: "Algorithm 1",
    Kind.PROFILES: "Eq. 6 with a level",
    Kind.SUCCESS: "value rule",
    Kind.HEADS: "value rule",
}
TITLES: Final = {kind: f"{NAMES[kind]} ({_HOW[kind]})" for kind in Kind}
NEEDS: Final = {
    Kind.BENCHMARKS: "benchmark rates of each model",
    Kind.PROFILES: f"at least {LEAST_QUERIES} queries with outcomes of all models",
    Kind.SUCCESS: "a few hundred queries with outcomes of all models",
    Kind.HEADS: "queries with outcomes, and an outcome model beside the catalog",
}
#: What a new model takes.
COUPLING: Final = {
    **dict.fromkeys(Kind, "a new model: an edit of YAML"),
    Kind.HEADS: "a new model: learn again, or place it by its rate",
}


@dataclass(frozen=True, slots=True, eq=False)
class Rung:
    """One source, and what it is worth on a set.

    Attributes:
        n: Queries it was judged on.
        lift: Cross-fitted; None where there is no cost range to route in.
        recommend: Whether it beats the best fixed mix beyond doubt, for a reason that counts.
        reason: At most two sentences.
        profiles: Fitted on all queries; None for heads.
        cross_fitted: Routes of every query by sources that have not seen it.
        check: Where the lift comes from; None where the set has no groups.
    """

    kind: Kind
    n: int
    lift: Lift | None
    recommend: bool
    reason: str
    profiles: Profiles | None
    cross_fitted: CrossFitted
    check: GraderCheck | None = None

    @property
    def is_yaml(self) -> bool:
        """Whether it stands in the catalog alone."""
        return self.kind is not Kind.HEADS

    def numbers(self) -> dict[str, Any]:
        """Return it JSON-ready; lifts in quality from 0 to 1."""
        return {
            "kind": self.kind.value,
            "title": TITLES[self.kind],
            "lift": None if self.lift is None else self.lift.numbers(),
            "recommend": self.recommend,
            "reason": self.reason,
            "n": self.n,
            "needs": NEEDS[self.kind],
            "coupling": COUPLING[self.kind],
            "check": None if self.check is None else self.check.numbers(),
        }


def fit_of(kind: Kind, start: Start | None = None) -> Callable[[Outcomes], Profiles]:
    """Return what fits one source that stands in YAML; ValueError for heads."""
    fits: dict[Kind, Callable[[Outcomes], Profiles]] = {
        Kind.BENCHMARKS: partial(benchmark_profiles, start=start),
        Kind.PROFILES: partial(fit_profiles, start=start),
        Kind.SUCCESS: fit_success_profiles,
    }
    if kind not in fits:
        raise ValueError(f"{kind} are learned with `learn`, not fitted")
    return fits[kind]


def fit_rung(
    kind: Kind,
    outcomes: Outcomes,
    start: Start | None = None,
    *,
    groups: Sequence[str] | None = None,
    findings: Sequence[Finding] = (),
    groups_are_traffic: bool = False,
    folds: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> Rung:
    """Fit one source that stands in YAML, and say what it is worth.

    Args:
        groups: (n,) group of each query, to tell graders from difficulty.
        findings, groups_are_traffic: As in `grader_check`.
        folds, seed, progress: As in `cross_fit`.

    Raises:
        ValueError: `kind` is heads, or there are fewer clusters than folds.
    """
    fit = fit_of(kind, start)
    found = cross_fit(outcomes, fit, folds=folds, seed=seed, progress=progress)
    return judged_rung(kind, found, fit(outcomes), groups, findings, groups_are_traffic, seed)


def judged_rung(
    kind: Kind,
    found: CrossFitted,
    profiles: Profiles | None,
    groups: Sequence[str] | None,
    findings: Sequence[Finding],
    groups_are_traffic: bool,
    seed: int,
) -> Rung:
    """Judge cross-fitted routes: lift, where it comes from, and whether to use the source.

    Args:
        profiles: Fitted on all queries; None for heads.
        groups, findings, groups_are_traffic, seed: As in `fit_rung`.
    """
    lift = found.lift(np.random.default_rng([seed, 1]))
    outcomes = found.ranked.outcomes
    check = None
    if groups is not None and lift is not None:
        check = grader_check(
            groups,
            *outcomes.alone,
            lift.choice,
            outcomes.clusters,
            findings=findings,
            groups_are_traffic=groups_are_traffic,
        )
    recommend, reason = _judged(kind, lift, outcomes.n)
    if check is not None:
        recommend, reason = check.applied(recommend, reason)
    return Rung(kind, outcomes.n, lift, recommend, reason, profiles, found, check)


def _judged(kind: Kind, lift: Lift | None, n: int) -> tuple[bool, str]:
    """Whether a lift is worth using, and one sentence why.

    Heads are judged as `learn` judges them: one set, one answer. Of the sources in the catalog the
    best is looked for, so each has to gain more.
    """
    if kind is Kind.HEADS:
        return recommendation(lift)
    if kind is Kind.PROFILES and lift is not None and n < LEAST_QUERIES:
        return False, (
            f"Do not fit profiles to {n} queries: below {LEAST_QUERIES} they follow chance."
        )
    return recommendation(lift, widened=_FOUR_SOURCES)


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """The sources side by side.

    Attributes:
        rungs: From the one that needs least.
        best_yaml: The best recommended source that stands in the catalog alone; None if none.
        recommended: The source to use; None where a fixed mix does better.
        reason: At most two sentences.
        heads_add: What heads gain over `best_yaml` (over the fixed mix where it is None), paired by
            query; None where either has no lift.
        findings: Outcomes of the set that look wrong.
    """

    rungs: tuple[Rung, ...]
    best_yaml: Kind | None
    recommended: Kind | None
    reason: str
    heads_add: Interval | None
    findings: tuple[Finding, ...]

    def rung(self, kind: Kind) -> Rung | None:
        """Return one rung, None where it was not asked for."""
        return next((one for one in self.rungs if one.kind is kind), None)

    def numbers(self) -> dict[str, Any]:
        return {
            "sources": [one.numbers() for one in self.rungs],
            "best_yaml": None if self.best_yaml is None else self.best_yaml.value,
            "recommended": None if self.recommended is None else self.recommended.value,
            "reason": self.reason,
            "heads_add": with_ends(self.heads_add),
            "findings": [one.numbers() for one in self.findings],
        }


def rank_outcomes(
    outcomes: Outcomes, predicted: Predicted, part: IntArray | None = None
) -> CrossFitted:
    """Rank queries by cross-fitted predictions, (n, m) in the order of the outcomes' models."""
    predicted = gated(predicted, outcomes.closed)
    returns = returns_on_upgrading(predicted.success, predicted.cost_usd)
    ranked = Ranked(outcomes, returns, cost_order(returns, predicted.cost_usd))
    own = np.zeros(outcomes.n, np.intp) if part is None else part
    return CrossFitted(ranked, own, predicted=predicted)


def ladder_of_replay(
    data: ReplayData,
    evalset: EvalSet,
    start: Start | None = None,
    *,
    predicted: Predicted | None = None,
    groups_are_traffic: bool = False,
    folds: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> Ladder:
    """Judge the sources on a replayed set, at the costs it was replayed with.

    Args:
        data: The set under the catalog, all models measured.
        predicted: (n, m) cross-fitted predictions of success heads; None leaves heads out.
        start, groups_are_traffic, folds, seed, progress: As in `ladder_of`.

    Raises:
        ValueError: Fewer clusters than folds.
    """
    outcomes = outcomes_of_replay(data, evalset)
    return ladder_of(
        outcomes,
        start,
        groups_at(evalset, data.rows),
        findings_of(evalset, outcomes.models),
        None if predicted is None else partial(rank_outcomes, outcomes, predicted),
        groups_are_traffic=groups_are_traffic,
        folds=folds,
        seed=seed,
        progress=progress,
    )


def ladder_of(
    outcomes: Outcomes,
    start: Start | None,
    groups: Sequence[str] | None,
    findings: tuple[Finding, ...],
    heads: Callable[[], CrossFitted] | None,
    *,
    groups_are_traffic: bool,
    folds: int,
    seed: int,
    progress: Progress | None,
) -> Ladder:
    """Judge the sources by the same outcomes.

    Args:
        start: The catalog's side of it.
        heads: Ranks the same queries by success heads; None leaves heads out.
        groups, findings, groups_are_traffic, folds, seed: As in `fit_rung`.
        progress: Called with (done, total) sources.

    Raises:
        ValueError: Fewer clusters than folds.
    """
    kinds = [kind for kind in Kind if heads is not None or kind is not Kind.HEADS]
    rungs = []
    for number, kind in enumerate(kinds):
        if kind is Kind.HEADS and heads is not None:
            found, profiles = heads(), None
        else:
            fit = fit_of(kind, start)
            found, profiles = cross_fit(outcomes, fit, folds=folds, seed=seed), fit(outcomes)
        rungs.append(judged_rung(kind, found, profiles, groups, findings, groups_are_traffic, seed))
        if progress is not None:
            progress(number + 1, len(kinds))
    return _ladder(tuple(rungs), findings)


def _ladder(rungs: tuple[Rung, ...], findings: tuple[Finding, ...]) -> Ladder:
    worth = [one for one in rungs if one.recommend and one.is_yaml]
    yaml = max(worth, key=lambda one: one.lift.mean.value if one.lift else -np.inf, default=None)
    heads = next((one for one in rungs if one.kind is Kind.HEADS), None)
    add = None
    if heads is not None and heads.lift is not None:
        under = 0.0 if yaml is None or yaml.lift is None else yaml.lift.contributions
        clusters = heads.cross_fitted.ranked.outcomes.clusters
        add = mean_interval(heads.lift.contributions - under, clusters)
    recommended, reason = _recommended(rungs, yaml, heads, add)
    best = None if yaml is None else yaml.kind
    return Ladder(rungs, best, recommended, reason, add, findings)


def _inside(title: str) -> str:
    return title[0].lower() + title[1:]


def _recommended(
    rungs: tuple[Rung, ...], yaml: Rung | None, heads: Rung | None, add: Interval | None
) -> tuple[Kind | None, str]:
    more = _points(add)
    if heads is not None and heads.recommend and add is not None and add.lo > 0:
        over = "the fixed mix" if yaml is None else _inside(TITLES[yaml.kind])
        return Kind.HEADS, (
            f"Use success heads: {more} over {over}. A new model then needs outcomes or a rate."
        )
    if yaml is not None:
        gain = _points(yaml.lift.mean if yaml.lift else None)
        said = f"Use {_inside(TITLES[yaml.kind])}: {gain} over the best fixed mix."
        if heads is None:
            return yaml.kind, f"{said} Success heads are not learned yet."
        return yaml.kind, f"{said} Success heads change that by {more}." if more else said
    blocked = [one for one in rungs if one.check is not None and not one.check.may_recommend]
    if blocked:
        return None, blocked[-1].reason
    if all(one.lift is None for one in rungs):
        return None, rungs[0].reason
    keep, none = "Keep the fixed mix: ", "shows a gain beyond chance on these queries."
    above = next((one for one in rungs if one.lift is not None and one.lift.mean.lo > 0), None)
    if above is not None:
        why = _inside(above.reason.removeprefix(keep))
        none = f"shows a gain that counts. {NAMES[above.kind]}: {why}"
    if heads is None:
        more = "" if above is not None else " Heads read more of a message."
        return None, f"Learn success heads: no source in the catalog {none}{more}"
    return None, f"{keep}no source {none}"


def _points(gain: Interval | None) -> str:
    return "" if gain is None else gain.scaled(100.0).text("points")
