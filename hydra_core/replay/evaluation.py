"""One policy on one eval set: every figure that a page, the command line or a report shows.

Pages draw it, `evaluate` prints it as text, and `replay/report.py` writes its document
`hydra.evaluation/v1` as HTML.
"""

import math
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np

from hydra_core.base.intervals import Interval
from hydra_core.base.types import IntArray, Rule, Selection, SuccessSource
from hydra_core.replay.conversations import replay_conversations, why_per_query
from hydra_core.replay.frontier import StepCurve
from hydra_core.replay.metrics import (
    PolicyMetrics,
    Slice,
    Spread,
    by_group,
    by_language,
    evaluate_choice,
    spread,
)
from hydra_core.replay.operating_point import CrossFit, cheapest_with_quality, cross_fit
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.significance import detectable_effect
from hydra_core.replay.sweep import Sweep
from hydra_core.replay.verdict import Verdict, verdict

_FEWEST_TO_HALVE = 20
#: Where the operator says how the point came about.
STATED = "The operator states this; nothing here can check it."


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The policy at one value of the knob; what takes longer is computed when first asked for.

    Attributes:
        knob: Where on the sweep the policy stands: tau, or V under the value rule.
        choice: (n,) pool index of the model each query goes to.
    """

    sweep: Sweep
    knob: float
    choice: IntArray
    router: PolicyMetrics
    verdict: Verdict

    @property
    def baseline(self) -> str:
        """The model that savings are measured against."""
        return self.router.baseline

    @cached_property
    def oracle(self) -> PolicyMetrics:
        """The best choice in hindsight."""
        if self.sweep.oracle.baseline == self.baseline:
            return self.sweep.oracle
        return self._metrics(self.sweep.data.oracle)

    @cached_property
    def constants(self) -> dict[str, PolicyMetrics]:
        """Every measured model used alone, from cheapest to dearest, with its stand-ins."""
        n, data = len(self.choice), self.sweep.data
        order = [i for i in self.sweep.order if data.measured[i]]
        return {data.pool.ids[i]: self._metrics(data.served(np.full(n, i))) for i in order}

    @cached_property
    def served_shares(self) -> dict[str, float]:
        """Traffic that the router itself gives these queries; {} where it is that of `router`.

        Its heads have learned from these queries; those behind `choice` had not seen them.
        """
        if self.sweep.rule is Rule.SHORTFALL:
            return {}
        served = self.sweep.served(self.knob)
        if np.array_equal(served, self.choice):
            return {}
        counts = np.bincount(served, minlength=len(self.sweep.data.pool.ids))
        shares = (counts / served.size).tolist()
        return dict(zip(self.sweep.data.pool.ids, shares, strict=True))

    @property
    def served_note(self) -> str:
        """Why the traffic that is served differs from the traffic shown; '' where it does not."""
        if not self.served_shares:
            return ""
        listed = ", ".join(
            f"{model} {100 * share:.1f} %" for model, share in self.served_shares.items() if share
        )
        return (
            "Quality, cost and traffic are cross-fitted, as new queries meet the router. It has "
            f"learned from these queries and sends them to {listed}."
        )

    @cached_property
    def cross_fit(self) -> CrossFit | None:
        """The same quality aimed at on one half and measured on the other; None if n is small."""
        data, quality = self.sweep.data, self.router.quality.value
        if data.independent < _FEWEST_TO_HALVE:
            return None

        def aim(half: ReplayData, curve: StepCurve) -> float:
            del half
            return cheapest_with_quality(curve, min(quality, float(curve.quality.max()))).knob

        rng = np.random.default_rng(0)
        return cross_fit(data, aim, rng=rng, rule=self.sweep.rule, baseline=self.baseline)

    @cached_property
    def languages(self) -> tuple[Slice, ...]:
        """By language, the largest first."""
        return by_language(self.sweep.data, self.choice, baseline=self.baseline)

    @cached_property
    def groups(self) -> tuple[Slice, ...]:
        """By language group."""
        return by_group(self.sweep.data, self.choice, baseline=self.baseline)

    @cached_property
    def spreads(self) -> tuple[Spread, ...]:
        """Every language group against English."""
        return spread(self.sweep.data, self.choice, baseline=self.baseline)

    @property
    def simultaneous(self) -> Interval:
        """The interval of the verdict's difference that holds along the whole curve."""
        return self.verdict.over_the_curve(self.sweep.band().critical)

    @property
    def weights_edited(self) -> bool:
        """Whether the weights are not the catalog's: the band covers the knob, not their choice."""
        return self.sweep.weights != self.sweep.catalog.policy.weights

    @property
    def caution(self) -> str:
        """What the verdict's interval does not cover; empty where it covers everything.

        An outcome model's predictions are cross-fitted.
        """
        if self.sweep.outcome_model is not None:
            return ""
        chosen = any(not one.knob_alone for one in self.sweep.chosen_here)
        if not ((self.weights_edited or chosen) and self.verdict.selection is Selection.LOOKED):
            return ""
        if self.sweep.rule is Rule.VALUE:
            return (
                "This interval does not cover success profiles fitted to this set: Tune, Learned "
                "has their cross-fitted gain."
            )
        what = "weights" if self.weights_edited else "weights, profiles or a pool"
        return (
            f"This interval does not cover {what} tuned on this set. Check them cross-fitted on "
            "Tune, part Search."
        )

    def _metrics(self, choice: IntArray) -> PolicyMetrics:
        return evaluate_choice(self.sweep.data, choice, baseline=self.baseline)


