"""From an evaluation to what the figures and tables show. No streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import pandas as pd

from hydra_core.base.intervals import Interval
from hydra_core.base.types import FloatArray, Rule, SuccessSource
from hydra_core.console.figures.frontier import (
    AxisSpec,
    CurveBandView,
    CurveLine,
    FrontierView,
    Spot,
)
from hydra_core.console.figures.shares import SharesView
from hydra_core.console.numbers import SYMBOLS, knob_text
from hydra_core.predictor.languages import language_name
from hydra_core.replay.evaluation import Evaluation
from hydra_core.replay.fixed_mix import Mix
from hydra_core.replay.frontier import CurvePoint
from hydra_core.replay.metrics import SMALL, ConstantPolicy, PolicyMetrics, evaluate_choice
from hydra_core.replay.sweep import Sweep

_Number = TypeVar("_Number", float, FloatArray)
#: Two pixels each on the page.
_CURVE_POINTS = 300
_BAND_POINTS = 150


class XAxis(StrEnum):
    """What the frontier plot's horizontal axis shows."""

    COST = "cost"
    SAVINGS = "savings"


class YAxis(StrEnum):
    """What the frontier plot's vertical axis shows."""

    QR = "qr"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Axes:
    """Both axes and the baseline that savings are measured against."""

    x: XAxis
    y: YAxis
    baseline: str


#: The knob of each rule on hover, and what a curve is called.
_KNOBS = {Rule.SHORTFALL: "τ %s", Rule.VALUE: "V $%s"}
_BY_VALUE = {
    SuccessSource.SUCCESS_PROFILES: "Success profiles, every V",
    SuccessSource.OUTCOME_MODEL: "Success heads, every V",
}
_SHORTFALL = "Shortfall rule, every τ"


def frontier_view(
    sweep: Sweep,
    knob: float,
    axes: Axes,
    *,
    pinned: tuple[Sweep, float] | None = None,
    beside: Sweep | None = None,
    imported: Mapping[str, PolicyMetrics] = MappingProxyType({}),
    banded: bool = True,
) -> FrontierView:
    """The frontier plot of a set; the operating point is read off its exact curve.

    Args:
        knob: Where the policy stands.
        pinned: Another policy to compare with, perhaps under other weights or the other rule.
        beside: The same set under the other rule.
        imported: Other routers' decisions on the same queries, by name.
        banded: Whether the band is drawn, which is computed where it is not known.
    """
    x, y = _scales(sweep, axes)

    def spot(label: str, at: CurvePoint | ConstantPolicy) -> Spot:
        return Spot(label, x(at.mean_cost_usd), y(at.quality))

    def measured(label: str, policy: PolicyMetrics) -> Spot:
        return Spot(label, x(policy.mean_cost_usd.value), y(policy.quality.value))

    x_axis = AxisSpec("Mean cost per query in USD", ".3~r", prefix="$")
    if axes.x is XAxis.SAVINGS and sweep.cost_of(axes.baseline):  # of nothing nothing is saved
        x_axis = AxisSpec(f"Cost savings (CS) against always {axes.baseline}", ".1f", suffix=" %")
    y_title = "Resolved queries" if sweep.data.binary else "Mean quality"
    if axes.y is YAxis.QR:
        y_title = "Quality retention (QR) of the oracle"
    hull = sorted((x(s.mean_cost_usd), y(s.quality)) for s in sweep.hull)
    shown = [(one.rule, one.weights) for one in (sweep, beside) if one is not None]
    pin, pin_knob = pinned or (sweep, knob)
    other_curve = (pin.rule, pin.weights) not in shown
    return FrontierView(
        x_axis=x_axis,
        y_axis=AxisSpec(y_title, ".1f", suffix=" %"),
        curve=_line(sweep, axes, sweep),
        selected=spot(knob_text(sweep.rule, knob), sweep.curve.at(knob)),
        models=tuple(
            spot(one.model, one)
            for one in sorted(sweep.singles, key=lambda s: float(sweep.data.pool.cost[s.index]))
        ),
        hull=np.asarray(hull),
        oracle=measured("oracle", sweep.oracle),
        band=_band(sweep, axes) if banded else None,
        pinned=spot("pinned", pin.curve.at(pin_knob)) if pinned else None,
        pinned_curve=_line(sweep, axes, pin) if other_curve else None,
        beside=None if beside is None else _line(sweep, axes, beside),
        imported=tuple(measured(name, one) for name, one in imported.items()),
        knob=_KNOBS[sweep.rule],
    )


def shares_view(evaluation: Evaluation) -> SharesView:
    """Traffic by model over the knob; effort levels of one model lie on each other."""
    sweep = evaluation.sweep
    knob, shares = sweep.shares(evaluation.knob)
    bases = [sweep.catalog.model(model).base for model in sweep.models]
    order = together(bases)
    return SharesView(
        tuple(sweep.models[i] for i in order),
        knob,
        shares[:, order],
        evaluation.knob,
        value=sweep.rule is Rule.VALUE,
        bases=tuple(bases[i] for i in order),
    )


