"""From an eval set to a catalog: valid, bound, priced, and its profiles are the data's own."""

from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.errors import CatalogError, EvalSetError, MismatchError
from hydra_core.base.list_price import ListPrice
from hydra_core.catalog import capabilities, parse_catalog
from hydra_core.catalog.prices.price_file import GivenPrice
from hydra_core.choosing.initial_catalog import initial_catalog
from hydra_core.evalsets.evalset import save_evalset
from hydra_core.predictor.score_bands import score_bands
from hydra_core.replay.replay import align_catalog, folds
from hydra_core.routing.router import Router

N = 400
DIMENSIONS = ("reasoning", "debugging")
MODELS = ("small", "large", "poor")
TODAY = date(2026, 6, 1)
PRICES = {
    "small": GivenPrice(ListPrice(0.1, 0.4)),
    "large": GivenPrice(ListPrice(2.0, 8.0, 1.0), date(2026, 5, 1), "their page"),
    "poor": GivenPrice(ListPrice(3.0, 9.0)),
}


@pytest.fixture(scope="module")
def requirements():
    return np.random.default_rng(0).uniform(0.1, 0.9, (N, 2))


@pytest.fixture(scope="module")
def evalset(tmp_path_factory, requirements):
    rng = np.random.default_rng(1)
    able = np.array([0.5, 0.9, 0.4])
    quality = (rng.random((N, 3)) < able - 0.3 * (requirements[:, :1] - 0.5)).astype(float)
    cost = np.array([0.001, 0.02, 0.03]) * rng.uniform(0.5, 1.5, (N, 1))
    ids = [f"q{i}" for i in range(N)]
    queries = pd.DataFrame({"query_id": ids, "text": ids, "language": "en"})
    folder = tmp_path_factory.mktemp("sets") / "mine"
    return save_evalset(
        folder, name="mine", queries=queries, models=MODELS, quality=quality, cost_usd=cost
    )


def made(evalset, requirements, **changes):
    options = {"name": "mine", "predictor": "tiny", "fingerprint": "abc", "today": TODAY}
    options |= {"dimensions": DIMENSIONS, "prices": PRICES}
    return initial_catalog(evalset, requirements, **(options | changes))


def test_the_catalog_is_valid_and_routes_at_once_by_realised_cost(evalset, requirements):
    found = made(evalset, requirements)
    catalog = parse_catalog(found.text)
    assert catalog.realised_costs.digest == evalset.digest
    assert catalog.realised_costs.usd_per_query["large"] == pytest.approx(
        evalset.mean_cost()["large"], rel=1e-5
    )
    assert Router(catalog, today=lambda: TODAY).decide([0.0, 0.0]).model == "small"
    assert catalog.model("large").price == ListPrice(2.0, 8.0, 1.0)
    assert (catalog.model("large").price_date, catalog.model("small").price_date) == (
        date(2026, 5, 1),
        TODAY,
    )


def test_profiles_are_algorithm_1_with_every_training_query_as_a_benchmark(evalset, requirements):
    catalog = made(evalset, requirements).catalog
    data = align_catalog(evalset, catalog, requirements, today=TODAY)
    train = folds(data, 2, np.random.default_rng(0))[0].train
    # by hand: each query counts on a dimension as far as it requires it
    r, y = requirements[train], evalset.quality[train]
    raw = (y.T @ r) / r.sum(axis=0)
    place = (raw - raw.min(axis=0)) / (raw.max(axis=0) - raw.min(axis=0))
    lo = np.array([band.lo for band in catalog.bands])
    hi = np.array([band.hi for band in catalog.bands])
    np.testing.assert_allclose(capabilities(catalog), lo + place * (hi - lo), atol=1e-3)


def test_bands_are_the_sets_own_percentiles(requirements):
    bands = score_bands(requirements)
    assert bands[0].lo == pytest.approx(np.percentile(requirements[:, 0], 5), abs=1e-4)
    assert bands[1].hi == pytest.approx(np.percentile(requirements[:, 1], 95), abs=1e-4)
    same = score_bands(np.full((10, 2), 0.995))
    assert all(band.lo < band.hi <= 1 for band in same)


def test_a_model_under_the_hull_is_named_and_left_out_only_when_asked(evalset, requirements):
    found = made(evalset, requirements)
    assert [one.model for one in found.under_hull] == ["poor"]
    assert [model.id for model in found.catalog.models] == list(MODELS)
    cut = made(evalset, requirements, cut_to_hull=True)
    assert [model.id for model in cut.catalog.models] == ["small", "large"]
    assert cut.left_out == ("poor",)


def test_prices_are_never_guessed(evalset, requirements):
    with pytest.raises(CatalogError) as caught:
        made(evalset, requirements, prices={"large": PRICES["large"]})
    assert [p.place for p in caught.value.problems] == ["small", "poor"]


def test_a_model_the_set_does_not_have_is_refused(evalset, requirements):
    with pytest.raises(EvalSetError, match="gpt-9"):
        made(evalset, requirements, models=["small", "gpt-9"])


def test_without_costs_the_list_price_orders_and_says_so(evalset, requirements, tmp_path):
    costless = save_evalset(
        tmp_path / "costless",
        name="costless",
        queries=evalset.queries,
        models=MODELS,
        quality=evalset.quality,
        cost_usd=np.full((N, 3), np.nan),
    )
    found = made(costless, requirements)
    assert found.catalog.policy.cost_basis.value == "list_price"
    assert any("list price" in text for text in found.assumptions)
    assert found.under_hull == ()  # nobody knows what costs no more than what
    with pytest.raises(MismatchError, match=r"has outcomes without costs .* costs or tokens$"):
        align_catalog(costless, found.catalog, requirements, today=TODAY)


def test_costs_of_nothing_put_no_model_below_another(evalset, requirements):
    free = replace(evalset, cost_usd=np.zeros((N, 3)))
    found = made(free, requirements, prices={**PRICES, "small": GivenPrice(ListPrice(5.0, 8.0))})
    assert found.under_hull == ()
    assert found.warnings == ()
    few = np.where(np.arange(N)[:, None] < 1, evalset.quality, np.nan)
    with pytest.raises(EvalSetError, match="only 1 query with outcomes of every model"):
        made(replace(evalset, quality=few), requirements)


def test_a_dear_list_price_with_a_low_realised_cost_is_told(evalset, requirements):
    dear = {**PRICES, "small": GivenPrice(ListPrice(50.0, 80.0))}
    (told,) = made(evalset, requirements, prices=dear).warnings
    assert told.startswith("small costs more by list price")


def test_mean_times_of_the_set_go_into_the_catalog(evalset, requirements):
    times = np.full(evalset.quality.shape, np.nan)
    times[:, 0] = 2.5
    found = made(replace(evalset, extras={"latency_s": times}), requirements).catalog
    first = evalset.models[0]
    assert {one.id: one.latency_s for one in found.models} == {
        name: 2.5 if name == first else None for name in evalset.models
    }


@pytest.mark.parametrize("every", [1, 3])
def test_queries_with_images_do_not_shift_the_training_half(evalset, requirements, every):
    plain = made(evalset, requirements)
    images = np.arange(N) % every == 0
    queries = evalset.queries.assign(has_image=images)  # which no model is known to read
    found = made(replace(evalset, queries=queries), requirements)
    assert found.catalog.policy.tau == plain.catalog.policy.tau


def test_queries_that_all_depend_on_each_other_are_refused(evalset, requirements):
    whole = replace(evalset, queries=evalset.queries.assign(cluster="one"))
    with pytest.raises(EvalSetError, match="all queries depend on each other"):
        made(whole, requirements)
