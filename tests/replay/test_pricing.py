"""Costs follow the catalog's prices exactly as tokens say, or say that they do not."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from hydra_core.base.list_price import ListPrice, LongPromptPrice
from hydra_core.catalog import parse_catalog
from hydra_core.replay.pricing import CostSource, Prices, estimated_costs, priced_costs
from hydra_core.replay.replay import align_catalog
from tests.catalog.small import edited
from tests.evalsets.sets import COST_USD, MODELS, saved

CATALOG = parse_catalog(edited())
READ = np.array([[1000.0, 1000.0], [2000.0, 2000.0], [500.0, np.nan]])
WRITTEN = np.array([[100.0, 300.0], [10.0, 400.0], [50.0, np.nan]])


def with_output_price(model, usd):
    models = tuple(
        replace(one, output_usd_per_mtok=usd) if one.id == model else one for one in CATALOG.models
    )
    return replace(CATALOG, models=models)


@pytest.fixture
def tokens(tmp_path):
    extras = {"input_tokens": READ, "output_tokens": WRITTEN}
    return saved(tmp_path / "set", extras=extras)


def test_tokens_times_prices_by_hand(tokens):
    costs = priced_costs(tokens, CATALOG)
    assert costs.usd[0, 0] == pytest.approx((1000 * 0.31 + 100 * 4.5) / 1e6)
    assert costs.usd[1, 1] == pytest.approx((2000 * 1.19 + 400 * 15) / 1e6)
    assert set(costs.sources.values()) == {CostSource.TOKENS}


def test_a_doubled_output_price_adds_the_written_tokens_once_more(tokens):
    before = priced_costs(tokens, CATALOG).usd
    after = priced_costs(tokens, with_output_price("strong", 30.0)).usd
    np.testing.assert_allclose(after[:2, 1] - before[:2, 1], WRITTEN[:2, 1] * 15 / 1e6)
    np.testing.assert_array_equal(after[:, 0], before[:, 0])


def test_cached_input_has_its_own_price(tmp_path):
    cached = np.array([[400.0, 0.0], [0.0, 0.0], [0.0, np.nan]])
    extras = {"input_tokens": READ, "output_tokens": WRITTEN, "cached_input_tokens": cached}
    evalset = saved(tmp_path / "set", extras=extras)
    model = replace(CATALOG.models[0], cached_input_usd_per_mtok=0.031)
    catalog = replace(CATALOG, models=(model, CATALOG.models[1]))
    by_hand = (600 * 0.31 + 400 * 0.031 + 100 * 4.5) / 1e6
    assert priced_costs(evalset, catalog).usd[0, 0] == pytest.approx(by_hand)


def test_what_was_never_called_is_estimated_answer_by_answer(tokens):
    """Two of five answers are long: the mean length alone would be at the short price."""
    long = (LongPromptPrice(1500, 8.0, 30.0),)
    new = replace(
        CATALOG.models[0], id="new", input_usd_per_mtok=2.0, output_usd_per_mtok=10.0,
        long_prompts=long,
    )  # fmt: skip
    catalog = replace(CATALOG, models=(*CATALOG.models, new))
    found = estimated_costs(tokens, catalog, tokens.cost_usd, MODELS)
    read, written = READ[np.isfinite(READ)], WRITTEN[np.isfinite(WRITTEN)]
    each = [
        (8 * a + 30 * b if a > 1500 else 2 * a + 10 * b) / 1e6
        for a, b in zip(read, written, strict=True)
    ]
    assert found == {"new": pytest.approx(np.mean(each))}


def test_without_tokens_the_price_at_recording_scales_them(tmp_path):
    then = {"cheap": ListPrice(0.31, 4.5), "strong": ListPrice(1.19, 15.0)}
    evalset = saved(tmp_path / "set", prices=then)
    same = priced_costs(evalset, CATALOG)
    np.testing.assert_array_equal(same.usd, COST_USD)
    assert same.note(MODELS) == ""  # nothing to say: these are the prices they were made at
    dearer = with_output_price("strong", 30.0)
    factor = (3 * 1.19 + 30) / (3 * 1.19 + 15)
    np.testing.assert_allclose(priced_costs(evalset, dearer).usd[:, 1], COST_USD[:, 1] * factor)
    assert "scaled to the catalog's prices (strong)" in priced_costs(evalset, dearer).note(MODELS)


def test_with_neither_the_costs_stay_and_say_so(tmp_path):
    costs = priced_costs(saved(tmp_path / "set"), with_output_price("strong", 30.0))
    np.testing.assert_array_equal(costs.usd, COST_USD)
    assert costs.note(MODELS) == ""
    assert costs.summary(MODELS) == "price edits do not change this set's costs"


def test_recorded_is_the_other_choice(tokens):
    costs = priced_costs(tokens, with_output_price("strong", 30.0), Prices.RECORDED)
    np.testing.assert_array_equal(costs.usd, COST_USD)


def test_a_model_with_a_gap_in_its_tokens_is_not_priced_by_them(tmp_path):
    gap = np.array(READ)
    gap[1, 1] = np.nan
    evalset = saved(tmp_path / "set", extras={"input_tokens": gap, "output_tokens": WRITTEN})
    sources = priced_costs(evalset, CATALOG).sources
    assert sources == {"cheap": CostSource.TOKENS, "strong": CostSource.RECORDED}


def test_a_replay_is_priced_and_says_what_its_costs_are(tokens):
    data = align_catalog(tokens, CATALOG, np.zeros((3, 2)), today=date(2026, 6, 1))
    assert data.cost_usd[0, 0] == pytest.approx((1000 * 0.31 + 100 * 4.5) / 1e6)
    assert "Costs: recorded tokens times the catalog's prices." in data.notes


def test_long_requests_cost_their_own_price(tokens):
    tier = LongPromptPrice(1500, 0.62, 9.0)
    models = (replace(CATALOG.models[0], long_prompts=(tier,)), CATALOG.models[1])
    costs = priced_costs(tokens, replace(CATALOG, models=models))
    assert costs.usd[0, 0] == pytest.approx((1000 * 0.31 + 100 * 4.5) / 1e6)
    assert costs.usd[1, 0] == pytest.approx((2000 * 0.62 + 10 * 9.0) / 1e6)
