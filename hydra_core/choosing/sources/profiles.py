"""Profiles fitted to outcomes, both kinds that a catalog can hold.

Fitted profiles are Eq. 6 with the catalog's dimensions and a dimension `level`. Every query
requires 1 on it, so a model's capability there shifts its shortfall by a constant: how well it does
whatever is asked. Cells and weights start at Algorithm 1 and are moved one at a time where that
raises the lift over the best fixed mix; every move is paid for, so that chance does not move them.
The result is an ordinary profile: a catalog with one dimension more, edited as YAML. Success
profiles are what `outcome_model/success_profiles.py` predicts with.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
from scipy.sparse import coo_array

from hydra_core.base.types import LEVEL_DIMENSION, Band, BoolArray, FloatArray, IntArray
from hydra_core.catalog.profiles import compensated_weights, to_band
from hydra_core.choosing.heads import Path, ridge_path, targets
from hydra_core.choosing.lift import hull_of
from hydra_core.choosing.material import Outcomes
from hydra_core.outcome_model.success_profiles import LOG_BOUND, Curves, SuccessProfiles
from hydra_core.predictor.score_bands import score_bands
from hydra_core.replay.predictions import gated
from hydra_core.routing.matcher import cost_order, returns_on_upgrading, shortfall

#: Fewer outcomes than this cannot carry fitted profiles.
LEAST_QUERIES: Final = 500
_STEPS: Final = (0.4, 0.15, 0.06)
_PASSES: Final = 2
#: Points of lift that one band width of mean squared shift must earn; log weights cost a quarter.
_PRICE: Final = 0.5
_LOG_WEIGHT_SHARE: Final = 0.25
_TARGETS: Final = np.arange(0.1, 0.91, 0.1)
_BINS: Final = 2_048
#: More queries than this are drawn for the search; the rest adds time, not precision.
_MOST_QUERIES: Final = 10_000
_LEVEL_CAPABILITY: Final = 0.5
_GAIN: Final = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class FittedProfiles:
    """Profiles with one row a model and one column a dimension, `level` last.

    Attributes:
        models: (m,) ids.
        capabilities: (m, K + 1) in [0, 1].
        weights: (K + 1,) compensated weights w~, > 0.
        cost: (m,) what orders the models.
        start: (m, K + 1) capabilities by Algorithm 1, before the search.
        objective: Lift in points minus what the moves cost, on the queries that were fitted.
    """

    models: tuple[str, ...]
    capabilities: FloatArray
    weights: FloatArray
    cost: FloatArray
    start: FloatArray
    objective: float = 0.0
    #: The unit of a shortfall follows the weights: tau differs from fit to fit.
    absolute: ClassVar[bool] = False

    def rank(
        self, requirements: FloatArray, closed: BoolArray | None = None
    ) -> tuple[FloatArray, IntArray]:
        """Return (n, m) shortfalls (Eq. 6), and (n, m) models from cheapest to dearest."""
        found = shortfall(_with_level(requirements), self.capabilities, self.weights)
        if closed is not None:
            found = np.where(closed, np.inf, found)
        return found, cost_order(found, self.cost)

    def numbers(self, dimensions: tuple[str, ...], digits: int = 4) -> dict[str, Any]:
        """Return the fitted cells and weights as plain numbers, by (K,) names without `level`."""
        names = (*dimensions, LEVEL_DIMENSION)

        def named(values: FloatArray) -> dict[str, float]:
            return dict(zip(names, np.round(values, digits).tolist(), strict=True))

        cells = zip(self.models, self.capabilities, strict=True)
        return {
            "compensated_weights": named(self.weights),
            "capabilities": {model: named(row) for model, row in cells},
        }


def _with_level(requirements: FloatArray) -> FloatArray:
    """(n, K + 1) requirements: 1 on `level` for every query."""
    return np.column_stack([requirements, np.ones(len(requirements))])


def _algorithm_1(outcomes: Outcomes, bands: Sequence[Band]) -> FloatArray:
    """(m, K) profiles by Algorithm 1 with the queries as evidence.

    One benchmark a dimension, whose rate is the requirement-weighted mean outcome.
    """
    total = np.maximum(outcomes.requirements.sum(axis=0), 1e-12)
    raw = (outcomes.quality.T @ outcomes.requirements) / total
    return to_band(raw, bands)


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """What a catalog says already: where fitting starts, and how models are ordered.

    Attributes:
        bands: (K,) score bands; None takes the 5th to 95th percentile of the requirements.
        capabilities: (m, K) in the order of the outcomes' models; None derives them from outcomes.
        stored_weights: (K,) the operator's weights w; None for 1.
        cost: (m,) what orders the models; None for their mean realised cost.
    """

    bands: Sequence[Band] | None = None
    capabilities: FloatArray | None = None
    stored_weights: FloatArray | None = None
    cost: FloatArray | None = None

    def bands_for(self, outcomes: Outcomes) -> tuple[Band, ...]:
        """(K,) the bands, stated or by these outcomes' requirements."""
        return score_bands(outcomes.requirements) if self.bands is None else tuple(self.bands)


