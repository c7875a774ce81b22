"""What another policy would have been worth on logged traffic: IPS, SNIPS and doubly robust.

Only decisions whose probability was drawn and logged say anything about models that were not
chosen. Where the target policy would serve a model that the log could not have served, or where a
handful of decisions carries all the weight, no value is printed: the estimate would be a guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hydra_core.base.errors import HydraError
from hydra_core.base.intervals import SHARE, Interval
from hydra_core.base.types import FloatArray, IntArray
from hydra_core.replay.significance import mean_interval, ratio_interval

#: Below this effective sample size no value is given.
LEAST_EFFECTIVE = 100.0
#: Below this many decisions that carry its variance, IPS has no interval.
_LEAST_CARRYING = 50.0
_FOLDS = 5
_PENALTY = 1.0


class NoOverlapError(HydraError):
    """The log cannot say what this policy is worth; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class LoggedOutcomes:
    """Decisions with their true propensities and outcomes.

    Attributes:
        served: (n,) index of the served model.
        propensities: (n, m) probability of each model under the logging policy, rows sum to 1.
        quality: (n,) outcome of the served model in [0, 1].
        clusters: (n,) numbers of dependent groups (conversations), None: independent.
    """

    served: IntArray
    propensities: FloatArray
    quality: FloatArray
    clusters: IntArray | None = None

    def __post_init__(self) -> None:
        n = len(self.served)
        if self.propensities.shape[:1] != (n,) or self.quality.shape != (n,):
            raise ValueError(
                f"served {self.served.shape}, propensities {self.propensities.shape} and quality "
                f"{self.quality.shape} must have the same number of rows"
            )
        if not np.allclose(self.propensities.sum(axis=1), 1.0, atol=1e-6):
            raise ValueError("propensities must sum to 1 in every row")
        if not (self._of_served() > 0).all():
            raise ValueError("a served model has propensity 0: the log contradicts itself")

    def _of_served(self) -> FloatArray:
        picked: FloatArray = self.propensities[np.arange(len(self.served)), self.served]
        return picked

    def weights(self, target: FloatArray) -> FloatArray:
        """(n,) importance weights of a target policy (n, m)."""
        mine: FloatArray = target[np.arange(len(self.served)), self.served]
        return mine / self._of_served()


@dataclass(frozen=True, slots=True)
class PolicyValue:
    """Mean quality of a policy, estimated three ways, with 95 % intervals.

    Attributes:
        ips: Without an interval where a few decisions carry it.
        dr: Doubly robust, None where no predictions were given.
        effective: How many decisions of the target policy the log is worth (`effective_size`).
        n: Logged decisions.
    """

    ips: Interval
    snips: Interval
    dr: Interval | None
    effective: float
    n: int


def effective_size(target: FloatArray, propensities: FloatArray) -> float:
    """How many decisions of the target policy the log is expected to be worth.

    n over the mean squared weight that the propensities promise, (n, m) each. Kish's size of the
    weights that were drawn looks largest where the rare, heavy ones happened not to be drawn; a
    value given only then misses its interval (IPS covered 0 to 85 % at n = 600).
    """
    possible = np.where(propensities > 0, propensities, 1.0)
    return len(target) / float((target**2 / possible).sum(axis=1).mean())


def _ips(logged: LoggedOutcomes, target: FloatArray, earned: FloatArray) -> Interval:
    """IPS, without an interval where too few decisions are expected to carry its variance.

    Its interval covered 83 to 92 % in such logs; those of SNIPS and doubly robust hold there.
    """
    possible = np.where(logged.propensities > 0, logged.propensities, 1.0)
    second = float((target**2 / possible).sum(axis=1).mean())
    fourth = float((target**4 / possible**3).sum(axis=1).mean())
    value = mean_interval(earned, logged.clusters).clipped(*SHARE)
    if len(target) * second**2 / fourth < _LEAST_CARRYING:
        return Interval.none(value.value, "too few decisions carry IPS; see SNIPS")
    return value


