"""Models without outcomes, or with few, join what was learned by a rate: how often they succeed.

A model with outcomes in logs only joins by these: they say how it differs from what the others were
predicted to achieve on the queries that it was sent, so that easy queries do not flatter it.

What they add cannot be measured without outcomes, so lift and recommendation stay those of the
models with outcomes. What a rate is worth is rehearsed instead: every model with outcomes plays the
newcomer once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from hydra_core.base.errors import OutcomeModelError, Problem
from hydra_core.base.types import Float32Array, FloatArray, IntArray
from hydra_core.choosing.heads import grouped_parts
from hydra_core.choosing.learn import Learning, LoggedPart, reliability
from hydra_core.choosing.lift import POINTS, Ranked, differences_to_hull, hull_of
from hydra_core.choosing.material import TOGETHER, Material, Outcomes
from hydra_core.choosing.sources.newcomers import (
    Newcomer,
    newcomer_head,
    newcomer_range,
    place_newcomer,
    success_of,
)
from hydra_core.choosing.sources.profiles import fit_success_profiles
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.outcome_model.heads import Linear, Messages, Predicted, Raw, log_odds
from hydra_core.outcome_model.model import LEAST_OUTCOMES, Costs
from hydra_core.routing.matcher import cost_order, returns_on_upgrading

#: Outcomes of the newcomer at which a rate is rehearsed.
COUNTS: Final = (0, 10, 25, 50)
#: How wrong a wrong rate is, in units of quality.
WRONG: Final = 0.06
_DRAWS: Final = 3
_FOLDS: Final = 5
_MOST_QUERIES: Final = 3_000
_SETTINGS: Final = 200
_EXTREMES: Final = (0.02, 0.98)
_LEAST_LIFT: Final = 0.002
_BLEND: Final = np.array([3.0, 1.0])
_MEASURED: Final = ("quality", "cost_usd", "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a rate is worth on a set, where every model plays the newcomer once.

    Attributes:
        kept: Number of outcomes -> share of the full lift that is kept with them and the rate.
        kept_wrong: The same where the rate is wrong by `WRONG`, mean of too high and too low.
    """

    kept: Mapping[int, float]
    kept_wrong: Mapping[int, float]

    def numbers(self) -> dict[str, Any]:
        kept = {str(count): share for count, share in self.kept.items()}
        wrong = {str(count): share for count, share in self.kept_wrong.items()}
        return {"kept": kept, "kept_wrong": wrong, "sentence": self.sentence}

    @property
    def sentence(self) -> str:
        """What more outcomes would bring, and what a wrong rate costs, for people."""
        more = ", ".join(f"with {n} outcomes {100 * self.kept[n]:.0f} %" for n in COUNTS[1:])
        return (
            f"Each model that a fixed mix would use played the newcomer here: by its rate alone "
            f"{100 * self.kept[0]:.0f} % of the lift is kept, {more}. The risk is a wrong rate: "
            f"one that is {100 * WRONG:.0f} points off keeps {100 * self.kept_wrong[0]:.0f} %, "
            f"with {COUNTS[-1]} outcomes {100 * self.kept_wrong[COUNTS[-1]]:.0f} %."
        )


def need_rates(evalset: EvalSet, rates: Mapping[str, float]) -> dict[str, float]:
    """Return the rates that are needed: of models too few outcomes of which are known.

    A model with half as many outcomes as the best known one is learned with the others.

    Raises:
        OutcomeModelError: A rate is not between 0 and 1; all are listed.
    """
    problems = [
        Problem(f"the rate of {name!r}", f"must lie between 0 and 1, got {rate:g}", "such as 0.62")
        for name, rate in rates.items()
        if not 0.0 < rate < 1.0
    ]
    OutcomeModelError.raise_any(evalset.name, problems)
    counts = np.isfinite(evalset.quality).sum(axis=0)
    counted = dict(zip(evalset.models, counts.tolist(), strict=True))
    least = max(LEAST_OUTCOMES, TOGETHER * counts.max(initial=0))
    return {name: rate for name, rate in rates.items() if counted.get(name, 0) < least}


