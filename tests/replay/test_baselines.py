"""Other routers on the same queries: learned ones, and a checked cascade."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hydra_core.base.types import Pool, Selection
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.replay.baselines import (
    BASELINES,
    KNOBS,
    RANDOM_MIX,
    Checker,
    _with_repeats,
    cascade,
    factorise,
    run_baselines,
)
from hydra_core.replay.compare import compare, constant_run
from hydra_core.replay.fixed_mix import matched_cost_mix
from hydra_core.replay.metrics import picked, single_models, upper_hull
from hydra_core.replay.replay import folds
from hydra_core.replay.verdict import VerdictLabel, verdict
from tests.replay.conftest import make_data

WORDS = ("please sort this list", "prove the theorem rigorously")


def textual(n=400, seed=0, *, informative=True):
    """Two kinds of query; only the hard kind needs the strong model, and its text says so."""
    data = make_data(n=n, m=2, seed=seed)
    hard = np.random.default_rng(seed).random(n) < 0.5
    data.quality[:, 0] = ~hard
    data.quality[:, 1] = 1.0
    told = hard if informative else np.random.default_rng(9).random(n) < 0.5
    return data, [f"{WORDS[int(h)]} {i}" for i, h in enumerate(told)]


@pytest.fixture(scope="module")
def runs():
    data, texts = textual()
    return data, run_baselines(data, texts)


def test_every_baseline_spans_the_costs_and_says_whether_it_is_coupled(runs):
    data, found = runs
    assert tuple(run.name for run in found) == BASELINES
    for run in found:
        assert run.choices.shape == (KNOBS.size, 400)
        assert run.mean_cost_usd[0] == pytest.approx(data.cost_usd[:, 0].mean())
        assert run.mean_cost_usd[-1] > run.mean_cost_usd[0]


@pytest.mark.parametrize("name", [n for n in BASELINES if n not in (RANDOM_MIX, "binary-v1 style")])
def test_a_text_that_tells_is_used(runs, name):
    data, found = runs
    run = next(run for run in found if run.name == name)
    middle = float(data.cost_usd.mean(axis=0).mean())
    choice = run.at_cost(middle, np.random.default_rng(0))
    assert verdict(data, choice, Selection.FIXED).label is VerdictLabel.BETTER


def test_a_text_that_does_not_tell_beats_nothing():
    data, texts = textual(informative=False)
    middle = float(data.cost_usd.mean(axis=0).mean())
    for run in run_baselines(data, texts):
        if run.name != "binary-v1 style":  # reads the requirements, not the text
            choice = run.at_cost(middle, np.random.default_rng(77))
            assert verdict(data, choice, Selection.FIXED).label is not VerdictLabel.BETTER


def test_the_requirements_serve_the_binary_router():
    data, _ = textual(n=300)
    data.requirements[:, 0] = 1.0 - data.quality[:, 0]
    (run,) = run_baselines(data, ["same"] * 300, names=["binary-v1 style"])
    choice = run.at_cost(float(np.median(run.mean_cost_usd)), np.random.default_rng(77))
    assert verdict(data, choice, Selection.FIXED).label is VerdictLabel.BETTER


def test_a_binary_router_cannot_use_what_lies_between():
    data = make_data(n=300, m=3, seed=1)
    (run,) = run_baselines(data, ["same"] * 300, names=["binary-v1 style"])
    assert set(np.unique(run.choices).tolist()) == {0, 2}


def test_cost_is_matched_and_out_of_reach_is_the_nearest(runs):
    data, found = runs
    rng = np.random.default_rng(0)
    for run in found:
        low, high = run.mean_cost_usd.min(), run.mean_cost_usd.max()
        got = picked(data.cost_usd, run.at_cost((low + high) / 2, rng)).mean()
        assert got == pytest.approx((low + high) / 2, rel=0.15)
        assert picked(data.cost_usd, run.at_cost(0, rng)).mean() == pytest.approx(low)
        assert picked(data.cost_usd, run.at_cost(1e9, rng)).mean() == pytest.approx(high)


def test_same_seed_same_routes():
    data, texts = textual(n=200)
    first, second = (run_baselines(data, texts, seed=3) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.choices, b.choices)


def test_models_that_always_or_never_succeed_are_no_obstacle():
    data, texts = textual(n=100)
    data.quality[:, 0] = 0.0
    for run in run_baselines(data, texts):
        assert run.quality[-1] == pytest.approx(1.0)


def test_the_random_mixture_follows_the_hull():
    data = make_data(n=4000, m=4, seed=2)
    (run,) = run_baselines(data, [""] * 4000, names=[RANDOM_MIX])
    hull = upper_hull(single_models(data))
    for quality, cost in zip(run.quality, run.mean_cost_usd, strict=True):
        assert quality == pytest.approx(matched_cost_mix(hull, cost).quality, abs=0.03)


def test_what_does_not_fit_is_refused():
    data, texts = textual(n=100)
    with pytest.raises(ValueError, match="99 texts for 100 queries"):
        run_baselines(data, texts[:99])
    with pytest.raises(ValueError, match="no such baseline: magic"):
        run_baselines(data, texts, names=["magic"])


def test_factorisation_recovers_what_depends_on_the_text():
    rng = np.random.default_rng(0)
    text = rng.normal(size=(400, 8))
    chance = 1 / (1 + np.exp(-3 * text[:, :3]))
    quality = (rng.random((400, 3)) < chance).astype(float)
    found = factorise(text[:300], quality[:300], text[300:], seed=0)
    assert np.corrcoef(found.ravel(), chance[300:].ravel())[0, 1] > 0.8


def test_folds_keep_clusters_whole_and_languages_in_proportion():
    clusters = np.repeat(np.arange(50), 4)
    data = make_data(n=200, clusters=clusters)
    cut = folds(data, 5, np.random.default_rng(0))
    assert sorted(np.concatenate([fold.test for fold in cut]).tolist()) == list(range(200))
    for fold in cut:
        assert not set(clusters[fold.train]) & set(clusters[fold.test])
    plain = folds(make_data(n=200), 2, np.random.default_rng(0))
    languages = np.asarray(make_data(n=200).languages)
    assert [int((languages[fold.test] == "de").sum()) for fold in plain] == [50, 50]


def test_no_router_learns_a_text_that_it_is_judged_on():
    data = make_data(n=300, seed=2)
    texts = [f"question {i // 3}" for i in range(300)]
    for fold in folds(_with_repeats(data, texts), 2, np.random.default_rng(0)):
        assert not {texts[i] for i in fold.train} & {texts[i] for i in fold.test}
    plain = folds(data, 2, np.random.default_rng(0))
    apart = folds(_with_repeats(data, list(data.query_ids)), 2, np.random.default_rng(0))
    assert all(np.array_equal(a.test, b.test) for a, b in zip(plain, apart, strict=True))
    assert _with_repeats(data, [""] * 300) is data


def test_too_few_queries_cannot_be_cut():
    with pytest.raises(ValueError, match="cannot be cut into 5 parts"):
        folds(make_data(n=3), 5, np.random.default_rng(0))


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
