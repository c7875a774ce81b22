"""Algorithm 1: benchmark evidence -> capabilities on the predictor's score bands, and weights.

On each dimension the weakest routable model gets the band's low end, the strongest its high end.
The file alone decides which models count, not the clock: `active` and `retiring` ones. The others
are shown on that same scale (cut to [0, 1]). Where all counting models have the same raw
capability each gets the band's high end, so the cheapest still wins.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Final

import numpy as np

from hydra_core.base.arrays import read_only
from hydra_core.base.errors import CatalogError, MismatchError, Problem, RoutingError
from hydra_core.base.types import (
    LEVEL_DIMENSION,
    Band,
    BoolArray,
    Catalog,
    CostBasis,
    FloatArray,
    ModelSpec,
    ModelStatus,
    Pool,
)
from hydra_core.catalog.editing.document import Value

#: Raw capabilities closer than this are one value: sums of the same rates differ by rounding only.
_SAME_RAW: Final = 1e-9


def raw_capabilities(scores: FloatArray, importance: FloatArray, omega: FloatArray) -> FloatArray:
    """Step 1: the importance-weighted mean of benchmark rates per dimension.

    Args:
        scores: (m, B) resolution rates in [0, 1], NaN where a model has none.
        importance: (B,) alpha_b >= 0.
        omega: (B, K) weight of each benchmark on each dimension, 0 = not exercised.

    Returns:
        (m, K); NaN where a rate that counts is missing, or no importance is given at all.
    """
    raw: FloatArray = _terms(scores, importance, omega).sum(axis=1)
    return raw


def _terms(scores: FloatArray, importance: FloatArray, omega: FloatArray) -> FloatArray:
    """(m, B, K) what each benchmark adds to each raw capability; 0 where it does not count."""
    total = importance.sum()
    if total <= 0:
        return np.full((*scores.shape, omega.shape[1]), np.nan)
    share = (importance[:, None] * omega / total)[None, :, :]
    return np.where(share > 0, share * scores[:, :, None], 0.0)


def to_band(raw: FloatArray, bands: Sequence[Band], counts: BoolArray | None = None) -> FloatArray:
    """Step 2: the affine map of each dimension's raw range onto the predictor's band.

    Args:
        raw: (m, K) raw capabilities, NaN where there is no evidence.
        counts: (m,) which models set the range; all of them if None.

    Returns:
        (m, K) in [0, 1]; the band's high end where the counting models do not differ.
    """
    lo = np.array([band.lo for band in bands])
    hi = np.array([band.hi for band in bands])
    setting = raw if counts is None else raw[counts]
    known = np.isfinite(setting)
    least = np.min(setting, axis=0, where=known, initial=np.inf)
    most = np.max(setting, axis=0, where=known, initial=-np.inf)
    spread = most - least
    differs = spread > _SAME_RAW
    position = (raw - np.where(differs, least, 0.0)) / np.where(differs, spread, 1.0)
    mapped = np.clip(lo + position * (hi - lo), 0.0, 1.0)
    return np.where(differs, mapped, np.where(np.isnan(raw), np.nan, hi))


def compensated_weights(weights: Sequence[float] | FloatArray, bands: Sequence[Band]) -> FloatArray:
    """w~ (K,), Eq. 4: a narrow band weighs more, and the sum of the weights is kept.

    Args:
        weights: (K,) the operator's stored weights w, > 0.
    """
    stored = np.asarray(weights, dtype=np.float64)
    per_width = stored / np.array([band.width for band in bands])
    return np.asarray(per_width / per_width.sum() * stored.sum(), dtype=np.float64)


def blended_price(spec: ModelSpec, price_ratio: float) -> float:
    """USD per million tokens at `price_ratio` input tokens for each output token."""
    return spec.price.blended(price_ratio)


def _evidence(catalog: Catalog) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores (m, B) with NaN where absent, importance (B,), omega (B, K)."""
    names = [benchmark.id for benchmark in catalog.benchmarks]
    scores = np.array(
        [[model.scores.get(name, np.nan) for name in names] for model in catalog.models]
    ).reshape(len(catalog.models), len(names))
    importance = np.array([benchmark.importance for benchmark in catalog.benchmarks])
    omega = np.array([benchmark.weights for benchmark in catalog.benchmarks])
    return scores, importance, omega.reshape(len(names), len(catalog.dimensions))


