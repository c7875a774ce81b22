"""Nearest flips are real and minimal; the tau strip is the router."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hydra_core.base.types import Band, Pool
from hydra_core.catalog.profiles import compensated_weights
from hydra_core.routing.flips import (
    WEIGHT_RANGE,
    nearest_flips,
    tau_strip,
    value_flips,
    value_strip,
)
from hydra_core.routing.matcher import choose, shortfall
from tests.routing.plain_rule import stretches

BANDS = (Band(0.29, 0.72), Band(0.02, 0.79), Band(0.0, 0.69), Band(0.02, 0.43))


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    m = draw(st.integers(2, 6))
    stored = rng.uniform(0.3, 3, 4)
    pool = Pool(
        tuple(f"m{i}" for i in range(m)),
        rng.random((m, 4)),
        rng.permutation(np.geomspace(0.1, 9, m)),
        compensated_weights(stored, BANDS),
    )
    return rng.random(4), pool, stored, float(rng.choice([0.0, 0.05, 0.24, 0.8]))


def routed(need, pool, stored, tau, flip=None, share=1.0):
    """The model chosen after `share` of a flip's change."""
    weights, capabilities, cost = pool.weights, pool.capabilities.copy(), pool.cost.copy()
    if flip is not None:
        value = flip.before + share * flip.change
        if flip.what == "tau":
            tau = value
        elif flip.what == "weight":
            changed = stored.copy()
            changed[flip.dimension] = value
            weights = compensated_weights(changed, BANDS)
        elif flip.what == "capability":
            capabilities[pool.ids.index(flip.name), flip.dimension] = value
        else:
            cost[pool.ids.index(flip.name)] = value
    s = shortfall(need[None, :], capabilities, weights)
    return pool.ids[int(choose(s, cost, tau)[0])]


def pool_with(pool, weights):
    return Pool(pool.ids, pool.capabilities, pool.cost, weights)


def paid(case, flip):
    """What the flip's model costs once the change is made."""
    _, pool, _, _ = case
    own = flip.what == "cost" and flip.name == flip.model
    return flip.after if own else pool.cost[pool.ids.index(flip.model)]


@settings(max_examples=200, deadline=None)
@given(cases())
def test_flips_are_real_and_go_where_they_say(case):
    need, pool, stored, tau = case
    before = routed(*case)
    for flip in nearest_flips(need, pool, stored, BANDS, tau):
        assume(abs(flip.change) > 1e-6)
        assert routed(*case, flip) == flip.model != before
        assert flip.cheaper == (paid(case, flip) < pool.cost[pool.ids.index(before)])


@settings(max_examples=60, deadline=None)
@given(cases())
def test_no_smaller_change_found_by_trying(case):
    need, pool, stored, tau = case
    before = routed(*case)
    now = pool.cost[pool.ids.index(before)]
    for flip in nearest_flips(need, pool, stored, BANDS, tau):
        for share in np.linspace(0.02, 0.98, 25):
            model = routed(*case, flip, share=share)
            if model != before and flip.what != "cost":
                assert (pool.cost[pool.ids.index(model)] < now) != flip.cheaper


@settings(max_examples=60, deadline=None)
@given(cases())
def test_a_weight_that_can_be_set_and_flips_is_never_withheld(case):
    need, pool, stored, tau = case
    before = routed(*case)
    told = {f.cheaper for f in nearest_flips(need, pool, stored, BANDS, tau) if f.what == "weight"}
    cost = dict(zip(pool.ids, pool.cost, strict=True))
    for j in range(4):
        for value in np.geomspace(*WEIGHT_RANGE, 40)[1:-1]:
            changed = stored.copy()
            changed[j] = value
            other = pool_with(pool, compensated_weights(changed, BANDS))
            model = routed(need, other, changed, tau)
            assert model == before or (cost[model] < cost[before]) in told


@settings(max_examples=60, deadline=None)
@given(cases())
def test_tau_is_told_in_both_directions(case):
    need, pool, stored, tau = case
    parts = tau_strip(need, pool)
    here = next(i for i, part in enumerate(parts) if part.start <= tau < part.end)
    told = [f for f in nearest_flips(need, pool, stored, BANDS, tau) if f.what == "tau"]
    beside = {parts[i].model for i in (here - 1, here + 1) if 0 <= i < len(parts)}
    assert {flip.model for flip in told} == beside
    assert {flip.cheaper for flip in told if flip.after < tau} <= {False}


@settings(deadline=None)
@given(cases())
def test_the_strip_says_what_the_router_does_at_every_tau(case):
    need, pool, _, _ = case
    parts = tau_strip(need, pool)
    assert parts[0].start == 0.0
    assert parts[-1].end == np.inf
    assert [p.end for p in parts[:-1]] == [p.start for p in parts[1:]]
    s = shortfall(need[None, :], pool.capabilities, pool.weights)
    for part in parts:
        for tau in (part.start, (part.start + min(part.end, part.start + 1)) / 2):
            assert pool.ids[int(choose(s, pool.cost, tau)[0])] == part.model


def test_a_single_model_cannot_flip():
    pool = Pool(("only",), np.full((1, 4), 0.5), np.ones(1), np.ones(4))
    assert nearest_flips(np.full(4, 0.9), pool, np.ones(4), BANDS, 0.1) == ()


def test_a_flip_is_told_in_numbers():
    pool = Pool(
        ("cheap", "strong"), np.array([[0.4] * 4, [0.9] * 4]), np.array([1.0, 5.0]), np.ones(4)
    )
    need = np.array([0.6, 0.0, 0.0, 0.0])
    flips = {f.what: f for f in nearest_flips(need, pool, np.ones(4), (Band(0, 1),) * 4, 0.1)}
    assert flips["tau"].after == pytest.approx(0.2)
    assert flips["capability"].after == pytest.approx(0.5)
    assert (flips["capability"].name, flips["capability"].dimension) == ("cheap", 0)
    assert {f.model for f in flips.values()} == {"cheap"}


@pytest.mark.parametrize("models", [1, 2, 5, 12])
def test_the_value_strip_is_the_way_up_the_hull(models):
    rng = np.random.default_rng(models)
    ids = tuple(f"m{i}" for i in range(models))
    for _ in range(50):
        success, cost = rng.random(models), rng.lognormal(-6, 1.5, models)
        parts, plain = value_strip(success, cost, ids), stretches(success, cost)
        assert [one.model for one in parts] == [ids[i] for i, _ in plain]
        assert [one.end for one in parts] == pytest.approx([end for _, end in plain])
        assert [one.start for one in parts] == [0.0, *(one.end for one in parts[:-1])]


@pytest.mark.parametrize("second_usd", [0.0, 0.002])
def test_a_flip_by_price_changes_the_choice_although_time_has_a_price(second_usd):
    rng, seen = np.random.default_rng(7), 0
    for _ in range(200):
        success, price = rng.random(4), rng.uniform(0.001, 0.01, 4)
        time = second_usd * rng.uniform(0.5, 5.0, 4)
        ids = ("a", "b", "c", "d")
        for flip in value_flips(success, price + time, ids, 0.05, price):
            if flip.what != "price":
                continue
            seen += 1
            for factor, chosen in ((flip.after, True), (1 + 0.999 * flip.change, False)):
                then = price.copy()
                then[ids.index(flip.name)] *= factor
                best = ids[int((success - (then + time) / 0.05).argmax())]
                assert (best == flip.model) is chosen
    assert seen > 100
