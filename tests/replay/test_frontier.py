"""The exact frontier equals brute force at, just below and between all breakpoints."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hydra_core.replay.frontier import frontier, shares
from hydra_core.routing.matcher import choose

COARSE = st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.9])


@st.composite
def cases(draw):
    n, m = draw(st.integers(1, 7)), draw(st.integers(1, 5))
    values = draw(st.sampled_from([COARSE, st.floats(0, 2, allow_nan=False)]))
    return (
        draw(arrays(np.float64, (n, m), elements=values)),
        draw(arrays(np.float64, (m,), elements=st.sampled_from([1.0, 2.0, 3.0, 4.5]))),
        draw(arrays(np.float64, (n, m), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0]))),
        draw(arrays(np.float64, (n, m), elements=st.floats(0, 5, allow_nan=False))),
    )


def brute_force(shortfalls, cost, quality, cost_usd, tau):
    choice = choose(shortfalls, cost, tau)
    rows = np.arange(len(choice))
    cheaper = cost[None, :] < cost[choice][:, None]
    misroute = (cheaper & (quality >= 0.5)).any(axis=1)
    return quality[rows, choice].mean(), cost_usd[rows, choice].mean(), misroute.mean()


@settings(max_examples=300, deadline=None)
@given(cases())
def test_equals_brute_force_at_every_tau(case):
    curve = frontier(*case)
    edges = np.unique(np.concatenate([case[0].ravel(), curve.knob]))
    between = (edges[1:] + edges[:-1]) / 2
    below = np.nextafter(edges[edges > 0], 0)
    for tau in np.concatenate([edges, between, below, [edges[-1] + 1]]):
        point = curve.at(tau)
        assert (point.quality, point.mean_cost_usd, point.misroute) == pytest.approx(
            brute_force(*case, tau), abs=1e-9
        )


@given(cases())
def test_breakpoints_ascend_from_zero_without_repeats(case):
    tau = frontier(*case).knob
    assert tau[0] == 0.0
    assert (np.diff(tau) > 0).all()


def test_large_input_in_chunks_equals_brute_force():
    rng = np.random.default_rng(5)
    n, m = 70_000, 3
    case = (
        rng.random((n, m)),
        np.array([1.0, 2.0, 2.0]),
        rng.integers(0, 2, (n, m)) * 1.0,
        rng.random((n, m)),
    )
    curve = frontier(*case)
    for tau in (0.0, 0.111, 0.5, 2.0):
        point = curve.at(tau)
        assert (point.quality, point.mean_cost_usd, point.misroute) == pytest.approx(
            brute_force(*case, tau), abs=1e-9
        )


@pytest.mark.parametrize("position", range(4))
def test_nan_is_refused(position):
    case = [np.ones((2, 2)), np.array([1.0, 2.0]), np.ones((2, 2)), np.ones((2, 2))]
    case[position] = case[position].copy()
    case[position].flat[0] = np.nan
    with pytest.raises(ValueError, match="finite"):
        frontier(*case)


def test_empty_and_misshapen_input_is_refused():
    with pytest.raises(ValueError, match="at least one query"):
        frontier(np.empty((0, 2)), np.ones(2), np.empty((0, 2)), np.empty((0, 2)))
    with pytest.raises(ValueError, match="same shape"):
        frontier(np.ones((2, 2)), np.array([1.0, 2.0]), np.ones((2, 3)), np.ones((2, 2)))


def test_the_drawn_curve_keeps_both_ends_and_the_best_point():
    rng = np.random.default_rng(1)
    curve = frontier(
        rng.random((4000, 4)), np.arange(4.0), rng.random((4000, 4)), rng.random((4000, 4))
    )
    rows = curve.simplified(300)
    assert len(rows) <= 303
    assert {0, int(curve.quality.argmax()), curve.knob.size - 1} <= set(rows.tolist())


@settings(max_examples=300, deadline=None)
@given(cases(), st.lists(st.one_of(COARSE, st.floats(-1, 3), st.just(np.inf)), max_size=6))
def test_shares_are_those_of_one_choice_per_tau(case, taus):
    shortfalls, cost, _, _ = case
    edges = np.unique(shortfalls)
    asked = np.concatenate([taus, edges, np.nextafter(edges, -1)])
    counts = [np.bincount(choose(shortfalls, cost, t), minlength=len(cost)) for t in asked]
    np.testing.assert_array_equal(
        shares(shortfalls, cost, asked), np.asarray(counts) / len(shortfalls)
    )


def test_shares_of_a_large_set_in_chunks_equal_one_choice_per_tau():
    rng = np.random.default_rng(6)
    shortfalls, cost = rng.integers(0, 20, (70_000, 4)) / 10, np.array([1.0, 3.0, 2.0, 2.0])
    taus = np.array([0.0, 0.7, 0.3, 5.0])
    counts = [np.bincount(choose(shortfalls, cost, t), minlength=4) for t in taus]
    np.testing.assert_array_equal(shares(shortfalls, cost, taus), np.asarray(counts) / 70_000)


def test_shares_of_nothing_are_zero_and_nan_is_refused():
    assert not shares(np.empty((0, 2)), np.ones(2), np.array([0.1, 0.2])).any()
    with pytest.raises(ValueError, match="NaN"):
        shares(np.array([[np.nan]]), np.ones(1), np.zeros(1))
    with pytest.raises(ValueError, match="NaN"):
        shares(np.ones((1, 1)), np.ones(1), np.array([np.nan]))
    with pytest.raises(ValueError, match="m >= 1"):
        shares(np.empty((3, 0)), np.empty(0), np.zeros(1))