def contributions(catalog: Catalog) -> FloatArray:
    """(m, B, K): what each benchmark adds to each raw capability; their sum over B is the raw.

    NaN where a rate that counts is missing (a model whose capabilities are set by hand).
    """
    return _terms(*_evidence(catalog))


def capabilities(catalog: Catalog) -> FloatArray:
    """(m, K) for all models in catalog order; values set by hand stand where they are given.

    A value set by hand does not move the other models: the model's evidence, where it has any,
    still counts for the range of its pool. NaN only for a model that cannot be routed to.
    """
    raw = raw_capabilities(*_evidence(catalog))
    counts = np.array([model.status.in_pool for model in catalog.models], dtype=np.bool_)
    values = to_band(raw, catalog.bands, counts)
    for row, model in enumerate(catalog.models):
        for column, dimension in enumerate(catalog.dimensions):
            if dimension in model.overrides:
                values[row, column] = model.overrides[dimension]
    return values


def is_routable(model: ModelSpec, today: date) -> bool:
    """Active, or retiring on a later day than `today`."""
    if model.status is ModelStatus.RETIRING:
        return model.retire_on is not None and model.retire_on > today
    return model.status is ModelStatus.ACTIVE


def routable_models(catalog: Catalog, today: date) -> list[ModelSpec]:
    """The models that a policy routes to on a day, catalog order."""
    return [
        model
        for model in catalog.models
        if is_routable(model, today) and catalog.policy.require <= model.tags
    ]


def pool(
    catalog: Catalog,
    *,
    today: date,
    weights: Sequence[float] | None = None,
    realised_cost: Mapping[str, float] | None = None,
) -> Pool:
    """The routable models as the matcher's arrays, catalog order.

    Args:
        today: Decides whether a retiring model is still routed to.
        weights: (K,) stored weights to use instead of the policy's.
        realised_cost: Mean realised cost by model id, USD per query, for the cost basis
            `realised`; the catalog's own, where it has them, go before. Under `list_price` the
            blended list price orders the models.

    Raises:
        MismatchError: The policy's cost basis is realised and no cost is given, or a routable
            model has none.
        RoutingError: No model is routable on that day.
        CatalogError: `weights` does not hold one number > 0 per dimension.
    """
    require, models = catalog.policy.require, routable_models(catalog, today)
    ids = tuple(model.id for model in models)
    rows = [row for row, model in enumerate(catalog.models) if model.id in ids]
    if not models:
        raise RoutingError(
            f"{catalog.source or catalog.name}: no model is routable on {today.isoformat()}"
            + (f" that has the tags {', '.join(sorted(require))}" if require else ""),
            http_status=503,
        )
    stored = _stored_weights(catalog, weights)
    return Pool(
        ids=ids,
        capabilities=read_only(capabilities(catalog)[rows]),
        cost=read_only(rank_costs(catalog, models, realised_cost)),
        weights=read_only(compensated_weights(stored, catalog.bands)),
        caps=_caps(catalog),
        level=catalog.dimensions[-1:] == (LEVEL_DIMENSION,),
        variants={model.id: model.variant_of for model in models if model.variant_of},
    )


def _caps(catalog: Catalog) -> FloatArray | None:
    given = catalog.policy.defences.score_caps
    if not given:
        return None
    return read_only(np.array([given.get(name, 1.0) for name in catalog.dimensions]))


def _stored_weights(catalog: Catalog, weights: Sequence[float] | None) -> FloatArray:
    stored = np.asarray(catalog.policy.weights if weights is None else weights, dtype=np.float64)
    wanted = len(catalog.dimensions)
    if stored.shape != (wanted,) or not (np.isfinite(stored) & (stored > 0)).all():
        message = f"must be {wanted} numbers > 0, got {stored.ravel()[:8].tolist()}"
        remedy = f"one for each of {', '.join(catalog.dimensions)}"
        raise CatalogError(catalog.source or catalog.name, [Problem("weights", message, remedy)])
    return stored


def estimated_costs(catalog: Catalog, known: Mapping[str, float]) -> dict[str, float]:
    """USD per query of the models that were never called: price times the others' mean tokens.

    Args:
        known: Model id -> mean realised cost, USD per query.

    Returns:
        An estimate for every other model; nothing where no cost is known.
    """
    tokens = mean_tokens(catalog, known)
    if np.isnan(tokens):
        return {}
    ratio = catalog.policy.price_ratio
    return {m.id: tokens * blended_price(m, ratio) for m in catalog.models if m.id not in known}


