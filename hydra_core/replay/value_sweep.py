"""One eval set replayed under the value rule, for every V.

Success profiles predict from the requirements alone. A query that an outcome model was learned on
is never predicted by heads that have seen it: its cross-fitted predictions are used, and only where
that was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

import numpy as np

from hydra_core.base.errors import MismatchError
from hydra_core.base.types import (
    BoolArray,
    Catalog,
    ChoiceArray,
    FloatArray,
    IntArray,
    Pool,
    Rule,
    Selection,
    SuccessSource,
)
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.evalsets.score_files import messages_of
from hydra_core.outcome_model.find import catalog_outcome_model, require_same_bundle
from hydra_core.outcome_model.model import OutcomeModel, PoolHeads, text_digests
from hydra_core.outcome_model.raw import Predicted, Raw
from hydra_core.outcome_model.success_profiles import catalog_success_profiles
from hydra_core.replay.frontier import CLOSED
from hydra_core.replay.pricing import Prices
from hydra_core.replay.replay import ReplayData, align_catalog, catalog_scores, replay_by_value
from hydra_core.replay.sweep import SHARE_STEPS, Sweep
from hydra_core.replay.value_curve import ValueCurve, data_value_curve, value_shares
from hydra_core.routing.matcher import choose_by_value


@dataclass(frozen=True, eq=False)
class ValueSweep(Sweep):
    """As `Sweep`, with V as the knob.

    Attributes:
        outcome_model: Whose predictions the data carry; None for the catalog's success profiles.
        cross_fitted: Whether queries that were learned on are among them.
    """

    outcome_model: OutcomeModel | None
    cross_fitted: bool

    @property
    def rule(self) -> Rule:
        """The value rule."""
        return Rule.VALUE

    @property
    def predicted_by(self) -> str:
        """Digest of the outcome model, or of the success profiles."""
        if self.outcome_model is not None:
            return self.outcome_model.digest
        assert self.catalog.success_profiles is not None
        return self.catalog.success_profiles.sha256

    @property
    def source(self) -> SuccessSource | None:
        """The outcome model given, else the catalog's success profiles."""
        by_heads = self.outcome_model is not None
        return SuccessSource.OUTCOME_MODEL if by_heads else SuccessSource.SUCCESS_PROFILES

    @property
    def cross_fits(self) -> bool:
        """Whether an outcome model decides: nothing is predicted by heads that have seen it."""
        return self.outcome_model is not None

    @property
    def own_knob(self) -> float:
        """The catalog's V; where it names none, the one that spends half of the cost range."""
        return self.catalog.policy.value_usd or self.middle

    @cached_property
    def middle(self) -> float:
        """The V at which half of the cost range is spent: where to begin without one."""
        cost = self.curve.mean_cost_usd
        middle = (float(cost[0]) + float(cost[-1])) / 2
        return self.curve.tidy(self.curve.point(int(np.abs(cost - middle).argmin())).knob)

    def route(self, knob: float) -> IntArray:
        """(n,) pool index of the model each query is routed to at this V."""
        return replay_by_value(self.data, knob)

    def served(self, knob: float) -> IntArray:
        """As `route`, by the heads that the router has: those that have seen every query."""
        if self.outcome_model is None:
            return self.route(knob)
        served = self._as_served
        return choose_by_value(served.success, served.cost_usd, knob)

    @cached_property
    def _as_served(self) -> Predicted:
        """(n, m) what the router predicts, also of queries that were learned on."""
        model = self.outcome_model
        assert model is not None
        messages = messages_of(self.evalset, model.fingerprint, model.vectors)
        heads = pool_heads(model, self.catalog, self.data.pool)
        return _weighed(self.data, self.catalog, heads.predict(messages).take(self.data.rows))

    def choices(self, knobs: FloatArray) -> ChoiceArray:
        """(n, p) pool index of the model each query goes to at each of p values of V."""
        columns = [self.route(float(knob)).astype(np.uint8) for knob in knobs]
        return np.stack(columns, axis=1)

    def own(self, knob: float) -> bool:
        """Whether this is the catalog's own policy."""
        policy = self.catalog.policy
        return policy.rule is Rule.VALUE and knob == policy.value_usd

    @cached_property
    def learned_here(self) -> bool:
        """Whether an outcome model was learned on some of these queries."""
        if self.outcome_model is None:
            return False
        texts = text_digests([] if self.evalset.texts is None else self.evalset.texts.tolist())
        return self.outcome_model.learned.shares(self.evalset.query_ids, texts) > 0

    def selection(self, knob: float) -> Selection:
        """As for tau; on queries that were learned on the catalog's own V is cross-fitted.

        V is taken from Learn by cost alone, and heads that have not seen a query predict it.
        """
        if not self.own(knob) or any(one.how is Selection.LOOKED for one in self.chosen_here):
            return Selection.LOOKED
        seen = self.learned_here or bool(self.chosen_here)
        return Selection.CROSS_FITTED if seen else Selection.FIXED

    @cached_property
    def curve(self) -> ValueCurve:  # type: ignore[override]
        """The exact curve."""
        return data_value_curve(self.data)

    def traffic(self, knobs: FloatArray) -> FloatArray:
        """(t, m) share of the queries that each model gets, with columns in `order`."""
        assert self.data.predicted is not None
        predicted = self.data.predicted
        return value_shares(predicted.success, predicted.cost_usd, knobs)[:, self.order]

    def shares(self, knob: float) -> tuple[FloatArray, FloatArray]:
        """(t,) values of V, evenly in their logarithm, and (t, m) traffic in `order`."""
        del knob  # all of them are drawn
        return self._settled

    @cached_property
    def _settled(self) -> tuple[FloatArray, FloatArray]:
        known = self.curve.value_usd[self.curve.value_usd > 0]
        low, high = (float(known[0]) / 2, 2 * float(known[-1])) if known.size else (0.5, 2.0)
        grid = np.geomspace(low, high, SHARE_STEPS)
        return grid, self.traffic(grid)


