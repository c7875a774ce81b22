"""One eval set replayed under one set of weights, for every value of the policy's knob (tau)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import TypeVar

import numpy as np

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
from hydra_core.replay.band import CurveBand, lift_band
from hydra_core.replay.frontier import Frontier, choices, shares
from hydra_core.replay.metrics import (
    ConstantPolicy,
    PolicyMetrics,
    evaluate_choice,
    single_models,
    upper_hull,
)
from hydra_core.replay.pricing import Prices
from hydra_core.replay.replay import ReplayData, align_catalog, data_frontier
from hydra_core.replay.step_curve import StepCurve
from hydra_core.routing.matcher import choose

_Array = TypeVar("_Array", FloatArray, IntArray)
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
    """An eval set replayed under one set of weights, for every value of the knob.

    Everything below the fields is computed when it is first asked for, then kept; arrays are
    read-only, since one sweep may serve many readers.

    Attributes:
        data: The queries and models that can be replayed.
        weights: (K,) stored weights w_k, which may differ from the catalog's.
    """

    evalset: EvalSet
    catalog: Catalog
    data: ReplayData
    weights: tuple[float, ...]
    _bands: list[CurveBand] = field(default_factory=list, init=False, repr=False)

    @property
    def rule(self) -> Rule:
        """Which rule the knob belongs to."""
        return Rule.SHORTFALL

    @property
    def predicted_by(self) -> str:
        """Digest of the outcome model that decides; '' where none does."""
        return ""

    @property
    def source(self) -> SuccessSource | None:
        """What success is predicted with; None under the shortfall rule."""
        return None

    @property
    def cross_fits(self) -> bool:
        """Whether no query is routed by what was learned from its own outcomes."""
        return False

    @property
    def own_knob(self) -> float:
        """The catalog's own setting."""
        return self.catalog.policy.tau

    def route(self, knob: float) -> IntArray:
        """(n,) pool index of the model each query is routed to at this value of the knob."""
        return choose(self.shortfalls, self.data.pool.cost, knob)

    def served(self, knob: float) -> IntArray:
        """(n,) pool index of the model that the router will choose: the same rule and pool."""
        return self.route(knob)

    @cached_property
    def shortfalls(self) -> FloatArray:
        """(n, m) weighted shortfalls, pool order."""
        return _read_only(self.data.shortfalls())

    @cached_property
    def curve(self) -> Frontier:
        """The exact frontier."""
        return data_frontier(self.data)

    @cached_property
    def compensated(self) -> FloatArray:
        """(K,) compensated weights w~ (Eq. 4)."""
        return _read_only(compensated_weights(np.asarray(self.weights), self.catalog.bands))

    @cached_property
    def order(self) -> IntArray:
        """(m,) pool columns from cheapest to dearest by the pool's cost."""
        return _read_only(np.argsort(self.data.pool.cost, kind="stable"))

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
        return _read_only(self.traffic(np.asarray(self.steps)))

    def traffic(self, knobs: FloatArray) -> FloatArray:
        """(t, m) share of the queries that each model gets, with columns in `order`."""
        return shares(self.shortfalls, self.data.pool.cost, knobs)[:, self.order]

    def shares(self, knob: float) -> tuple[FloatArray, FloatArray]:
        """(t,) values of the knob, and (t, m) traffic there with columns in `order`.

        As far as traffic changes by half a hundredth, or to `knob` where that is farther.
        """
        if knob <= self._settled[0][-1]:
            return self._settled
        grid = np.linspace(0.0, 1.02 * knob, SHARE_STEPS)
        return grid, self.traffic(grid)

    @cached_property
    def _settled(self) -> tuple[FloatArray, FloatArray]:
        end = max(float(self.curve.knob[-1]) * 1.02, 0.01)
        for _ in range(2):  # the second time with the whole grid where something happens
            grid = np.linspace(0.0, end, SHARE_STEPS)
            traffic = self.traffic(grid)
            moving = np.flatnonzero(np.abs(traffic - traffic[-1]).max(axis=1) > _SETTLED)
            end = float(grid[min(moving[-1] + 2, SHARE_STEPS - 1)]) if moving.size else end
        return _read_only(grid), _read_only(traffic)

    def choices(self, knobs: FloatArray) -> ChoiceArray:
        """(n, p) pool index of the model each query goes to at each of p settings."""
        return choices(self.shortfalls, self.data.pool.cost, knobs)

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
                data.quality,
                data.cost_usd,
                self.choices(knob),
                knob,
                data.clusters,
                rng=np.random.default_rng(0),
                progress=progress,
                measured=data.measured,
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
        return knob == policy.tau and self.weights == policy.weights

    @cached_property
    def chosen_here(self) -> tuple[Chosen, ...]:
        """What the catalog records of its policy being chosen on these queries, or some of them."""
        records = [one for one in self.catalog.policy.chosen_on if one.how is not Selection.FIXED]
        if not records:
            return ()
        marks = self.evalset.query_marks
        return tuple(
            one for one in records if one.queries == self._queries or marks & {*one.sample}
        )

    @cached_property
    def _queries(self) -> str:
        return self.evalset.queries_digest

    def selection(self, knob: float) -> Selection:
        """Whether this is the catalog's own policy, chosen on none of these queries, or any other.

        A policy that was tuned on these queries, by eye or by search, is no better than one that
        was looked at: only on other queries is it fixed.
        """
        fixed = self.own(knob) and not self.chosen_here
        return Selection.FIXED if fixed else Selection.LOOKED

    def origin(self, knob: float) -> str:
        """What is known of how this point came about beyond its `selection`, in one sentence."""
        if not self.own(knob):
            return ""
        if self.chosen_here:
            same = any(one.queries == self._queries for one in self.chosen_here)
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
        today: Decides about retiring models.
        prices: Costs at the catalog's prices of today, or as they were recorded.

    Raises:
        MismatchError: No common models, or no query with outcomes of all of them.
        CatalogError: Wrong weights, or a realised cost that is not known.
    """
    data = align_catalog(evalset, catalog, scores, weights, today=today, prices=prices)
    return Sweep(evalset, catalog, data, weights or catalog.policy.weights)


def turning_points(curve: StepCurve, steps: int) -> tuple[float, ...]:
    """Tidy settings that lie evenly along the curve, so that each step moves the plot alike."""
    rows = curve.simplified(steps)
    return tuple(sorted({curve.tidy(curve.point(int(row)).knob) for row in rows}))


def _read_only(values: _Array) -> _Array:
    values.setflags(write=False)
    return values
