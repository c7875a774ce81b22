"""One eval set replayed under the value rule, for every V."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

import numpy as np

from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.evaluation.replay.predictions import pool_heads, predict_evalset
from hydra_core.evaluation.replay.replay import align_catalog, catalog_scores, replay_by_value
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.evaluation.replay.value_curve import ValueCurve, data_value_curve, value_shares
from hydra_core.evaluation.replay.verdict import Selection
from hydra_core.outcome_model.model import OutcomeModel
from hydra_core.types import Catalog, ChoiceArray, FloatArray, IntArray, Rule

__all__ = ["ValueSweep", "middle_value", "sweep_by_value"]

_SHARE_STEPS = 160
_SLIDER_STEPS = 140


@dataclass(frozen=True, eq=False)
class ValueSweep(Sweep):
    """As `Sweep`, with V as the knob.

    Attributes:
        outcome_model: Whose predictions the data carry.
        cross_fitted: Whether queries that were learned on are among them.
    """

    outcome_model: OutcomeModel
    cross_fitted: bool

    @property
    def rule(self) -> Rule:
        """The value rule."""
        return Rule.VALUE

    def route(self, knob: float) -> IntArray:
        """(n,) pool index of the model each query is routed to at this V."""
        return replay_by_value(self.data, knob)

    def choices(self, knobs: FloatArray) -> ChoiceArray:
        """(n, p) pool index of the model each query goes to at each of p values of V."""
        columns = [self.route(float(knob)).astype(np.uint8) for knob in knobs]
        return np.stack(columns, axis=1)

    def selection(self, knob: float) -> Selection:
        """Whether V is the catalog's own, fixed beforehand, or one chosen by looking."""
        policy = self.catalog.policy
        own = policy.rule is Rule.VALUE and knob == policy.value_usd
        return Selection.FIXED if own else Selection.LOOKED

    @cached_property
    def curve(self) -> ValueCurve:  # type: ignore[override]
        """The exact curve."""
        return data_value_curve(self.data)

    @cached_property
    def steps(self) -> tuple[float, ...]:
        """Values of V that lie evenly along the curve: a slider's positions."""
        rows = self.curve.simplified(_SLIDER_STEPS)
        return tuple(sorted({self.curve.point(int(row)).value_usd for row in rows}))

    @cached_property
    def shares(self) -> tuple[FloatArray, FloatArray]:
        """(t,) values of V, evenly in their logarithm, and (t, m) traffic in `order`."""
        assert self.data.predicted is not None
        predicted = self.data.predicted
        known = self.curve.value_usd[self.curve.value_usd > 0]
        low, high = (float(known[0]) / 2, 2 * float(known[-1])) if known.size else (0.5, 2.0)
        grid = np.geomspace(low, high, _SHARE_STEPS)
        traffic = value_shares(predicted.success, predicted.cost_usd, grid)
        return grid, traffic[:, self.order]


def sweep_by_value(
    evalset: EvalSet,
    catalog: Catalog,
    model: OutcomeModel,
    *,
    cross_fitted: bool,
    today: date,
) -> ValueSweep:
    """Replay an eval set by the predictions of an outcome model.

    Args:
        cross_fitted: Use cross-fitted predictions for queries that were learned on.
        today: Decides about retiring models.

    Raises:
        MismatchError: They do not fit together, or queries were learned on and `cross_fitted` is
            off.
        EvalSetError: The set has no vectors of the model's bundle.
    """
    data = align_catalog(evalset, catalog, catalog_scores(evalset, catalog), today=today)
    heads = pool_heads(model, catalog, data.pool)
    predicted = predict_evalset(evalset, model, heads, cross_fitted=cross_fitted)
    notes = list(data.notes)
    if heads.placed:
        listed = ", ".join(heads.placed)
        notes.append(f"No outcomes of {listed} were learned: predicted from the profile's place.")
    if not heads.priced:
        notes.append("Costs are predicted as they were in the set learned on, not from prices.")
    whole = replace(data, predicted=predicted.take(data.rows), notes=tuple(notes))
    return ValueSweep(evalset, catalog, whole, catalog.policy.weights, model, cross_fitted)


def middle_value(curve: ValueCurve) -> float:
    """The V at which half of the cost range is spent: where to begin without one."""
    cost = curve.mean_cost_usd
    middle = (float(cost[0]) + float(cost[-1])) / 2
    return curve.point(int(np.abs(cost - middle).argmin())).value_usd
