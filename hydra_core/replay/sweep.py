"""One eval set replayed under one policy, for every value of its knob (tau or V)."""

from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import TypeVar

import numpy as np

from hydra_core.base.arrays import read_only
from hydra_core.base.types import (
    Catalog,
    ChoiceArray,
    Chosen,
    FloatArray,
    IntArray,
    Progress,
    Rule,
    Selection,
    SuccessSource,
)
from hydra_core.catalog.profiles import compensated_weights
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.evalsets.scores import messages_of
from hydra_core.outcome_model.format import catalog_outcome_model
from hydra_core.outcome_model.heads import Predicted
from hydra_core.outcome_model.model import OutcomeModel, PoolHeads, text_digests
from hydra_core.outcome_model.success_profiles import SuccessProfiles, catalog_success_profiles
from hydra_core.replay.band import CurveBand, lift_band
from hydra_core.replay.frontier import StepCurve, choices, shares
from hydra_core.replay.metrics import (
    ConstantPolicy,
    PolicyMetrics,
    evaluate_choice,
    single_models,
    upper_hull,
)
from hydra_core.replay.predictions import (
    input_sizes,
    learned_rows,
    pool_heads,
    predict_evalset,
    weighed,
)
from hydra_core.replay.pricing import Prices
from hydra_core.replay.replay import ReplayData, align_catalog, catalog_scores, curve_of, replay
from hydra_core.routing.matcher import choose, tau_of_value

_Quality = TypeVar("_Quality", float, FloatArray)
#: Settings at which traffic over the knob is drawn.
SHARE_STEPS = 160
#: Traffic nearer than this to where it ends up is drawn no further.
_SETTLED = 0.005
#: At 2,000 queries the critical value of 512 positions is at most 0.07 below that of them all.
BAND_POSITIONS = 512
#: Two pixels each on the page; their figures go to the browser with every release.
_KNOB_STEPS = 256