def policy_value(
    logged: LoggedOutcomes, target: FloatArray, predicted: FloatArray | None = None
) -> PolicyValue:
    """What the target policy would have achieved on the logged decisions.

    Args:
        logged: Decisions with propensities and outcomes.
        target: (n, m) probability of each model under the target policy, rows sum to 1.
        predicted: (n, m) predicted quality of every model, not fitted on the same row
            (`cross_fitted_quality`); for the doubly robust estimate.

    Raises:
        NoOverlapError: The target would serve a model that could not have been served, or the
            effective sample size is below LEAST_EFFECTIVE.
    """
    beyond = float((target * (logged.propensities <= 0)).sum(axis=1).mean())
    if beyond > 1e-9:
        raise NoOverlapError(
            f"in {100 * beyond:.1f} % of the decisions this policy would serve a model that the "
            "log could not have served: no evidence of its quality there. Explore (serve "
            "--explore), or compare policies that differ less"
        )
    weights = logged.weights(target)
    effective = effective_size(target, logged.propensities)
    if effective < LEAST_EFFECTIVE:
        raise NoOverlapError(
            f"{len(weights):,} logged decisions are worth {effective:.0f} for this policy; a value "
            f"needs at least {LEAST_EFFECTIVE:.0f}. Log longer, or explore a larger share"
        )
    earned = weights * logged.quality
    doubly = None
    if predicted is not None:
        mine = predicted[np.arange(len(weights)), logged.served]
        base = (target * predicted).sum(axis=1)
        doubly = mean_interval(base + weights * (logged.quality - mine), logged.clusters)
        doubly = doubly.clipped(*SHARE)
    return PolicyValue(
        ips=_ips(logged, target, earned),
        snips=ratio_interval(earned, weights, logged.clusters).clipped(*SHARE),
        dr=doubly,
        effective=effective,
        n=len(weights),
    )


def cross_fitted_quality(
    features: FloatArray, logged: LoggedOutcomes, *, folds: int = _FOLDS
) -> FloatArray:
    """(n, m) predicted quality of every model for every decision, never fitted on its own fold.

    One ridge a model on standardised features, weighted by 1 / propensity; a model without rows in
    the other folds is predicted by their mean. Dependent decisions stay in one fold.

    Args:
        features: (n, d) such as the requirements.
    """
    n, m = logged.propensities.shape
    centred = features - features.mean(axis=0)
    scale = np.where(centred.std(axis=0) > 0, centred.std(axis=0), 1.0)
    design = np.column_stack([np.ones(n), centred / scale])
    predicted = np.empty((n, m))
    for inside, outside in _split(logged, folds):
        mean = float(logged.quality[inside].mean()) if inside.size else 0.0
        for model in range(m):
            rows = inside[logged.served[inside] == model]
            predicted[outside, model] = (
                np.clip(design[outside] @ _ridge(design[rows], rows, logged), 0.0, 1.0)
                if rows.size > design.shape[1]
                else mean
            )
    return predicted


def _split(logged: LoggedOutcomes, folds: int) -> Iterator[tuple[IntArray, IntArray]]:
    groups = np.arange(len(logged.served)) if logged.clusters is None else logged.clusters
    fold = groups % folds
    for number in range(folds):
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


def _ridge(design: FloatArray, rows: IntArray, logged: LoggedOutcomes) -> FloatArray:
    """(d + 1,) coefficients, rows weighted by 1 / propensity; the intercept is not penalised."""
    chances = logged.propensities[rows, logged.served[rows]]
    weight: FloatArray = np.asarray(chances.mean() / chances)
    penalty = _PENALTY * np.eye(design.shape[1])
    penalty[0, 0] = 0.0
    gram = design.T @ (design * weight[:, None]) + penalty
    right = design.T @ (weight * logged.quality[rows])
    return np.asarray(np.linalg.solve(gram, right), dtype=np.float64)