def mean_tokens(catalog: Catalog, known: Mapping[str, float]) -> float:
    """Millions of tokens a query takes, by the models whose mean cost is known; NaN without one."""
    ratio = catalog.policy.price_ratio
    prices = {m.id: blended_price(m, ratio) for m in catalog.models if m.id in known}
    tokens = [known[model] / price for model, price in prices.items() if price > 0]
    return float(np.mean(tokens)) if tokens else float("nan")


def rank_costs(
    catalog: Catalog, models: Sequence[ModelSpec], realised_cost: Mapping[str, float] | None
) -> FloatArray:
    """(m,) what orders some models of a catalog from cheap to dear; as in `pool`."""
    if catalog.policy.cost_basis is CostBasis.LIST_PRICE:
        return np.array([blended_price(model, catalog.policy.price_ratio) for model in models])
    if catalog.realised_costs is not None:
        known = catalog.realised_costs.usd_per_query
        realised_cost = {**estimated_costs(catalog, known), **known}
    if realised_cost is None:
        raise MismatchError(
            f"{catalog.source or catalog.name}: the cost basis is 'realised', which needs an eval "
            "set's mean cost per model; choose an eval set, or set cost_basis: list_price"
        )
    missing = [
        model.id for model in models if not 0 <= realised_cost.get(model.id, np.nan) < np.inf
    ]
    if missing:
        raise MismatchError(
            f"{catalog.source or catalog.name}: no realised cost for {', '.join(missing)}; choose "
            "an eval set that has them, or set cost_basis: list_price"
        )
    return np.array([float(realised_cost[model.id]) for model in models])


def evidence_like(catalog: Catalog, model: str) -> dict[str, Value]:
    """The evidence of another model, as a start."""
    spec = catalog.model(model)
    levels: Value = dict(spec.overrides) or "derived"
    return {"scores": dict(spec.scores), "capabilities": levels}


def benchmark_rates(catalog: Catalog) -> dict[str, float]:
    """Model id -> mean rate over the benchmarks by their importance, of models with all rates."""
    return {
        model.id: sum(b.importance * model.scores[b.id] for b in catalog.benchmarks)
        / sum(b.importance for b in catalog.benchmarks)
        for model in catalog.models
        if _has_all_rates(catalog, model) and any(b.importance for b in catalog.benchmarks)
    }


def evidence_at_rate(catalog: Catalog, rate: float, known: Mapping[str, float]) -> dict[str, Value]:
    """The evidence of a model that resolves this share of some queries, between its neighbours.

    Each benchmark rate is interpolated between those of the models that resolve a little less and
    a little more; beyond the weakest and the strongest it goes on to 0 and to 1. Where the models
    have no rates, capabilities are interpolated instead and count as set by hand.

    Args:
        rate: Share of the queries that it resolves, in [0, 1].
        known: Model id -> share that it resolves of the same queries; at least one of the catalog.
    """
    models = sorted((m for m in catalog.models if m.id in known), key=lambda m: known[m.id])
    at = [known[model.id] for model in models]
    if catalog.benchmarks and all(_has_all_rates(catalog, model) for model in models):
        scores = {
            b.id: round(_between(rate, at, [m.scores[b.id] for m in models]), 4)
            for b in catalog.benchmarks
        }
        return {"scores": scores, "capabilities": "derived"}
    ids = [model.id for model in catalog.models]
    levels: FloatArray = capabilities(catalog)[[ids.index(model.id) for model in models]]
    return {
        "capabilities": {
            dimension: round(float(np.interp(rate, at, levels[:, k])), 4)
            for k, dimension in enumerate(catalog.dimensions)
        }
    }


def _has_all_rates(catalog: Catalog, model: ModelSpec) -> bool:
    return bool(catalog.benchmarks) and all(b.id in model.scores for b in catalog.benchmarks)


def _between(rate: float, at: Sequence[float], values: Sequence[float]) -> float:
    """`values` read at `rate`, with (0, 0) and (1, 1) beyond both ends."""
    points = [(a, v) for a, v in zip(at, values, strict=True) if 0.0 < a < 1.0]
    x, y = np.array([(0.0, 0.0), *points, (1.0, 1.0)]).T
    return float(np.interp(rate, x, y))
