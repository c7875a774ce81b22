"""A policy on an eval set in which each query has the outcome of one model, such as a log's.

What was served and billed is known, and what the policy would send where; its quality is estimated
from the propensities that the import kept, or bounded, or said to be unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hydra_core.base.intervals import SHARE, Interval
from hydra_core.base.types import Catalog, FloatArray, IntArray
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.evalsets.rules import PROPENSITY
from hydra_core.live.off_policy import (
    LoggedOutcomes,
    NoOverlapError,
    PolicyValue,
    cross_fitted_quality,
    policy_value,
)
from hydra_core.replay.significance import mean_interval, rate_interval, ratio_interval

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
        n: Queries with an outcome and scores.
        served, chosen: Share of them by model, as logged and by the policy.
        agreement: Share on which both are the same.
        billed_usd: Mean cost as recorded; None where none is known.
        cost_change: Cost of the policy against what was served, same tokens, at the catalog's
            prices; None without tokens.
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
        choice: (n,) place of the policy's model among them, for every query of the set.
        requirements: (n, K) scores of every query.
    """
    known = np.isfinite(evalset.quality)
    rows = np.flatnonzero(known.any(axis=1) & np.isfinite(requirements).all(axis=1))
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
        billed_usd=mean_interval(cost[billed]) if billed.any() else None,
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
    prices = {
        one.id: np.array([one.input_usd_per_mtok, one.output_usd_per_mtok])
        for one in catalog.models
    }
    inward, outward = read[rows, served], written[rows, served]
    usable = np.isfinite(inward + outward) & np.array([name in prices for name in names])
    if not usable.any():
        return None
    tokens, at = 1e-6 * np.column_stack([inward, outward])[usable], np.flatnonzero(usable).tolist()
    before, after = (
        (tokens * np.stack([prices[models[i]] for i in at])).sum(axis=1)
        for models in (names, wanted)
    )
    return ratio_interval(after, before).scaled(1.0, -1.0)


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