def _weighed(data: ReplayData, catalog: Catalog, predicted: Predicted) -> Predicted:
    """What the rule weighs: time at its price in the cost, and models that a gate keeps out.

    Times are those of the catalog, as a service has them when it starts.
    """
    success, cost_usd = predicted.success, predicted.cost_usd
    if catalog.policy.second_usd:
        seconds = [catalog.model(name).latency_s or 0.0 for name in data.pool.ids]
        cost_usd = cost_usd + catalog.policy.second_usd * np.asarray(seconds)
    if data.closed is not None:  # worth nothing at any V: no gate opens for money
        success = np.where(data.closed, -CLOSED, success)
        cost_usd = np.where(data.closed, CLOSED, cost_usd)
    return Predicted(success, cost_usd)


def sweep_own_value(
    evalset: EvalSet,
    catalog: Catalog,
    *,
    cross_fitted: bool,
    today: date,
    prices: Prices = Prices.TODAY,
) -> ValueSweep:
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
    notes = data.notes
    if profiles.placed:
        listed = ", ".join(profiles.placed)
        notes = (*notes, f"No success profile of {listed}: predicted from the profile's place.")
    if not profiles.priced:
        notes = (*notes, "Costs are predicted as they were in the set fitted to, not from prices.")
    whole = replace(
        data, predicted=_weighed(data, catalog, profiles.predict(data.requirements)), notes=notes
    )
    return ValueSweep(evalset, catalog, whole, catalog.policy.weights, None, False)


