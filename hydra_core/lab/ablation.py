"""What each part of reading a message is worth: tokens seen, the signal prefix, the encoder.

Every way of reading scores the same eval set; routes are compared at about the same cost (tau is
chosen on one half and measured on the other), so none profits from spending more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations
from typing import Final

import numpy as np

from hydra_core.base.errors import EvalSetError, MismatchError
from hydra_core.base.types import Band, Catalog, FloatArray, IntArray, Progress, Selection
from hydra_core.catalog.profiles import compensated_weights
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.evalsets.scores import query_turns
from hydra_core.lab.evaluate import evaluate
from hydra_core.predictor.bundle import Bundle
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.replay.compare import Comparison, compare, policy_run
from hydra_core.replay.frontier import frontier
from hydra_core.replay.metrics import PolicyMetrics, evaluate_choice, picked
from hydra_core.replay.replay import Fold, ReplayData, folds, replay
from hydra_core.replay.sweep import sweep_catalog
from hydra_core.replay.verdict import Verdict, verdict

_MOST = 6


@dataclass(frozen=True, slots=True, eq=False)
class Ablated:
    """The router on some of its dimensions.

    Attributes:
        kept: Names of the dimensions it keeps.
        against_full: It minus the router on all dimensions at the same cost limit, paired.
    """

    kept: tuple[str, ...]
    metrics: PolicyMetrics
    verdict: Verdict
    against_full: Comparison


def ablation(
    data: ReplayData,
    dimensions: Sequence[str],
    stored_weights: Sequence[float],
    bands: Sequence[Band],
    tau: float,
) -> tuple[Ablated, ...]:
    """Every subset of the dimensions, largest first, at the cost the full policy has at `tau`.

    Args:
        dimensions: (K,) names, K <= 6.
        stored_weights: (K,) operator's weights.
        bands: (K,) score bands.
        tau: The full policy's operating point; it sets the cost limit.

    Raises:
        MismatchError: More than 6 dimensions, or fewer than two independent queries.
    """
    count = len(dimensions)
    if not 1 <= count <= _MOST:
        raise MismatchError(f"{count} dimensions have too many subsets; at most {_MOST}")
    limit = float(picked(data.cost_usd, replay(data, tau)).mean())
    cut = _halves(data)
    subsets = [kept for k in range(count, 0, -1) for kept in combinations(range(count), k)]
    choices = [
        choice_at_cost(_kept(data, kept, stored_weights, bands), cut, limit) for kept in subsets
    ]
    full = policy_run("all dimensions", data, choices[0])
    found = []
    for kept, choice in zip(subsets, choices, strict=True):
        names = tuple(dimensions[k] for k in kept)
        run = policy_run(" + ".join(names), data, choice)
        metrics = evaluate_choice(data, choice)
        said = verdict(data, choice, Selection.CROSS_FITTED)
        found.append(Ablated(names, metrics, said, compare(full, run)))
    return tuple(found)


def _halves(data: ReplayData) -> tuple[Fold, ...]:
    if data.independent < 2:
        raise MismatchError(
            "the queries all depend on each other, or there is only one: they cannot be cut into a "
            "half that tau is chosen on and one that it is measured on. Choose a larger set"
        )
    return folds(data, 2, np.random.default_rng(0))


def _kept(
    data: ReplayData, kept: Sequence[int], stored: Sequence[float], bands: Sequence[Band]
) -> ReplayData:
    columns = list(kept)
    weights = compensated_weights([stored[k] for k in kept], [bands[k] for k in kept])
    pool = replace(data.pool, capabilities=data.pool.capabilities[:, columns], weights=weights)
    return replace(data, requirements=data.requirements[:, columns], pool=pool)


def choice_at_cost(data: ReplayData, cut: Sequence[Fold], limit: float) -> IntArray:
    """(n,) choices: each part at the tau that comes nearest to a cost on the other parts.

    Args:
        cut: The parts, each with the queries that its tau is chosen on.
        limit: USD per query.
    """
    choice = np.empty(len(data.query_ids), dtype=np.intp)
    for fold in cut:
        here = data.take(fold.train)
        curve = frontier(here.shortfalls(), here.pool.cost, here.quality, here.cost_usd)
        row = int(np.abs(curve.mean_cost_usd - limit).argmin())
        choice[fold.test] = replay(data.take(fold.test), float(curve.knob[row]))
    return choice


#: Most tokens seen that are tried, where the bundle's own cap is higher.
_TOKEN_CAPS: Final = (128, 256, 512)


@dataclass(frozen=True, slots=True)
class Reading:
    """One way of reading messages: a bundle, perhaps with a lower cap or without its prefix."""

    name: str
    bundle: Bundle
    prefix: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class AblatedReading:
    """What one way of reading comes to.

    Attributes:
        pearson, mae: Against the labels, means over the dimensions; None without labels.
        metrics: The router at about the first reading's cost, cross-fitted.
        against_first: It minus the first reading, paired.
    """

    name: str
    pearson: float | None
    mae: float | None
    metrics: PolicyMetrics
    against_first: Comparison


def readings(bundle: Bundle, others: Sequence[Bundle] = ()) -> tuple[Reading, ...]:
    """The bundle as it is, with fewer tokens, without its signal prefix; then other bundles."""
    caps = [cap for cap in _TOKEN_CAPS if cap < bundle.max_tokens]
    return (
        Reading(f"{bundle.name}, {bundle.max_tokens} tokens", bundle),
        *(Reading(f"{cap} tokens", replace(bundle, max_tokens=cap)) for cap in reversed(caps)),
        Reading("no signal prefix", bundle, prefix=False),
        *(Reading(f"bundle {other.name} {other.version}", other) for other in others),
    )


def reading_ablation(
    evalset: EvalSet,
    catalog: Catalog,
    ways: Sequence[Reading],
    *,
    today: date,
    progress: Progress = lambda done, total: None,
) -> tuple[AblatedReading, ...]:
    """Every way of reading on one eval set, the first being what the others are compared with.

    Args:
        catalog: Its bands are moved to each reading's bundle.
        progress: Told (messages scored, messages in all).

    Raises:
        EvalSetError: The set has no texts.
        MismatchError: A bundle has other dimensions, or capabilities are set by hand, which are
            places on one bundle's bands.
        HydraError: Set and catalog do not fit together.
    """
    if evalset.texts is None:
        remedy = "choose a set with texts"
        raise EvalSetError.of(str(evalset.path), "there are none", remedy, place="queries: text")
    texts, total = evalset.texts.astype(str).tolist(), evalset.n * len(ways)
    found: list[AblatedReading] = []
    limit, first, cut = 0.0, None, None
    for i, way in enumerate(ways):

        def step(done: int, _part: int, before: int = i * evalset.n) -> None:
            progress(before + done, total)

        moved = _moved(catalog, way.bundle)
        predictor = Predictor(way.bundle, prefix=way.prefix)
        found_scores = predictor.predict_batches(texts, progress=step, turns=query_turns(evalset))
        scores = found_scores.requirements
        data = sweep_catalog(evalset, moved, scores, today=today).data
        if cut is None:
            cut = _halves(data)
            limit = float(picked(data.cost_usd, replay(data, catalog.policy.tau)).mean())
        choice = choice_at_cost(data, cut, limit)
        run = policy_run(way.name, data, choice)
        first = first or run
        pearson, mae = _intrinsic(evalset, scores, way.bundle.dimensions)
        metrics = evaluate_choice(data, choice)
        found.append(AblatedReading(way.name, pearson, mae, metrics, compare(first, run)))
    return tuple(found)


def _moved(catalog: Catalog, bundle: Bundle) -> Catalog:
    """The catalog on a bundle's bands; derived capabilities follow."""
    if catalog.predictor_fingerprint == bundle.fingerprint:
        return catalog
    if bundle.dimensions != catalog.dimensions:
        raise MismatchError(f"bundle {bundle.name!r} has the dimensions {bundle.dimensions}")
    by_hand = [model.id for model in catalog.models if model.overrides]
    if by_hand:
        raise MismatchError(
            f"{', '.join(by_hand)}: capabilities set by hand hold on the score bands of "
            f"{catalog.predictor!r}; compare other bundles with a catalog that derives them"
        )
    return replace(
        catalog,
        predictor=bundle.name,
        predictor_fingerprint=bundle.fingerprint,
        bands=bundle.bands,
    )


def _intrinsic(
    evalset: EvalSet, scores: FloatArray, dimensions: Sequence[str]
) -> tuple[float | None, float | None]:
    labels = evalset.labels(dimensions)
    if labels is None:
        return None, None
    report = evaluate(scores, labels, dimensions, resamples=0)
    return _mean(report["pearson"]), _mean(report["mae"])


def _mean(by_dimension: object) -> float | None:
    values = by_dimension.values() if isinstance(by_dimension, dict) else ()
    known = [float(value) for value in values if value is not None]
    return float(np.mean(known)) if known else None
