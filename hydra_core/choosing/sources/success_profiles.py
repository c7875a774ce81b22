"""Success profiles: p_m = b_m + a curve of each requirement, and the value rule on them.

A success profile is a few numbers a model, so it stands in the catalog's YAML, and a model is
added, removed or repriced by an edit there:

    success_profiles:
      evalset: {name: support tickets, digest: "9f2c..."}   # what it was fitted to
      queries: 5183
      knots:                      # requirements at which the curves are given; 0 is not listed
        reasoning: [0.13, 0.2, 0.31, 1]
        tool_use: [0.04, 0.16, 0.27, 1]
      cost_factor:                # log of what a query costs compared with the mean query
        intercept: -0.41
        adds: {reasoning: [0.3, 0.5, 0.6, 0.9], tool_use: [-0.1, -0.2, -0.2, -0.3]}
      models:
        gpt-4o-mini-2024-07-18:
          intercept: 0.912        # success of a query that requires nothing
          adds:                   # what a requirement at each knot adds to it
            reasoning: [-0.05, -0.11, -0.24, -0.6]
            tool_use: [0.01, -0.02, -0.04, -0.1]
          input_tokens: 312       # mean tokens a query; times the catalog's prices
          output_tokens: 236
        other-model:
          intercept: 0.95
          adds: {reasoning: [-0.03, -0.07, -0.12, -0.4], tool_use: [0, 0, -0.01, -0.02]}
          cost_usd: 0.0031        # mean cost a query where tokens are not known

Between two knots a curve is a straight line that starts at 0. With the one knot 1 it is a slope.
Predicted success is cut to [0, 1]; predicted cost is the model's mean cost times the shared factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from scipy.sparse import coo_array

from hydra_core.base.success_block import SuccessBlock
from hydra_core.base.types import FloatArray, IntArray
from hydra_core.choosing.heads import Path, ridge_path, targets
from hydra_core.choosing.sources.one_rule import cost_order, returns_on_upgrading
from hydra_core.choosing.sources.outcomes import Outcomes
from hydra_core.outcome_model.raw import Predicted

#: Penalty of the ridge on standardised columns, times the number of queries.
PENALTY: Final = 0.003
#: Shares of the queries with a requirement that lie below the inner knots.
QUANTILES: Final = (0.25, 0.5, 0.75)
#: Requirements up to this count as none when knots are placed.
_NO_REQUIREMENT: Final = 0.002
_DIGITS: Final = 4
_LEAST_USD: Final = 1e-9
_LOG_BOUND: Final = 30.0
_PER_MTOK: Final = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Piecewise linear functions of K requirements, one column for each stretch of a curve.

    Attributes:
        dimension: (h,) which requirement a column reads.
        knot: (h,) the requirement above which it counts.
    """

    dimension: IntArray
    knot: FloatArray

    @classmethod
    def of(cls, knots: Sequence[Sequence[float]]) -> Curves:
        """Return the curves with these knots; of each dimension ascending, the last one 1."""
        starts = [[0.0, *points[:-1]] for points in knots]
        dimension = np.repeat(np.arange(len(starts)), [len(points) for points in starts])
        return cls(dimension, np.array([at for points in starts for at in points]))

    @property
    def knots(self) -> list[list[float]]:
        """The knots of each dimension, the last one 1."""
        count = int(self.dimension.max()) + 1
        parts = (self.knot[self.dimension == k].tolist() for k in range(count))
        return [[*points[1:], 1.0] for points in parts]

    def columns(self, requirements: FloatArray) -> FloatArray:
        """Return (n, h) how far each requirement exceeds each knot."""
        result: FloatArray = np.maximum(requirements[:, self.dimension] - self.knot, 0.0)
        return result

    def adds(self, weights: FloatArray) -> list[list[float]]:
        """Return what each dimension adds at its knots, from (h,) weights of the columns."""
        found = []
        for k, points in enumerate(self.knots):
            own = self.dimension == k
            above = np.maximum(np.array(points)[:, None] - self.knot[own][None, :], 0.0)
            found.append((above @ weights[own]).tolist())
        return found

    def weights(self, adds: Sequence[Sequence[float]]) -> FloatArray:
        """Return (h,) weights of the columns from what each dimension adds at its knots."""
        parts = []
        for points, values in zip(self.knots, adds, strict=True):
            slopes = np.diff(values, prepend=0.0) / np.diff(points, prepend=0.0)
            parts.append(np.diff(slopes, prepend=0.0))
        return np.concatenate(parts)


