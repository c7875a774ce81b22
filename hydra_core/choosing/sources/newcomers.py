"""Newcomers: a model with few outcomes or none, placed by its rate; or by logged outcomes.

In log odds a newcomer stands at the mean of the other models plus a shift h. A rate (how often it
solves this kind of query: from a benchmark, a guess, or "like model X") says which h; outcomes then
move h and the slopes against a normal prior. A wrong rate is the risk: it places the model wrong
for every query until outcomes correct it.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from scipy.optimize import brentq

from hydra_core.base.intervals import normal_quantile
from hydra_core.base.types import Float32Array, FloatArray
from hydra_core.choosing.material import Material
from hydra_core.outcome_model.heads import Linear, Messages, log_odds
from hydra_core.outcome_model.model import Costs, OutcomeHeads

#: Precision of the prior on the shift where a rate is known: worth about 100 outcomes at p = .5.
LEVEL_PRECISION: Final = 25.0
#: The same where no rate is known: outcomes alone decide.
_NO_RATE_PRECISION: Final = 0.01
#: Precision of the prior on slopes, per standard deviation of a column. Chosen on training parts
#: alone, where every other model in turn played a newcomer with 50 outcomes: 10 to 20 predict best
#: and alike, and the one that shrinks more is taken.
SLOPE_PRECISION: Final = 20.0
_LARGEST_SHIFT: Final = 12.0
_STEPS: Final = 30
_LARGEST_STEP: Final = 2.0
_CLOSE: Final = 1e-8
_LEAST: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A model that joined by its rate, or by outcomes in logs only.

    Attributes:
        rate: As it was given; None where its logged outcomes alone place it.
        outcomes: How many of its own there are.
        success: Mean success it is taken to have, and its 95 % interval if the rate is right.
    """

    name: str
    rate: float | None
    outcomes: int
    success: tuple[float, float, float]

    def numbers(self) -> dict[str, Any]:
        mean, low, high = self.success
        return {
            "name": self.name,
            "rate": self.rate,
            "outcomes": self.outcomes,
            "success": mean,
            "interval": [low, high],
            "sentence": self.sentence,
        }

    @property
    def sentence(self) -> str:
        """How sure its place is, for people."""
        middle, low, high = (100 * one for one in self.success)
        if self.rate is None:
            by = f"{self.outcomes} outcomes, too few of them on queries that the others answered"
        else:
            own = f" and {self.outcomes} outcomes" if self.outcomes else ""
            by = f"its rate of {100 * self.rate:.3g} %{own}"
        return (
            f"{self.name} joins by {by}: taken to solve {middle:.0f} % ({low:.0f} to {high:.0f} %) "
            "of such queries."
        )


def shift_of_rate(mean_odds: FloatArray, rate: float) -> float:
    """Return the shift h at which the mean success over the queries is the rate.

    Args:
        mean_odds: (n,) mean log odds of the other models.

    Raises:
        ValueError: The rate is not between 0 and 1.
    """
    if not 0.0 < rate < 1.0:
        raise ValueError(f"a rate must lie between 0 and 1, such as 0.62; got {rate}")

    def excess(shift: float) -> float:
        return float(success_of(mean_odds + shift).mean()) - rate

    return float(brentq(excess, -_LARGEST_SHIFT - 10, _LARGEST_SHIFT + 10))


def newcomer_head(
    success: FloatArray,
    quality: FloatArray | None = None,
    *,
    rate: float | None = None,
    about: FloatArray | None = None,
) -> Linear:
    """Return the head of a newcomer: from the log odds of the b other models to its own.

    Args:
        success: (n, b) predicted success of the others on queries of this kind, by heads that have
            not seen them.
        quality: (n,) the newcomer's outcomes in [0, 1], NaN where there is none; default none.
        rate: Its mean success, in (0, 1); None where nobody knows.
        about: (k, b) success of the others on the queries that the rate is about; default all n.

    Returns:
        b inputs, one output.

    Raises:
        ValueError: Neither a rate nor an outcome, or the rate is not between 0 and 1.
    """
    odds = log_odds(success).astype(np.float64)
    mean = odds.mean(axis=1)
    values = np.full(len(odds), np.nan) if quality is None else quality
    rows = np.flatnonzero(np.isfinite(values))
    if rate is None and not rows.size:
        raise ValueError("a newcomer needs a rate, such as 0.62, or outcomes; it has neither")
    parts = np.column_stack([mean, odds - mean[:, None]])
    centre, scale = parts.mean(axis=0), np.maximum(parts.std(axis=0), 1e-6)
    columns = (parts - centre) / scale
    start, precision = _level_prior(mean if about is None else _mean_odds(about), rate)
    slopes, level, _ = _posterior(columns[rows], mean[rows], values[rows], start, precision)
    slopes = slopes / scale
    own = slopes[1:] - slopes[1:].mean() + (1.0 + slopes[0]) / odds.shape[1]
    offset = level - float(centre @ slopes)
    return Linear(own[:, None].astype(np.float32), np.array([offset], dtype=np.float32))


def fit_newcomers(material: Material, success: FloatArray) -> Linear | None:
    """Return the head of every model with few outcomes: from the log odds of the others to its own.

    A strong model's success is flatter than a weak one's, and a shift in log odds is the one
    number that says so: with it alone a newcomer already has a difference worth routing by. What
    more its outcomes say is shrunk to that.

    Args:
        success: (n, b) of the models learned together, by heads that have not seen the query.

    Returns:
        b inputs, one output a newcomer; None where there is none.
    """
    b = material.together
    found = None
    for values in material.quality[:, b:].T:
        own = Linear(np.full((b, 1), 1 / b, np.float32), np.zeros(1, np.float32))
        if np.isfinite(values).any():
            own = newcomer_head(success, values)
        found = own if found is None else _beside(found, own)
    return found


