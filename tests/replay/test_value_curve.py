"""The value rule's curve equals the rule itself, query by query, for every V."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hydra_core.replay.frontier import choices, frontier, shares
from hydra_core.routing.matcher import (
    choose,
    returns_on_upgrading,
    tau_of_value,
    value_shortfall,
)
from tests.routing.plain_rule import largest_value


def by_value(success, cost, value):
    return choose(value_shortfall(success, cost, value), cost, 0.0)


@st.composite
def replays(draw):
    """Predicted success and cost, outcomes and realised cost; many ties."""
    shape = draw(st.tuples(st.integers(1, 12), st.integers(1, 5)))
    eighths = st.integers(0, 8).map(lambda v: v / 8)
    cents = st.integers(1, 6).map(lambda v: v / 128)
    success, quality = (draw(arrays(np.float64, shape, elements=eighths)) for _ in range(2))
    predicted, cost_usd = (draw(arrays(np.float64, shape, elements=cents)) for _ in range(2))
    return success, predicted, quality, cost_usd


def between(values):
    """A V inside every stretch between two breakpoints, and beyond the last."""
    ends = np.append(values, 2 * values[-1] + 1)
    return (ends[1:] + ends[:-1]) / 2


@settings(deadline=None, max_examples=300)
@given(replays())
def test_the_curve_is_the_rule_at_every_value(replay):
    success, predicted, quality, cost_usd = replay
    static = np.arange(success.shape[1], dtype=float)
    returns = returns_on_upgrading(success, predicted)
    curve = frontier(returns, static, quality, cost_usd, ranked_by=predicted)
    rows = np.arange(len(success))
    taus = tau_of_value(between(curve.knob))
    traffic, routes = shares(returns, predicted, taus), choices(returns, predicted, taus)
    for i, value in enumerate(between(curve.knob)):
        choice = largest_value(success, predicted, value)
        assert routes[:, i].tolist() == choice == by_value(success, predicted, value).tolist()
        cheaper = [quality[q, :c].max(initial=0.0) >= 0.5 for q, c in enumerate(choice)]
        point = curve.at(value)
        assert point.quality == pytest.approx(quality[rows, choice].mean())
        assert point.mean_cost_usd == pytest.approx(cost_usd[rows, choice].mean())
        assert point.misroute == pytest.approx(np.mean(cheaper))
        counted = np.bincount(choice, minlength=success.shape[1]) / len(success)
        np.testing.assert_allclose(traffic[i], counted)


@settings(deadline=None)
@given(replays())
def test_the_ends_are_the_cheapest_and_the_surest_model(replay):
    success, predicted, quality, cost_usd = replay
    returns, static = returns_on_upgrading(success, predicted), np.arange(float(success.shape[1]))
    curve = frontier(returns, static, quality, cost_usd, ranked_by=predicted)
    rows = np.arange(len(success))
    surest = by_value(success, predicted, np.inf)
    assert curve.quality[-1] == pytest.approx(quality[rows, surest].mean())
    assert (np.diff(curve.knob) > 0).all()
    assert curve.knob[0] == 0


def test_a_higher_value_never_buys_a_cheaper_model():
    rng = np.random.default_rng(0)
    success, cost = rng.random((50, 4)), rng.random((50, 4))
    chosen = [by_value(success, cost, value) for value in np.geomspace(1e-3, 1e3, 60)]
    spent = np.stack([cost[np.arange(50), row] for row in chosen])
    assert (np.diff(spent, axis=0) >= 0).all()


def test_ties_go_to_the_cheaper_model_then_to_the_first():
    success = np.array([[0.5, 0.75, 0.75], [0.5, 0.5, 0.5]])
    cost = np.array([[0.25, 0.5, 0.5], [0.5, 0.25, 0.25]])
    assert by_value(success, cost, 1.0).tolist() == [0, 1]
    assert by_value(success, cost, 2.0).tolist() == [1, 1]


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_a_value_that_is_no_price_is_refused(value):
    with pytest.raises(ValueError, match="must be > 0 USD"):
        by_value(np.ones((1, 2)), np.ones((1, 2)), value)


def test_predictions_that_are_no_numbers_are_refused():
    good, bad = np.ones((2, 2)), np.array([[1.0, np.nan], [1.0, 1.0]])
    with pytest.raises(ValueError, match="NaN"):
        by_value(bad, good, 1.0)
    with pytest.raises(ValueError, match="finite"):
        returns_on_upgrading(good, bad)
    with pytest.raises(ValueError, match="same shape"):
        frontier(good, np.arange(2.0), good[:1], good, ranked_by=good)
