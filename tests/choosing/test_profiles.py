"""Fitted profiles and success profiles: they gain where there is something to gain."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hydra_core.base.errors import CatalogError
from hydra_core.catalog.schema import parse_catalog
from hydra_core.choosing.lift import GRID, cross_fit, lift_of_choices
from hydra_core.choosing.sources.profiles import (
    benchmark_profiles,
    fit_profiles,
    fit_success_profiles,
)
from hydra_core.outcome_model.success_profiles import Curves, profiles_of
from hydra_core.routing.matcher import choices_in_order, choose, shortfall
from tests.choosing.sets import MODELS, PRICES, outcomes
from tests.routing.plain_rule import largest_value

DIMENSIONS = ("reasoning", "debugging")


def lift(data, fit, seed=0):
    return cross_fit(data, fit, seed=seed).lift(np.random.default_rng(seed))


@pytest.mark.parametrize("fit", [fit_profiles, fit_success_profiles])
def test_requirements_that_predict_success_are_worth_a_lift(fit):
    assert lift(outcomes(), fit).mean.lo > 0.02


@pytest.mark.slow
@pytest.mark.parametrize("fit", [fit_profiles, fit_success_profiles])
def test_shuffled_outcomes_gain_nothing(fit):
    lifts = [lift(outcomes(600, seed=s, shuffled=True), fit, s).mean.value for s in range(20)]
    error = np.std(lifts, ddof=1) / np.sqrt(len(lifts))
    assert abs(np.mean(lifts)) < max(2.5 * error, 0.002)


def test_fitting_never_ends_below_where_it_starts():
    data = outcomes(800)
    fitted, start = fit_profiles(data), benchmark_profiles(data)
    assert fitted.objective > 0
    assert fitted.start.tolist() == start.capabilities.tolist()
    assert ((fitted.capabilities >= 0) & (fitted.capabilities <= 1)).all()
    assert (fitted.weights > 0).all()


def test_fitted_profiles_are_routed_by_the_paper_s_own_rule():
    """An ordinary catalog with a dimension that every query requires in full."""
    data = outcomes(400)
    fitted = fit_profiles(data)
    required = np.column_stack([data.requirements, np.ones(data.n)])
    shortfalls = shortfall(required, fitted.capabilities, fitted.weights)
    found, order = fitted.rank(data.requirements)
    assert np.allclose(found, shortfalls)
    for tau in (0.0, 0.1, 0.5):
        many = choices_in_order(found, order, np.array([tau]))[:, 0]
        assert (many == choose(shortfalls, fitted.cost, tau)).all()


def test_fitted_numbers_name_every_cell():
    numbers = fit_profiles(outcomes(300)).numbers(DIMENSIONS)
    assert set(numbers["compensated_weights"]) == {*DIMENSIONS, "level"}
    assert set(numbers["capabilities"]["cheap"]) == {*DIMENSIONS, "level"}


def test_more_queries_than_the_search_needs_are_drawn():
    few = fit_profiles(outcomes(12_000), rng=np.random.default_rng(0))
    again = fit_profiles(outcomes(12_000), rng=np.random.default_rng(0))
    assert few.capabilities.tolist() == again.capabilities.tolist()


@pytest.mark.parametrize("tokens", [True, False])
def test_success_profiles_survive_the_catalog(tmp_path, tokens):
    data = outcomes(800, tokens=tokens)
    fitted = fit_success_profiles(data)
    block = catalog_of(success_profiles=block_of(fitted)).success_profiles
    prices = np.array([PRICES[name] for name in MODELS])
    read = profiles_of(block, MODELS, prices)
    wanted = fitted.predict(data.requirements, prices if tokens else None)
    found = read.predict(data.requirements)
    assert np.abs(found.success - wanted.success).max() < 2e-3
    assert np.allclose(found.cost_usd, wanted.cost_usd, rtol=5e-3)


def test_repricing_is_an_edit_of_yaml():
    fitted = fit_success_profiles(outcomes(800, tokens=True))
    block = catalog_of(success_profiles=block_of(fitted)).success_profiles
    prices = np.array([PRICES[name] for name in MODELS])
    dearer = profiles_of(block, MODELS, prices * [[1], [1], [2]])
    ratio = dearer.mean_cost_usd / profiles_of(block, MODELS, prices).mean_cost_usd
    assert ratio == pytest.approx([1, 1, 2])
    with pytest.raises(ValueError, match="give prices"):
        profiles_of(block, MODELS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda b: b["knots"].update(reasoning=[0.5, 0.2, 1]), "must ascend"),
        (lambda b: b["models"]["cheap"]["adds"].update(reasoning=[0.1]), "has 1 numbers"),
        (lambda b: b["models"].clear(), "no profile of a model"),
        (lambda b: b["models"].update(stranger=b["models"]["cheap"]), "is not a model"),
        (lambda b: b["cost_factor"].update(intercept=float("nan")), "finite"),
        (lambda b: b["models"]["cheap"].update(cost_usd=0.1), "stands beside tokens"),
        (lambda b: b["models"]["cheap"].pop("input_tokens"), "input_tokens"),
        (lambda b: b.pop("queries"), "queries"),
        (lambda b: b.update(slopes=1), "is not a known key"),
    ],
)
def test_a_wrong_block_is_refused_with_its_place(change, said):
    block = block_of(fit_success_profiles(outcomes(400, tokens=True)))
    change(block)
    with pytest.raises(CatalogError, match="success_profiles") as refused:
        catalog_of(success_profiles=block)
    assert said in str(refused.value)


def block_of(fitted):
    found = {"evalset": {"name": "small", "digest": "0" * 64}, "queries": 800}
    return found | fitted.numbers(DIMENSIONS)


def catalog_of(**more):
    """A catalog of the three models."""
    content = {
        "schema": "hydra.catalog/v1",
        "name": "small",
        "dimensions": list(DIMENSIONS),
        "predictor": {"name": "p", "fingerprint": "f"},
        "bands": {name: [0.1, 0.6] for name in DIMENSIONS},
        "policy": {"tau": 0.1, "weights": dict.fromkeys(DIMENSIONS, 1)},
        "evidence": {"benchmarks": []},
        "models": [
            {
                "id": name, "provider": "p", "status": "active", "input_usd_per_mtok": read,
                "output_usd_per_mtok": written, "context_window": 8000, "vision": False,
                "tools": False, "capabilities": dict.fromkeys(DIMENSIONS, 0.5),
                "price_source": "list", "price_date": "2026-01-01",
            }
            for name, (read, written) in PRICES.items()
        ],
        **more,
    }  # fmt: skip
    return parse_catalog(json.dumps(content).replace("NaN", ".nan"))


def test_one_knot_is_a_slope():
    fitted = fit_success_profiles(outcomes(500), knots=[[1.0], [1.0]])
    numbers = fitted.numbers(DIMENSIONS)["models"]["cheap"]
    two = fitted.predict(np.array([[0.0, 0.0], [0.5, 0.0]])).success[:, 0]
    assert two[0] == pytest.approx(min(numbers["intercept"], 1.0), abs=1e-3)
    assert two[1] - two[0] == pytest.approx(numbers["adds"]["reasoning"][0] / 2, abs=0.02)


def test_curves_go_through_their_knots():
    curves = Curves.of([[0.2, 0.6, 1.0], [1.0]])
    adds = [[-0.1, -0.4, -0.5], [0.3]]
    weights = curves.weights(adds)
    assert np.allclose(np.concatenate(curves.adds(weights)), np.concatenate(adds))
    points = np.array([[0.2, 0.0], [0.6, 0.0], [1.0, 1.0], [0.4, 0.0]])
    assert np.allclose(curves.columns(points) @ weights, [-0.1, -0.4, -0.2, -0.25])


def test_the_value_rule_on_a_profile_is_its_rank():
    data = outcomes(500)
    fitted = fit_success_profiles(data)
    predicted = fitted.predict(data.requirements)
    shortfalls, order = fitted.rank(data.requirements)
    for value in (1e-4, 0.01, 1.0):
        wanted = largest_value(predicted.success, predicted.cost_usd, value)
        assert (choices_in_order(shortfalls, order, np.array([1 / value]))[:, 0] == wanted).all()


def test_the_level_of_other_outcomes_is_taken_over():
    others = outcomes(900, seed=5)
    found = outcomes(400).levelled(others)
    assert found.quality.mean(axis=0) == pytest.approx(others.quality.mean(axis=0))
    assert found.cost_usd.mean(axis=0) == pytest.approx(others.cost_usd.mean(axis=0))


def test_mean_cost_stays_the_model_s_own():
    data = outcomes(2_000)
    predicted = fit_success_profiles(data).predict(data.requirements)
    assert np.allclose(predicted.cost_usd.mean(axis=0), data.cost_usd.mean(axis=0), rtol=1e-6)


def test_every_query_is_routed_by_a_fold_that_has_not_seen_it():
    data = outcomes(200)
    seen = []

    def fit(train):
        seen.append(train.n)
        return fit_success_profiles(train)

    routed = cross_fit(data, fit, folds=4)
    assert seen == [150] * 4
    assert routed.at(np.array([0.2, 0.8])).shape == (200, 2)
    with pytest.raises(ValueError, match="cannot be cut"):
        cross_fit(data.take(np.arange(3)), fit, folds=5)


def test_outcomes_are_checked():
    data = outcomes(10)
    with pytest.raises(ValueError, match="must be"):
        type(data)(
            data.models, data.requirements, data.quality[:, :2], data.cost_usd, data.clusters
        )
    with pytest.raises(ValueError, match="finite"):
        type(data)(
            data.models, data.requirements, data.quality * np.nan, data.cost_usd, data.clusters
        )


def test_one_model_that_is_cheapest_and_best_leaves_nothing_to_route():
    data = outcomes(300)
    quality = data.quality.copy()
    quality[:, 0] = 1.0
    choice = np.zeros((300, len(GRID)), dtype=np.uint8)
    rng = np.random.default_rng(0)
    assert lift_of_choices(quality, data.cost_usd, choice, None, rng) is None


def spread_of(fitted):
    """How far apart models stand beyond their means: sd of the differences from the first."""
    slopes = fitted.weights[:, 1:] - fitted.weights[:, :1]
    return (fitted.curves.columns(outcomes(900, seed=5).requirements) @ slopes).std(axis=0).mean()


def test_models_are_told_apart_only_beyond_chance():
    found = spread_of(fit_success_profiles(outcomes(600)))
    by_chance = [
        spread_of(fit_success_profiles(outcomes(600, seed=seed, shuffled=True)))
        for seed in range(10)
    ]
    assert found > 0.2
    assert np.mean(by_chance) < 0.02


def test_chance_is_counted_by_cluster():
    """Ten translations of 80 noisy tasks say no more than 80 tasks do."""
    found = []
    for seed in range(10):
        few = outcomes(80, seed=seed, shuffled=True)
        rows = np.repeat(np.arange(80), 10)
        many = replace(few.take(rows), clusters=rows)
        found.append(spread_of(fit_success_profiles(many)))
    assert np.mean(found) < 0.08