@dataclass(frozen=True, slots=True, eq=False)
class SuccessProfiles:
    """Success and cost of m models as sums of curves of the requirements.

    Attributes:
        models: (m,) ids.
        curves: What is read of the requirements.
        intercept: (m,) success of a query that requires nothing.
        weights: (h, m) of the curves' columns.
        mean_cost_usd: (m,) mean cost of a query, USD.
        cost_intercept: Of the log of the shared cost factor.
        cost_weights: (h,) likewise.
        tokens: (m, 2) mean tokens read and written, None where they are not known.
    """

    models: tuple[str, ...]
    curves: Curves
    intercept: FloatArray
    weights: FloatArray
    mean_cost_usd: FloatArray
    cost_intercept: float
    cost_weights: FloatArray
    tokens: FloatArray | None = None

    @property
    def absolute(self) -> bool:
        """Shortfalls are success per USD: tau means the same everywhere."""
        return True

    def predict(self, requirements: FloatArray, prices: FloatArray | None = None) -> Predicted:
        """Predict success and cost of every model.

        Args:
            requirements: (n, K) in [0, 1].
            prices: (m, 2) USD per million tokens read and written; used where tokens are known.
        """
        columns = self.curves.columns(requirements)
        success = (columns @ self.weights + self.intercept).clip(0.0, 1.0)
        logs = columns @ self.cost_weights + self.cost_intercept
        factor = np.exp(logs.clip(-_LOG_BOUND, _LOG_BOUND))
        return Predicted(success, factor[:, None] * self.costs_at(prices))

    def costs_at(self, prices: FloatArray | None) -> FloatArray:
        """Return (m,) mean cost of a query at these prices, USD."""
        if prices is None or self.tokens is None:
            return self.mean_cost_usd
        result: FloatArray = _PER_MTOK * (self.tokens * prices).sum(axis=1)
        return result

    def rank(self, requirements: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return (n, m) returns on upgrading, and (n, m) models from cheapest to dearest."""
        predicted = self.predict(requirements)
        returns = returns_on_upgrading(predicted.success, predicted.cost_usd)
        return returns, cost_order(returns, predicted.cost_usd)

    def levelled(self, outcomes: Outcomes) -> SuccessProfiles:
        """Return the profiles with each model's mean success and cost taken from these outcomes."""
        columns = self.curves.columns(outcomes.requirements)
        level = outcomes.quality.mean(axis=0) - (columns @ self.weights).mean(axis=0)
        cost = np.maximum(outcomes.cost_usd.mean(axis=0), _LEAST_USD)
        return replace(self, intercept=level, mean_cost_usd=cost)

    def numbers(self, dimensions: Sequence[str]) -> dict[str, Any]:
        """Return plain numbers for the catalog's `success_profiles` block.

        Args:
            dimensions: (K,) names in the order of the requirements.
        """

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


def profiles_of(
    block: SuccessBlock, models: Sequence[str], prices: FloatArray | None = None
) -> SuccessProfiles:
    """Return the profiles that a catalog's block holds, for the models of a pool.

    Args:
        block: `Catalog.success_profiles`.
        models: (m,) ids in the order of the pool.
        prices: (m, 2) USD per million tokens read and written; needed for models with tokens.

    Raises:
        KeyError: A model has no success profile.
        ValueError: A model states tokens, and there are no prices.
    """
    curves = Curves.of(block.knots)
    own = [block.models[name] for name in models]
    costs = []
    for row, one in enumerate(own):
        if one.tokens is None:
            costs.append(float(one.cost_usd or 0.0))
        elif prices is None:
            raise ValueError(f"{models[row]} states tokens: give prices")
        else:
            costs.append(_PER_MTOK * float(np.dot(one.tokens, prices[row])))
    tokens = [one.tokens for one in own if one.tokens is not None]
    return SuccessProfiles(
        models=tuple(models),
        curves=curves,
        intercept=np.array([one.intercept for one in own]),
        weights=np.stack([curves.weights(one.adds) for one in own], axis=1),
        mean_cost_usd=np.array(costs),
        cost_intercept=block.cost_intercept,
        cost_weights=curves.weights(block.cost_adds),
        tokens=np.array(tokens, dtype=np.float64) if len(tokens) == len(own) else None,
    )


def knots_of(requirements: FloatArray) -> list[list[float]]:
    """Return knots of every dimension: quartiles of the requirements that are not 0, then 1."""
    knots = []
    for values in requirements.T:
        some = values[values > _NO_REQUIREMENT]
        inner = np.unique(np.round(np.quantile(some, QUANTILES), 3)) if some.size else np.empty(0)
        knots.append([*(at for at in inner.tolist() if 0.0 < at < 1.0), 1.0])
    return knots


def signal_shares(
    path: Path, columns: FloatArray, wanted: FloatArray, clusters: IntArray, penalty: float
) -> FloatArray:
    """Return how much of what a ridge regression explains of each target is not chance.

    Chance alone explains something of any target: with p columns and n rows about p / n. Slopes
    times this share are the positive-part estimator of James and Stein; where outcomes say nothing
    it is 0 more often than not, and models are then told apart by their means alone.

    Args:
        path: Of the regression.
        columns: (n, p) what it read.
        wanted: (n, q) its targets.
        clusters: (n,) cluster numbers from 0; chance is counted by cluster.
        penalty: Of the solution.

    Returns:
        (q,) in [0, 1].
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
    penalty: float = PENALTY,
) -> SuccessProfiles:
    """Fit success profiles by ridge regression, in closed form.

    Models are told apart only as far as their outcomes do so beyond chance (`signal_shares`).

    Args:
        outcomes: At least two queries.
        knots: Ascending requirements of each dimension, the last one 1; default `knots_of`.
            [[1.0]] * K fits one slope a dimension.
        penalty: Of the ridge on standardised columns, times the number of queries.
    """
    curves = Curves.of(knots_of(outcomes.requirements) if knots is None else knots)
    columns = curves.columns(outcomes.requirements)
    centre, spread = columns.mean(axis=0), columns.std(axis=0)
    scale = np.where(spread > 1e-6, spread, 1.0)
    logs = np.log(np.maximum(outcomes.cost_usd, _LEAST_USD))
    shared = (logs - logs.mean(axis=0)).mean(axis=1, keepdims=True)
    wanted = np.concatenate([targets(outcomes.quality), shared], axis=1)
    standard = (columns - centre) / scale
    path = ridge_path(standard, wanted)
    share = signal_shares(path, standard, wanted, outcomes.clusters, penalty)
    slopes = share * path.heads(penalty).weights.astype(np.float64) / scale[:, None]
    weights = np.concatenate([slopes[:, :1] + slopes[:, 1:-1], slopes[:, -1:]], axis=1)
    mean = np.append(outcomes.quality.mean(axis=0), wanted[:, -1].mean())
    offset = mean - centre @ weights
    # a factor whose mean over the queries is 1: the mean cost stays the model's own
    factor = np.exp((columns @ weights[:, -1] + offset[-1]).clip(-_LOG_BOUND, _LOG_BOUND))
    tokens = None
    if outcomes.input_tokens is not None and outcomes.output_tokens is not None:
        pair = (outcomes.input_tokens.mean(axis=0), outcomes.output_tokens.mean(axis=0))
        tokens = np.stack(pair, axis=1)
    return SuccessProfiles(
        models=outcomes.models,
        curves=curves,
        intercept=offset[:-1],
        weights=weights[:, :-1],
        mean_cost_usd=np.maximum(outcomes.cost_usd.mean(axis=0), _LEAST_USD),
        cost_intercept=float(offset[-1] - np.log(factor.mean())),
        cost_weights=weights[:, -1],
        tokens=tokens,
    )
