"""A catalog's bands beside those that an eval set's own requirements would give. No streamlit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hydra_core.evaluation.replay.replay import ReplayData
from hydra_core.types import Band, Catalog, FloatArray

__all__ = ["band_table", "fails_open"]


def band_table(
    catalog: Catalog, requirements: FloatArray, proposed: Sequence[Band]
) -> pd.DataFrame:
    """One row a dimension: both bands, and the share of queries below and above each, in percent.

    Args:
        requirements: (n, K) of the eval set, NaN where not scored.
        proposed: (K,) the other bands.
    """
    scored = requirements[np.isfinite(requirements).all(axis=1)]
    rows = []
    for k, dimension in enumerate(catalog.dimensions):
        row: dict[str, object] = {"dimension": dimension.replace("_", " ").capitalize()}
        for name, band in (("now", catalog.bands[k]), ("then", proposed[k])):
            row[f"{name}_band"] = f"{band.lo:.3f} to {band.hi:.3f}"
            row[f"{name}_below"] = 100 * float((scored[:, k] < band.lo).mean())
            row[f"{name}_above"] = 100 * float((scored[:, k] > band.hi).mean())
        rows.append(row)
    return pd.DataFrame(rows)


def fails_open(data: ReplayData, tau: float) -> float:
    """Share of queries, in [0, 1], for which no model is eligible at tau."""
    return float((data.shortfalls().min(axis=1) > tau).mean())
