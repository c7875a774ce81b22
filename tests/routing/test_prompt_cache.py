"""A warm prompt cache is billed at the cached price, a cold one in full."""

from dataclasses import replace

import pytest

from hydra_core.base.list_price import LongPromptPrice
from hydra_core.routing.sessions import (
    TurnTokens,
    conversation_cost,
    switch_cost_usd,
)
from tests.routing.conftest import spec

MODELS = {
    "cheap": spec("cheap", 1.0, 0.2, cached_input_usd_per_mtok=0.1),
    "strong": spec("strong", 10.0, 0.9, cached_input_usd_per_mtok=1.0),
    "plain": spec("plain", 1.0, 0.2),
}
TURNS = [TurnTokens(0, 1000, 500), TurnTokens(1500, 1000, 500), TurnTokens(3000, 1000, 500)]


def usd(history_price, price, tokens):
    return (tokens.history * history_price + (tokens.message + tokens.answer) * price) / 1e6


def test_staying_is_billed_at_the_cached_price():
    costs = conversation_cost(MODELS, ["cheap"] * 3, TURNS)
    assert [c.cached for c in costs] == [False, True, True]
    assert [c.cost_usd for c in costs] == pytest.approx([usd(0.1, 1.0, t) for t in TURNS])


def test_switching_loses_the_cache_and_says_how_much():
    costs = conversation_cost(MODELS, ["cheap", "strong", "cheap"], TURNS)
    assert not any(c.cached for c in costs)
    assert costs[1].cost_usd == pytest.approx(usd(10.0, 10.0, TURNS[1]))
    assert costs[2].lost_usd == pytest.approx(3000 * 0.9 / 1e6)


def test_a_compaction_empties_the_cache():
    costs = conversation_cost(MODELS, ["cheap"] * 3, TURNS, [False, False, True])
    assert [c.cached for c in costs] == [False, True, False]


def test_without_a_cached_price_nothing_is_discounted():
    costs = conversation_cost(MODELS, ["plain"] * 3, TURNS)
    assert [c.cost_usd for c in costs] == pytest.approx([usd(1.0, 1.0, t) for t in TURNS])


def test_a_cheaper_model_can_be_dearer_once_the_cache_is_counted():
    long = TurnTokens(100_000, 10, 10)
    assert switch_cost_usd(MODELS["strong"], MODELS["plain"], long) == pytest.approx(
        usd(1.0, 1.0, long) - usd(1.0, 10.0, long)
    )
    assert switch_cost_usd(MODELS["cheap"], MODELS["plain"], long) > 0


def test_a_change_of_effort_keeps_the_cache_only_where_the_provider_does():
    kept = replace(MODELS["strong"], id="high", variant_of="strong", shares_prompt_cache=True)
    lost = replace(kept, id="low", shares_prompt_cache=False)
    models = {**MODELS, "high": kept, "low": lost}
    costs = conversation_cost(models, ["strong", "high", "strong"], TURNS)
    assert [c.cached for c in costs] == [False, True, True]
    assert [c.lost_usd for c in costs[1:]] == [0.0, 0.0]
    assert not any(c.cached for c in conversation_cost(models, ["strong", "low", "high"], TURNS))
    assert switch_cost_usd(MODELS["strong"], kept, TURNS[2]) == 0.0
    assert switch_cost_usd(MODELS["strong"], lost, TURNS[2]) == pytest.approx(3000 * 9.0 / 1e6)


def test_a_lost_cache_costs_the_price_of_the_whole_requests_length():
    tier = LongPromptPrice(3_000, 2.0, 2.0, 0.2)
    long = spec("cheap", 1.0, 0.2, cached_input_usd_per_mtok=0.1, long_prompts=(tier,))
    history = TurnTokens(3_000, 0, 0)
    args = (MODELS["plain"], long, history)
    assert switch_cost_usd(*args) == pytest.approx(0.0)  # 1 USD/Mtok on both
    assert switch_cost_usd(*args, size=3_500) == pytest.approx(3_000 * (2.0 - 1.0) / 1e6)
