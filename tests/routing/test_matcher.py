"""The decision rule, stated as properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hydra_core.routing.matcher import (
    choose,
    choose_one,
    shortfall,
    shortfall_of_one,
    value_shortfall,
    value_shortfall_of_one,
)

UNIT = st.floats(0, 1, allow_nan=False, width=32)
#: Few distinct values, so that ties are common.
COARSE = st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0])


def problem(n=6, m=4, k=4, values=UNIT):
    return st.tuples(
        arrays(np.float64, (n, k), elements=values),
        arrays(np.float64, (m, k), elements=values),
        arrays(np.float64, (k,), elements=st.floats(0.1, 3)),
        arrays(np.float64, (m,), elements=COARSE),
        st.floats(0, 2),
    )


def by_hand(row, cost, tau):
    """Algorithm 2 for one query, word by word."""
    eligible = [i for i in range(len(row)) if row[i] <= tau]
    if eligible:
        return min(eligible, key=lambda i: (cost[i], row[i], i))
    return min(range(len(row)), key=lambda i: (row[i], cost[i], i))


@given(problem())
def test_choice_is_the_algorithm_word_by_word(p):
    requirements, capabilities, weights, cost, tau = p
    s = shortfall(requirements, capabilities, weights)
    assert choose(s, cost, tau).tolist() == [by_hand(row, cost, tau) for row in s]


@given(problem(values=COARSE))
def test_ties_are_settled_the_same_way_in_a_batch_and_alone(p):
    requirements, capabilities, weights, cost, tau = p
    s = shortfall(requirements, capabilities, weights)
    alone = [int(choose(s[i : i + 1], cost, tau)[0]) for i in range(len(s))]
    assert choose(s, cost, tau).tolist() == alone
    assert [choose_one(row, cost.tolist(), tau) for row in s.tolist()] == alone


@given(problem(k=9))
def test_one_query_has_the_shortfalls_of_a_batch_to_the_last_bit(p):
    requirements, capabilities, weights, _, _ = p
    by_dimension, weights_ = capabilities.T.tolist(), weights.tolist()
    alone = [shortfall_of_one(row, by_dimension, weights_) for row in requirements.tolist()]
    assert shortfall(requirements, capabilities, weights).tolist() == alone
    with pytest.raises(ValueError, match="one per weight"):
        shortfall_of_one([1.0] * 3, by_dimension, weights_)


@given(problem(values=COARSE), st.sampled_from([5e-324, 0.25, 1.0, np.inf]))
def test_one_query_lies_behind_by_value_as_in_a_batch(p, value_usd):
    success, cost_usd, *_ = p
    cost_usd = np.resize(cost_usd, success.shape)
    alone = [
        value_shortfall_of_one(said, cost, value_usd)
        for said, cost in zip(success.tolist(), cost_usd.tolist(), strict=True)
    ]
    assert value_shortfall(success, cost_usd, value_usd).tolist() == alone


@given(problem(), st.integers(0, 3), st.floats(0, 1))
def test_a_higher_requirement_never_lowers_a_shortfall(p, k, rise):
    requirements, capabilities, weights, _, _ = p
    raised = requirements.copy()
    raised[:, k] += rise
    before, after = (shortfall(r, capabilities, weights) for r in (requirements, raised))
    assert (after >= before).all()


@given(problem(), st.floats(0, 2))
def test_raising_tau_never_raises_the_price_of_a_feasible_choice(p, more):
    requirements, capabilities, weights, cost, tau = p
    s = shortfall(requirements, capabilities, weights)
    feasible = (s <= tau).any(axis=1)
    before, after = cost[choose(s, cost, tau)], cost[choose(s, cost, tau + more)]
    assert (after[feasible] <= before[feasible]).all()


def test_surplus_never_makes_up_for_a_deficit():
    need = np.array([[0.5, 0.1]])
    barely, generous = np.array([[0.4, 0.1]]), np.array([[0.4, 1.0]])
    weights = np.ones(2)
    assert shortfall(need, barely, weights) == pytest.approx(shortfall(need, generous, weights))


def test_shortfall_is_equation_6():
    need = np.array([[0.9, 0.45, 0.88, 0.35]])
    have = np.array([[0.43, 0.39, 0.33, 0.02], [0.72, 0.79, 0.69, 0.43]])
    weights = np.array([1.238, 0.691, 0.772, 1.299])
    by_hand = [
        1.238 * 0.47 + 0.691 * 0.06 + 0.772 * 0.55 + 1.299 * 0.33,
        1.238 * 0.18 + 0.772 * 0.19,
    ]
    assert shortfall(need, have, weights)[0] == pytest.approx(by_hand)


def test_equal_cost_goes_to_the_smaller_shortfall_then_to_catalog_order():
    assert choose(np.array([[0.2, 0.1, 0.0]]), np.array([1.0, 1.0, 2.0]), 0.5)[0] == 1
    assert choose(np.array([[0.1, 0.1]]), np.array([1.0, 1.0]), 0.5)[0] == 0


def test_nobody_eligible_fails_open_to_the_least_shortfall():
    assert choose(np.array([[0.9, 0.4, 0.7]]), np.array([1.0, 3.0, 2.0]), 0.1)[0] == 1
    assert choose(np.array([[0.4, 0.4]]), np.array([3.0, 1.0]), 0.1)[0] == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(bad):
    with pytest.raises(ValueError, match="finite"):
        shortfall(np.array([[bad]]), np.array([[0.5]]), np.array([1.0]))
    with pytest.raises(ValueError, match="finite"):
        choose(np.array([[0.1]]), np.array([bad]), 0.1)


def test_nan_shortfalls_and_empty_pools_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        choose_one([np.nan, 0.1], [1.0, 2.0], 0.5)
    with pytest.raises(ValueError, match="NaN"):
        choose(np.array([[np.nan]]), np.array([1.0]), 0.1)
    with pytest.raises(ValueError, match="m >= 1"):
        choose(np.empty((3, 0)), np.empty(0), 0.1)


def test_columns_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="2 columns"):
        shortfall(np.ones((3, 4)), np.ones((2, 2)), np.ones(2))