@dataclass(frozen=True, eq=False)
class Sweep:
    """An eval set replayed under one policy, for every value of the knob.

    Everything below the fields is computed when it is first asked for, then kept; arrays are
    read-only, since one sweep may serve many readers.

    Attributes:
        data: The queries and models that can be replayed.
        weights: (K,) stored weights w_k, which may differ from the catalog's.
        outcome_model: Whose predictions the data carry; None for the catalog's success profiles,
            and under the shortfall rule.
        cross_fitted: Whether queries that were learned on are among them.
    """

    evalset: EvalSet
    catalog: Catalog
    data: ReplayData
    weights: tuple[float, ...]
    rule: Rule = Rule.SHORTFALL
    outcome_model: OutcomeModel | None = None
    cross_fitted: bool = False
    _bands: list[CurveBand] = field(default_factory=list, init=False, repr=False)

    @property
    def source(self) -> SuccessSource | None:
        """What success is predicted with; None under the shortfall rule."""
        if self.rule is Rule.SHORTFALL:
            return None
        by_heads = self.outcome_model is not None
        return SuccessSource.OUTCOME_MODEL if by_heads else SuccessSource.SUCCESS_PROFILES

    @property
    def predicted_by(self) -> str:
        """Digest of what predicts success; '' under the shortfall rule."""
        if self.outcome_model is not None:
            return self.outcome_model.digest
        block = self.catalog.success_profiles
        return block.sha256 if self.rule is Rule.VALUE and block is not None else ""

    @property
    def own_knob(self) -> float:
        """The catalog's own setting; where it names no V, the one that spends half the range."""
        policy = self.catalog.policy
        return policy.tau if self.rule is Rule.SHORTFALL else policy.value_usd or self.middle

    @cached_property
    def middle(self) -> float:
        """The setting at which half of the cost range is spent: where to begin without one."""
        cost = self.curve.mean_cost_usd
        middle = (float(cost[0]) + float(cost[-1])) / 2
        return self.curve.tidy(self.curve.point(int(np.abs(cost - middle).argmin())).knob)

    def route(self, knob: float) -> IntArray:
        """(n,) pool index of the model each query is routed to at this value of the knob."""
        if self.rule is Rule.SHORTFALL:
            return choose(*self.terms, knob)
        return replay(self.data, knob, rule=self.rule)

    def served(self, knob: float) -> IntArray:
        """As `route`, by what the router has: heads that have seen every query."""
        if self.outcome_model is None:
            return self.route(knob)
        return replay(self._as_served, knob, rule=self.rule)

    @cached_property
    def _as_served(self) -> ReplayData:
        """With what the router predicts, also of queries that were learned on."""
        model = self.outcome_model
        assert model is not None
        messages = messages_of(self.evalset, model.fingerprint, model.vectors)
        heads = pool_heads(model, self.catalog, self.data.pool)
        sizes = input_sizes(self.evalset) if heads.long else None
        said = heads.predict(messages, sizes).take(self.data.rows)
        mine = weighed(self.data.pool.ids, self.data.closed, self.catalog, said)
        return replace(self.data, predicted=mine)

    @cached_property
    def terms(self) -> tuple[FloatArray, FloatArray]:
        """(n, m) shortfalls or returns on upgrading, and what orders the models, pool order."""
        shortfalls, cost = self.data.terms(self.rule)
        return read_only(shortfalls), cost

    def _taus(self, knobs: FloatArray) -> FloatArray:
        return knobs if self.rule is Rule.SHORTFALL else tau_of_value(knobs)

    @cached_property
    def curve(self) -> StepCurve:
        """The exact frontier."""
        return curve_of(self.data, self.rule, *self.terms)

    @cached_property
    def compensated(self) -> FloatArray:
        """(K,) compensated weights w~ (Eq. 4)."""
        return read_only(compensated_weights(np.asarray(self.weights), self.catalog.bands))

    @cached_property
    def order(self) -> IntArray:
        """(m,) pool columns from cheapest to dearest by the pool's cost."""
        return read_only(np.argsort(self.data.pool.cost, kind="stable"))

    @property
    def models(self) -> tuple[str, ...]:
        """Model ids from cheapest to dearest by the pool's cost."""
        return tuple(self.data.pool.ids[i] for i in self.order)

    @cached_property
    def singles(self) -> tuple[ConstantPolicy, ...]:
        """Every measured model used alone, pool order."""
        return single_models(self.data)

    @cached_property
    def hull(self) -> tuple[ConstantPolicy, ...]:
        """The constants that no mixture of others beats, from cheapest to best."""
        return upper_hull(self.singles)

    @property
    def baselines(self) -> tuple[str, ...]:
        """Models that savings can be measured against, the highest realised cost first."""
        return tuple(one.model for one in sorted(self.singles, key=lambda s: -s.mean_cost_usd))

    @cached_property
    def oracle(self) -> PolicyMetrics:
        """The best choice in hindsight; savings against the costliest model."""
        return evaluate_choice(self.data, self.data.oracle)

    @property
    def best_qr(self) -> float:
        """The highest QR that any value of the knob reaches, in [0, 1]."""
        return self.qr(float(self.curve.quality.max()))

    def qr(self, quality: _Quality) -> _Quality:
        """Quality retention of a mean quality, or of several (Eq. 7), in [0, 1]."""
        return quality / (self.oracle.quality.value or 1.0)

    @cached_property
    def steps(self) -> tuple[float, ...]:
        """Values of the knob that lie evenly along the curve, the least first: where it stops."""
        return turning_points(self.curve, _KNOB_STEPS)

    @cached_property
    def step_traffic(self) -> FloatArray:
        """(t, m) traffic at each of `steps`, with columns in `order`."""
        return read_only(self.traffic(np.asarray(self.steps)))

    def traffic(self, knobs: FloatArray) -> FloatArray:
        """(t, m) share of the queries that each model gets, with columns in `order`."""
        return shares(*self.terms, self._taus(knobs))[:, self.order]

    def shares(self, knob: float) -> tuple[FloatArray, FloatArray]:
        """(t,) values of the knob, and (t, m) traffic there with columns in `order`.

        As far as traffic changes by half a hundredth, or to `knob` where that is farther; all of
        them under the value rule, evenly in their logarithm.
        """
        if self.rule is Rule.VALUE or knob <= self._settled[0][-1]:
            return self._settled
        grid = np.linspace(0.0, 1.02 * knob, SHARE_STEPS)
        return grid, self.traffic(grid)

    @cached_property
    def _settled(self) -> tuple[FloatArray, FloatArray]:
        if self.rule is Rule.VALUE:
            known = self.curve.knob[self.curve.knob > 0]
            low, high = (float(known[0]) / 2, 2 * float(known[-1])) if known.size else (0.5, 2.0)
            grid = np.geomspace(low, high, SHARE_STEPS)
            return grid, self.traffic(grid)
        end = max(float(self.curve.knob[-1]) * 1.02, 0.01)
        for _ in range(2):  # the second time with the whole grid where something happens
            grid = np.linspace(0.0, end, SHARE_STEPS)
            traffic = self.traffic(grid)
            moving = np.flatnonzero(np.abs(traffic - traffic[-1]).max(axis=1) > _SETTLED)
            end = float(grid[min(moving[-1] + 2, SHARE_STEPS - 1)]) if moving.size else end
        return read_only(grid), read_only(traffic)

    def choices(self, knobs: FloatArray) -> ChoiceArray:
        """(n, p) pool index of the model each query goes to at each of p settings."""
        return choices(*self.terms, self._taus(knobs))

    def band(self, progress: Progress | None = None) -> CurveBand:
        """How far the whole curve may lie from the hull by chance, over all its positions at once.

        Computed when it is first asked for, then kept; it does not depend on the knob.

        Args:
            progress: Called with (done, total) queries.
        """
        if not self._bands:
            rows, data = self.curve.simplified(BAND_POSITIONS), self.data
            knob = np.array([self.curve.point(int(row)).knob for row in rows])
            band = lift_band(
                *data.fixed,
                self.choices(knob),
                knob,
                data.clusters,
                rng=np.random.default_rng(0),
                progress=progress,
                measured=data.measured,
                stand_in=data.stand_in,
            )
            self._bands.append(band)
        return self._bands[0]

    @property
    def has_band(self) -> bool:
        """Whether the band is computed already."""
        return bool(self._bands)

    def own(self, knob: float) -> bool:
        """Whether this is the catalog's own policy."""
        policy = self.catalog.policy
        if self.rule is Rule.VALUE:
            return policy.rule is Rule.VALUE and knob == policy.value_usd
        return knob == policy.tau and self.weights == policy.weights

    @cached_property
    def learned_here(self) -> bool:
        """Whether an outcome model was learned on some of these queries."""
        if self.outcome_model is None:
            return False
        texts = text_digests([] if self.evalset.texts is None else self.evalset.texts.tolist())
        return self.outcome_model.learned.shares(self.evalset.query_ids, texts) > 0

    @cached_property
    def chosen_here(self) -> tuple[Chosen, ...]:
        """What the catalog records of its policy being chosen on these queries, or some of them."""
        records = [one for one in self.catalog.policy.chosen_on if one.how is not Selection.FIXED]
        if not records:
            return ()
        marks = self.evalset.query_marks
        return tuple(
            one
            for one in records
            if one.queries == self.evalset.queries_digest or marks & {*one.sample}
        )

    def selection(self, knob: float) -> Selection:
        """Whether this is the catalog's own policy, chosen on none of these queries, or any other.

        A policy that was tuned on these queries, by eye or by search, is no better than one that
        was looked at: only on other queries is it fixed. But V is taken from Learned by cost alone,
        and its heads have not seen a query that they predict: that is cross-fitted.
        """
        if not self.own(knob):
            return Selection.LOOKED
        if self.rule is Rule.SHORTFALL:
            return Selection.LOOKED if self.chosen_here else Selection.FIXED
        if any(one.how is Selection.LOOKED for one in self.chosen_here):
            return Selection.LOOKED
        seen = self.learned_here or bool(self.chosen_here)
        return Selection.CROSS_FITTED if seen else Selection.FIXED

    def origin(self, knob: float) -> str:
        """What is known of how this point came about beyond its `selection`, in one sentence."""
        if not self.own(knob):
            return ""
        if self.chosen_here:
            same = any(one.queries == self.evalset.queries_digest for one in self.chosen_here)
            some = "" if same else "some of "
            return f"The catalog's policy was chosen on {some}these queries."
        others = [one.evalset for one in self.catalog.policy.chosen_on]
        if others:
            return f"The catalog's policy was chosen on {', '.join(others)}."
        return "The catalog does not say on which set its policy was chosen."

    def cost_of(self, model: str) -> float:
        """Mean realised cost of always using `model`, USD per query."""
        return float(self.data.alone[1][self.data.pool.ids.index(model)])


