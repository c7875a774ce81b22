"""One source of shortfalls fitted to a set, and what it is worth there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Final

import numpy as np

from hydra_core.base.intervals import normal_quantile
from hydra_core.base.types import Band, FloatArray, Progress
from hydra_core.choosing.lift import Lift, recommendation
from hydra_core.choosing.sources.cell_findings import Finding
from hydra_core.choosing.sources.fitted_profiles import (
    LEAST_QUERIES,
    benchmark_profiles,
    fit_profiles,
)
from hydra_core.choosing.sources.grader_check import GraderCheck, grader_check
from hydra_core.choosing.sources.lift import CrossFitted, Profiles, cross_fit
from hydra_core.choosing.sources.outcomes import Outcomes
from hydra_core.choosing.sources.success_profiles import fit_success_profiles

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


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """What a catalog says already: where fitting starts, and how models are ordered.

    Attributes:
        bands: (K,) score bands; None takes the 5th to 95th percentile of the requirements.
        capabilities: (m, K) in the order of the outcomes' models; None derives them from outcomes.
        stored_weights: (K,) the operator's weights w; None for 1.
        cost: (m,) what orders the models; None for their mean realised cost.
    """

    bands: Sequence[Band] | None = None
    capabilities: FloatArray | None = None
    stored_weights: FloatArray | None = None
    cost: FloatArray | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of `fit_profiles` and `benchmark_profiles`."""
        return {name: getattr(self, name) for name in Start.__slots__}


def fit_of(kind: Kind, start: Start | None = None) -> Callable[[Outcomes], Profiles]:
    """Return what fits one source that stands in YAML.

    Raises:
        ValueError: `kind` is heads.
    """
    options = (Start() if start is None else start).options
    fits: dict[Kind, Callable[[Outcomes], Profiles]] = {
        Kind.BENCHMARKS: partial(benchmark_profiles, **options),
        Kind.PROFILES: partial(fit_profiles, **options),
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
            outcomes.quality,
            outcomes.cost_usd,
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
