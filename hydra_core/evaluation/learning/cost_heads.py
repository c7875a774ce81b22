"""Heads for what an answer takes: logarithms of tokens and of cost, linear in the features."""

from __future__ import annotations

import numpy as np

from hydra_core.evaluation.learning.material import Material
from hydra_core.evaluation.learning.ridge import ridge_path
from hydra_core.outcome_model.heads import Linear
from hydra_core.outcome_model.model import Costs
from hydra_core.types import BoolArray, Float32Array, FloatArray

__all__ = ["fit_costs"]

#: Fewer known values than this, and a model leans on what is predicted for the others.
_OWN_HEAD = 200
_LEAST_TO_LEAN = 10
_LEAST_USD = 1e-9


def fit_costs(material: Material, columns: Float32Array, penalty: float) -> Costs:
    """Cost and, where the set has them, token heads of every model.

    Args:
        columns: (n, p) what linear heads read.
        penalty: Of the ridge.
    """
    read, written = (
        None if values is None else _head(columns, values, penalty, 1.0)
        for values in (material.input_tokens, material.output_tokens)
    )
    return Costs(_head(columns, material.cost_usd, penalty, _LEAST_USD), read, written)


def _head(columns: Float32Array, values: FloatArray, penalty: float, least: float) -> Linear:
    """(n, p), (n, m) -> log of the mean, one output a model; NaN values are left out."""
    n, m = values.shape
    weights, offset = np.zeros((columns.shape[1], m)), np.zeros(m)
    known = np.isfinite(values)
    own = known.sum(axis=0) >= min(_OWN_HEAD, n)
    logs = np.log(np.maximum(values, least))
    for j in np.flatnonzero(own).tolist():
        rows = known[:, j]
        head = ridge_path(columns[rows], logs[rows, j : j + 1]).heads(penalty)
        weights[:, j], offset[j] = head.weights[:, 0], head.offset[0]
    if own.any():
        _lean(columns, logs, weights, known, own)
    for j in range(m):  # a mean of logarithms is not the logarithm of the mean
        rows = known[:, j]
        if rows.any():
            said = np.exp(columns[rows] @ weights[:, j] + offset[j]).mean()
            offset[j] += np.log(max(float(values[rows, j].mean()), least) / said)
    return Linear(weights.astype(np.float32), offset.astype(np.float32))


def _lean(
    columns: Float32Array, logs: FloatArray, weights: FloatArray, known: BoolArray, own: BoolArray
) -> None:
    """Fill in the weights of models without a head of their own, from the others' predictions."""
    others = weights[:, own]
    said = columns @ others
    for j in np.flatnonzero(~own).tolist():
        rows = known[:, j]
        share = np.full(others.shape[1], 1.0 / others.shape[1])
        if rows.sum() >= _LEAST_TO_LEAN:
            head = ridge_path(said[rows], logs[rows, j : j + 1]).heads(1.0 / rows.sum())
            share = head.weights[:, 0].astype(np.float64)
        weights[:, j] = others @ share
