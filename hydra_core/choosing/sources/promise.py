"""A promise about quality: at most so far below the best single model, with a guarantee.

Learn then test: the settings of the knob are walked from the dearest to the cheapest, in an order
that does not depend on outcomes. At each one the hypothesis "the mean difference to the best single
model is -within or worse" is tested at level 1 - confidence; the walk stops at the first setting
where it cannot be rejected. So the last rejected setting keeps the promise with that confidence, at
any number of queries, however many settings were walked (a fixed sequence of tests).

The test is a bet: wealth starts at 1 and is multiplied by 1 + stake (D + within) for every query.
If the hypothesis were true, wealth would reach 1 / 0.05 with probability 0.05 at most (Ville). The
guarantee holds for queries like these; it does not hold under drift.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from hydra_core.base.errors import MismatchError
from hydra_core.base.fitted_blocks import Promised
from hydra_core.base.types import ChoiceArray, FloatArray, IntArray, Rule, SuccessSource
from hydra_core.choosing.lift import cross_fit, settings_of
from hydra_core.choosing.material import clusters_of, outcomes_of_replay, own_outcomes
from hydra_core.choosing.sources.profiles import FittedSuccess, fit_success_profiles
from hydra_core.replay.metrics import picked
from hydra_core.replay.predictions import weighed
from hydra_core.replay.sweep import Sweep
from hydra_core.routing.matcher import choices_in_order, cost_order, returns_on_upgrading

#: Variance of a difference where the query moves, for stakes alone.
_VARIANCE_OF_MOVED: Final = 0.2
_LEAST_VARIANCE: Final = 0.005
#: A share of the stake that could lose everything.
_LARGEST_STAKE: Final = 0.9
METHOD: Final = "learn then test by betting over the knob's settings (fixed sequence)"
_SETTINGS: Final = 200
_FORECAST_DRAWS: Final = 40
_KNOB_DIGITS: Final = 6
#: Numbers of independent queries that are looked at beside the set's own, as multiples of it.
_MORE: Final = (0.5, 2.0, 4.0)
_CROSS_FITTED: Final = "cross-fitted predictions"
_UNSEEN: Final = "queries that nothing was chosen on"


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a promise would allow with so many independent queries, if they were like these."""

    queries: int
    saving: float
    kept: float


@dataclass(frozen=True, slots=True)
class Promise:
    """The cheapest setting whose quality can be promised.

    Attributes:
        kept: Whether any setting can be promised.
        position: Which of the walked settings, from the dearest; -1 where none.
        tau: Its tau; 1 / V where shortfalls are returns on upgrading. NaN where none.
        baseline: The best single model.
        within: How far below it quality may lie, in units of quality.
        saving: Share of the baseline's cost that is saved there; 0 where nothing can be promised.
        difference: Mean difference of quality to the baseline there.
        floor: Mean quality that the promise allows on these queries.
        n: Independent queries that it was calibrated on.
        calibrated_on: "cross-fitted predictions", or "queries that nothing was chosen on".
    """

    kept: bool
    position: int
    tau: float
    baseline: str
    within: float
    confidence: float
    saving: float
    difference: float
    n: int
    method: str = METHOD
    calibrated_on: str = ""
    floor: float = 0.0
    evalset: str = ""
    forecast: tuple[Forecast, ...] = ()

    @property
    def claim(self) -> str:
        return self.promised.claim

    @property
    def promised(self) -> Promised:
        """What a catalog keeps of it."""
        return Promised(
            self.within, self.confidence, self.baseline, round(self.floor, 6),
            round(self.saving, 4), self.n, self.evalset, self.calibrated_on, "",
        )  # fmt: skip

    def knob(self, rule: Rule) -> float | None:
        """Return tau or V in USD, to six digits on the dear side; None for any larger V."""
        if not self.kept or (rule is Rule.VALUE and self.tau <= 0.0):
            return None
        exact = 1.0 / self.tau if rule is Rule.VALUE else self.tau
        if exact <= 0.0:
            return exact
        unit = 10.0 ** (math.floor(math.log10(exact)) - _KNOB_DIGITS + 1)
        steps = math.ceil(exact / unit) if rule is Rule.VALUE else math.floor(exact / unit)
        return float(f"{steps * unit:.{_KNOB_DIGITS}g}")

    def numbers(self, rule: Rule) -> dict[str, Any]:
        """Return it JSON-ready, the knob as tau or V in USD."""
        left = ("position", "tau", "forecast")
        found = {key: v for key, v in asdict(self).items() if key not in left}
        return {
            **found,
            "knob": {"rule": rule.value, "value": self.knob(rule)},
            "forecast": [asdict(one) for one in self.forecast],
        }


