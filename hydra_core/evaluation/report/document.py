"""The current evaluation as one document: a dict for machines, one HTML file for people.

The HTML opens without a network, holds no script, and prints to PDF from any browser; figures are
drawn as SVG. Every text that came from outside is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from hydra_core.evaluation.choose.operating_point import (
    CrossFit,
    cheapest_with_quality,
    cross_fit,
    data_frontier,
)
from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.evaluation.replay.metrics import (
    PolicyMetrics,
    evaluate_choice,
    oracle_choice,
    single_models,
    upper_hull,
)
from hydra_core.evaluation.replay.replay import ReplayData, replay
from hydra_core.evaluation.replay.verdict import Verdict, verdict
from hydra_core.evaluation.significance import Interval, detectable_effect
from hydra_core.evaluation.study.languages import Slice, Spread, by_group, by_language, spread
from hydra_core.types import Catalog

__all__ = ["Evaluation", "evaluate_policy", "report_dict"]

_DRAWN = 400


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Everything the report says.

    Attributes:
        catalog: The policy under evaluation.
        evalset: What it was replayed on.
        tau: The operating point.
        cross: The same quality aimed at on one half and measured on the other; None where the
            set is too small to cut.
        detectable: Smallest quality difference this set would show with 80 % power.
        tuned_on: In words, what tau and weights were chosen on.
        made: When the report was made.
    """

    catalog: Catalog
    evalset: EvalSet
    data: ReplayData
    tau: float
    router: PolicyMetrics
    oracle: PolicyMetrics
    verdict: Verdict
    cross: CrossFit | None
    languages: tuple[Slice, ...]
    groups: tuple[Slice, ...]
    spreads: tuple[Spread, ...]
    detectable: float
    tuned_on: str
    made: datetime


def evaluate_policy(
    catalog: Catalog,
    evalset: EvalSet,
    data: ReplayData,
    *,
    tau: float,
    made: datetime,
    tuned_on: str = "",
    baseline: str | None = None,
    seed: int = 0,
) -> Evaluation:
    """Replay a catalog's policy and gather what a report needs.

    Args:
        data: The eval set lined up with the catalog's pool.
        tau: The operating point.
        made: Time of the report.
        tuned_on: What tau and weights were chosen on, if it is known.
        baseline: Model that savings are measured against; default the costliest.
        seed: Draws the halves of the cross-fit.
    """
    choice = replay(data, tau)
    router = evaluate_choice(data, choice, baseline=baseline)
    said = verdict(data, choice)
    half = (said.interval.hi - said.interval.lo) / 2
    deviation = half / 1.96 * np.sqrt(len(choice)) if np.isfinite(half) else float("nan")
    return Evaluation(
        catalog=catalog,
        evalset=evalset,
        data=data,
        tau=tau,
        router=router,
        oracle=evaluate_choice(data, oracle_choice(data), baseline=baseline),
        verdict=said,
        cross=_cross(data, router.quality.value, baseline, seed),
        languages=by_language(data, choice, baseline=baseline),
        groups=by_group(data, choice, baseline=baseline),
        spreads=spread(data, choice, baseline=baseline),
        detectable=detectable_effect(deviation, len(choice)),
        tuned_on=tuned_on or "not stated: if tau was chosen on these queries, see the cross-fit",
        made=made,
    )


def _cross(data: ReplayData, quality: float, baseline: str | None, seed: int) -> CrossFit | None:
    units = len(data.query_ids) if data.clusters is None else np.unique(data.clusters).size
    if units < 20:
        return None

    def aim(half: ReplayData, curve: Any) -> float:  # noqa: ANN401
        reachable = min(quality, float(curve.quality.max()))
        return cheapest_with_quality(curve, reachable).tau

    return cross_fit(data, aim, rng=np.random.default_rng(seed), baseline=baseline)


def report_dict(found: Evaluation) -> dict[str, Any]:
    """The report as JSON-ready values (schema `hydra.report/v1`)."""
    singles = single_models(found.data)
    hull = {point.model for point in upper_hull(singles)}
    return {
        "schema": "hydra.report/v1",
        "made": found.made.isoformat(timespec="seconds"),
        "fingerprints": fingerprints(found),
        "policy": {
            "tau": found.tau,
            "weights": dict(
                zip(found.catalog.dimensions, found.catalog.policy.weights, strict=True)
            ),
            "cost_basis": found.catalog.policy.cost_basis.value,
            "price_ratio": found.catalog.policy.price_ratio,
            "tuned_on": found.tuned_on,
        },
        "queries": len(found.data.query_ids),
        "notes": list(found.data.notes),
        "verdict": {
            "label": found.verdict.label.value,
            "text": found.verdict.text,
            "delta": _interval(found.verdict.interval),
            "constant": str(found.verdict.constant),
            "detectable_difference": found.detectable,
        },
        "router": _metrics(found.router),
        "oracle": _metrics(found.oracle),
        "cross_fit": _cross_dict(found.cross),
        "models": [
            {
                "model": one.model,
                "resolved": one.resolved,
                "quality": one.quality,
                "mean_cost_usd": one.mean_cost_usd,
                "share": found.router.shares[one.model],
                "on_hull": one.model in hull,
            }
            for one in singles
        ],
        "languages": [_slice(one) for one in found.languages],
        "groups": [_slice(one) for one in found.groups],
        "spread_against_english": [_spread(one) for one in found.spreads],
        "frontier": _frontier(found.data),
    }


def fingerprints(found: Evaluation) -> dict[str, Any]:
    """What exactly was evaluated: digests of catalog, predictor and eval set, and their flags."""
    return {
        "catalog": found.catalog.name,
        "catalog_sha256": found.catalog.digest,
        "predictor": found.catalog.predictor,
        "predictor_fingerprint": found.catalog.predictor_fingerprint,
        "evalset": found.evalset.name,
        "evalset_sha256": found.evalset.digest,
        "evalset_origin": found.evalset.origin,
        "evalset_licence": found.evalset.licence,
        "synthetic": found.evalset.synthetic,
        "cost_estimated": found.evalset.cost_estimated,
        "price_notes": found.evalset.price_notes,
    }


def _frontier(data: ReplayData) -> list[dict[str, float]]:
    curve = data_frontier(data)
    rows = curve.simplified(_DRAWN)
    names = ("tau", "quality", "mean_cost_usd", "misroute")
    return [{name: float(getattr(curve, name)[row]) for name in names} for row in rows]


def _interval(value: Interval) -> list[float]:
    return [value.value, value.lo, value.hi]


def _named(source: object, names: Sequence[str]) -> dict[str, list[float]]:
    return {name: _interval(getattr(source, name)) for name in names}


def _metrics(found: PolicyMetrics) -> dict[str, Any]:
    names = ("quality", "mean_cost_usd", "qr", "cs", "misroute")
    about = {"resolved": found.resolved, "baseline": found.baseline, "shares": found.shares}
    return {**about, **_named(found, names)}


def _cross_dict(found: CrossFit | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "taus": list(found.taus),
        "in_sample_quality": found.in_sample_quality,
        "optimism": found.optimism,
        "verdict": found.verdict.label.value,
        "verdict_text": found.verdict.text,
        **_metrics(found.metrics),
    }


def _slice(one: Slice) -> dict[str, Any]:
    about = {"name": one.name, "n": one.n, "small": one.small, "p_value": one.p_value}
    return {**about, **_named(one, ("qr", "cs", "strong", "mean_cost_usd", "difference"))}


def _spread(one: Spread) -> dict[str, Any]:
    return {"group": one.group, **_named(one, ("qr", "cs", "strong"))}
