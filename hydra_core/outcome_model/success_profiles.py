"""Success profiles: predicted success p_m = b_m + a curve of each requirement, and its cost.

They are a few numbers a model and stand in the catalog's YAML (docs/reference/catalog.md). A curve
gives what a requirement adds at each knot; between two knots it is a straight line that starts at
0, and with the one knot 1 a slope. Predicted success is cut to [0, 1]; predicted cost is the
model's mean cost (tokens times prices, or USD) times a shared factor, itself such curves.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self

import numpy as np

from hydra_core.base.errors import MismatchError
from hydra_core.base.fitted_blocks import SuccessBlock
from hydra_core.base.list_price import ListPrice, at_long_prices, long_prices
from hydra_core.base.types import Catalog, FloatArray, IntArray, Pool
from hydra_core.outcome_model.heads import Predicted

LOG_BOUND: Final = 30.0
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
    def of(cls, knots: Sequence[Sequence[float]]) -> Self:
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
        """Return (..., h) how far each of (..., K) requirements exceeds each knot."""
        result: FloatArray = np.asarray(requirements, np.float64).take(self.dimension, axis=-1)
        result -= self.knot
        return np.maximum(result, 0.0, out=result)

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
        intercept: (m,) success of a query that requires nothing.
        weights: (h, m) of the curves' columns.
        mean_cost_usd: (m,) mean cost of a query, USD.
        cost_intercept: Of the log of the shared cost factor.
        cost_weights: (h,) likewise.
        tokens: (m, 2) mean tokens read and written, None where they are not known.
        placed: Models without a success profile of their own.
        long: Column -> price of the models that charge long requests more.
    """

    models: tuple[str, ...]
    curves: Curves
    intercept: FloatArray
    weights: FloatArray
    mean_cost_usd: FloatArray
    cost_intercept: float
    cost_weights: FloatArray
    tokens: FloatArray | None = None
    placed: tuple[str, ...] = ()
    long: Mapping[int, ListPrice] = field(default_factory=dict)
    _both: tuple[FloatArray, FloatArray, FloatArray, FloatArray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Put the cost factor beside the models: one product predicts both."""
        weights = np.column_stack([self.weights, self.cost_weights])
        intercept = np.append(self.intercept, self.cost_intercept)
        least = np.append(np.zeros(len(self.models)), -LOG_BOUND)
        most = np.append(np.ones(len(self.models)), LOG_BOUND)
        object.__setattr__(self, "_both", (weights, intercept, least, most))

    def predict(
        self,
        requirements: FloatArray,
        prices: FloatArray | None = None,
        sizes: FloatArray | None = None,
    ) -> Predicted:
        """Predict success and cost of every model.

        Args:
            requirements: (n, K) in [0, 1].
            prices: (m, 2) USD per million tokens read and written; used where tokens are known.
            sizes: As `at_long_prices` takes them.
        """
        weights, intercept, least, most = self._both
        found = self.curves.columns(requirements) @ weights
        found += intercept
        np.maximum(found, least, out=found)
        np.minimum(found, most, out=found)
        factor = np.exp(found[:, -1:])
        cost_usd = factor * self.costs_at(prices)
        if self.tokens is not None and self.long:
            tokens = factor * self.tokens[:, 0], factor * self.tokens[:, 1]
            cost_usd = at_long_prices(cost_usd, self.long, tokens, sizes)
        return Predicted(found[:, :-1], cost_usd)

    def predict_one(
        self, requirements: FloatArray, sizes: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """As `predict` for one query, without what many rows need: (K,) -> (m,) and (m,)."""
        if self.tokens is not None and self.long:
            found = self.predict(requirements[None, :], sizes=sizes)
            return found.success[0], found.cost_usd[0]
        weights, intercept, least, most = self._both
        said: FloatArray = self.curves.columns(requirements) @ weights
        said += intercept
        np.maximum(said, least, out=said)
        np.minimum(said, most, out=said)
        return said[:-1], math.exp(said[-1]) * self.mean_cost_usd

    @property
    def priced(self) -> bool:
        """Whether cost is tokens times prices for every model."""
        return self.tokens is not None

    def answer_tokens(self, requirements: FloatArray) -> FloatArray | None:
        """(n, K) requirements -> (n, m) tokens written; None where they are not known."""
        if self.tokens is None:
            return None
        logs = self.curves.columns(requirements) @ self.cost_weights + self.cost_intercept
        factor = np.exp(logs.clip(-LOG_BOUND, LOG_BOUND))
        result: FloatArray = factor[:, None] * self.tokens[:, 1]
        return result

    def costs_at(self, prices: FloatArray | None) -> FloatArray:
        """Return (m,) mean cost of a query at these prices, USD."""
        if prices is None or self.tokens is None:
            return self.mean_cost_usd
        result: FloatArray = _PER_MTOK * (self.tokens * prices).sum(axis=1)
        return result


def catalog_success_profiles(catalog: Catalog, pool: Pool) -> SuccessProfiles:
    """Return the success profiles of a catalog's pool, at its prices.

    A model without one stands between those of the models that its capabilities lie between.

    Raises:
        MismatchError: No model of the pool has one.
    """
    block = catalog.success_profiles
    assert block is not None
    specs = [catalog.model(name) for name in pool.ids]
    prices = np.array([[s.input_usd_per_mtok, s.output_usd_per_mtok] for s in specs])
    known = [i for i, name in enumerate(pool.ids) if name in block.models]
    if not known:
        raise MismatchError(
            f"catalog {catalog.name!r} has no success profile of any model that is routed to: fit "
            "again"
        )
    found = profiles_of(block, [pool.ids[i] for i in known], prices[known])
    if len(known) != len(pool.ids):
        found = _placed(found, pool.ids, pool.capabilities.mean(axis=1), prices, known)
    return replace(found, long=long_prices([one.price for one in specs]))


def _placed(
    own: SuccessProfiles,
    ids: Sequence[str],
    levels: FloatArray,
    prices: FloatArray,
    known: Sequence[int],
) -> SuccessProfiles:
    """The profiles of all models, those of `known` as they are."""
    m = len(ids)
    order = sorted(range(len(known)), key=lambda j: levels[known[j]])
    at = levels[[known[j] for j in order]]

    def between(values: FloatArray) -> FloatArray:
        """(m,) from those of the known models."""
        found = np.interp(levels, at, values[order])
        found[list(known)] = values
        return found

    blended = prices @ np.array([3.0, 1.0])
    cost = own.mean_cost_usd.mean() * blended / blended[list(known)].mean()
    tokens = None
    if own.tokens is not None:
        tokens = np.tile(own.tokens.mean(axis=0), (m, 1))
        tokens[list(known)] = own.tokens
        cost = _PER_MTOK * (tokens * prices).sum(axis=1)
    cost[list(known)] = own.mean_cost_usd
    return replace(
        own,
        models=tuple(ids),
        intercept=between(own.intercept),
        weights=np.stack([between(row) for row in own.weights]),
        mean_cost_usd=cost,
        tokens=tokens,
        placed=tuple(name for i, name in enumerate(ids) if i not in known),
    )


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
