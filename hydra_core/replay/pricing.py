"""What an eval set's queries would cost at a catalog's prices of today.

An edited price moves recorded costs where the data allow it: recorded tokens times today's price;
else the recorded cost scaled by the ratio of the blended prices; else they stay as they are.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from hydra_core.base.arrays import read_only
from hydra_core.base.list_price import ListPrice
from hydra_core.base.types import Catalog, FloatArray
from hydra_core.catalog import profiles
from hydra_core.evalsets.evalset import EvalSet


class Prices(StrEnum):
    """Which prices a replay's costs follow."""

    TODAY = "today"
    RECORDED = "recorded"


class CostSource(StrEnum):
    """Where one model's costs come from."""

    TOKENS = "tokens"
    SAME_PRICE = "same_price"
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

    def note(self, models: Sequence[str]) -> str:
        """What the costs of these models stand on where that has to be known; else empty."""
        sentences = []
        for kind, text in _TOLD.items():
            named = [model for model in models if self.sources.get(model) is kind]
            if named:
                which = "" if len(named) == len(models) else f" ({', '.join(named)})"
                sentences.append(f"{text}{which}.")
        return " ".join(sentences)

    def summary(self, models: Sequence[str]) -> str:
        """Which prices the costs of these models stand on, in one phrase."""
        if not self.sources:
            return "as recorded"
        kinds = dict.fromkeys(self.sources[model] for model in models if model in self.sources)
        if set(kinds) == {CostSource.RECORDED}:
            return RECORDED_COSTS.lower()
        if CostSource.RECORDED in kinds:
            named = [m for m in models if self.sources.get(m) is CostSource.RECORDED]
            return f"the catalog's prices; {RECORDED_COSTS.lower()} for {', '.join(named)}"
        return "the catalog's prices"


#: What is said beside a cost that an edited price does not move.
RECORDED_COSTS: Final = "Price edits do not change this set's costs"

_TOLD = {
    CostSource.TOKENS: "Costs: recorded tokens times the catalog's prices",
    CostSource.SCALED: "Costs: as recorded, scaled to the catalog's prices",
}


def priced_costs(evalset: EvalSet, catalog: Catalog, prices: Prices = Prices.TODAY) -> PricedCosts:
    """The eval set's costs at the catalog's prices, or as they were recorded.

    A model's recorded tokens are used where every outcome of it has them. Cached input is priced
    as such where the set says how much of the input it was and the catalog has its price.

    Args:
        prices: RECORDED leaves every cost as it is.
    """
    if prices is Prices.RECORDED:
        return PricedCosts(evalset.cost_usd, {})
    known = {model.id: model.price for model in catalog.models}
    return costs_at(evalset, known, catalog.policy.price_ratio)


def costs_at(evalset: EvalSet, known: Mapping[str, ListPrice], price_ratio: float) -> PricedCosts:
    """The eval set's costs at these prices; see `priced_costs`.

    Args:
        price_ratio: Input tokens per output token, for sets without tokens.
    """
    usd = np.array(evalset.cost_usd)
    sources = {}
    for column, model in enumerate(evalset.models):
        if model not in known:
            continue
        sources[model] = CostSource.RECORDED
        by_tokens = _token_costs(evalset, column, known[model])
        then = evalset.prices.get(model)
        if by_tokens is not None:
            usd[:, column], sources[model] = by_tokens, CostSource.TOKENS
        elif then == known[model]:
            sources[model] = CostSource.SAME_PRICE
        elif then is not None and then.blended(price_ratio) > 0:
            usd[:, column] *= known[model].blended(price_ratio) / then.blended(price_ratio)
            sources[model] = CostSource.SCALED
    return PricedCosts(read_only(usd), sources)


def _token_costs(evalset: EvalSet, column: int, price: ListPrice) -> FloatArray | None:
    """(n,) USD by tokens, None where some outcome of the model lacks them."""
    tokens = [evalset.extras.get(name) for name in ("input_tokens", "output_tokens")]
    if tokens[0] is None or tokens[1] is None:
        return None
    read, written = tokens[0][:, column], tokens[1][:, column]
    with_outcome = np.isfinite(evalset.quality[:, column])
    if not np.isfinite(read + written)[with_outcome].all():
        return None
    cached = evalset.extras.get("cached_input_tokens")
    return price.usd(read, written, 0.0 if cached is None else cached[:, column])


def estimated_costs(
    evalset: EvalSet, catalog: Catalog, usd: FloatArray, measured: Collection[str]
) -> dict[str, float]:
    """USD per query of the catalog's models without outcomes, from their list prices.

    The mean of what the other models' answers would cost at its price, where the set has tokens;
    else its price times the tokens that their costs come to at their blended prices.

    Args:
        usd: (n, m) costs of the set, columns as in it.
    """
    read, written = (evalset.extras.get(name) for name in ("input_tokens", "output_tokens"))
    if read is not None and written is not None:
        counted = np.isfinite(read + written)
        if counted.any():
            return {
                model.id: float(model.price.usd(read[counted], written[counted]).mean())
                for model in catalog.models
                if model.id not in measured
            }
    known = {
        name: float(np.nanmean(usd[:, i]))
        for i, name in enumerate(evalset.models)
        if name in measured and np.isfinite(usd[:, i]).any()
    }
    return profiles.estimated_costs(catalog, known)