def with_newcomers(
    learning: Learning,
    rates: Mapping[str, float],
    prices: Mapping[str, tuple[float, float]] | None,
) -> Learning:
    """Add models to what was learned, by their rates and by their outcomes in logs.

    Args:
        learning: Of the models with outcomes; those of its material that have them in logs only
            join too.
        rates: Name -> mean success, in (0, 1); none is among the models learned. Few outcomes, or
            logged ones, move it.
        prices: USD per million tokens read and written, of all of them; None predicts cost as the
            set has it.
    """
    known = learning.predicted.success[:, : learning.material.together]
    placed = {**dict.fromkeys(learning.material.logged_only), **rates}
    newcomers = []
    for name, rate in placed.items():
        material = _widened(learning.material, name)
        every = _rows(material, known, learning.logged)
        per_mtok, dearer = None, None
        if prices is not None:
            per_mtok = np.array([prices[one] for one in material.models])
            blended = per_mtok @ _BLEND
            dearer = float(blended[-1] / np.exp(np.log(blended[:-1]).mean()))
        heads = place_newcomer(
            learning.heads,
            every.messages,
            every.success,
            name,
            rate=rate,
            dearer=dearer,
            about=known,
            **every.own,
        )
        success = _cross_fitted(every, known, rate, learning.seed)
        raw = _beside(learning.raw, success[: material.n], heads.costs)
        pool = heads.for_pool(material.models, np.zeros(len(material.models)), per_mtok)
        known_so_far, wide = learning.predicted, pool.combine(raw)
        predicted = Predicted(
            np.column_stack([known_so_far.success, wide.success[:, -1]]),
            np.column_stack([known_so_far.cost_usd, wide.cost_usd[:, -1]]),
        )
        logged = learning.logged
        if logged is not None:
            logged = replace(logged, raw=_beside(logged.raw, success[material.n :], heads.costs))
        learning = replace(
            learning,
            material=material,
            heads=heads,
            raw=raw,
            predicted=predicted,
            reliability=reliability(predicted.success, material.quality),
            logged=logged,
        )
        quality = every.own["quality"]
        counted = int(np.isfinite(quality).sum())
        spread = newcomer_range(every.success, quality, rate, known)
        newcomers.append(Newcomer(name, rate, counted, spread))
    if not newcomers:
        return learning
    said = " ".join(one.sentence for one in newcomers)
    reason = f"{learning.reason} {said} What this adds is not measured."
    return replace(learning, reason=reason, newcomers=tuple(newcomers))


def rehearse(success: FloatArray, cost_usd: FloatArray, outcomes: Outcomes) -> Rehearsal | None:
    """Let every model play the newcomer on a set, with its rate and few outcomes.

    Args:
        success, cost_usd: (n, m) by predictions that have not seen the query; cost in USD.
        outcomes: Of the same queries and models.

    Returns:
        None where the models are fewer than three, or routing gains nothing that could be kept.
    """
    m, rng = len(outcomes.models), np.random.default_rng(0)
    rows = rng.permutation(outcomes.n)[:_MOST_QUERIES]
    success, cost_usd, outcomes = success[rows], cost_usd[rows], outcomes.take(rows)
    full = _lift(success, cost_usd, outcomes)
    if m < 3 or full < _LEAST_LIFT:
        return None

    # a model that no fixed mix uses gets hardly any traffic, whatever its rate
    used = [one.index for one in hull_of(outcomes.quality, outcomes.cost_usd)]

    def kept(count: int, error: float) -> float:
        found = []
        for j in used:
            others = np.delete(success, j, axis=1)
            own = outcomes.quality[:, j]
            rate = float(np.clip(own.mean() + error, *_EXTREMES))
            for _ in range(_DRAWS if count else 1):
                drawn = rng.permutation(len(own))[:count]
                some = np.full(len(own), np.nan)
                some[drawn] = own[drawn]
                moved = success.copy()
                moved[:, j] = _said(others, some, rate)
                found.append(_lift(moved, cost_usd, outcomes))
        return float(np.mean(found)) / full

    wrong = {n: (kept(n, WRONG) + kept(n, -WRONG)) / 2 for n in (COUNTS[0], COUNTS[-1])}
    return Rehearsal({n: kept(n, 0.0) for n in COUNTS}, wrong)


def rehearsal_of(learning: Learning) -> Rehearsal | None:
    """Rehearse a rate on what was learned, on the queries with outcomes of all its models."""
    material, b = learning.material, learning.material.together
    rows = np.flatnonzero(
        (np.isfinite(material.quality) & np.isfinite(material.cost_usd))[:, :b].all(axis=1)
    )
    if not material.compared or not rows.size:
        return None
    outcomes = Outcomes(
        material.models[:b],
        np.zeros((rows.size, 1)),
        material.quality[rows, :b],
        material.cost_usd[rows, :b],
        np.unique(material.clusters[rows], return_inverse=True)[1],
    )
    said = learning.predicted.take(rows)
    return rehearse(said.success[:, :b], said.cost_usd[:, :b], outcomes)


