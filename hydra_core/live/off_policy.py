"""What another policy would have been worth on logged traffic: doubly robust, SNIPS and IPS.

Only decisions whose probability was drawn and logged say anything about other models. Traffic to
models that the log could not have served is worth 0 to 1: bounds are given instead of a value.
Where a handful of decisions carries all the weight, nothing is given. Of an eval set in which each
query has the outcome of one model, such as a log's, it is known what was served and billed, and
what the policy would send where; its quality is estimated in the same way, from the propensities
that the import kept.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import compress
from typing import Final

import numpy as np

from hydra_core.base.errors import HydraError, MismatchError
from hydra_core.base.intervals import SHARE, Interval
from hydra_core.base.types import Catalog, FloatArray, IntArray
from hydra_core.catalog.profiles import pool
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.evalsets.rules import PROPENSITY
from hydra_core.live.shadow import predicted, replayable, routes
from hydra_core.live.traffic import Traffic, tokens_usd
from hydra_core.replay.significance import mean_interval, rate_interval, ratio_interval

#: Below this effective sample size no value is given.
LEAST_EFFECTIVE = 100.0
#: Below this many decisions that carry its variance, IPS has no interval.
_LEAST_CARRYING = 50.0
_FOLDS = 5
_PENALTY = 1.0
_TINY = 1e-9
#: Of each end of bounds: they are to hold, not to be narrow.
_BOUNDS_LEVEL = 0.999


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
        return self.propensities[np.arange(len(self.served)), self.served]

    def weights(self, target: FloatArray) -> FloatArray:
        """(n,) importance weights of a target policy (n, m)."""
        mine: FloatArray = target[np.arange(len(self.served)), self.served]
        return mine / self._of_served()


@dataclass(frozen=True, slots=True)
class PolicyValue:
    """Mean quality of a policy with 95 % intervals, doubly robust first.

    Attributes:
        dr: Doubly robust; None where no predictions were given, or part has no support.
        snips: None where part has no support.
        ips: Only where its interval holds: not where a few decisions carry it, nor without support.
        bounds: What quality lies between where part has no support: that part is worth 0 to 1. Its
            ends hold with 99.9 %.
        unsupported: Share of the traffic that it would send to models that could not be served.
        effective: How many decisions of the target policy the log is worth (`effective_size`).
        n: Logged decisions.
    """

    dr: Interval | None
    snips: Interval | None
    ips: Interval | None
    bounds: Interval | None
    unsupported: float
    effective: float
    n: int

    @property
    def estimates(self) -> dict[str, Interval]:
        """By name, the one to trust first."""
        found = {
            "doubly robust": self.dr,
            "SNIPS": self.snips,
            "IPS": self.ips,
            "at least and at most": self.bounds,
        }
        return {name: one for name, one in found.items() if one is not None}


def effective_size(target: FloatArray, propensities: FloatArray) -> float:
    """How many decisions of the target policy the log is expected to be worth.

    n over the mean squared weight that the propensities promise, (n, m) each, of the traffic that
    the log supports. Kish's size of the weights that were drawn looks largest where the rare, heavy
    ones happened not to be drawn; a value given only then misses its interval (IPS covered 0 to
    85 % at n = 600).
    """
    possible = np.where(propensities > 0, propensities, np.inf)
    squares = float((target**2 / possible).sum())
    supported = float((target * (propensities > 0)).sum())
    return supported**2 / squares if squares else 0.0


def _ips(logged: LoggedOutcomes, target: FloatArray, earned: FloatArray) -> Interval | None:
    """IPS; None where too few decisions are expected to carry its variance.

    Its interval covered 83 to 92 % in such logs; those of SNIPS and doubly robust hold there.
    """
    second = float((target**2 / logged.propensities.clip(min=_TINY)).sum(axis=1).mean())
    fourth = float((target**4 / logged.propensities.clip(min=_TINY) ** 3).sum(axis=1).mean())
    if len(target) * second**2 / fourth < _LEAST_CARRYING:
        return None
    return mean_interval(earned, logged.clusters).clipped(*SHARE)


def policy_value(
    logged: LoggedOutcomes, target: FloatArray, predicted: FloatArray | None = None
) -> PolicyValue:
    """What the target policy would have achieved on the logged decisions.

    Args:
        target: (n, m) probability of each model under the target policy, rows sum to 1.
        predicted: (n, m) predicted quality of every model, not fitted on the same row
            (`cross_fitted_quality`); for the doubly robust estimate.

    Raises:
        NoOverlapError: The log supports nothing of the target, or the effective sample size is
            below LEAST_EFFECTIVE.
    """
    possible = logged.propensities > 0
    outside = (target * ~possible).sum(axis=1)
    beyond = float(outside.mean())
    kept = target * possible
    effective = effective_size(kept, logged.propensities)
    if effective < LEAST_EFFECTIVE:
        raise NoOverlapError(_too_few(len(target), effective, beyond))
    weights = logged.weights(kept)
    earned = weights * logged.quality
    scores = earned
    if predicted is not None:
        mine = predicted[np.arange(len(weights)), logged.served]
        scores = (kept * predicted).sum(axis=1) + weights * (logged.quality - mine)
    if beyond > _TINY:
        least, most = (
            mean_interval(scores + more, logged.clusters, _BOUNDS_LEVEL).clipped(*SHARE)
            for more in (0.0, outside)
        )
        bounds = Interval((least.value + most.value) / 2, least.lo, most.hi)
        return PolicyValue(None, None, None, bounds, beyond, effective, len(weights))
    doubly = None if predicted is None else mean_interval(scores, logged.clusters).clipped(*SHARE)
    return PolicyValue(
        dr=doubly,
        snips=ratio_interval(earned, weights, logged.clusters).clipped(*SHARE),
        ips=_ips(logged, target, earned),
        bounds=None,
        unsupported=0.0,
        effective=effective,
        n=len(weights),
    )


def _too_few(n: int, effective: float, beyond: float) -> str:
    """Why nothing is given, and the way out."""
    said = (
        f"{n:,} logged decisions are worth {effective:.0f} for this policy; a value needs at least "
        f"{LEAST_EFFECTIVE:.0f}. Log longer, or explore a larger share"
    )
    if beyond <= _TINY:
        return said
    return (
        f"{said}; in {100 * beyond:.1f} % of the decisions it would serve a model that the log "
        "could not have served (serve --explore-all keeps every model possible)"
    )


def cross_fitted_quality(features: FloatArray, logged: LoggedOutcomes) -> FloatArray:
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
    for inside, outside in _split(logged):
        mean = float(logged.quality[inside].mean()) if inside.size else 0.0
        for model in range(m):
            rows = inside[logged.served[inside] == model]
            predicted[outside, model] = (
                np.clip(design[outside] @ _ridge(design[rows], rows, logged), 0.0, 1.0)
                if rows.size > design.shape[1]
                else mean
            )
    return predicted


def _split(logged: LoggedOutcomes) -> Iterator[tuple[IntArray, IntArray]]:
    groups = np.arange(len(logged.served)) if logged.clusters is None else logged.clusters
    fold = groups % _FOLDS
    for number in range(_FOLDS):
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


@dataclass(frozen=True, slots=True)
class LoggedValue:
    """A catalog's value beside that of what was served.

    Attributes:
        value: Mean quality the catalog would have had.
        live: Mean quality of the same decisions as they were served.
        explored: Share of them in which chance had a say.
        closed: Models that the catalog would serve where the log could not have, most often first.
    """

    value: PolicyValue
    live: Interval
    explored: float
    closed: tuple[str, ...] = ()

    @property
    def caution(self) -> str:
        """Why there are bounds instead of a value, and the way out; '' where there is a value."""
        if not self.closed:
            return ""
        return (
            f"In {100 * self.value.unsupported:.1f} % of the decisions this catalog would serve "
            f"{', '.join(self.closed)}, which the log could not have served there: exploration "
            "tries only models that the rule holds capable (--explore-floor). That part may be "
            "worth anything from 0 to 1. With serve --explore-all 0.02 every model stays possible."
        )


def logged_value(traffic: Traffic, catalog: Catalog, today: date) -> LoggedValue:
    """The value of a catalog's routes on rated decisions with true propensities.

    Raises:
        NoOverlapError: The log cannot say; the message says what is missing.
        HydraError: The catalog cannot be replayed from a log.
    """
    traffic = predicted(traffic, catalog, today)
    usable, _ = replayable(traffic, catalog)
    rows = traffic.rows
    known = rows["quality"].notna() & rows["propensities"].notna() & (rows["served"] != "")
    some = traffic.take(usable & np.asarray(known, dtype=bool))
    if not len(some):
        raise NoOverlapError(
            "no decision has both a known probability and feedback. Send outcomes (POST "
            "/v1/outcomes) and explore (serve --explore); until then only mix, agreement and cost "
            "are known"
        )
    wanted = routes(some, catalog, today)
    some, wanted = some.take(wanted >= 0), wanted[wanted >= 0]
    chances, ids = _chances(some, pool(catalog, today=today).ids)
    explored = float((chances.max(axis=1) < 1.0).mean())
    if not explored:
        raise NoOverlapError(
            "nothing was explored, so the log has no outcomes of models that were not chosen. "
            "Start serve with --explore 0.02; until then only mix, "
            "agreement and cost are known"
        )
    served = np.array([ids[name] for name in some.models])
    quality = some.rows["quality"].to_numpy(dtype=np.float64)
    logged = LoggedOutcomes(served, chances, quality, some.clusters)
    target = np.zeros_like(chances)
    names = pool(catalog, today=today).ids
    target[np.arange(len(some)), [ids[names[i]] for i in wanted]] = 1.0
    quality_by_model = cross_fitted_quality(some.requirements(), logged)
    value = policy_value(logged, target, quality_by_model)
    live = mean_interval(quality, some.clusters).clipped(*SHARE)
    missed = (target * (chances <= 0)).sum(axis=0)
    order = np.argsort(-missed, kind="stable")
    every = list(ids)
    return LoggedValue(value, live, explored, tuple(every[i] for i in order if missed[i]))


def _chances(some: Traffic, more: tuple[str, ...]) -> tuple[FloatArray, dict[str, int]]:
    """(n, m) propensities over all models of the log and the catalog, and their columns."""
    ids: dict[str, int] = {}
    for names in (*some.rows["candidates"], more):
        for name in names:
            ids.setdefault(str(name), len(ids))
    chances = np.zeros((len(some), len(ids)))
    for row, (names, values) in enumerate(
        zip(some.rows["candidates"], some.rows["propensities"], strict=True)
    ):
        chances[row, [ids[name] for name in names]] = values
    return chances, ids


#: With so many queries that every model answered a set is replayed instead.
FEWEST_COMPLETE: Final = 20
_UNKNOWN: Final = (
    "the set has no propensities. `import log` keeps them where serve explored (--explore-all); "
    "until then only mix, agreement and cost are known"
)
_NOT_EXPLORED: Final = (
    "nothing was explored in this log, so it has no outcomes of models that were not chosen. Start "
    "serve with --explore-all 0.02; until then only mix, agreement and cost are known"
)


@dataclass(frozen=True, slots=True)
class LoggedEvaluation:
    """A policy on logged queries.

    Attributes:
        n: Queries with one model's outcome, and scores.
        served, chosen: Share of them by model, as logged and by the policy.
        agreement: Share on which both are the same.
        billed_usd: Mean cost as recorded; None where none is known.
        cost_change: Cost of the policy against what was served, same tokens, at the catalog's
            prices; None without tokens, and where what was served costs nothing.
        live: Mean quality of what was served.
        value: Quality of the policy; None where `why` says what is missing.
    """

    n: int
    served: dict[str, float]
    chosen: dict[str, float]
    agreement: Interval
    billed_usd: Interval | None
    cost_change: Interval | None
    live: Interval
    value: PolicyValue | None
    why: str


def is_log(evalset: EvalSet, models: Sequence[str]) -> bool:
    """Whether most queries have one of these models' outcomes, and too few have all to replay."""
    at = [evalset.models.index(name) for name in models if name in evalset.models]
    count = np.isfinite(evalset.quality[:, at]).sum(axis=1)
    alone, every = int((count == 1).sum()), int((count == len(at)).sum())
    return len(at) > 1 and every < FEWEST_COMPLETE and 2 * alone > int((count > 0).sum())


