"""An evaluation as one JSON document (schema `hydra.evaluation/v1`), whoever asks for it.

    schema, made            hydra.evaluation/v1; when it was made (ISO 8601)
    evalset, synthetic, n   the set's name, whether its outcomes were simulated, queries replayed
    notes                   what was left out of the replay, in words
    costs, recorded_costs   which prices the costs stand on, in words; the models whose costs an
                            edited price does not move
    fingerprints            digests of catalog, predictor and eval set, origin, licence, flags
    rule                    shortfall or value: which of them decided
    policy                  tau (value_usd under the value rule), weights by dimension, cost_basis,
                            price_ratio, tuned_on
    baseline                the model that savings (cs) are measured against
    router, oracle, cross_fit
                            resolved; quality, qr, cs, misroute, mean_cost_usd,
                            per_resolved_usd (USD per resolved query); shares by model;
                            ci: the same five names -> [low, high]. router adds tau, served_shares
                            (traffic by the router's own heads, which have learned from these
                            queries; null where it is that of shares); cross_fit (null
                            for small sets) adds taus (values_usd under the value rule),
                            in_sample_quality, optimism, verdict, verdict_text, note (why its
                            figures differ from those of router)
    models                  id -> resolved, quality, mean_cost_usd, cs, share of traffic, on_hull
    verdict                 label (better, no measurable difference, worse), title, text, details
                            (what it rests on, one sentence each), caution (what the interval does
                            not cover), delta, quality and mean_cost_usd of the router (those of
                            `router`), selection (fixed, cross_fitted, looked), origin (where it
                            was chosen, in words), stated_by_operator (--fixed), interval
                            [low, high] of this point alone, simultaneous [low, high] over the
                            whole curve, moved and independent queries, constant,
                            constant_quality, constant_mean_cost_usd, detectable_difference
    languages, groups       name, n, small, p_value; qr, cs, strong, mean_cost_usd, difference; ci
    spread_against_english  group; qr, cs, strong; ci
    success_profiles        where these decide: evalset, evalset_sha256, queries; else null
    outcome_model           under the value rule: sha256, evalset, learner, cross_fitted; else null
    conversations           every sticky mode played on whole conversations (quality, usd_per_turn,
                            cs; ci; cached_share, switches and lost_usd per conversation); null
                            where replay is per query, and per_query then says why
    significance            in a report: n, strong, names, methods; standings and pairs as numbers
                            (percent, USD), cells and matrix as text
    frontier                [tau or value_usd, quality, mean_cost_usd] rows by tau or value_usd

Rates are fractions, costs USD per query, intervals 95 %. What is not defined is NaN here and null
in JSON.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from hydra_core.base.intervals import Interval
from hydra_core.base.types import Rule, SuccessSource
from hydra_core.replay.conversations import replay_conversations, why_per_query
from hydra_core.replay.evaluation import STATED, Evaluation
from hydra_core.replay.metrics import PolicyMetrics
from hydra_core.replay.operating_point import CrossFit
from hydra_core.replay.significance import detectable_effect
from hydra_core.replay.sweep import Sweep

SCHEMA = "hydra.evaluation/v1"
#: Rows of the value rule's curve; both ends and the best are always among them.
_MOST_VALUES = 4_990
#: One setting and several, by rule.
_KNOBS = {Rule.SHORTFALL: ("tau", "taus"), Rule.VALUE: ("value_usd", "values_usd")}
_NOT_STATED = "not stated: if the setting was chosen on these queries, see the cross-fit"


def evaluation_document(
    found: Evaluation, *, made: datetime, tuned_on: str = "", rows: int | None = None
) -> dict[str, Any]:
    """An evaluation as JSON-ready values; the module's docstring lists them.

    Args:
        tuned_on: What tau and weights were chosen on, '' if that is not known.
        rows: About how many rows of the frontier to keep, both ends and the best among them;
            default every one.
    """
    sweep = found.sweep
    return {
        "schema": SCHEMA,
        "made": made.isoformat(timespec="seconds"),
        "evalset": sweep.evalset.name,
        "synthetic": sweep.evalset.synthetic,
        "n": found.router.n,
        "rule": sweep.rule.value,
        "notes": list(sweep.data.notes),
        "costs": sweep.data.costs,
        "recorded_costs": list(sweep.data.recorded),
        "fingerprints": _fingerprints(sweep),
        "policy": {
            **_knob(found),
            "weights": dict(zip(sweep.catalog.dimensions, sweep.weights, strict=True)),
            "cost_basis": sweep.catalog.policy.cost_basis.value,
            "price_ratio": sweep.catalog.policy.price_ratio,
            "tuned_on": tuned_on or _NOT_STATED,
        },
        "baseline": found.baseline,
        "router": {
            **_knob(found),
            **_metrics(found.router),
            "served_shares": found.served_shares or None,
        },
        "oracle": _metrics(found.oracle),
        "cross_fit": None if found.cross_fit is None else _cross_fit(found, found.cross_fit),
        "models": _models(found),
        "verdict": _verdict(found),
        "languages": [_slice(one, "name", "n", "small", "p_value") for one in found.languages],
        "groups": [_slice(one, "name", "n", "small", "p_value") for one in found.groups],
        "spread_against_english": [_slice(one, "group") for one in found.spreads],
        "conversations": _conversations(found),
        "per_query": why_per_query(sweep),
        "outcome_model": _outcome_model(sweep),
        "success_profiles": _success_profiles(sweep),
        "frontier": _frontier(sweep, rows),
    }


def _knob(found: Evaluation) -> dict[str, float]:
    return {_KNOBS[found.sweep.rule][0]: found.knob}


def _outcome_model(sweep: Sweep) -> dict[str, Any] | None:
    if sweep.outcome_model is None:
        return None
    model = sweep.outcome_model
    return {
        "sha256": model.digest,
        "evalset": model.evalset,
        "learner": model.learner,
        "cross_fitted": sweep.cross_fitted,
    }


def _success_profiles(sweep: Sweep) -> dict[str, Any] | None:
    block = sweep.catalog.success_profiles
    by_profiles = sweep.source is SuccessSource.SUCCESS_PROFILES
    if block is None or not by_profiles:
        return None
    return {"evalset": block.evalset, "evalset_sha256": block.digest, "queries": block.queries}


def _fingerprints(sweep: Sweep) -> dict[str, Any]:
    catalog, evalset = sweep.catalog, sweep.evalset
    return {
        "catalog": catalog.name,
        "catalog_sha256": catalog.digest,
        "predictor": catalog.predictor,
        "predictor_fingerprint": catalog.predictor_fingerprint,
        "evalset": evalset.name,
        "evalset_sha256": evalset.digest,
        "evalset_origin": evalset.origin,
        "evalset_licence": evalset.licence,
        "synthetic": evalset.synthetic,
        "cost_estimated": evalset.cost_estimated,
        "price_notes": evalset.price_notes,
    }


def _models(found: Evaluation) -> dict[str, Any]:
    hull = {one.model for one in found.sweep.hull}
    base = found.sweep.cost_of(found.baseline)
    return {
        one.model: {
            "resolved": one.resolved,
            "quality": one.quality,
            "mean_cost_usd": one.mean_cost_usd,
            "cs": 1 - one.mean_cost_usd / base if base > 0 else math.nan,
            "share": found.router.shares[one.model],
            "on_hull": one.model in hull,
        }
        for one in found.sweep.singles
    }


def _verdict(found: Evaluation) -> dict[str, Any]:
    said = found.verdict
    return {
        "label": said.label.value,
        "title": said.title,
        "text": said.text,
        "details": list(said.details),
        "quality": said.quality,
        "mean_cost_usd": said.mean_cost_usd,
        "caution": found.caution,
        "delta": said.delta,
        "selection": said.selection.value,
        "origin": said.origin,
        "stated_by_operator": said.origin == STATED,
        "interval": [said.interval.lo, said.interval.hi],
        "simultaneous": [found.simultaneous.lo, found.simultaneous.hi],
        "moved": said.moved,
        "independent": said.independent,
        "constant": str(said.constant),
        "constant_quality": said.constant.quality,
        "constant_mean_cost_usd": said.constant.mean_cost_usd,
        "detectable_difference": detectable_effect(said.interval.standard_error, 1),
    }


def _estimates(source: object, *names: str) -> dict[str, Any]:
    """The named intervals of a noun: each one's value, and their bounds under `ci`."""
    known: dict[str, Interval] = {name: getattr(source, name) for name in names}
    values: dict[str, Any] = {name: one.value for name, one in known.items()}
    return values | {"ci": {name: [one.lo, one.hi] for name, one in known.items()}}


