"""Where a new model stands before it has outcomes: by a success rate, or like another model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hydra_core.base.types import Catalog, FloatArray, ModelSpec
from hydra_core.catalog.editing.render import Value
from hydra_core.catalog.profiles import capabilities


def like(catalog: Catalog, model: str) -> dict[str, Value]:
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


def at_success_rate(catalog: Catalog, rate: float, known: Mapping[str, float]) -> dict[str, Value]:
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