def evaluate(
    sweep: Sweep,
    knob: float,
    baseline: str | None = None,
    *,
    selection: Selection | None = None,
) -> Evaluation:
    """Evaluate the policy at one value of the knob.

    Args:
        knob: Tau >= 0, or V > 0 in USD under the value rule.
        baseline: Model that savings are measured against; the costliest where it is not replayed.
        selection: How this point came about, stated by the operator; by default the catalog's own
            policy counts as fixed beforehand on queries that it was not chosen on, and any other
            as picked on these queries.
    """
    chosen = selection or sweep.selection(knob)
    critical = sweep.band().critical if chosen is Selection.LOOKED else None
    origin = sweep.origin(knob) if selection is None else STATED
    choice = sweep.route(knob)
    named = baseline if baseline in sweep.data.pool.ids else None
    found = Evaluation(
        sweep=sweep,
        knob=knob,
        choice=choice,
        router=evaluate_choice(sweep.data, choice, baseline=named),
        verdict=verdict(
            sweep.data, choice, chosen, critical=critical, knob=sweep.curve.symbol, origin=origin
        ),
    )
    return replace(found, verdict=replace(found.verdict, tuned_here=bool(found.caution)))


SCHEMA = "hydra.evaluation/v1"
#: Rows of the value rule's curve; both ends and the best are always among them.
_MOST_VALUES = 4_990
#: One setting and several, by rule.
KNOBS = {Rule.SHORTFALL: ("tau", "taus"), Rule.VALUE: ("value_usd", "values_usd")}
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
        "languages": [_slice(one, *_ABOUT) for one in found.languages],
        "groups": [_slice(one, *_ABOUT) for one in found.groups],
        "spread_against_english": [_slice(one, "group") for one in found.spreads],
        "conversations": _conversations(found),
        "per_query": why_per_query(sweep),
        "outcome_model": _outcome_model(sweep),
        "success_profiles": _success_profiles(sweep),
        "frontier": _frontier(sweep, rows),
    }


def _knob(found: Evaluation) -> dict[str, float]:
    return {KNOBS[found.sweep.rule][0]: found.knob}


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
        "detectable_difference": math.nan  # the interval holds what is possible, not chance alone
        if said.unknown
        else detectable_effect(said.interval.standard_error, 1),
    }


def _estimates(source: object, *names: str) -> dict[str, Any]:
    """The named intervals of a noun: each one's value, and their bounds under `ci`."""
    known: dict[str, Interval] = {name: getattr(source, name) for name in names}
    values: dict[str, Any] = {name: one.value for name, one in known.items()}
    return values | {"ci": {name: [one.lo, one.hi] for name, one in known.items()}}


def _metrics(found: PolicyMetrics) -> dict[str, Any]:
    names = ("quality", "qr", "cs", "misroute", "mean_cost_usd", "per_resolved_usd")
    estimates = _estimates(found, *names)
    about = {"resolved": found.resolved, "shares": found.shares, "unknown": found.unknown}
    return {**about, **estimates}


def _cross_fit(of: Evaluation, found: CrossFit) -> dict[str, Any]:
    return {
        KNOBS[of.sweep.rule][1]: list(found.knobs),
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


_ABOUT = ("name", "n", "small", "unknown", "p_value")


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