def evaluate_logged(
    evalset: EvalSet,
    catalog: Catalog,
    ids: Sequence[str],
    choice: IntArray,
    requirements: FloatArray,
) -> LoggedEvaluation:
    """What a policy would have done on the logged queries.

    Args:
        ids: (m,) the catalog's routable models.
        choice: (n,) place of the policy's model among them, for every query of the set; -1 where no
            model may serve it, which is left out.
        requirements: (n, K) scores of every query.

    Raises:
        MismatchError: No query is left.
    """
    known = np.isfinite(evalset.quality)
    kept = (known.sum(axis=1) == 1) & np.isfinite(requirements).all(axis=1) & (choice >= 0)
    rows = np.flatnonzero(kept)
    if not rows.size:
        raise MismatchError(
            f"no model of catalog '{catalog.name}' may serve any query of eval set "
            f"'{evalset.name}': it needs vision, an ability or a tag that none has"
        )
    served = known[rows].argmax(axis=1)
    chosen = choice[rows]
    clusters = evalset.clusters_at(rows)
    names = [evalset.models[i] for i in served]
    wanted = [ids[i] for i in chosen]
    same = np.array([a == b for a, b in zip(names, wanted, strict=True)], dtype=float)
    quality = evalset.quality[rows, served]
    cost = evalset.cost_usd[rows, served]
    billed = np.isfinite(cost)
    value, why = _value(evalset, rows, names, wanted, quality, requirements[rows])
    return LoggedEvaluation(
        n=rows.size,
        served=_shares(names),
        chosen=_shares(wanted),
        agreement=rate_interval(same, clusters),
        billed_usd=mean_interval(cost[billed], evalset.clusters_at(rows[billed]))
        if billed.any()
        else None,
        cost_change=_cost_change(evalset, catalog, rows, served, names, wanted),
        live=mean_interval(quality, clusters).clipped(*SHARE),
        value=value,
        why=why,
    )