def sweep_catalog(
    evalset: EvalSet,
    catalog: Catalog,
    scores: FloatArray,
    weights: tuple[float, ...] | None = None,
    *,
    today: date,
    prices: Prices = Prices.TODAY,
) -> Sweep:
    """Replay an eval set under a catalog's pool.

    Args:
        scores: (n, K) requirements from the catalog's own predictor bundle.
        weights: (K,) stored weights, > 0; default the catalog's.
        today, prices: As in `align_catalog`.

    Raises:
        MismatchError: No common models, or no query with outcomes of all of them.
        CatalogError: Wrong weights, or a realised cost that is not known.
    """
    data = align_catalog(evalset, catalog, scores, weights, today=today, prices=prices)
    return Sweep(evalset, catalog, data, weights or catalog.policy.weights)


def sweep_own_value(
    evalset: EvalSet,
    catalog: Catalog,
    *,
    cross_fitted: bool,
    today: date,
    prices: Prices = Prices.TODAY,
) -> Sweep:
    """Replay an eval set by what the catalog itself predicts with.

    Args:
        cross_fitted, today, prices: As in `sweep_by_value`.

    Raises:
        OutcomeModelError: It has neither an outcome model nor success profiles.
        MismatchError, EvalSetError: As `sweep_by_value`.
    """
    if catalog.success_source is not SuccessSource.SUCCESS_PROFILES:
        model = catalog_outcome_model(catalog)
        return sweep_by_value(
            evalset, catalog, model, cross_fitted=cross_fitted, today=today, prices=prices
        )
    scores = catalog_scores(evalset, catalog)
    data = align_catalog(evalset, catalog, scores, today=today, prices=prices)
    profiles = catalog_success_profiles(catalog, data.pool)
    sizes = input_sizes(evalset) if profiles.long else None
    mine = None if sizes is None else sizes[data.rows]
    predicted = profiles.predict(data.requirements, sizes=mine)
    return _valued(evalset, catalog, data, predicted, profiles)