def _metrics(found: PolicyMetrics) -> dict[str, Any]:
    names = ("quality", "qr", "cs", "misroute", "mean_cost_usd", "per_resolved_usd")
    estimates = _estimates(found, *names)
    return {"resolved": found.resolved, "shares": found.shares, **estimates}


def _cross_fit(of: Evaluation, found: CrossFit) -> dict[str, Any]:
    return {
        _KNOBS[of.sweep.rule][1]: list(found.knobs),
        "in_sample_quality": found.in_sample_quality,
        "optimism": found.optimism,
        "verdict": found.verdict.label.value,
        "verdict_text": found.verdict.text,
        "note": found.verdict.note,
        **_metrics(found.metrics),
    }


def _conversations(found: Evaluation) -> dict[str, Any] | None:
    played = replay_conversations(found.sweep, found.knob, found.baseline)
    if played is None:
        return None
    about = ("turns", "conversations", "left_out", "strong", "without_price")
    return {name: getattr(played, name) for name in about} | {
        "modes": {
            one.mode.value: _estimates(one, "quality", "usd_per_turn", "cs")
            | {name: getattr(one, name) for name in ("cached_share", "switches", "lost_usd")}
            for one in played.modes
        }
    }


def _slice(one: object, *about: str) -> dict[str, Any]:
    names = ("qr", "cs", "strong", "mean_cost_usd", "difference")
    kept = (name for name in names if hasattr(one, name))
    return {name: getattr(one, name) for name in about} | _estimates(one, *kept)


def _frontier(sweep: Sweep, rows: int | None) -> list[list[float]]:
    curve = sweep.curve
    if curve.rule is Rule.VALUE:  # a V at which each row holds, not where it begins
        points = [curve.point(int(row)) for row in curve.simplified(rows or _MOST_VALUES)]
        return [[one.knob, one.quality, one.mean_cost_usd] for one in points]
    kept = slice(None) if rows is None else curve.simplified(rows)
    columns = (curve.knob, curve.quality, curve.mean_cost_usd)
    return [list(row) for row in zip(*(column[kept].tolist() for column in columns), strict=True)]
