"""The simulated cascade is the expectation over the checker's errors, by query."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hydra_core.base.types import Pool
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.replay.baselines import Checker, cascade
from hydra_core.replay.compare import compare, constant_run
from tests.replay.conftest import make_data

SET = load_evalset(Path("sample_data/console_demo"))


@pytest.fixture
def data():
    found = make_data(n=400, m=3)
    cost = np.array([0.001, 0.01, 0.02]) * np.ones((400, 3))
    quality = (np.random.default_rng(0).random((400, 3)) < [0.5, 0.7, 0.9]).astype(float)
    return replace(found, quality=quality, cost_usd=cost)


def test_a_perfect_checker_repairs_every_wrong_answer_and_no_right_one(data):
    found = cascade(data, SET, Checker(0.0, 0.0, check_usd=0.0005))
    wrong = data.quality[:, 0] == 0
    assert np.array_equal(found.again, wrong.astype(float))
    assert np.array_equal(found.run.quality, np.where(wrong, data.quality[:, 2], 1.0))
    assert np.allclose(found.run.cost_usd, 0.0015 + 0.02 * wrong)


def test_a_blind_checker_is_one_of_the_two_models(data):
    passes, rejects = Checker(1.0, 0.0), Checker(0.0, 1.0)
    assert np.array_equal(cascade(data, SET, passes).run.quality, data.quality[:, 0])
    always = cascade(data, SET, rejects).run
    assert np.array_equal(always.quality, data.quality[:, 2])
    assert np.allclose(always.cost_usd, 0.021)


def test_the_expectation_is_what_many_draws_come_to(data):
    checker, rng = Checker(0.2, 0.15), np.random.default_rng(1)
    found = cascade(data, SET, checker)
    drawn = np.zeros(400)
    for _ in range(500):
        right = data.quality[:, 0] > 0.5
        accepts = np.where(right, rng.random(400) > 0.15, rng.random(400) < 0.2)
        drawn += np.where(accepts, data.quality[:, 0], data.quality[:, 2])
    assert found.run.quality.mean() == pytest.approx(drawn.mean() / 500, abs=0.005)


def test_it_is_compared_as_any_policy_and_says_its_extra_time(data):
    found = cascade(data, SET, Checker())
    assert (found.cheap, found.strong) == (data.pool.ids[0], data.pool.ids[2])
    assert found.extra_s is None
    delta = compare(constant_run(data, found.cheap), found.run)
    assert delta.quality.lo > 0
    times = np.full((len(SET.queries), len(SET.models)), 4.0)
    own = Pool(SET.models[:3], data.pool.capabilities, data.pool.cost, data.pool.weights)
    timed = cascade(
        replace(data, pool=own), replace(SET, extras={"latency_s": times}), Checker(check_s=0.5)
    )
    assert timed.extra_s == pytest.approx(0.5 + 4.0 * timed.again.mean())
