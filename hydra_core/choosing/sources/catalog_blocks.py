"""From a catalog to what is fitted, and from what was fitted to the catalog's text.

Fitted profiles make an ordinary catalog with one dimension more. Its `level` is required in full by
every query: `Pool.capped` appends it to what a predictor scores. Success profiles make the block
`success_profiles` (see `success_profiles.py`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hydra_core.base.types import (
    LEVEL_DIMENSION,
    Band,
    Catalog,
    Chosen,
    FloatArray,
    Rule,
    Selection,
    SuccessSource,
)
from hydra_core.catalog.chosen_and_promised import record_choice
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.profiles import compensated_weights
from hydra_core.choosing.material import Outcomes
from hydra_core.choosing.sources.ladder import Kind, Rung
from hydra_core.choosing.sources.lift import Profiles, Ranked
from hydra_core.choosing.sources.profiles import FittedProfiles, FittedSuccess, Start
from hydra_core.evalsets.evalset import EvalSet, sample_of
from hydra_core.replay.replay import ReplayData

#: A level lies anywhere in [0, 1]; its band is that range.
_LEVEL_BAND: Final = Band(0.0, 1.0)
_LEVEL_OF_OTHERS: Final = 0.5
_DIGITS: Final = 4


def start_of(catalog: Catalog, data: ReplayData) -> Start:
    """Return what a catalog says already, for the models with outcomes.

    Args:
        catalog: Without a dimension `level`; see `unfitted`.
        data: Replayed under it.
    """
    data = data.with_outcomes
    return Start(
        catalog.bands,
        data.pool.capabilities,
        np.asarray(catalog.policy.weights, dtype=np.float64),
        data.pool.cost,
    )


def unfitted(text: str, catalog: Catalog) -> str:
    """Return the text of a catalog without its fitted profiles; others are returned as they are.

    Capabilities follow from benchmark rates again where a model has some, and weights are 1.

    Raises:
        CatalogError: The text cannot be edited so.
    """
    if LEVEL_DIMENSION not in catalog.dimensions:
        return text
    names = scored_dimensions(catalog)
    document = CatalogDocument.parse(text, catalog.source)
    document.set("dimensions", list(names))
    document.remove("bands", LEVEL_DIMENSION)
    document.set("policy", "weights", dict.fromkeys(names, 1))
    if LEVEL_DIMENSION in catalog.policy.defences.score_caps:
        document.remove("policy", "defences", "score_caps", LEVEL_DIMENSION)
    for model in catalog.models:
        cells = {name: model.overrides[name] for name in names if name in model.overrides}
        document.set("models", model.id, "capabilities", "derived" if model.scores else cells)
    return document.text()


def scored_dimensions(catalog: Catalog) -> tuple[str, ...]:
    """Return the dimensions that a predictor scores."""
    return tuple(name for name in catalog.dimensions if name != LEVEL_DIMENSION)


def prices_of(catalog: Catalog, models: tuple[str, ...]) -> FloatArray:
    """Return (m, 2) list prices, USD per million tokens read and written."""
    specs = [catalog.model(name) for name in models]
    return np.array([[s.input_usd_per_mtok, s.output_usd_per_mtok] for s in specs])


def with_source(
    text: str, catalog: Catalog, rung: Rung, outcomes: Outcomes, evalset: EvalSet
) -> str:
    """Return the catalog's text routed by one source that stands in YAML.

    Args:
        text: The catalog's YAML, without fitted profiles.
        rung: Fitted to `outcomes`.
        evalset: Whose outcomes they are; the catalog records that it was chosen on them.

    Raises:
        CatalogError: The text cannot be edited so.
    """
    match rung.profiles:
        case FittedSuccess() as success:
            return with_success_profiles(text, catalog, success, outcomes, evalset)
        case FittedProfiles() as fitted:
            document = CatalogDocument.parse(text, catalog.source)
            tau, own = _half_range_tau(fitted, outcomes), rung.kind is not Kind.PROFILES
            if not own:
                tau *= _set_profiles(document, catalog, fitted)
            document.set("policy", "rule", Rule.SHORTFALL.value)
            document.set("policy", "tau", round(tau, _DIGITS))
            return _recorded(document, evalset, knob_alone=own)
    raise ValueError(f"{rung.kind} do not stand in the catalog alone")


def _set_profiles(document: CatalogDocument, catalog: Catalog, fitted: FittedProfiles) -> float:
    """Write fitted profiles and weights; the factor of tau in the unit of the stored weights."""
    names = (*catalog.dimensions, LEVEL_DIMENSION)
    bands = (*catalog.bands, _LEVEL_BAND)
    stored = stored_weights(fitted.weights, bands)
    document.set("dimensions", list(names))
    document.set("bands", LEVEL_DIMENSION, [_LEVEL_BAND.lo, _LEVEL_BAND.hi])
    document.set("policy", "weights", dict(zip(names, stored.tolist(), strict=True)))
    cells = fitted.numbers(catalog.dimensions, _DIGITS)["capabilities"]
    for model in catalog.models:
        others = {**model.overrides, LEVEL_DIMENSION: _LEVEL_OF_OTHERS}
        document.set("models", model.id, "capabilities", cells.get(model.id, others))
    # the weights as they are compensated when the catalog is loaded
    return float(compensated_weights(stored, bands).sum() / fitted.weights.sum())


def stored_weights(compensated: FloatArray, bands: tuple[Band, ...]) -> FloatArray:
    """Return the stored weights w whose compensated weights are proportional to these (Eq. 4).

    Args:
        compensated: (K,) weights w~.
        bands: One per dimension.

    Returns:
        (K,) with sum K, four decimals.
    """
    stored = compensated * np.array([band.width for band in bands])
    result: FloatArray = np.round(stored / stored.sum() * len(stored), _DIGITS)
    return np.maximum(result, 10.0**-_DIGITS)


def with_success_profiles(
    text: str, catalog: Catalog, profiles: FittedSuccess, outcomes: Outcomes, evalset: EvalSet
) -> str:
    """Return the catalog's text with success profiles, and a V that spends half of the cost range.

    The policy routes by them from then on. A model without outcomes gets none: it is
    placed between the others when the catalog is loaded.

    Raises:
        CatalogError: The text cannot be edited so.
    """
    document = CatalogDocument.parse(text, catalog.source)
    block = {
        "evalset": {"name": evalset.name, "digest": evalset.digest},
        "queries": outcomes.n,
        **profiles.numbers(scored_dimensions(catalog)),
    }
    value_usd = 1.0 / max(_half_range_tau(profiles, outcomes), 1e-12)
    document.set("success_profiles", block)
    document.set("policy", "rule", Rule.VALUE.value)
    document.set("policy", "value_usd", float(f"{value_usd:.3g}"))
    if catalog.outcome_model is not None:
        document.set("policy", "success_from", SuccessSource.SUCCESS_PROFILES.value)
    return _recorded(document, evalset)


def _half_range_tau(profiles: Profiles, outcomes: Outcomes) -> float:
    """The tau that spends half of the cost range."""
    ranked = Ranked(outcomes, *profiles.rank(outcomes.requirements))
    return float(ranked.taus_at(np.array([0.5]))[0])


def _recorded(document: CatalogDocument, evalset: EvalSet, *, knob_alone: bool = False) -> str:
    """The text with a record that profiles and knob were chosen while looking at these queries."""
    sample = sample_of(evalset.query_marks)
    chosen = Chosen(evalset.queries_digest, evalset.name, Selection.LOOKED, knob_alone, sample)
    return record_choice(document.text(), chosen)