def _mean_odds(success: FloatArray) -> FloatArray:
    result: FloatArray = log_odds(success).astype(np.float64).mean(axis=1)
    return result


def _level_prior(mean_odds: FloatArray, rate: float | None) -> tuple[float, float]:
    if rate is None:
        return 0.0, _NO_RATE_PRECISION
    return shift_of_rate(mean_odds, rate), LEVEL_PRECISION


def newcomer_range(
    success: FloatArray, quality: FloatArray, rate: float | None, about: FloatArray | None = None
) -> tuple[float, float, float]:
    """Return the mean success a newcomer is taken to have, with its 95 % interval.

    Args:
        success, quality, rate, about: As in `newcomer_head`.

    Returns:
        Mean, low, high over the queries of `about`. They hold if the rate is about these queries.
    """
    mean = _mean_odds(success)
    wanted = mean if about is None else _mean_odds(about)
    rows = np.flatnonzero(np.isfinite(quality))
    start, precision = _level_prior(wanted, rate)
    none = np.empty((rows.size, 0))
    _, level, spread = _posterior(none, mean[rows], quality[rows], start, precision)
    half = normal_quantile() * spread
    at = (level, level - half, level + half)
    middle, low, high = (float(success_of(wanted + one).mean()) for one in at)
    return middle, low, high


def place_newcomer(
    heads: OutcomeHeads,
    messages: Messages,
    success: FloatArray,
    name: str,
    *,
    rate: float | None = None,
    quality: FloatArray | None = None,
    cost_usd: FloatArray | None = None,
    input_tokens: FloatArray | None = None,
    output_tokens: FloatArray | None = None,
    dearer: float | None = 1.0,
    about: FloatArray | None = None,
) -> OutcomeHeads:
    """Add a model to success heads by its rate, its few outcomes, or both.

    Its tokens are what the others write on average, times a level of its own as far as its outcomes
    say so; times its own prices they give its cost.

    Args:
        heads: Of the other models.
        messages: The n queries that they were learned on, and those that it was logged on.
        success: (n, b) success of the b models learned together, by heads that have not seen the
            query: the first columns of `Learning.predicted.success`.
        rate, about: As in `newcomer_head`.
        quality, cost_usd, input_tokens, output_tokens: (n,) of it, NaN where there is none.
        dearer: Its price as a multiple of the others' mean, where tokens are not known; None where
            nobody knows it, and its outcomes alone say what it costs.

    Raises:
        ValueError: The name is taken, or there is neither a rate nor an outcome.
    """
    if name in heads.models:
        raise ValueError(f"there is a head of {name!r} already")
    own = newcomer_head(success, quality, rate=rate, about=about)
    wide = heads.features.with_products(heads.features.columns(messages))
    costs = heads.costs
    usd = _leaning(costs.cost_usd, wide, cost_usd, dearer)
    assert usd is not None
    shared = heads.read(messages).shared[:, 0]
    mean = success_of(log_odds(success) @ own.weights[:, 0] + own.offset[0]).mean()
    return replace(
        heads,
        models=(*heads.models, name),
        newcomers=own if heads.newcomers is None else _beside(heads.newcomers, own),
        costs=Costs(
            usd,
            _leaning(costs.input_tokens, wide, input_tokens),
            _leaning(costs.output_tokens, wide, output_tokens),
        ),
        mean_difference=np.append(heads.mean_difference, mean - float(shared.mean())),
    )


def _leaning(
    head: Linear | None,
    columns: Float32Array,
    values: FloatArray | None,
    factor: float | None = 1.0,
) -> Linear | None:
    """The head with one more output: the mean of the others, moved as far as (n,) values say."""
    if head is None:
        return None
    precision = 0.0 if factor is None else LEVEL_PRECISION
    weights, offset = head.weights.mean(axis=1), float(head.offset.mean() + np.log(factor or 1.0))
    rows = np.flatnonzero(np.isfinite(values)) if values is not None else np.empty(0, np.intp)
    if values is not None and rows.size:
        said = np.exp((columns[rows] @ weights + offset).astype(np.float64)).mean()
        level = np.log(max(float(values[rows].mean()), _LEAST) / said)
        offset += rows.size / (rows.size + precision) * level
    return _beside(head, Linear(weights[:, None], np.array([offset], np.float32)))


def _beside(first: Linear, second: Linear) -> Linear:
    return Linear(
        np.concatenate([first.weights, second.weights], axis=1).astype(np.float32),
        np.concatenate([first.offset, second.offset]).astype(np.float32),
    )


def _posterior(
    columns: FloatArray, start: FloatArray, outcomes: FloatArray, level: float, precision: float
) -> tuple[FloatArray, float, float]:
    """Slopes and level added to (n,) log odds, with the level's standard deviation.

    It is the mode of the posterior, by Newton's method. `level` and `precision` are of the prior on
    the level; slopes of the (n, p) standardised columns have mean 0.
    """
    wide = np.column_stack([columns, np.ones(len(columns))])
    p = columns.shape[1]
    prior, centre = np.append(np.full(p, SLOPE_PRECISION), precision), np.append(np.zeros(p), level)
    at, bend = centre.copy(), np.diag(prior)
    for _ in range(_STEPS):
        said = success_of(start + wide @ at)
        slope = wide.T @ (outcomes - said) - prior * (at - centre)
        bend = (wide * (said * (1.0 - said))[:, None]).T @ wide + np.diag(prior)
        step = np.linalg.solve(bend, slope)
        at += np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
        if np.abs(step).max() < _CLOSE:
            break
    return at[:-1], float(at[-1]), float(np.sqrt(np.linalg.inv(bend)[-1, -1]))


def success_of(odds: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-odds))