def stakes_of(
    moved: FloatArray,
    units: int,
    within: float,
    confidence: float = 0.95,
    sizes: FloatArray | None = None,
) -> FloatArray:
    """Return the stake of each setting: the one that soonest rejects a loss just above the margin.

    With n bets of variance v, wealth grows fastest by sqrt(2 log(1 / level) / (n v)) where the
    level can just be reached. A difference is 0 unless the query moves, so v is taken as a fifth of
    the share that moves. That share follows from predictions alone, as a valid bet needs.

    Args:
        moved: (p,) share of the queries that do not go to the baseline at each setting.
        units: Independent queries n.
        sizes: Of the clusters that bet, over their mean; None where each is one query.
    """
    most, spread = (1.0, 1.0) if sizes is None else (sizes.max(), np.square(sizes).mean())
    variance = np.maximum(_VARIANCE_OF_MOVED * moved, _LEAST_VARIANCE) * spread
    best = np.sqrt(2.0 * np.log(1.0 / (1.0 - confidence)) / (units * variance))
    result: FloatArray = np.minimum(best, _LARGEST_STAKE / most) / (1.0 - within)
    return result


def betting_p_values(
    differences: FloatArray,
    within: float,
    clusters: IntArray | None = None,
    *,
    moved: FloatArray,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> FloatArray:
    """Return p values of "the mean difference is -within or less", one a column.

    Args:
        differences: (n, p) outcome of the route minus outcome of the baseline, each in [-1, 1].
        within: Margin in (0, 1).
        clusters: (n,) cluster numbers; a cluster bets once, with the sum of its queries, since the
            mean of all queries is promised.
        moved: (p,) share of the queries that do not go to the baseline.
        confidence: That the stakes aim at; p values are valid at any.

    Returns:
        (p,) valid at any number of queries.

    Raises:
        ValueError: A difference outside [-1, 1], or a margin outside (0, 1).
    """
    if not 0.0 < within < 1.0:
        raise ValueError(f"the margin must lie between 0 and 1, such as 0.02; got {within}")
    if not (np.abs(differences) <= 1.0).all():  # false for NaN as well
        raise ValueError("differences must lie in [-1, 1]: they are of two outcomes in [0, 1]")
    gains, sizes = _unit_gains(differences, within, clusters)
    stakes = stakes_of(moved, len(gains), within, confidence, sizes)
    wealth = np.cumsum(np.log1p(stakes * gains[rng.permutation(len(gains))]), axis=0)
    result: FloatArray = np.minimum(np.exp(-wealth.max(axis=0)), 1.0)
    return result


def walk(
    shortfalls: FloatArray, order: IntArray, settings: int = _SETTINGS
) -> tuple[FloatArray, ChoiceArray]:
    """Return the settings to walk, dearest first, and the routes at each.

    They follow from predictions alone, as a fixed sequence of tests needs.

    Args:
        shortfalls: (n, m).
        order: (n, m) models from cheapest to dearest.

    Returns:
        (p,) ascending tau, and (n, p) model indices.
    """
    taus = settings_of(shortfalls, order, settings)
    return taus, choices_in_order(shortfalls, order, taus)


def promise(
    models: Sequence[str],
    quality: FloatArray,
    cost_usd: FloatArray,
    taus: FloatArray,
    choice: ChoiceArray,
    *,
    baseline: int | None = None,
    within: float = 0.02,
    confidence: float = 0.95,
    clusters: IntArray | None = None,
    calibrated_on: str = _CROSS_FITTED,
    rng: np.random.Generator,
) -> Promise:
    """Find the cheapest setting that keeps quality within a margin of the best single model.

    Args:
        models: (m,) ids.
        quality, cost_usd: (n, m) outcomes in [0, 1] and realised cost in USD.
        taus: (p,) settings, dearest first.
        choice: (n, p) routes at each, by predictions that have not seen the query.
        baseline: Column of the best single model, chosen on other queries; default the best here,
            which is safe where it is clearly the best.
        within: Margin in units of quality.
        clusters: (n,) cluster numbers, None when all queries are independent.
        calibrated_on: Which predictions the routes come from, in words.

    Raises:
        ValueError: Shapes do not fit, or a value is out of range.
        MismatchError: The best single model costs nothing.
    """
    if choice.shape != (len(quality), len(taus)) or quality.shape != cost_usd.shape:
        raise ValueError(
            f"choice {choice.shape} must be ({len(quality)} queries, {len(taus)} settings)"
        )
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"the confidence must lie between 0 and 1, such as 0.95; got {confidence}")
    best = int(quality.mean(axis=0).argmax()) if baseline is None else baseline
    if not cost_usd[:, best].any():
        raise MismatchError(
            f"always using {models[best]}, the best single model, costs nothing here, so no "
            "setting can save anything"
        )
    differences = picked(quality, choice) - quality[:, [best]]
    p_values = betting_p_values(
        differences,
        within,
        clusters,
        moved=(choice != best).mean(axis=0),
        confidence=confidence,
        rng=rng,
    )
    passed = np.append(p_values <= 1.0 - confidence, False)
    position = int(passed.argmin()) - 1
    made = Promise(
        kept=position >= 0,
        position=position,
        tau=float(taus[position]) if position >= 0 else float("nan"),
        baseline=models[best],
        within=within,
        confidence=confidence,
        saving=0.0,
        difference=0.0,
        n=len(quality) if clusters is None else int(np.unique(clusters).size),
        calibrated_on=calibrated_on,
        floor=float(quality[:, best].mean()) - within,
    )
    if position < 0:
        return made
    cost = float(picked(cost_usd, choice[:, position]).mean())
    saving = 1.0 - cost / float(cost_usd[:, best].mean())
    return replace(made, saving=saving, difference=float(differences[:, position].mean()))


