"""What an eval set's queries would cost at a catalog's prices of today.

Recorded costs are what the models were billed when the set was made. An edited price moves them
where the data allow it: recorded tokens times today's price; else the recorded cost scaled by the
ratio of today's blended price to the one at recording; else they stay as they are, and are called
so wherever they are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.types import Catalog, FloatArray, ListPrice

__all__ = ["CostSource", "PricedCosts", "Prices", "priced_costs"]


class Prices(StrEnum):
    """Which prices a replay's costs follow."""

    TODAY = "today"
    RECORDED = "recorded"


class CostSource(StrEnum):
    """Where one model's costs come from."""

    TOKENS = "tokens"
    SCALED = "scaled"
    RECORDED = "recorded"


@dataclass(frozen=True, slots=True, eq=False)
class PricedCosts:
    """Costs of an eval set under one catalog.

    Attributes:
        usd: (n, m) USD per query, columns as in the eval set; NaN where it is not known.
        sources: Model id -> where its costs come from; the catalog's models alone.
    """

    usd: FloatArray
    sources: Mapping[str, CostSource]

    @property
    def note(self) -> str:
        """What these costs stand on, as one or two sentences."""
        by = {kind: [m for m, s in self.sources.items() if s is kind] for kind in CostSource}
        every = len(self.sources)
        told = []
        for kind, text in _TOLD.items():
            if by[kind]:
                who = "" if len(by[kind]) == every else f" ({', '.join(by[kind])})"
                told.append(f"{text}{who}.")
        return " ".join(told)

    @property
    def follow_prices(self) -> bool:
        """Whether every model's costs move with its price."""
        return CostSource.RECORDED not in self.sources.values()


_TOLD = {
    CostSource.TOKENS: "Costs: recorded tokens times the catalog's prices",
    CostSource.SCALED: "Costs: as recorded, scaled to the catalog's prices",
    CostSource.RECORDED: "Recorded costs, not your new price",
}


def priced_costs(evalset: EvalSet, catalog: Catalog, prices: Prices = Prices.TODAY) -> PricedCosts:
    """The eval set's costs at the catalog's prices, or as they were recorded.

    A model's recorded tokens are used where every outcome of it has them. Cached input is priced
    as such where the set says how much of the input it was and the catalog has its price.

    Args:
        prices: RECORDED leaves every cost as it is.
    """
    known = {model.id: model.price for model in catalog.models}
    ratio = catalog.policy.price_ratio
    usd = np.array(evalset.cost_usd)
    sources = {}
    for column, model in enumerate(evalset.models):
        if model not in known:
            continue
        sources[model] = CostSource.RECORDED
        if prices is Prices.RECORDED:
            continue
        by_tokens = _token_costs(evalset, column, known[model])
        then = evalset.prices.get(model)
        if by_tokens is not None:
            usd[:, column], sources[model] = by_tokens, CostSource.TOKENS
        elif then is not None:
            usd[:, column] *= known[model].blended(ratio) / then.blended(ratio)
            sources[model] = CostSource.SCALED
    usd.setflags(write=False)
    return PricedCosts(usd, sources)


def _token_costs(evalset: EvalSet, column: int, price: ListPrice) -> FloatArray | None:
    """(n,) USD by tokens, None where some outcome of the model lacks them."""
    tokens = [evalset.extras.get(name) for name in ("input_tokens", "output_tokens")]
    if tokens[0] is None or tokens[1] is None:
        return None
    read, written = tokens[0][:, column], tokens[1][:, column]
    with_outcome = np.isfinite(evalset.quality[:, column])
    if not np.isfinite(read + written)[with_outcome].all():
        return None
    usd = read * price.input_usd_per_mtok + written * price.output_usd_per_mtok
    cached = evalset.extras.get("cached_input_tokens")
    if cached is not None and price.cached_input_usd_per_mtok is not None:
        saving = price.input_usd_per_mtok - price.cached_input_usd_per_mtok
        usd = usd - np.nan_to_num(cached[:, column]) * saving
    return np.asarray(usd / 1e6, dtype=np.float64)
