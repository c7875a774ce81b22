"""The verb evaluate: replay an eval set under a catalog and print what routing would do."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hydra_core.cli.output import existing, print_json, say, table
from hydra_core.errors import BundleError, CatalogError, EvalSetError, MismatchError, Problem

if TYPE_CHECKING:
    from hydra_core.evaluation.evalset.evalset import EvalSet
    from hydra_core.evaluation.replay.metrics import PolicyMetrics
    from hydra_core.evaluation.replay.replay import ReplayData
    from hydra_core.evaluation.replay.verdict import Verdict
    from hydra_core.types import Catalog, FloatArray, Pool

__all__ = ["checked_tau", "evaluate", "pool_of", "scores_of"]


def evaluate(options: argparse.Namespace) -> int:
    """Replay an eval set under a catalog."""
    from hydra_core.catalog.schema import load_catalog
    from hydra_core.evaluation.evalset.evalset import load_evalset
    from hydra_core.evaluation.replay.replay import align

    catalog = load_catalog(existing(options.catalog))
    evalset = load_evalset(existing(options.evalset))
    tau = checked_tau(options.tau, catalog)
    weights = _weights(options.weights, catalog)
    scores = scores_of(evalset, catalog)
    data = align(evalset, scores, pool_of(catalog, evalset, weights))
    baseline = _baseline(options.baseline, data)
    for note in data.notes:
        say(f"note: {note}")
    report = _report(data, tau, baseline)
    if options.json:
        about = {"evalset": evalset.name, "synthetic": evalset.synthetic}
        print_json({**about, **report}, indent=None)
    else:
        print(_text(evalset, catalog, report))
    return 0


def checked_tau(given: float | None, catalog: Catalog) -> float:
    """The tau to use.

    Raises:
        CatalogError: It is negative or no number.
    """
    tau = catalog.policy.tau if given is None else given
    if not (math.isfinite(tau) and tau >= 0):
        raise CatalogError("--tau", [Problem("", f"must be a number >= 0, got {tau:g}")])
    return tau


def _weights(text: str | None, catalog: Catalog) -> tuple[float, ...] | None:
    """Stored weights from `r,c,d,t`; `pool` checks their number and sign."""
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        remedy = f"one number for each of {', '.join(catalog.dimensions)}, such as 1,1,0.5,1"
        raise CatalogError(
            "--weights", [Problem("", f"{text!r} are no numbers", remedy)]
        ) from error


def _baseline(name: str | None, data: ReplayData) -> str | None:
    if name is None or name in data.pool.ids:
        return name
    message = f"{name!r} is not among the replayed models"
    raise EvalSetError("--baseline", [Problem("", message, f"one of {', '.join(data.pool.ids)}")])


def pool_of(catalog: Catalog, evalset: EvalSet, weights: tuple[float, ...] | None = None) -> Pool:
    """The catalog's routable models today, ordered as its cost basis says."""
    from datetime import date

    import numpy as np

    from hydra_core.catalog.profiles import pool
    from hydra_core.types import CostBasis

    realised = None
    if catalog.policy.cost_basis is CostBasis.REALISED:
        known = np.isfinite(evalset.cost_usd)
        total = np.where(known, evalset.cost_usd, 0.0).sum(axis=0)
        count = known.sum(axis=0)
        realised = {
            model: float(total[i] / count[i]) for i, model in enumerate(evalset.models) if count[i]
        }
    return pool(catalog, today=date.today(), weights=weights, realised_cost=realised)


def scores_of(evalset: EvalSet, catalog: Catalog) -> FloatArray:
    """The requirements by the bundle the catalog is bound to; another bundle's are never used."""
    from hydra_core.catalog.binding import require_bundle
    from hydra_core.evaluation.evalset.score_files import load_scores
    from hydra_core.predictor.bundle import load_bundle

    scores = load_scores(evalset, catalog.predictor_fingerprint)
    if scores is not None:
        return scores
    others = sorted(path.stem for path in (evalset.path / "scores").glob("[!.]*.parquet"))
    with suppress(BundleError):  # no usable shipped bundle: scoring with another one remains
        require_bundle(catalog, others[0] if others else load_bundle().fingerprint)
    raise MismatchError(
        f"eval set '{evalset.name}' is not scored by {catalog.predictor!r}, the predictor bundle "
        f"of catalog {catalog.name!r}: python -m hydra_core score {evalset.path}"
    )


