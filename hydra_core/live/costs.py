"""What the served traffic cost, against one model for everything: same tokens, one price list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from hydra_core.base.intervals import Interval
from hydra_core.base.list_price import ListPrice
from hydra_core.base.types import Catalog, FloatArray, ModelSpec
from hydra_core.catalog.profiles import pool
from hydra_core.live.traffic import Traffic
from hydra_core.replay.significance import ratio_interval


@dataclass(frozen=True, slots=True)
class CostAgainst:
    """A policy's bill beside that of a baseline on the same tokens.

    Attributes:
        change: cost / baseline - 1: below 0 the policy costs less.
        counted: Requests with known tokens.
    """

    baseline: str
    cost_usd: float
    baseline_usd: float
    change: Interval
    counted: int


def ends(catalog: Catalog, today: date) -> tuple[str, str]:
    """The cheapest and the costliest routable model, as the catalog orders them by cost."""
    routable = pool(catalog, today=today)
    return routable.ids[int(routable.cost.argmin())], routable.ids[int(routable.cost.argmax())]


def tokens_usd(traffic: Traffic, specs: Sequence[ModelSpec]) -> FloatArray:
    """(n,) cost of each decision's tokens on the model given for it, USD.

    What was read from the served model's prompt cache is billed at the cached price on any model.
    """
    read, written = (
        traffic.rows[name].to_numpy(dtype=np.float64) for name in ("input_tokens", "output_tokens")
    )
    cached = traffic.rows["cached_tokens"].fillna(0).to_numpy(dtype=np.float64)
    cost = np.empty(len(specs))
    rows: dict[ListPrice, list[int]] = {}
    for row, spec in enumerate(specs):
        rows.setdefault(spec.price, []).append(row)
    for price, at in rows.items():
        cost[at] = price.usd(read[at], written[at], cached[at])
    return cost


def against(
    traffic: Traffic,
    catalog: Catalog,
    ours: Sequence[str],
    others: Sequence[str] | None,
    baseline: str,
) -> CostAgainst | None:
    """One policy against another on the same tokens, both by the catalog's prices.

    Args:
        ours: (n,) the model of each decision, such as `traffic.models`.
        others: (n,) the model that the baseline uses for it; None for what was billed, at the
            prices of then.

    Returns:
        None where no decision has known tokens and two models with a price, or a bill.
    """
    known = {model.id for model in catalog.models}
    columns = ["input_tokens", "output_tokens", *(["cost_usd"] if others is None else [])]
    both = [{a, b} <= known for a, b in zip(ours, ours if others is None else others, strict=True)]
    usable = np.asarray(traffic.rows[columns].notna().all(axis=1), dtype=bool) & np.array(both)
    if not usable.any():
        return None
    some, rows = traffic.take(usable), np.flatnonzero(usable).tolist()

    def bill(names: Sequence[str]) -> FloatArray:
        return tokens_usd(some, [catalog.model(names[i]) for i in rows])

    mine = bill(ours)
    theirs = some.rows["cost_usd"].to_numpy(np.float64) if others is None else bill(others)
    change = ratio_interval(mine, theirs, some.clusters).scaled(1.0, -1.0)
    return CostAgainst(baseline, float(mine.sum()), float(theirs.sum()), change, len(some))


def cost_of_trying_all(traffic: Traffic, catalog: Catalog, today: date) -> float | None:
    """USD more, had every decision been drawn among all models; None where no tokens are known."""
    ids = pool(catalog, today=today).ids
    counted = traffic.rows[["input_tokens", "output_tokens"]].notna().all(axis=1)
    known = np.asarray(counted, dtype=bool) & np.asarray(traffic.models.isin(ids), dtype=bool)
    if not known.any():
        return None
    some = traffic.take(known)
    served = tokens_usd(some, [catalog.model(name) for name in some.models])
    each = [tokens_usd(some, [catalog.model(name)] * len(some)) for name in ids]
    return float((np.mean(each, axis=0) - served).sum())
