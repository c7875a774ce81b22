"""Prices beside recorded costs: the factor and the model are named, and what it looks like."""

import math
from dataclasses import dataclass
from datetime import date

import numpy as np
import pytest

from hydra_core.base.list_price import ListPrice, LongPromptPrice, at_long_prices, long_prices
from hydra_core.catalog.prices.lists import read_prices
from hydra_core.catalog.prices.recorded import cost_gaps, implausible_costs, tier_notes

MODELS = ("a", "b")
PRICES = {"a": ListPrice(2.0, 8.0), "b": ListPrice(0.5, 2.0, 0.05)}


@dataclass
class Recorded:
    models: tuple
    cost_usd: np.ndarray
    extras: dict


def recorded(scale=(1.0, 1.0), *, cached=0.0, read=10_000.0):
    """Two models, tokens, and what they cost times `scale`."""
    tokens = {"input_tokens": np.full((4, 2), read), "output_tokens": np.full((4, 2), 500.0)}
    if cached:
        tokens["cached_input_tokens"] = np.full((4, 2), cached)
    usd = [
        price.input_usd_per_mtok * read + price.output_usd_per_mtok * 500
        for price in PRICES.values()
    ]
    cost = np.tile(np.array(usd) * np.array(scale) / 1e6, (4, 1))
    return Recorded(MODELS, cost, tokens)


def test_prices_that_agree_say_nothing():
    assert cost_gaps(recorded((1.2, 0.8)), PRICES) == ()
    assert cost_gaps(Recorded(MODELS, np.ones((4, 2)), {}), PRICES) == ()


@pytest.mark.parametrize(
    ("scale", "price", "words"),
    [
        ((1.0, 1.0), {"a": ListPrice(0.002, 0.008)}, "per thousand tokens"),
        ((1.0, 1.0), {"a": ListPrice(2e-6, 8e-6)}, "one per token"),
        ((0.2, 1.0), {}, "may have been cached"),
        ((100.0, 100.0), {}, "the costs look like cents"),
        ((1000.0, 1000.0), {}, "thousandths of a USD"),
    ],
)
def test_a_slip_of_units_is_named(scale, price, words):
    gap = cost_gaps(recorded(scale), PRICES | price)[0]
    assert words in str(gap)
    assert gap.must_be_confirmed
    assert str(gap).startswith(f"{gap.model}: the price times the recorded tokens gives $")


def test_a_small_difference_is_told_and_need_not_be_confirmed():
    (gap,) = cost_gaps(recorded((2.0, 1.0)), PRICES)
    assert (gap.model, gap.must_be_confirmed) == ("a", False)
    assert "(a factor of 2.0)" in str(gap)


def test_cached_input_is_compared_at_its_own_price():
    data = recorded(cached=8_000.0)
    data.cost_usd[:, 1] -= 8_000 * 0.45 / 1e6
    assert cost_gaps(data, PRICES) == ()


def test_costs_that_no_price_explains_are_told_without_any():
    assert implausible_costs(recorded()) == ()
    (warning,) = implausible_costs(recorded((1000.0, 1.0)))
    assert "a ($2,286)" in warning
    assert "USD a query" in warning


def test_queries_beyond_a_tier_are_counted_with_its_price():
    text = (
        '{"a": {"litellm_provider": "x", "input_cost_per_token": 2e-06,'
        '"output_cost_per_token": 8e-06, "input_cost_per_token_above_200k_tokens": 4e-06,'
        '"output_cost_per_token_above_200k_tokens": 1.2e-05}}'
    )
    quotes = {q.id: q for q in read_prices(text, "l.json", as_of=date(2026, 1, 1)).quotes}
    assert tier_notes(recorded(), quotes) == ()
    (note,) = tier_notes(recorded(read=300_000.0), quotes)
    assert "4 queries of a cost the price of long requests" in note
    assert "above 200,000 input tokens 4 / 12 USD/Mtok" in note


LONG = LongPromptPrice(200_000, 2.5, 15.0, 0.25)
TIERED = ListPrice(1.25, 10.0, 0.125, (LONG,))


@pytest.mark.parametrize(
    ("read", "written", "cached", "usd"),
    [
        (200_000, 1_000, 0, 0.26),
        (200_001, 1_000, 0, 0.5150025),
        (300_000, 1_000, 100_000, 0.54),
        (100_000, 1_000, 100_000, 0.0225),
        (1_000, 1_000, math.nan, 0.01125),
    ],
)
def test_a_long_request_costs_its_own_price_for_all_of_its_tokens(read, written, cached, usd):
    assert TIERED.usd_of_one(read, written, cached) == pytest.approx(usd, rel=1e-12)
    np.testing.assert_allclose(TIERED.usd([read], [written], [cached]), [usd], rtol=1e-12)


def test_the_size_of_the_whole_request_chooses_the_price_of_a_part():
    part = TIERED.usd_of_one(1_000, 1_000, size=300_000)
    assert part == pytest.approx((1_000 * 2.5 + 1_000 * 15.0) / 1e6)
    np.testing.assert_allclose(TIERED.usd([1_000], [1_000], size=[300_000]), [part])


def test_a_predicted_cost_has_the_price_of_the_requests_length():
    prices = [ListPrice(1.0, 1.0), TIERED]
    read, written = np.array([[10.0, 10.0], [10.0, 10.0], [10.0, 3e5]]), np.full((3, 2), 100.0)
    usual = np.stack([price.usd(read[:, i], written[:, i], size=[0] * 3)
                      for i, price in enumerate(prices)], axis=1)  # fmt: skip
    found = at_long_prices(usual, long_prices(prices), (read, written), np.array([9.0, 3e5, 0.0]))
    assert np.array_equal(found[:, 0], usual[:, 0])
    long = (read[:, 1] * 2.5 + written[:, 1] * 15.0) / 1e6
    np.testing.assert_allclose(found[:, 1], [usual[0, 1], long[1], long[2]])
    assert at_long_prices(usual, {}, (read, written)) is usual


def test_cached_input_without_a_price_of_its_own_is_the_reason():
    gaps = cost_gaps(recorded((0.3, 0.3), cached=9_000.0), PRICES)
    reasons = {gap.model: gap.reason for gap in gaps}
    assert (
        reasons["a"] == "part of the input was cached, and the price of cached input is not given"
    )
    assert reasons.get("b", "") == ""