def _valued(
    evalset: EvalSet,
    catalog: Catalog,
    data: ReplayData,
    predicted: Predicted,
    by: SuccessProfiles | PoolHeads,
    model: OutcomeModel | None = None,
    cross_fitted: bool = False,
) -> Sweep:
    """The sweep by predictions of the rows of `data`, with notes on what they stand on."""
    notes = list(data.notes)
    if model is not None and learned_rows(evalset, model).max() >= 0:
        notes.append(
            "The outcome model was learned on queries of this set: each is predicted by heads that "
            "had not seen it (cross-fitted)."
        )
    if by.placed:
        listed = ", ".join(by.placed)
        lacking = f"No success profile of {listed}"
        if model is not None:
            lacking = f"No outcomes of {listed} were learned"
        notes.append(f"{lacking}: predicted from the profile's place.")
    if not by.priced:
        made = "the profiles were fitted" if model is None else "the outcome model was learned"
        notes.append(f"Costs are predicted as they were when {made}, not from prices.")
    mine = weighed(data.pool.ids, data.closed, catalog, predicted)
    whole = replace(data, predicted=mine, notes=tuple(notes))
    weights = catalog.policy.weights
    return Sweep(evalset, catalog, whole, weights, Rule.VALUE, model, cross_fitted)


def sweep_by_value(
    evalset: EvalSet,
    catalog: Catalog,
    model: OutcomeModel,
    *,
    cross_fitted: bool,
    today: date,
    prices: Prices = Prices.TODAY,
) -> Sweep:
    """Replay an eval set by the predictions of an outcome model.

    Args:
        cross_fitted: Use cross-fitted predictions for queries that were learned on.
        today, prices: As in `align_catalog`.

    Raises:
        MismatchError: They do not fit together, or queries were learned on and `cross_fitted` is
            off.
        EvalSetError: The set has no vectors of the model's bundle.
    """
    scores = catalog_scores(evalset, catalog)
    data = align_catalog(evalset, catalog, scores, today=today, prices=prices)
    heads = pool_heads(model, catalog, data.pool)
    predicted = predict_evalset(evalset, model, heads, cross_fitted=cross_fitted)
    mine = predicted.take(data.rows)
    return _valued(evalset, catalog, data, mine, heads, model, cross_fitted)


def turning_points(curve: StepCurve, steps: int) -> tuple[float, ...]:
    """Tidy settings that lie evenly along the curve, so that each step moves the plot alike."""
    rows = curve.simplified(steps)
    return tuple(sorted({curve.tidy(curve.point(int(row)).knob) for row in rows}))
