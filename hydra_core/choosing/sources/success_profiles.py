"""Success profiles fitted to outcomes: what `outcome_model/success_profiles.py` predicts with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np
from scipy.sparse import coo_array

from hydra_core.base.types import FloatArray, IntArray
from hydra_core.choosing.heads import Path, ridge_path, targets
from hydra_core.choosing.sources.outcomes import Outcomes
from hydra_core.outcome_model.success_profiles import LOG_BOUND, Curves, SuccessProfiles
from hydra_core.routing.matcher import cost_order, returns_on_upgrading

#: Penalty of the ridge on standardised columns, times the number of queries.
PENALTY: Final = 0.003
#: Shares of the queries with a requirement that lie below the inner knots.
QUANTILES: Final = (0.25, 0.5, 0.75)
#: Requirements up to this count as none when knots are placed.
_NO_REQUIREMENT: Final = 0.002
_DIGITS: Final = 4
_LEAST_USD: Final = 1e-9


class FittedSuccess(SuccessProfiles):
    """Success profiles with how they rank models and stand in a catalog."""

    __slots__ = ()
    #: Shortfalls are success per USD: tau means the same everywhere.
    absolute: ClassVar[bool] = True

    def rank(self, requirements: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return (n, m) returns on upgrading, and (n, m) models from cheapest to dearest."""
        predicted = self.predict(requirements)
        returns = returns_on_upgrading(predicted.success, predicted.cost_usd)
        return returns, cost_order(returns, predicted.cost_usd)

    def numbers(self, dimensions: Sequence[str]) -> dict[str, Any]:
        """Return plain numbers for the catalog's `success_profiles` block, by (K,) dimensions."""

        def named(values: Sequence[Sequence[float]]) -> dict[str, list[float]]:
            rounded = [[round(value, _DIGITS) for value in row] for row in values]
            return dict(zip(dimensions, rounded, strict=True))

        models: dict[str, Any] = {}
        for i, name in enumerate(self.models):
            models[name] = {
                "intercept": round(float(self.intercept[i]), _DIGITS),
                "adds": named(self.curves.adds(self.weights[:, i])),
            }
            if self.tokens is None:
                models[name]["cost_usd"] = float(f"{self.mean_cost_usd[i]:.4g}")
            else:
                read, written = np.round(self.tokens[i], 1).tolist()
                models[name] |= {"input_tokens": read, "output_tokens": written}
        factor = {
            "intercept": round(self.cost_intercept, _DIGITS),
            "adds": named(self.curves.adds(self.cost_weights)),
        }
        return {"knots": named(self.curves.knots), "cost_factor": factor, "models": models}


def _knots_of(requirements: FloatArray) -> list[list[float]]:
    """Knots of every dimension: quartiles of the requirements that are not 0, then 1."""
    knots = []
    for values in requirements.T:
        some = values[values > _NO_REQUIREMENT]
        inner = np.unique(np.round(np.quantile(some, QUANTILES), 3)) if some.size else np.empty(0)
        knots.append([*(at for at in inner.tolist() if 0.0 < at < 1.0), 1.0])
    return knots


def _signal_shares(
    path: Path, columns: FloatArray, wanted: FloatArray, clusters: IntArray, penalty: float
) -> FloatArray:
    """(q,) in [0, 1]: how much of what a ridge explains of each target is not chance.

    Chance alone explains something of any target: with p columns and n rows about p / n. Slopes
    times this share are the positive-part estimator of James and Stein; where outcomes say nothing
    it is 0 more often than not, and models are then told apart by their means alone.

    Args:
        path: Of the regression of (n, q) `wanted` on (n, p) `columns`.
        clusters: (n,) cluster numbers from 0; chance is counted by cluster.
    """
    gain = 1.0 / (path.values + path.n * penalty)
    turned = (columns - path.centre) @ path.vectors
    left = wanted - path.mean - turned @ (gain[:, None] * path.rotated)
    strength = path.values * gain**2
    free = max(path.n - float((path.values * gain).sum()), 1.0)
    unit = coo_array((np.ones(path.n), (clusters, np.arange(path.n)))).tocsr()
    by_chance = [((unit @ (turned * one[:, None])) ** 2).sum(axis=0) for one in left.T]
    chance = path.n / free * (np.array(by_chance) @ strength)
    explained = strength @ path.rotated**2
    share: FloatArray = 1.0 - np.divide(
        chance, explained, out=np.ones_like(chance), where=explained > 0
    )
    return np.maximum(share, 0.0)


def fit_success_profiles(
    outcomes: Outcomes,
    *,
    knots: Sequence[Sequence[float]] | None = None,
) -> FittedSuccess:
    """Fit success profiles by ridge regression, in closed form.

    Models are told apart only as far as their outcomes do so beyond chance (`_signal_shares`).

    Args:
        outcomes: At least two queries.
        knots: Ascending requirements of each dimension, the last one 1; default quartiles.
            [[1.0]] * K fits one slope a dimension.
    """
    curves = Curves.of(_knots_of(outcomes.requirements) if knots is None else knots)
    columns = curves.columns(outcomes.requirements)
    centre, spread = columns.mean(axis=0), columns.std(axis=0)
    scale = np.where(spread > 1e-6, spread, 1.0)
    logs = np.log(np.maximum(outcomes.cost_usd, _LEAST_USD))
    shared = (logs - logs.mean(axis=0)).mean(axis=1, keepdims=True)
    wanted = np.concatenate([targets(outcomes.quality), shared], axis=1)
    standard = (columns - centre) / scale
    path = ridge_path(standard, wanted)
    share = _signal_shares(path, standard, wanted, outcomes.clusters, PENALTY)
    slopes = share * path.heads(PENALTY).weights.astype(np.float64) / scale[:, None]
    weights = np.concatenate([slopes[:, :1] + slopes[:, 1:-1], slopes[:, -1:]], axis=1)
    mean = np.append(outcomes.quality.mean(axis=0), wanted[:, -1].mean())
    offset = mean - centre @ weights
    # a factor whose mean over the queries is 1: the mean cost stays the model's own
    factor = np.exp((columns @ weights[:, -1] + offset[-1]).clip(-LOG_BOUND, LOG_BOUND))
    tokens = None
    if outcomes.input_tokens is not None and outcomes.output_tokens is not None:
        pair = (outcomes.input_tokens.mean(axis=0), outcomes.output_tokens.mean(axis=0))
        tokens = np.stack(pair, axis=1)
    return FittedSuccess(
        models=outcomes.models,
        curves=curves,
        intercept=offset[:-1],
        weights=weights[:, :-1],
        mean_cost_usd=np.maximum(outcomes.cost_usd.mean(axis=0), _LEAST_USD),
        cost_intercept=float(offset[-1] - np.log(factor.mean())),
        cost_weights=weights[:, -1],
        tokens=tokens,
    )
