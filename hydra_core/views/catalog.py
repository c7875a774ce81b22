"""From a catalog to the tables that show it. No streamlit."""

from __future__ import annotations

import pandas as pd

from hydra_core.catalog.profiles import blended_price, capabilities
from hydra_core.types import Catalog

__all__ = ["pool_table"]


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