def benchmark_profiles(outcomes: Outcomes, start: Start | None = None) -> FittedProfiles:
    """Return profiles by Algorithm 1, with a `level` that tells no models apart."""
    start = start or Start()
    known, stored, cells = start.bands_for(outcomes), start.stored_weights, start.capabilities
    weights = compensated_weights(np.ones(len(known)) if stored is None else stored, known)
    cells = _algorithm_1(outcomes, known) if cells is None else cells
    whole = np.column_stack([cells, np.full(len(cells), _LEVEL_CAPABILITY)])
    order = outcomes.cost_usd.mean(axis=0) if start.cost is None else start.cost
    return FittedProfiles(
        outcomes.models, whole, np.append(weights, np.median(weights)), order, whole
    )


def fit_profiles(
    outcomes: Outcomes, start: Start | None = None, *, rng: np.random.Generator | None = None
) -> FittedProfiles:
    """Fit cells and weights of Eq. 6, with a `level` dimension, to outcomes.

    Args:
        rng: Draws queries where there are more than 10,000; default a fixed seed.

    Raises:
        ValueError: Shapes do not fit.
    """
    first = benchmark_profiles(outcomes, start)
    rows = np.arange(outcomes.n)
    if outcomes.n > _MOST_QUERIES:
        chance = np.random.default_rng(0) if rng is None else rng
        rows = np.sort(chance.choice(outcomes.n, _MOST_QUERIES, replace=False))
    widths = np.array([band.width for band in (start or Start()).bands_for(outcomes)])
    search = _Search(first, outcomes.take(rows), np.append(widths, np.median(widths)))
    search.run()
    return FittedProfiles(
        outcomes.models,
        search.cells,
        np.exp(search.logs),
        first.cost,
        first.capabilities,
        search.best,
    )


