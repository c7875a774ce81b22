"""Heads of models with few outcomes: in log odds, as far from the others as their outcomes say."""

from __future__ import annotations

from typing import Final

import numpy as np

from hydra_core.evaluation.learning.material import Material
from hydra_core.outcome_model.heads import Linear, log_odds
from hydra_core.types import FloatArray

__all__ = ["fit_newcomers"]

#: Precision of the prior that a newcomer keeps the others' mean log odds, up to a constant. Chosen
#: on training parts alone, where every other model in turn played a newcomer with 50 outcomes: 10
#: to 20 predict best and alike, and the one that shrinks more is taken.
_PRIOR: Final = 20.0
_LEVEL_PRIOR: Final = 0.01
_STEPS: Final = 30
_LARGEST_STEP: Final = 2.0


def fit_newcomers(material: Material, held_out: FloatArray) -> Linear | None:
    """From the log odds of the models learned together to those of every newcomer.

    A strong model's success is flatter than a weak one's, and a shift in log odds is the one
    number that says so: with it alone a newcomer already has a difference worth routing by. What
    more its outcomes say is shrunk to that.

    Args:
        held_out: (n, 1 + b) f0 and differences of the b models, by heads that had not seen them.

    Returns:
        b inputs, one output a newcomer; None where there is none.
    """
    b = material.together
    if b == len(material.models):
        return None
    odds = log_odds(held_out[:, :1] + held_out[:, 1:])
    mean = odds.mean(axis=1)
    parts = np.column_stack([mean, odds - mean[:, None]])
    centre, scale = parts.mean(axis=0), np.maximum(parts.std(axis=0), 1e-6)
    weights, offsets = [], []
    for values in material.quality[:, b:].T:
        rows = np.flatnonzero(np.isfinite(values))
        slopes, level = _logistic((parts[rows] - centre) / scale, mean[rows], values[rows])
        slopes = slopes / scale
        offsets.append(level - centre @ slopes)
        # back from mean and deviations to the models' own log odds
        own = slopes[1:] - slopes[1:].mean() + (1.0 + slopes[0]) / b
        weights.append(own)
    return Linear(
        np.stack(weights, axis=1).astype(np.float32), np.asarray(offsets, dtype=np.float32)
    )


def _logistic(
    columns: FloatArray, start: FloatArray, outcomes: FloatArray
) -> tuple[FloatArray, float]:
    """(n, p), (n,), (n,) in [0, 1] -> slopes and level added to `start`, by Newton's method."""
    wide = np.column_stack([columns, np.ones(len(columns))])
    prior = np.append(np.full(columns.shape[1], _PRIOR), _LEVEL_PRIOR)
    found = np.zeros(wide.shape[1])
    for _ in range(_STEPS):
        said = 1.0 / (1.0 + np.exp(-(start + wide @ found)))
        slope = wide.T @ (outcomes - said) - prior * found
        bend = (wide * (said * (1.0 - said))[:, None]).T @ wide + np.diag(prior)
        step = np.linalg.solve(bend, slope)
        found += np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
        if np.abs(step).max() < 1e-8:
            break
    return found[:-1], float(found[-1])