def _report(data: ReplayData, tau: float, baseline: str | None) -> dict[str, Any]:
    from hydra_core.evaluation.choose.operating_point import data_frontier
    from hydra_core.evaluation.replay.metrics import evaluate_choice, oracle_choice, single_models
    from hydra_core.evaluation.replay.replay import replay
    from hydra_core.evaluation.replay.verdict import verdict

    choice = replay(data, tau)
    router = evaluate_choice(data, choice, baseline=baseline)
    oracle = evaluate_choice(data, oracle_choice(data), baseline=baseline)
    curve = data_frontier(data)
    singles = single_models(data)
    base = next(one.mean_cost_usd for one in singles if one.model == router.baseline)
    models = {
        one.model: {
            "resolved": one.resolved,
            "quality": one.quality,
            "mean_cost_usd": one.mean_cost_usd,
            "cs": 1 - one.mean_cost_usd / base if base > 0 else math.nan,
        }
        for one in singles
    }
    points = zip(
        curve.tau.tolist(), curve.quality.tolist(), curve.mean_cost_usd.tolist(), strict=True
    )
    return {
        "n": len(data.query_ids),
        "baseline": router.baseline,
        "models": models,
        "oracle": {
            "resolved": oracle.resolved,
            "quality": oracle.quality.value,
            "mean_cost_usd": oracle.mean_cost_usd.value,
            "cs": oracle.cs.value,
        },
        "router": _router(router, tau),
        "verdict": _verdict(verdict(data, choice)),
        "notes": list(data.notes),
        "frontier": [list(point) for point in points],
    }


def _router(metrics: PolicyMetrics, tau: float) -> dict[str, Any]:
    names = ("quality", "qr", "cs", "misroute", "mean_cost_usd")
    intervals = {name: getattr(metrics, name) for name in names}
    return {
        "tau": tau,
        "resolved": metrics.resolved,
        **{name: interval.value for name, interval in intervals.items()},
        "shares": metrics.shares,
        "ci": {name: [interval.lo, interval.hi] for name, interval in intervals.items()},
    }


def _verdict(found: Verdict) -> dict[str, Any]:
    mix = found.constant
    return {
        "label": found.label.value,
        "text": found.text,
        "delta": found.delta,
        "interval": [found.interval.lo, found.interval.hi],
        "constant": str(mix),
        "constant_quality": mix.quality,
        "constant_mean_cost_usd": mix.mean_cost_usd,
    }


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _text(evalset: EvalSet, catalog: Catalog, report: Mapping[str, Any]) -> str:
    n, router = report["n"], report["router"]
    title = f"{evalset.name}: {n} queries, catalog {catalog.name}, tau {router['tau']:g}"
    flags = [
        text
        for flag, text in (
            (evalset.synthetic, "SYNTHETIC: outcomes were simulated"),
            (evalset.cost_estimated, "costs were estimated from prices"),
        )
        if flag
    ]
    rows = [
        _row(model, one["resolved"], one["quality"], one["mean_cost_usd"], one["cs"], n)
        for model, one in report["models"].items()
    ]
    oracle = report["oracle"]
    rows.append(
        _row(
            "oracle",
            oracle["resolved"],
            oracle["quality"],
            oracle["mean_cost_usd"],
            oracle["cs"],
            n,
        )
    )
    rows.append(
        _row(
            "router",
            router["resolved"],
            router["quality"],
            router["mean_cost_usd"],
            router["cs"],
            n,
        )
    )
    header = ["", "resolved", "quality", "USD/query", "CS"]
    shares = ", ".join(f"{model} {_percent(share)}" for model, share in router["shares"].items())
    ranges = "; ".join(
        f"{name} {_percent(router[key])} [{_percent(lo)}, {_percent(hi)}]"
        for name, key in (
            ("quality", "quality"),
            ("QR", "qr"),
            ("CS", "cs"),
            ("misroute", "misroute"),
        )
        for lo, hi in [router["ci"][key]]
    )
    return "\n".join(
        [
            title,
            *flags,
            "",
            table(header, rows),
            "",
            f"router, 95 % intervals: {ranges}",
            f"traffic: {shares}",
            f"savings are against {report['baseline']}",
            f"verdict: {report['verdict']['label']}. {report['verdict']['text']}",
        ]
    )


def _row(name: str, resolved: int, quality: float, cost: float, cs: float, n: int) -> list[str]:
    return [name, f"{resolved}/{n}", _percent(quality), f"{cost:.4f}", _percent(cs)]