def forecast(
    made: Promise,
    models: Sequence[str],
    quality: FloatArray,
    cost_usd: FloatArray,
    choice: ChoiceArray,
    sizes: Sequence[int],
    *,
    clusters: IntArray | None = None,
    rng: np.random.Generator,
    draws: int = _FORECAST_DRAWS,
) -> Promise:
    """Say what more queries would allow: the promise on resamples of these queries.

    Each resample is judged by the wealth at its end, so the forecast is a little low.

    Args:
        made: The promise on these queries; its margin, confidence and baseline are kept.
        models, quality, cost_usd, choice, clusters: As in `promise`.
        sizes: Numbers of independent queries to look at; of clusters as large as these.
    """
    best = list(models).index(made.baseline)
    lost = picked(quality, choice) - quality[:, [best]]
    gains, each = _unit_gains(lost, made.within, clusters)
    moved = (choice != best).mean(axis=0)
    cost, base = (
        _unit_sums(usd, clusters)[0] for usd in (picked(cost_usd, choice), cost_usd[:, [best]])
    )
    enough = -np.log(1.0 - made.confidence)
    rows = []
    for units in sizes:
        drawn = [rng.integers(0, len(gains), units) for _ in range(draws)]
        weights = np.stack([np.bincount(one, minlength=len(gains)) for one in drawn]).astype(float)
        stakes = stakes_of(moved, units, made.within, made.confidence, each)
        wealth = weights @ np.log1p(stakes * gains)  # (draws, p)
        passed = np.concatenate([wealth >= enough, np.zeros((draws, 1), np.bool_)], axis=1)
        position = passed.argmin(axis=1) - 1
        spent = np.take_along_axis(weights @ cost, np.maximum(position, 0)[:, None], 1)[:, 0]
        saving = np.where(position >= 0, 1.0 - spent / (weights @ base[:, 0]), 0.0)
        rows.append(Forecast(units, float(saving.mean()), float((position >= 0).mean())))
    return replace(made, forecast=tuple(rows))