class _Search:
    """Coordinate search; models are held in cost order, shortfalls are kept up to date."""

    def __init__(self, start: FittedProfiles, outcomes: Outcomes, widths: FloatArray) -> None:
        self._order = np.argsort(start.cost, kind="stable")
        self._required = np.ascontiguousarray(_with_level(outcomes.requirements).T)  # (K + 1, n)
        self._widths = widths
        self._from_cells, self._from_logs = start.capabilities.copy(), np.log(start.weights)
        self.cells, self.logs = start.capabilities.copy(), np.log(start.weights)
        self._curve = _Curve(outcomes.quality[:, self._order], outcomes.cost_usd[:, self._order])
        found = shortfall(self._required.T, self.cells[self._order], np.exp(self.logs))
        self._shortfalls = np.ascontiguousarray(found)
        self.best = self._score(self._shortfalls)

    def run(self) -> None:
        """Move cells and weights with ever smaller steps until nothing earns its price."""
        m, k = self.cells.shape
        for step in _STEPS:
            for _ in range(_PASSES):
                moved = False
                for column in range(k):
                    moved |= self._try_weight(column, 2 * step)
                    for row in range(m):
                        moved |= self._try_cell(row, column, step * self._widths[column])
                if not moved:
                    break

    def _try_cell(self, row: int, column: int, step: float) -> bool:
        at = int(np.flatnonzero(self._order == row)[0])
        kept, column_kept = self.cells[row, column], self._shortfalls[:, at].copy()
        weight, required = np.exp(self.logs[column]), self._required[column]
        base = column_kept - weight * np.maximum(required - kept, 0.0)
        for value in np.clip((kept + step, kept - step), 0.0, 1.0).tolist():
            if value == kept:
                continue
            self.cells[row, column] = value
            self._shortfalls[:, at] = base + weight * np.maximum(required - value, 0.0)
            score = self._score(self._shortfalls)
            if score > self.best + _GAIN:
                self.best = score
                return True
        self.cells[row, column] = kept
        self._shortfalls[:, at] = column_kept
        return False

    def _try_weight(self, column: int, step: float) -> bool:
        kept = self.logs[column]
        deficits = np.maximum(
            self._required[column][:, None] - self.cells[self._order, column][None, :], 0.0
        )
        for value in (kept + step, kept - step):
            self.logs[column] = value
            changed = self._shortfalls + (np.exp(value) - np.exp(kept)) * deficits
            score = self._score(changed)
            if score > self.best + _GAIN:
                self.best, self._shortfalls = score, changed
                return True
        self.logs[column] = kept
        return False

    def _score(self, shortfalls: FloatArray) -> float:
        cells = ((self.cells - self._from_cells) / self._widths) ** 2
        logs = (self.logs - self._from_logs) ** 2
        price = _PRICE * (float(cells.mean()) + _LOG_WEIGHT_SHARE * float(logs.mean()))
        return 100.0 * self._curve.lift(shortfalls) - price


class _Curve:
    """Mean lift over the cost range of shortfalls whose models are in cost order.

    With M_i the least shortfall of the i + 1 cheapest models, model i or a cheaper one is chosen
    exactly for tau >= M_i. So quality at tau is a sum of steps at M_i; they are counted into bins.
    """

    def __init__(self, quality: FloatArray, cost_usd: FloatArray) -> None:
        hull = hull_of(quality, cost_usd)
        self._hull_cost = np.array([point.mean_cost_usd for point in hull])
        self._hull_quality = np.array([point.quality for point in hull])
        low, high = hull[0].mean_cost_usd, hull[-1].mean_cost_usd
        self._wanted = low + _TARGETS * (high - low)
        self._routable = high > low
        self._values = (quality, cost_usd)
        self._steps = [
            np.concatenate([v[:, :-1] - v[:, 1:], np.zeros((len(v), 1))], axis=1)
            for v in self._values
        ]
        self._rows = np.arange(len(quality))

    def lift(self, shortfalls: FloatArray) -> float:
        """(n, m) -> mean lift at the targets, in units of quality; 0 where none can be."""
        if not self._routable:
            return 0.0
        least = np.minimum.accumulate(shortfalls, axis=1)
        last = shortfalls.argmin(axis=1)
        scale = (_BINS - 1) / max(float(least[:, 0].max()), 1e-12)
        bins = np.ceil(least * scale).astype(np.intp).reshape(-1)
        curves = []
        for value, step in zip(self._values, self._steps, strict=True):
            fallback = value[self._rows, last]
            step[:, -1] = value[:, -1] - fallback
            added = np.bincount(bins, weights=step.reshape(-1), minlength=_BINS)
            curves.append((fallback.sum() + np.concatenate([[0.0], np.cumsum(added)])) / len(value))
        quality, cost = curves
        at = np.abs(cost[:, None] - self._wanted).argmin(axis=0)
        # a curve that ends early is held against the hull at the cost it was asked to reach
        asked = np.maximum(cost[at], self._wanted)
        against = np.interp(asked, self._hull_cost, self._hull_quality)
        return float((quality[at] - against).mean())


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

    def rank(
        self, requirements: FloatArray, closed: BoolArray | None = None
    ) -> tuple[FloatArray, IntArray]:
        """Return (n, m) returns on upgrading, and (n, m) models from cheapest to dearest."""
        predicted = gated(self.predict(requirements), closed)
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


#: Fitted sources that stand in YAML.
Profiles: TypeAlias = FittedProfiles | FittedSuccess
