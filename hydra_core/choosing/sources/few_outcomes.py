"""Success heads from few outcomes: one fixed recipe instead of a choice by inner folds.

Below 1,000 queries the inner folds are too small to choose a learner by. The recipe reads the
requirements, nine counts and a few components of the text vector, and averages one joint ridge with
strong penalties (0.4) and 60 extremely randomised trees (0.6).

Queries with outcomes of some models only, such as a log's, give one joint ridge over all: an
outcome of model m on query x is f0(x) + mu_m + d_m(x), all parts shrunk. Which model served a
logged query depended on the query alone, so its outcomes need no weights. The ridge is averaged
with what queries say that every model answered.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from hydra_core.base.types import Float32Array, FloatArray
from hydra_core.choosing.heads import fit_features, grouped_parts, grow, joined, ridge_path, targets
from hydra_core.choosing.material import Material, known_means
from hydra_core.choosing.sources.newcomers import fit_newcomers
from hydra_core.outcome_model.heads import BLOCKS, Features, Linear
from hydra_core.outcome_model.model import Costs, OutcomeHeads, Part

#: From so many queries on, the learner is chosen by inner folds.
FEW: Final = 1_000
RECIPE: Final = "fixed recipe for few outcomes: ridge and trees"
_RIDGE_SHARE: Final = 0.4
_TREES: Final = 60
_MOST_COMPONENTS: Final = 30
_ROWS_PER_COMPONENT: Final = 8
#: Penalties of f0, of each model's mean difference and of its slopes, times the outcomes: f0 has
#: those of all models, a difference those of its own.
_SHARED_PENALTY: Final = 0.1
_MEAN_PENALTY: Final = 0.02
_DIFFERENCE_PENALTY: Final = 1.0
_COST_PENALTY: Final = 0.1
_INNER: Final = 3
_LEAST: Final = 1e-9
#: What is learned from a log alone, in words.
LOG_RECIPE: Final = "joint ridge on logged outcomes"
#: Of the joint ridge beside heads of complete rows: on 250 complete and 2,000 logged queries a half
#: was best of a quarter, a half and all.
_SHARE: Final = 0.5


def fit_few(material: Material, *, seed: int) -> OutcomeHeads:
    """Fit success heads and cost heads on all rows; models with few outcomes become newcomers."""
    heads = _fit(material, seed)
    if material.together == len(material.models):
        return heads
    return replace(heads, newcomers=fit_newcomers(material, _held_out(material, seed)))


def _fit(material: Material, seed: int) -> OutcomeHeads:
    wanted = targets(material.quality[:, : material.together])
    features = _features(material)
    columns = features.columns(material.messages)
    forest = grow(columns, wanted, np.empty((material.n, 0)), _TREES, seed)
    difference = material.quality - wanted[:, :1]
    return OutcomeHeads(
        models=material.models,
        features=features,
        parts=(
            Part(_RIDGE_SHARE, _with_products(_joint_ridge(columns, wanted), features)),
            Part(1.0 - _RIDGE_SHARE, forest),
        ),
        newcomers=None,
        costs=_shared_costs(material, features, columns),
        mean_difference=known_means(difference),
    )


def _features(material: Material) -> Features:
    """Requirements, counts and a few principal components of the vectors."""
    return fit_features(
        material.messages,
        BLOCKS,
        components=_MOST_COMPONENTS,
        rows_per_component=_ROWS_PER_COMPONENT,
    )


def _joint_ridge(columns: Float32Array, wanted: FloatArray) -> Linear:
    """y = f0(x) + mu_m + d_m(x), all parts shrunk: (n, p), (n, 1 + b) targets -> 1 + b outputs."""
    path = ridge_path(columns, wanted)
    models = wanted.shape[1] - 1
    shared, own = path.heads(_SHARED_PENALTY), path.heads(models * _DIFFERENCE_PENALTY)
    return joined(shared, Linear(own.weights, own.offset / np.float32(1.0 + _MEAN_PENALTY)))


def _with_products(head: Linear, features: Features) -> Linear:
    """The same head for columns followed by products that it does not read."""
    p, q = head.weights.shape
    wide = features.with_products(np.zeros((1, p), np.float32)).shape[1]
    return Linear(np.concatenate([head.weights, np.zeros((wide - p, q), np.float32)]), head.offset)


def _shared_costs(material: Material, features: Features, columns: Float32Array) -> Costs:
    """Cost and token heads: one slope for all models, a level for each."""

    def head(values: FloatArray | None) -> Linear | None:
        if values is None:
            return None
        logs = np.log(np.maximum(values, _LEAST))
        centred = logs - known_means(logs)
        some = np.isfinite(centred).any(axis=1)
        shared = np.nanmean(centred[some], axis=1)[:, None]
        found = ridge_path(columns[some], shared).heads(_COST_PENALTY)
        said = np.exp(found(columns)[:, 0].astype(np.float64))
        offset = np.full(values.shape[1], np.nan, np.float32)
        for j, own in enumerate(values.T):  # a mean of logarithms is not the log of the mean
            rows = np.isfinite(own)
            if rows.any():
                offset[j] = np.log(max(float(own[rows].mean()), _LEAST) / said[rows].mean())
        offset[np.isnan(offset)] = np.nanmean(offset)  # one that says nothing costs as the others
        weights = np.repeat(found.weights, values.shape[1], axis=1)
        return _with_products(Linear(weights, offset + found.offset[0]), features)

    usd = head(material.cost_usd)
    assert usd is not None
    return Costs(usd, head(material.input_tokens), head(material.output_tokens))


def _held_out(material: Material, seed: int) -> FloatArray:
    """(n, b) success of the models learned together, by heads that have not seen the query."""
    part = grouped_parts(material.clusters, _INNER, np.random.default_rng([seed, _INNER]))
    success = np.empty((material.n, material.together))
    for number in range(_INNER):
        rows = np.flatnonzero(part == number)
        heads = _fit(material.take(np.flatnonzero(part != number)), seed)
        raw = heads.read(material.messages.take(rows))
        success[rows] = np.clip(raw.shared + raw.difference[:, : material.together], 0.0, 1.0)
    return success


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
    if logged is None or not np.isfinite(logged.quality[:, :b]).any():
        return heads
    columns = np.concatenate([heads.features.columns(one.messages) for one in (material, logged)])
    ridge = ridge_of_cells(
        columns, np.concatenate([material.quality[:, :b], logged.quality[:, :b]])
    )
    kept = [Part((1.0 - _SHARE) * one.share, one.heads) for one in heads.parts]
    joint = Part(_SHARE, _with_products(ridge, heads.features))
    return replace(heads, parts=(*kept, joint))


def fit_logged(material: Material) -> OutcomeHeads:
    """Fit the joint ridge alone, where too few queries have outcomes of all models."""
    features = _features(material)
    columns = features.columns(material.messages)
    ridge = ridge_of_cells(columns, material.quality)
    return OutcomeHeads(
        models=material.models,
        features=features,
        parts=(Part(1.0, _with_products(ridge, features)),),
        newcomers=None,
        costs=_shared_costs(material, features, columns),
        mean_difference=ridge.offset[1:].astype(np.float64),
    )
