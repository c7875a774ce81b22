"""Prices of long requests: from a list into a catalog, told among the changes, and exported."""

import json
from datetime import date

import pytest

from hydra_core.base.list_price import LongPromptPrice
from hydra_core.catalog import CatalogDocument, parse_catalog
from hydra_core.catalog.diff import semantic_diff
from hydra_core.catalog.prices.lists import read_prices
from hydra_core.catalog.prices.suggestions import apply_price, suggest_matches
from hydra_core.export.litellm import litellm_config
from tests.catalog.small import SMALL, assert_told, edited

ENTRY = {
    "litellm_provider": "acme", "mode": "chat", "input_cost_per_token": 3.1e-07,
    "output_cost_per_token": 4.5e-06, "input_cost_per_token_above_200k_tokens": 6.2e-07,
    "output_cost_per_token_above_200k_tokens": 9e-06,
    "cache_read_input_token_cost_above_200k_tokens": 6.2e-08,
}  # fmt: skip
LONG = LongPromptPrice(200_000, 0.62, 9.0, 0.062)


def applied(text, entry):
    """The catalog's text after the list's only match was confirmed, and what it changed."""
    listed = read_prices(json.dumps({"cheap": entry}), "list.json", as_of=date(2026, 2, 1))
    (match,) = suggest_matches(parse_catalog(text, "x"), listed.quotes)
    document = CatalogDocument.parse(text)
    apply_price(document, match)
    return document.text(), match.changes


def test_a_list_puts_them_into_the_catalog_and_takes_them_out_again():
    text, changes = applied(SMALL, ENTRY)
    assert parse_catalog(text, "x").model("cheap").price.long_prompts == (LONG,)
    told = "(none) -> 0.62/9/0.062 USD/Mtok above 200,000 input tokens"
    assert changes == (f"price of long requests {told}",)
    short = {name: value for name, value in ENTRY.items() if "above" not in name}
    back, changes = applied(text, short)
    assert parse_catalog(back, "x").model("cheap").long_prompts == ()
    assert changes[0].endswith("-> (none)")


def test_what_a_long_request_has_no_price_for_costs_what_it_costs_in_a_short_one():
    """LiteLLM's own costs: cached input of a long request is no dearer unless the list says so."""
    entry = {n: v for n, v in ENTRY.items() if not n.startswith("cache")}
    text, _ = applied(SMALL, entry | {"cache_read_input_token_cost": 3.1e-08})
    (tier,) = parse_catalog(text, "x").model("cheap").price.long_prompts
    assert tier == LongPromptPrice(200_000, 0.62, 9.0, 0.031)


def test_a_change_of_them_is_a_change_of_the_catalog():
    old, new = parse_catalog(SMALL, "x"), parse_catalog(applied(SMALL, ENTRY)[0], "x")
    assert any("cheap price of long requests" in str(one) for one in semantic_diff(old, new))


def test_litellm_gets_them_under_its_own_names():
    text = litellm_config(parse_catalog(applied(SMALL, ENTRY)[0], "x")).text
    assert "input_cost_per_token_above_200k_tokens: 0.00000062" in text
    assert "cache_read_input_token_cost_above_200k_tokens: 0.000000062" in text


@pytest.mark.parametrize(
    ("tiers", "message"),
    [
        ("3", "must be a list"),
        ("[3]", "must hold mappings"),
        ("[{above_tokens: 5, input_usd_per_mtok: 1}]", "is missing"),
        ("[{above_tokens: 5, input_usd_per_mtok: 1e-6, output_usd_per_mtok: 1}]", "per token"),
        (", ".join(["[{above_tokens: 5, input_usd_per_mtok: 1, output_usd_per_mtok: 1}",
                    "{above_tokens: 5, input_usd_per_mtok: 1, output_usd_per_mtok: 1}]"]), "twice"),
    ],
)  # fmt: skip
def test_a_wrong_one_is_refused(tiers, message):
    line = "    output_usd_per_mtok: 4.50\n"
    assert_told(line, f"{line}    long_prompts: {tiers}\n", "long_prompts", message, "")


def test_edited_text_keeps_its_place():
    line = "    output_usd_per_mtok: 4.50\n"
    text = edited((line, f"{line}    long_prompts: [{{above_tokens: 128000, "
                   "input_usd_per_mtok: 1, output_usd_per_mtok: 6}]\n"))  # fmt: skip
    assert parse_catalog(text, "x").model("cheap").long_prompts[0].above_tokens == 128_000


DEARER = {"input": 5, "output": 22.5}
TIER = {**DEARER, "cache_read": 0.5, "tier": {"type": "context", "size": 272_000}}


@pytest.mark.parametrize(
    ("more", "tiers"),
    [
        ({"context_over_200k": DEARER}, [(200_000, 5.0, 22.5, 0.25)]),
        ({"tiers": [TIER]}, [(272_000, 5.0, 22.5, 0.5)]),
        ({"tiers": [TIER], "context_over_200k": DEARER}, [(272_000, 5.0, 22.5, 0.5)]),
        ({"tiers": [{**TIER, "tier": {"size": 272_000}}]}, [(272_000, 5.0, 22.5, 0.5)]),
        ({"tiers": [{**TIER, "tier": {"type": "batch"}}]}, []),
        ({"tiers": [None, {"tier": None}], "context_over_200k": 5}, []),
    ],
)
def test_tiers_of_models_dev_begin_where_its_list_says(more, tiers):
    cost = {"input": 2.5, "output": 15, "cache_read": 0.25, **more}
    listed = {"openai": {"models": {"gpt-5.4": {"cost": cost}}}}
    (quote,) = read_prices(json.dumps(listed), "api.json", as_of=date(2026, 2, 1)).quotes
    assert quote.price.long_prompts == tuple(LongPromptPrice(*one) for one in tiers)


def test_overrides_of_openrouter_are_prices_of_long_requests_and_others_are_named():
    base = {"prompt": "0.0000025", "completion": "0.000015", "input_cache_read": "0.00000025"}
    long = {"min_prompt_tokens": 272_000, "prompt": "0.000005", "completion": "0.0000225"}
    night = {"utc_start": 1200, "utc_end": 0, "prompt": "0.000001", "min_prompt_tokens": 5}
    found = {}
    for name, overrides in (("a", [long]), ("b", [long, night]), ("c", None), ("d", [])):
        entry = {"id": name, "pricing": {**base, "overrides": overrides}}
        (found[name],) = read_prices(
            json.dumps({"data": [entry]}), "models.json", as_of=date(2026, 2, 1)
        ).quotes
    tier = (LongPromptPrice(272_000, 5.0, 22.5, 0.25),)
    assert [found[one].price.long_prompts for one in "abcd"] == [tier, tier, (), ()]
    named = ("other prices hold at some times or places, which are not read",)
    assert [found[one].remarks for one in "abcd"] == [(), named, (), ()]