def rehearse_profiles(outcomes: Outcomes) -> Rehearsal | None:
    """Rehearse a rate where nothing was learned: on cross-fitted success profiles."""
    if np.unique(outcomes.clusters).size < _FOLDS:
        return None
    outcomes = replace(outcomes, stand_in=None)  # a rate says nothing of gates
    part = grouped_parts(outcomes.clusters, _FOLDS, np.random.default_rng(0))
    success, cost_usd = np.empty((2, *outcomes.quality.shape))
    for number in range(_FOLDS):
        rows = np.flatnonzero(part == number)
        fitted = fit_success_profiles(outcomes.take(np.flatnonzero(part != number)))
        said = fitted.predict(outcomes.requirements[rows])
        success[rows], cost_usd[rows] = said.success, said.cost_usd
    return rehearse(success, cost_usd, outcomes)


def _lift(success: FloatArray, cost_usd: FloatArray, outcomes: Outcomes) -> float:
    """Mean lift of the value rule over the best fixed mix, in units of quality."""
    returns = returns_on_upgrading(success, cost_usd)
    ranked = Ranked(outcomes, returns, cost_order(returns, cost_usd))
    chosen = ranked.choices(ranked.taus_at(np.asarray(POINTS) / 100, _SETTINGS))
    hull = hull_of(outcomes.quality, outcomes.cost_usd)
    return float(differences_to_hull(outcomes.quality, outcomes.cost_usd, chosen, hull).mean())


def _said(
    success: FloatArray, quality: FloatArray, rate: float | None, about: FloatArray | None = None
) -> FloatArray:
    """(n,) success of a newcomer."""
    head = newcomer_head(success, quality, rate=rate, about=about)
    return success_of(head(log_odds(success).astype(np.float32))[:, 0].astype(np.float64))


def _widened(material: Material, name: str) -> Material:
    """The material with a column for one more model, NaN where the set says nothing of it."""
    own = _column(material.evalset, name, material.rows)
    wide: dict[str, Any] = {
        key: np.column_stack([values, own[key]])
        for key in _MEASURED
        if (values := getattr(material, key)) is not None
    }
    return replace(
        material,
        models=(*material.models, name),
        others=np.empty((material.n, 0)),
        stand_in=None,
        logged=None if material.logged is None else _widened(material.logged, name),
        **wide,
    )


def _column(evalset: EvalSet, name: str, rows: IntArray) -> dict[str, FloatArray]:
    """(p,) what a set measured of one model on some rows, NaN where it says nothing."""
    whole = {"quality": evalset.quality, "cost_usd": evalset.cost_usd, **evalset.extras}
    known = name in evalset.models
    return {
        key: whole[key][rows, evalset.models.index(name)]
        if known and key in whole
        else np.full(rows.size, np.nan)
        for key in _MEASURED
    }


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The queries that were learned on, then the logged ones; what is known there.

    Attributes:
        success: (p, b) of the models learned together.
        own: (p,) each, what was measured of the newcomer.
    """

    messages: Messages
    success: FloatArray
    own: dict[str, FloatArray]
    clusters: IntArray


def _rows(material: Material, known: FloatArray, logged: LoggedPart | None) -> _Rows:
    """What is known of the newcomer, the last model, where the others have (n, b) success."""
    parts, success = [material], [known]
    if material.logged is not None and logged is not None:
        raw = logged.raw
        theirs = np.clip(raw.shared + raw.difference[:, : material.together], 0.0, 1.0)
        parts, success = [*parts, material.logged], [known, theirs.astype(np.float64)]
    messages = Messages(
        *(
            np.concatenate([getattr(one.messages, part) for one in parts])
            for part in Messages.__slots__
        )
    )
    rows = np.concatenate([one.rows for one in parts])
    own = _column(material.evalset, material.models[-1], rows)
    return _Rows(
        messages, np.concatenate(success), own, np.concatenate([one.clusters for one in parts])
    )


def _cross_fitted(every: _Rows, about: FloatArray, rate: float | None, seed: int) -> FloatArray:
    """Success of a newcomer on every row, by heads that have not seen its query."""
    part = grouped_parts(every.clusters, _FOLDS, np.random.default_rng(seed))
    success = np.empty(every.clusters.size)
    for number in range(_FOLDS):
        rows = part == number
        others = np.where(rows, np.nan, every.own["quality"])
        success[rows] = _said(every.success, others, rate, about)[rows]
    return success


def _beside(raw: Raw, success: FloatArray, costs: Costs) -> Raw:
    """What heads say, with a newcomer's (n,) success, and costs like the others' on average."""

    def wide(values: Float32Array, head: Linear | None) -> Float32Array:
        if not values.shape[1] or head is None:
            return values
        moved = float(head.offset[-1] - head.offset[:-1].mean())
        return np.column_stack([values, values.mean(axis=1) + moved]).astype(np.float32)

    return Raw(
        raw.shared,
        np.column_stack([raw.difference, success - raw.shared[:, 0]]).astype(np.float32),
        wide(raw.cost_usd, costs.cost_usd),
        wide(raw.input_tokens, costs.input_tokens),
        wide(raw.output_tokens, costs.output_tokens),
    )
