"""A first catalog from an eval set: profiles, bands and cost order from the operator's own data.

Capabilities come from Algorithm 1 with every query of a training half as a benchmark that
exercises each dimension as far as its requirement says. Added up over the queries, that is one
benchmark a dimension whose rate is the requirement-weighted mean quality, and so it is written.
Prices are given, never guessed; what the data do not say is written as a stated assumption.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

import numpy as np

from hydra_core.catalog.prices.price_file import GivenPrice
from hydra_core.catalog.schema import parse_catalog
from hydra_core.errors import CatalogError, EvalSetError, Problem
from hydra_core.evaluation.choose.catalog_text import PRICE_RATIO, CatalogText
from hydra_core.evaluation.choose.under_hull import UnderHull, under_hull
from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.evaluation.replay.folds import folds
from hydra_core.evaluation.replay.operating_point import knee
from hydra_core.evaluation.replay.pricing import costs_at
from hydra_core.evaluation.replay.replay import (
    ReplayData,
    align,
    align_catalog,
    data_frontier,
)
from hydra_core.types import Band, Catalog, FloatArray, ListPrice, Pool

__all__ = ["InitialCatalog", "bands_of", "initial_catalog", "price_order_warnings"]

_PERCENTILES: Final = (5.0, 95.0)
_LEAST_WIDTH: Final = 0.01


@dataclass(frozen=True, slots=True)
class InitialCatalog:
    """A catalog made from an eval set, not yet on disk.

    Attributes:
        text: Its YAML; valid.
        assumptions: What was assumed, one sentence each.
        warnings: What to look at, one sentence each.
        under_hull: Models that a mixture of others beats beyond doubt at the same cost.
        left_out: Those of them that were left out.
        trained_on: Queries that profiles and tau come from.
    """

    text: str
    catalog: Catalog
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    under_hull: tuple[UnderHull, ...]
    left_out: tuple[str, ...]
    trained_on: int


def initial_catalog(
    evalset: EvalSet,
    requirements: FloatArray,
    prices: Mapping[str, GivenPrice],
    *,
    name: str,
    predictor: str,
    fingerprint: str,
    dimensions: Sequence[str],
    models: Sequence[str] = (),
    cut_to_hull: bool = False,
    today: date,
    seed: int = 0,
) -> InitialCatalog:
    """Make a catalog that fits an eval set.

    Args:
        requirements: (n, K) by the bundle that the catalog is bound to, NaN where not scored.
        prices: Model id -> list price; every model of the catalog needs one.
        predictor: Name of the bundle; `fingerprint` and `dimensions` are the same bundle's.
        models: Which of the set's models, default all with an outcome.
        cut_to_hull: Leave out models under the hull of the others.
        today: Date of prices that come without one.
        seed: Draws the training half.

    Raises:
        EvalSetError: An unknown model, too few queries, or no query complete.
        CatalogError: A model without a price; all of them are listed.
    """
    wanted = _chosen(evalset, models)
    _require_prices(wanted, prices, evalset)
    evalset = _with_costs(evalset, {model: prices[model].price for model in wanted})
    data = _aligned(evalset, requirements, wanted)
    train = folds(data, 2, np.random.default_rng(seed))[0].train
    below = under_hull(data.take(train)) if len(wanted) > 1 else ()
    left_out = tuple(one.model for one in below) if cut_to_hull else ()
    kept = [model for model in wanted if model not in left_out]
    if left_out:
        data = _aligned(evalset, requirements, kept)
    writer = CatalogText(evalset, data.take(train), prices, tuple(dimensions), today)
    text = writer.text(name, predictor, fingerprint, bands_of(requirements), tau=0.0)
    tau = _knee(text, evalset, requirements, train, today)
    text = writer.text(name, predictor, fingerprint, bands_of(requirements), tau=tau)
    catalog = parse_catalog(text, name)
    return InitialCatalog(
        text=text,
        catalog=catalog,
        assumptions=tuple(writer.assumptions),
        warnings=price_order_warnings(catalog),
        under_hull=below,
        left_out=left_out,
        trained_on=train.size,
    )


def bands_of(requirements: FloatArray) -> tuple[Band, ...]:
    """Per dimension the 5th to 95th percentile of (n, K) requirements, NaN rows left out.

    A dimension on which all queries ask for the same gets the least width that a band can have.
    """
    scored = requirements[np.isfinite(requirements).all(axis=1)]
    low, high = np.percentile(scored, _PERCENTILES, axis=0)
    bands = []
    for lo, hi in zip(low.tolist(), high.tolist(), strict=True):
        lo = min(round(lo, 4), 1 - _LEAST_WIDTH)
        bands.append(Band(lo, max(round(hi, 4), round(lo + _LEAST_WIDTH, 4))))
    return tuple(bands)


def price_order_warnings(catalog: Catalog) -> tuple[str, ...]:
    """Models whose list price and realised cost order them differently; one sentence a pair."""
    if catalog.realised_costs is None:
        return ()
    realised = catalog.realised_costs.usd_per_query
    blended = {m.id: m.price.blended(catalog.policy.price_ratio) for m in catalog.models}
    by_cost = sorted((m for m in blended if m in realised), key=lambda m: realised[m])
    return tuple(
        f"{dearer} is the dearer one by list price (${blended[dearer]:.3g} against "
        f"${blended[cheaper]:.3g} per Mtok, blended) but costs less per query here "
        f"(${realised[dearer]:.4g} against ${realised[cheaper]:.4g}): the catalog goes by the "
        "realised cost"
        for dearer, cheaper in zip(by_cost, by_cost[1:], strict=False)
        if blended[dearer] > blended[cheaper]
    )


def _chosen(evalset: EvalSet, models: Sequence[str]) -> tuple[str, ...]:
    known = tuple(m for m in evalset.models if evalset.missing_quality[m] < evalset.n)
    problems = [
        Problem(model, "has no outcomes in this eval set", f"its models: {', '.join(known)}")
        for model in models
        if model not in known
    ]
    if len(set(models)) < len(models):
        problems.append(Problem("models", "one is named twice", "name each once"))
    if problems:
        raise EvalSetError(evalset.name, problems)
    return tuple(models) or known


def _require_prices(
    models: Sequence[str], prices: Mapping[str, GivenPrice], evalset: EvalSet
) -> None:
    problems = [
        Problem(
            model, "has no price", f"add '{model}: {{input: ..., output: ...}}' in USD per Mtok"
        )
        for model in models
        if model not in prices
    ]
    if problems:
        raise CatalogError(f"prices for {evalset.name}", problems)


def _aligned(evalset: EvalSet, requirements: FloatArray, models: Sequence[str]) -> ReplayData:
    """Queries with an outcome and a score; costs may be missing, the prices order the pool then."""
    k, m = requirements.shape[1], len(models)
    pool = Pool(tuple(models), np.zeros((m, k)), np.arange(m, dtype=np.float64), np.ones(k))
    data = align(_costed(evalset), requirements, pool)
    if len(data.query_ids) < 4:
        remedy = "import more, or leave out the models that lack outcomes"
        message = f"only {len(data.query_ids)} queries have outcomes of every model"
        raise EvalSetError(evalset.name, [Problem("", message, remedy)])
    return data


def _with_costs(evalset: EvalSet, prices: Mapping[str, ListPrice]) -> EvalSet:
    """The set with what it would cost at these prices, where tokens or old prices are known."""
    return replace(evalset, cost_usd=costs_at(evalset, prices, PRICE_RATIO).usd)


def _costed(evalset: EvalSet) -> EvalSet:
    """The set itself; one without any cost with zeros, so that it can be replayed by quality."""
    if np.isfinite(evalset.cost_usd).any():
        return evalset
    return replace(evalset, cost_usd=np.zeros_like(evalset.cost_usd))


def _knee(
    text: str, evalset: EvalSet, requirements: FloatArray, rows: np.ndarray, today: date
) -> float:
    catalog = parse_catalog(text)
    half = align_catalog(_costed(evalset), catalog, requirements, today=today).take(rows)
    curve = data_frontier(half)
    return curve.tidy(knee(curve).knob)
