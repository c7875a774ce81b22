"""The two rules are one: choice by choice, on random pools and at ties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hydra_core.routing.matcher import (
    choices_in_order,
    choose,
    cost_order,
    returns_on_upgrading,
    value_shortfall,
)
from tests.routing.plain_rule import largest_value


def by_return(success, cost, value):
    returns = returns_on_upgrading(success, cost)
    return choose(returns, cost, 1.0 / value)


def by_value(success, cost, value):
    return choose(value_shortfall(success, cost, value), cost, 0.0)


@pytest.mark.parametrize("models", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("seed", range(4))
def test_a_threshold_on_returns_is_the_value_rule(models, seed):
    rng = np.random.default_rng([models, seed])
    n = 300
    success = rng.random((n, models))
    cost = rng.lognormal(-6, 1.5, (n, models))
    for value in (1e-9, *rng.lognormal(-4, 3, 8), 1e9):
        plain = largest_value(success, cost, value)
        assert by_return(success, cost, value).tolist() == plain
        assert by_value(success, cost, value).tolist() == plain


_GRID = st.integers(1, 4).flatmap(
    lambda m: st.tuples(
        arrays(np.int64, (6, m), elements=st.integers(0, 4)),
        arrays(np.int64, (6, m), elements=st.integers(0, 3)),
        st.integers(-3, 3),
    )
)


@given(_GRID)
def test_ties_are_broken_alike(pool):
    """Quarters and powers of two are exact in floating point, so equal nets are equal."""
    quarters, doublings, power = pool
    success, cost, value = quarters / 4, 2.0**doublings, 2.0**power
    net = success - cost / value
    one, other = by_return(success, cost, value), by_value(success, cost, value)
    assert other.tolist() == largest_value(success, cost, value)
    rows = np.arange(len(net))
    assert np.allclose(net[rows, one], net[rows, other], rtol=0, atol=1e-12)
    assert (cost[rows, one] == cost[rows, other]).all()


def test_a_boundless_value_takes_the_most_successful_model():
    success = np.array([[0.2, 0.9, 0.9], [0.5, 0.4, 0.3]])
    cost = np.array([[1.0, 3.0, 2.0], [1.0, 2.0, 3.0]])
    returns = returns_on_upgrading(success, cost)
    assert choose(returns, cost, 0.0).tolist() == [2, 0]


def test_a_better_model_at_the_same_cost_is_always_taken():
    success, cost = np.array([[0.4, 0.6]]), np.array([[2.0, 2.0]])
    returns = returns_on_upgrading(success, cost)
    assert returns.tolist() == [[np.inf, 0.0]]
    assert choose(returns, cost, 1e12).tolist() == [1]


def test_the_shortfall_rule_is_the_same_rule_with_one_order():
    rng = np.random.default_rng(1)
    shortfalls = rng.random((500, 4)).round(1)
    cost = np.array([3.0, 1.0, 1.0, 2.0])
    each = np.tile(cost, (len(shortfalls), 1))
    for tau in (0.0, 0.1, 0.35, 2.0):
        assert (choose(shortfalls, each, tau) == choose(shortfalls, cost, tau)).all()


def test_many_settings_at_once_are_each_setting_alone():
    rng = np.random.default_rng(2)
    shortfalls = rng.random((300, 3))
    cost = rng.random((300, 3))
    order = cost_order(shortfalls, cost)
    taus = np.array([0.7, 0.0, 0.3])
    together = choices_in_order(shortfalls, order, taus)
    for column, tau in zip(together.T, taus, strict=True):
        assert (column == choose(shortfalls, cost, tau)).all()


def test_shapes_and_values_are_checked():
    with pytest.raises(ValueError, match="must both be"):
        returns_on_upgrading(np.ones((2, 3)), np.ones((2, 2)))
    with pytest.raises(ValueError, match="finite"):
        returns_on_upgrading(np.array([[np.nan]]), np.ones((1, 1)))
    with pytest.raises(ValueError, match="NaN"):
        choose(np.ones((1, 1)), np.ones((1, 1)), float("nan"))