def _shares(names: Sequence[str]) -> dict[str, float]:
    found, counts = np.unique(names, return_counts=True)
    return {str(name): count / len(names) for name, count in zip(found, counts, strict=True)}


def _cost_change(
    evalset: EvalSet,
    catalog: Catalog,
    rows: IntArray,
    served: IntArray,
    names: Sequence[str],
    wanted: Sequence[str],
) -> Interval | None:
    read, written = (evalset.extras.get(name) for name in ("input_tokens", "output_tokens"))
    if read is None or written is None:
        return None
    cached = evalset.extras.get("cached_input_tokens")
    inward, outward = read[rows, served], written[rows, served]
    warm = np.zeros(rows.size) if cached is None else cached[rows, served]
    prices = {one.id: one.price for one in catalog.models}
    usable = np.isfinite(inward + outward) & np.array([name in prices for name in names])
    if not usable.any():
        return None
    tokens = inward[usable], outward[usable], warm[usable]
    before, after = (
        tokens_usd(*tokens, [prices[name] for name in compress(models, usable)])
        for models in (names, wanted)
    )
    if not before.any():
        return None
    return ratio_interval(after, before, evalset.clusters_at(rows[usable])).scaled(1.0, -1.0)


def _value(
    evalset: EvalSet,
    rows: IntArray,
    names: Sequence[str],
    wanted: Sequence[str],
    quality: FloatArray,
    requirements: FloatArray,
) -> tuple[PolicyValue | None, str]:
    chances = evalset.extras.get(PROPENSITY)
    if chances is None:
        return None, _UNKNOWN
    some = chances[rows]
    usable = np.flatnonzero(np.isfinite(some).all(axis=1))
    if not usable.size:
        return None, _UNKNOWN
    every = list(dict.fromkeys([*evalset.models, *wanted]))
    wide = np.zeros((usable.size, len(every) + 1))  # the last stands for models without an outcome
    wide[:, : some.shape[1]] = some[usable]
    wide[:, -1] = np.maximum(1.0 - wide.sum(axis=1), 0.0)
    if wide.max(axis=1).min() >= 1.0:
        return None, _NOT_EXPLORED
    place = {name: i for i, name in enumerate(every)}
    target = np.zeros_like(wide)
    target[np.arange(usable.size), [place[wanted[i]] for i in usable.tolist()]] = 1.0
    served = np.array([place[names[i]] for i in usable.tolist()])
    clusters = evalset.clusters_at(rows[usable])
    logged = LoggedOutcomes(served, wide, quality[usable], clusters)
    predicted = cross_fitted_quality(requirements[usable], logged)
    try:
        return policy_value(logged, target, predicted), ""
    except NoOverlapError as error:
        return None, str(error)