def language_table(evaluation: Evaluation) -> pd.DataFrame:
    """One row per language: n, QR, CS and cost with 95 % bounds; the largest language first."""
    data, baseline = evaluation.sweep.data, evaluation.baseline
    codes = np.asarray(data.languages)
    names, counts = np.unique(codes, return_counts=True)
    rows = []
    for i in np.lexsort((names, -counts)):
        part = np.flatnonzero(codes == names[i])
        inside = data.take(part)
        metrics = evaluate_choice(inside, evaluation.choice[part], baseline=baseline)
        row = _row(language_name(str(names[i])), "", metrics)
        row |= {"n": int(counts[i]), "small": inside.independent < SMALL}
        rows.append(row)
    return pd.DataFrame(rows)


def policy_table(
    evaluation: Evaluation, imported: Mapping[str, PolicyMetrics] = MappingProxyType({})
) -> pd.DataFrame:
    """The router beside its matched-cost mix, imported policies, oracle and single models."""
    mix, always = evaluation.verdict.constant, evaluation.constants
    rows = [
        _row("Router", knob_text(evaluation.sweep.rule, evaluation.knob), evaluation.router),
        _mix_row(mix, always[mix.cheap.model], always[mix.strong.model]),
        *(_row(name, "imported policy", one) for name, one in imported.items()),
        _row("Oracle", "best in hindsight", evaluation.oracle),
        *(_row(f"Always {model}", "single model", one) for model, one in always.items()),
    ]
    return pd.DataFrame(rows)


def _row(policy: str, detail: str, metrics: PolicyMetrics) -> dict[str, object]:
    row: dict[str, object] = {"policy": policy, "detail": detail}
    for name, interval, scale in _measures(metrics):
        row |= interval.scaled(scale).columns(name)
    return row


def _mix_row(mix: Mix, cheap: PolicyMetrics, strong: PolicyMetrics) -> dict[str, object]:
    """The random mixture: the expected value of each measure, without intervals."""
    share = mix.strong_share
    row: dict[str, object] = {"policy": "Best fixed mix at this cost", "detail": str(mix)}
    for (name, low, scale), (_, high, _) in zip(_measures(cheap), _measures(strong), strict=True):
        row[name] = scale * ((1 - share) * low.value + share * high.value)
    quality = (1 - share) * cheap.quality.value + share * strong.quality.value
    cost = (1 - share) * cheap.mean_cost_usd.value + share * strong.mean_cost_usd.value
    row["per_resolved"] = cost / quality if quality else float("nan")
    return row


def _measures(metrics: PolicyMetrics) -> tuple[tuple[str, Interval, float], ...]:
    """(column, interval, scale): percent for all but the cost."""
    return (
        ("quality", metrics.quality, 100.0),
        ("qr", metrics.qr, 100.0),
        ("cost", metrics.mean_cost_usd, 1.0),
        ("per_resolved", metrics.per_resolved_usd, 1.0),
        ("cs", metrics.cs, 100.0),
        ("misroute", metrics.misroute, 100.0),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """Linear map of cost or quality onto an axis."""

    factor: float
    offset: float = 0.0

    def __call__(self, value: _Number) -> _Number:
        return self.offset + self.factor * value


def _scales(sweep: Sweep, axes: Axes) -> tuple[_Scale, _Scale]:
    base = sweep.cost_of(axes.baseline)
    top = sweep.oracle.quality.value
    x = _Scale(-100.0 / base, 100.0) if axes.x is XAxis.SAVINGS and base else _Scale(1.0)
    return x, _Scale(100.0 / top if axes.y is YAxis.QR and top else 100.0)


def _line(sweep: Sweep, axes: Axes, drawn: Sweep) -> CurveLine:
    x, y = _scales(sweep, axes)
    rows = drawn.curve.simplified(_CURVE_POINTS)
    curve = drawn.curve
    return CurveLine(
        x(curve.mean_cost_usd[rows]),
        y(curve.quality[rows]),
        np.array([curve.point(int(row)).knob for row in rows]),
        _SHORTFALL if drawn.source is None else _BY_VALUE[drawn.source],
    )


def _band(sweep: Sweep, axes: Axes) -> CurveBandView:
    """The band around the router's curve: where the mix leaves it, the difference is no chance."""
    x, y = _scales(sweep, axes)
    band, curve = sweep.band(), sweep.curve
    counted = np.flatnonzero(band.counted)
    some = counted[np.linspace(0, len(counted) - 1, min(len(counted), _BAND_POINTS)).astype(int)]
    rows = [curve.row(float(knob)) for knob in band.knob[some]]
    half = band.critical * band.standard_error[some]
    quality = curve.quality[rows]
    return CurveBandView(
        x(curve.mean_cost_usd[rows]),
        y(quality - half),
        y(quality + half),
        f"95 % band over every {SYMBOLS[sweep.rule]}",
    )


def together(bases: Sequence[str]) -> list[int]:
    """The places of the models, those with one base (what it is a variant of) side by side."""
    behind: dict[str, list[int]] = {}
    for place, base in enumerate(bases):
        behind.setdefault(base, []).append(place)
    return [place for places in behind.values() for place in places]
