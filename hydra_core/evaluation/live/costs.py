"""What the served traffic cost, against one model for everything: same tokens, one price list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from hydra_core.catalog.profiles import pool
from hydra_core.evaluation.live.traffic import Traffic
from hydra_core.evaluation.significance import Interval, ratio_interval
from hydra_core.types import BoolArray, Catalog, FloatArray, ModelSpec

__all__ = ["CostAgainst", "against", "ends", "priced", "tokens_usd"]


@dataclass(frozen=True, slots=True)
class CostAgainst:
    """The bill beside the bill of another policy on the same tokens.

    Attributes:
        baseline: Name of the other policy.
        paid_usd, baseline_usd: Totals by the same price list.
        change: paid / baseline - 1: below 0 the traffic cost less.
        counted: Requests with known tokens.
    """

    baseline: str
    paid_usd: float
    baseline_usd: float
    change: Interval
    counted: int


def ends(catalog: Catalog, today: date) -> tuple[str, str]:
    """The cheapest and the costliest routable model, as the catalog orders them by cost."""
    routable = pool(catalog, today=today)
    return routable.ids[int(routable.cost.argmin())], routable.ids[int(routable.cost.argmax())]


def priced(traffic: Traffic, catalog: Catalog) -> BoolArray:
    """(n,) whether a decision's tokens are known and its model has a price in the catalog."""
    known = {model.id for model in catalog.models}
    counted = traffic.rows[["input_tokens", "output_tokens"]].notna().all(axis=1)
    return np.asarray(counted & traffic.models.isin(known), dtype=bool)


def tokens_usd(traffic: Traffic, specs: Sequence[ModelSpec]) -> FloatArray:
    """(n,) cost of each decision's tokens on the model given for it, USD.

    What was read from the served model's prompt cache is billed at the cached price on any model.
    """
    prices = np.array([_prices(spec) for spec in specs]).reshape(len(specs), 3)
    read, written = (
        traffic.rows[name].to_numpy(dtype=np.float64) for name in ("input_tokens", "output_tokens")
    )
    cached = traffic.rows["cached_tokens"].fillna(0).to_numpy(dtype=np.float64)
    tokens = np.column_stack([read - cached, cached, written])
    cost: FloatArray = 1e-6 * (tokens * prices).sum(axis=1)
    return cost


def against(
    traffic: Traffic, catalog: Catalog, others: Sequence[str], baseline: str
) -> CostAgainst | None:
    """The served models against others, both by the catalog's prices; None where nothing counts.

    Args:
        others: (n,) the model that the other policy would have used; '' where it is not known.
        baseline: Its name.
    """
    usable = priced(traffic, catalog) & np.array([bool(name) for name in others])
    if not usable.any():
        return None
    some = traffic.take(usable)
    paid = tokens_usd(some, [catalog.model(name) for name in some.models])
    other = tokens_usd(some, [catalog.model(n) for n, u in zip(others, usable, strict=True) if u])
    change = ratio_interval(paid, other, some.clusters).scaled(1.0, -1.0)
    return CostAgainst(baseline, float(paid.sum()), float(other.sum()), change, len(some))


def _prices(spec: ModelSpec) -> tuple[float, float, float]:
    """USD per million tokens: read afresh, read from the prompt cache, written."""
    read, cached = spec.input_usd_per_mtok, spec.cached_input_usd_per_mtok
    return read, read if cached is None else cached, spec.output_usd_per_mtok