def promise_on(
    sweep: Sweep, *, within: float = 0.02, confidence: float = 0.95, seed: int = 0
) -> Promise:
    """Find what can be promised of a catalog on a replayed set, with what more queries would allow.

    Queries that an outcome model was learned on, or success profiles were fitted to, are routed by
    cross-fitted predictions. A model without outcomes here counts as failing: the promise holds
    whatever it does.

    Raises:
        MismatchError: Profiles, weights or the pool were chosen on these queries, or the best
            single model costs nothing.
    """
    data = sweep.data
    shortfalls, order, calibrated_on = _ranks(sweep)
    taus, choice = walk(shortfalls, order)
    rng = np.random.default_rng(seed)
    known, clusters = (data.pool.ids, *data.fixed), clusters_of(data, sweep.evalset)
    made = promise(
        *known,
        taus,
        choice,
        within=within,
        confidence=confidence,
        clusters=clusters,
        calibrated_on=calibrated_on,
        rng=rng,
    )
    sizes = [max(round(made.n * more), 1) for more in _MORE]
    made = forecast(made, *known, choice, sizes, clusters=clusters, rng=rng)
    return replace(made, evalset=sweep.evalset.name)


def _ranks(sweep: Sweep) -> tuple[FloatArray, IntArray, str]:
    """Shortfalls, order of the models, and what they are calibrated on, under either rule."""
    data = sweep.data
    block = sweep.catalog.success_profiles
    by_profiles = sweep.source is SuccessSource.SUCCESS_PROFILES
    on = _UNSEEN
    if sweep.outcome_model is not None:
        on = _CROSS_FITTED if sweep.learned_here else _UNSEEN
    elif by_profiles and block is not None and block.digest == sweep.evalset.digest:
        if data.unmeasured:
            raise MismatchError(
                f"no outcomes of {', '.join(data.unmeasured)} here: success profiles that were "
                "fitted to these queries cannot be cross-fitted; promise on other queries"
            )
        shortfalls, order = _cross_fitted(sweep)
        return shortfalls, order, _CROSS_FITTED
    elif any(not one.knob_alone for one in sweep.chosen_here):
        raise MismatchError(
            f"the profiles or weights of catalog '{sweep.catalog.name}' were chosen on these "
            "queries: promise on others, or with an outcome model or success profiles (their "
            "predictions are cross-fitted)"
        )
    shortfalls, cost = sweep.terms
    order = cost_order(shortfalls, cost)
    if data.closed is not None and sweep.rule is Rule.SHORTFALL:  # no tau reaches these
        shortfalls = np.where(data.closed, np.inf, shortfalls)
    return shortfalls, order, on


def _cross_fitted(sweep: Sweep) -> tuple[FloatArray, IntArray]:
    """As the router weighs them, by success profiles that have not seen the query."""
    data = sweep.data
    outcomes = outcomes_of_replay(data, sweep.evalset)

    def rank(source: FittedSuccess, rows: IntArray) -> tuple[FloatArray, IntArray]:
        closed = None if data.closed is None else data.closed[rows]
        said = source.predict(outcomes.requirements[rows])
        said = weighed(data.pool.ids, closed, sweep.catalog, said)
        returns = returns_on_upgrading(said.success, said.cost_usd)
        return returns, cost_order(returns, said.cost_usd)

    ranked = cross_fit(
        outcomes, fit_success_profiles, rank=rank, known=own_outcomes(data, sweep.evalset)
    ).ranked
    return ranked.shortfalls, ranked.order


def _unit_gains(
    differences: FloatArray, within: float, clusters: IntArray | None
) -> tuple[FloatArray, FloatArray]:
    """(units, p) what each bet gains at a stake of 1, and (units,) sizes over their mean."""
    sums, counts = _unit_sums(differences + within, clusters)
    mean = counts.mean()
    return sums / mean, counts / mean


def _unit_sums(values: FloatArray, clusters: IntArray | None) -> tuple[FloatArray, IntArray]:
    """(units, p) sums over clusters, and how many rows each has."""
    n = len(values)
    if clusters is None:
        return values, np.ones(n, np.intp)
    names, unit, counts = np.unique(clusters, return_inverse=True, return_counts=True)
    if names.size == n:
        return values, counts
    sums = np.zeros((names.size, values.shape[1]))
    np.add.at(sums, unit, values)
    return sums, counts
