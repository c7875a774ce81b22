"""From a catalog to the tables that show it. No streamlit."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hydra_core.base.types import Catalog
from hydra_core.catalog.profiles import blended_price, capabilities


def pool_table(catalog: Catalog) -> pd.DataFrame:
    """One row per model, cheapest first: status, prices in USD per Mtok, capabilities."""
    values = capabilities(catalog)
    ratio = catalog.policy.price_ratio
    frame = pd.DataFrame(
        {
            "model": [model.id for model in catalog.models],
            "status": [model.status.value for model in catalog.models],
            "price": [blended_price(model, ratio) for model in catalog.models],
        }
    )
    for k, dimension in enumerate(catalog.dimensions):
        frame[dimension] = values[:, k]
    return frame.sort_values("price", ignore_index=True, kind="stable")


def moved_by_pool(before: Catalog, after: Catalog) -> tuple[str, ...]:
    """Models whose capabilities moved though nothing of their own was edited.

    Capabilities are relative: the weakest counting model of the pool gets a band's low end, the
    strongest its high end, so a model that joins or leaves moves the others.
    """
    if (before.benchmarks, before.bands) != (after.benchmarks, after.bands):
        return ()
    old = {m.id: (m, row) for m, row in zip(before.models, capabilities(before), strict=True)}
    moved = []
    for model, now in zip(after.models, capabilities(after), strict=True):
        if model.id not in old:
            continue
        was, then = old[model.id]
        same = (was.scores, was.overrides) == (model.scores, model.overrides)
        if same and not np.allclose(then, now, atol=5e-4, equal_nan=True):
            moved.append(model.id)
    return tuple(moved)