def sweep_by_value(
    evalset: EvalSet,
    catalog: Catalog,
    model: OutcomeModel,
    *,
    cross_fitted: bool,
    today: date,
    prices: Prices = Prices.TODAY,
) -> ValueSweep:
    """Replay an eval set by the predictions of an outcome model.

    Args:
        cross_fitted: Use cross-fitted predictions for queries that were learned on.
        today: Decides about retiring models.
        prices: Costs at the catalog's prices of today, or as they were recorded.

    Raises:
        MismatchError: They do not fit together, or queries were learned on and `cross_fitted` is
            off.
        EvalSetError: The set has no vectors of the model's bundle.
    """
    scores = catalog_scores(evalset, catalog)
    data = align_catalog(evalset, catalog, scores, today=today, prices=prices)
    heads = pool_heads(model, catalog, data.pool)
    predicted = predict_evalset(evalset, model, heads, cross_fitted=cross_fitted)
    notes = list(data.notes)
    if _learned_rows(evalset, model).max() >= 0:
        notes.append(
            "The outcome model was learned on queries of this set: each is predicted by heads that "
            "had not seen it (cross-fitted)."
        )
    if heads.placed:
        listed = ", ".join(heads.placed)
        notes.append(f"No outcomes of {listed} were learned: predicted from the profile's place.")
    if not heads.priced:
        notes.append("Costs are predicted as they were in the set learned on, not from prices.")
    mine = _weighed(data, catalog, predicted.take(data.rows))
    whole = replace(data, predicted=mine, notes=tuple(notes))
    return ValueSweep(evalset, catalog, whole, catalog.policy.weights, model, cross_fitted)


def pool_heads(model: OutcomeModel, catalog: Catalog, pool: Pool) -> PoolHeads:
    """The heads of a catalog's pool, at its prices.

    Raises:
        MismatchError: The catalog is bound to another bundle, or no model of the pool is known.
    """
    require_same_bundle(catalog, model)
    if not set(pool.ids) & set(model.models):
        raise MismatchError(
            f"outcome model {model.path.name!r} knows {', '.join(model.models)}, and none of the "
            f"models of catalog {catalog.name!r}: {', '.join(pool.ids)}"
        )
    specs = [catalog.model(name) for name in pool.ids]
    prices = np.array([[s.input_usd_per_mtok, s.output_usd_per_mtok] for s in specs])
    return model.heads.for_pool(pool.ids, pool.capabilities.mean(axis=1), prices)


def predict_evalset(
    evalset: EvalSet, model: OutcomeModel, heads: PoolHeads, *, cross_fitted: bool
) -> Predicted:
    """Success and cost of every query of the set, (n, m) in the order of the pool.

    Args:
        heads: Of the pool, from the same model.
        cross_fitted: Use the cross-fitted predictions for queries that were learned on.

    Raises:
        MismatchError: The set shares queries with what was learned, and `cross_fitted` is off.
        EvalSetError: The set has no vectors of the model's bundle.
    """
    messages = messages_of(evalset, model.fingerprint, model.vectors)
    rows = _learned_rows(evalset, model)
    seen = rows >= 0
    if seen.any() and not cross_fitted:
        raise MismatchError(
            f"{int(seen.sum())} of the {evalset.n} queries of '{evalset.name}' were learned on: "
            "evaluate on others, or add --cross-fitted to use predictions by heads that had not "
            "seen them"
        )
    found = model.heads.read(messages)
    if seen.any():
        found = _with(found, model.learned.raw.take(rows[seen]), seen)
    return heads.combine(found)


def _learned_rows(evalset: EvalSet, model: OutcomeModel) -> IntArray:
    """(n,) the learned row of every query of the set, -1 for those that were not learned on."""
    texts = text_digests([] if evalset.texts is None else evalset.texts.tolist())
    return model.learned.rows_of(evalset.query_ids, texts)


def _with(fresh: Raw, known: Raw, rows: BoolArray) -> Raw:
    values = {}
    for name in Raw.__slots__:
        whole = np.array(getattr(fresh, name))
        whole[rows] = getattr(known, name)
        values[name] = whole
    return replace(fresh, **values)
