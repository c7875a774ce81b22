"""Learn from queries with outcomes of some models only, such as a log's: one joint ridge over all.

An outcome of model m on query x is f0(x) + mu_m + d_m(x), all parts shrunk. Which model served a
logged query depended on the query alone, so its outcomes need no weights. The ridge is averaged
with what queries say that every model answered.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from hydra_core.base.types import Float32Array, FloatArray
from hydra_core.choosing.material import Material
from hydra_core.choosing.sources.few_outcomes import few_features, shared_costs, with_products
from hydra_core.outcome_model.heads import Linear
from hydra_core.outcome_model.model import OutcomeHeads, Part

#: What is learned from a log alone, in words.
LOG_RECIPE: Final = "joint ridge on logged outcomes"
#: Of the joint ridge beside heads of complete rows: on 250 complete and 2,000 logged queries a half
#: was best of a quarter, a half and all.
_SHARE: Final = 0.5
#: Penalties of f0, of each model's mean difference and of its slopes, times the outcomes.
_SHARED_PENALTY: Final = 0.1
_MEAN_PENALTY: Final = 0.02
_DIFFERENCE_PENALTY: Final = 1.0


def ridge_of_cells(columns: Float32Array, quality: FloatArray) -> Linear:
    """Fit f0, mu_m and d_m to every known outcome: (n, p), (n, m) with NaN -> 1 + m outputs."""
    known = np.isfinite(quality)
    wide = np.column_stack([np.ones(len(columns)), columns]).astype(np.float64)
    p, m = wide.shape[1], quality.shape[1]
    grams = [wide[rows].T @ wide[rows] for rows in known.T]
    sums = [wide[rows].T @ quality[rows, j] for j, rows in enumerate(known.T)]
    cells = float(known.sum())
    shared = np.full(p, _SHARED_PENALTY * cells)
    shared[0] = 0.0
    own = np.full(p, _DIFFERENCE_PENALTY * cells)
    own[0] = _MEAN_PENALTY * cells / m
    # each model's part is solved for in terms of f0, then f0 by what is left of the equations
    left, right, back = np.diag(shared), np.zeros(p), []
    for gram, total in zip(grams, sums, strict=True):
        solved = np.linalg.solve(gram + np.diag(own), np.column_stack([gram, total]))
        left += gram - gram @ solved[:, :-1]
        right += total - gram @ solved[:, -1]
        back.append(solved)
    first = np.linalg.solve(left, right)
    parts = np.stack([first, *(one[:, -1] - one[:, :-1] @ first for one in back)], axis=1)
    return Linear(parts[1:].astype(np.float32), parts[0].astype(np.float32))


def join_logged(heads: OutcomeHeads, material: Material) -> OutcomeHeads:
    """Average heads of the complete rows with the joint ridge on these and the logged rows."""
    logged, b = material.logged, material.together
    if logged is None:
        return heads
    columns = np.concatenate([heads.features.columns(one.messages) for one in (material, logged)])
    ridge = ridge_of_cells(
        columns, np.concatenate([material.quality[:, :b], logged.quality[:, :b]])
    )
    kept = [Part((1.0 - _SHARE) * one.share, one.heads) for one in heads.parts]
    joint = Part(_SHARE, with_products(ridge, heads.features))
    return replace(heads, parts=(*kept, joint))


def fit_logged(material: Material) -> OutcomeHeads:
    """Fit the joint ridge alone, where too few queries have outcomes of all models."""
    features = few_features(material)
    columns = features.columns(material.messages)
    ridge = ridge_of_cells(columns, material.quality)
    return OutcomeHeads(
        models=material.models,
        features=features,
        parts=(Part(1.0, with_products(ridge, features)),),
        newcomers=None,
        costs=shared_costs(material, features, columns),
        mean_difference=ridge.offset[1:].astype(np.float64),
    )
