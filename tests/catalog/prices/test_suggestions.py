import json
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra_core.base.errors import CatalogError
from hydra_core.base.list_price import ListPrice
from hydra_core.catalog import CatalogDocument, parse_catalog
from hydra_core.catalog.prices.lists import MAX_CHARS, read_prices
from hydra_core.catalog.prices.quotes import PriceSource
from hydra_core.catalog.prices.suggestions import (
    Closeness,
    apply_price,
    stale_prices,
    suggest_matches,
)
from tests.catalog.small import SMALL, edited

TODAY = date(2026, 6, 1)

LITELLM = """{
  "sample_spec": {"input_cost_per_token": 0.0, "litellm_provider": "one of ..."},
  "cheap": {
    "litellm_provider": "acme", "mode": "chat", "max_input_tokens": 128000,
    "input_cost_per_token": 2.75e-07, "output_cost_per_token": 4.5e-06,
    "cache_read_input_token_cost": 2.75e-08, "supports_vision": true,
    "supports_function_calling": false, "deprecation_date": "2026-12-31",
    "input_cost_per_token_above_200k_tokens": 5.5e-07
  },
  "azure/Strong": {"litellm_provider": "azure", "mode": "chat",
    "input_cost_per_token": 1.19e-06, "output_cost_per_token": 1.5e-05},
  "cheap-mini": {"litellm_provider": "acme", "mode": "chat",
    "input_cost_per_token": 1e-07, "output_cost_per_token": 1e-07},
  "free": {"litellm_provider": "acme", "mode": "chat",
    "input_cost_per_token": 0.0, "output_cost_per_token": 0.0},
  "unpriced": {"litellm_provider": "acme", "mode": "chat"},
  "embed": {"litellm_provider": "acme", "mode": "embedding", "input_cost_per_token": 1e-07}
}"""
OPENROUTER = json.dumps(
    {
        "data": [
            {
                "id": "acme/cheap",
                "context_length": 131072,
                "architecture": {"input_modalities": ["text", "image"]},
                "pricing": {"prompt": "0.000000275", "completion": "0.0000045", "request": "0.01"},
                "supported_parameters": ["tools", "temperature"],
                "expiration_date": "2026-05-01",
            },
            {"id": "openrouter/auto", "pricing": {"prompt": "-1", "completion": "-1"}},
            {"id": "acme/cheap:free", "pricing": {"prompt": "0", "completion": "0"}},
        ]
    }
)
MODELS_DEV = json.dumps(
    {
        "acme": {
            "id": "acme",
            "models": {
                "strong": {
                    "cost": {"input": 1.1, "output": 15, "cache_read": 0.11},
                    "limit": {"context": 200000},
                    "tool_call": True,
                    "modalities": {"input": ["text"]},
                    "status": "deprecated",
                },
                "bare": {},
            },
        }
    }
)
TOML = """\
name = "Strong"
tool_call = true
[cost]
input = 1.10
output = 15.00
[limit]
context = 200_000
[modalities]
input = ["text", "image"]
"""


def test_litellm_prices_per_token_become_exact_prices_per_million():
    found = read_prices(LITELLM, "prices.json", as_of=TODAY)
    assert found.source is PriceSource.LITELLM
    cheap = found.quotes[0]
    assert (cheap.id, cheap.provider) == ("cheap", "acme")
    assert str(cheap.input_usd_per_mtok) == "0.275"
    assert str(cheap.output_usd_per_mtok) == "4.5"
    assert str(cheap.cached_input_usd_per_mtok) == "0.0275"
    assert (cheap.context_window, cheap.vision, cheap.tools) == (128000, True, False)
    assert (cheap.deprecated, cheap.retired_on) == (True, date(2026, 12, 31))
    tier = "above 200,000 input tokens 0.55 / 4.5 USD/Mtok in/out"
    assert [str(one) for one in cheap.tiers] == [tier]
    assert found.quotes[1].tools is None


def test_what_has_no_price_is_counted_and_never_free():
    found = read_prices(LITELLM, "prices.json", as_of=TODAY)
    assert [quote.id for quote in found.quotes] == ["cheap", "azure/Strong", "cheap-mini"]
    assert found.dropped == {
        "a price of 0 or less, which is no list price": ["free"],
        "no price": ["unpriced"],
        "not a chat model": ["embed"],
    }


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"input_cost_per_token": 0.015, "output_cost_per_token": 0.06}, "wrong unit"),
        ({"input_cost_per_token": 1e-06, "output_cost_per_token": 0.00971}, "wrong unit"),
        ({"input_cost_per_token": 0.00015, "output_cost_per_token": 0.0006}, ""),  # o1-pro
    ],
)
def test_an_entry_in_another_unit_than_its_list_is_left_out(entry, reason):
    text = json.dumps({"m": {"litellm_provider": "acme", "mode": "chat", **entry}})
    found = read_prices(text, "prices.json", as_of=TODAY)
    assert [reason in why for why in found.dropped] == [True] * bool(reason)
    assert [str(one.output_usd_per_mtok) for one in found.quotes] == ([] if reason else ["600"])


def test_other_names_and_prices_of_litellm_are_read_or_named():
    entry = {"litellm_provider": "deepseek", "mode": "chat", "input_cost_per_token": 2.7e-07,
             "output_cost_per_token": 1.1e-06, "input_cost_per_token_cache_hit": 7e-08,
             "output_cost_per_reasoning_token": 4e-06}  # fmt: skip
    alike = {**entry, "cache_read_input_token_cost": 6e-08,
             "output_cost_per_reasoning_token": 1.1e-06}  # fmt: skip
    found = read_prices(json.dumps({"a": entry, "b": alike}), "prices.json", as_of=TODAY).quotes
    assert [str(one.cached_input_usd_per_mtok) for one in found] == ["0.07", "0.06"]
    named = ("tokens of reasoning cost 4 USD/Mtok, here as much as other output",)
    assert [one.remarks for one in found] == [named, ()]


def test_a_list_of_another_gateway_is_not_taken_for_openrouters():
    entry = {"id": "openai/gpt-5", "pricing": {"input": "0.00000125", "output": "0.00001"}}
    with pytest.raises(CatalogError, match="is none of the price lists"):
        read_prices(json.dumps({"data": [entry]}), "models.json", as_of=TODAY)


def test_openrouter_prices_are_text_per_token():
    found = read_prices(OPENROUTER, "models.json", as_of=TODAY)
    (quote,) = found.quotes
    assert found.source is PriceSource.OPENROUTER
    assert (quote.id, quote.provider) == ("acme/cheap", "acme")
    assert str(quote.input_usd_per_mtok) == "0.275"
    assert (quote.vision, quote.tools, quote.context_window) == (True, True, 131072)
    assert quote.retired_on == date(2026, 5, 1)
    assert quote.remarks == ("plus 0.01 USD per request",)
    assert sum(map(len, found.dropped.values())) == 2


def test_models_dev_prices_are_per_million():
    found = read_prices(MODELS_DEV, "api.json", as_of=TODAY)
    (quote,) = found.quotes
    assert found.source is PriceSource.MODELS_DEV
    assert (str(quote.input_usd_per_mtok), str(quote.output_usd_per_mtok)) == ("1.1", "15")
    assert (quote.vision, quote.tools, quote.deprecated) == (False, True, True)
    assert list(found.dropped.values()) == [["acme/bare"]]


def test_a_models_dev_toml_file_is_one_model():
    found = read_prices(TOML, "providers/acme/models/strong.toml", as_of=TODAY)
    (quote,) = found.quotes
    assert (quote.provider, quote.id, quote.context_window) == ("acme", "strong", 200000)
    assert (quote.input_usd_per_mtok, quote.vision) == (Decimal("1.1"), True)
    assert read_prices(TOML, "strong.toml", as_of=TODAY).quotes[0].provider == ""
    assert read_prices(TOML, "models/strong.toml", as_of=TODAY).quotes[0].provider == ""


@pytest.mark.parametrize(
    ("text", "name", "word"),
    [
        ("", "a.json", "not valid JSON"),
        ("[1]", "a.json", "none of the price lists"),
        ("{}", "a.json", "none of the price lists"),
        ('{"a": {"b": 1}}', "a.json", "model_prices_and_context_window.json"),
        ("[" * 100_000, "a.json", "not valid JSON"),
        ("a = [", "a.toml", "not valid TOML"),
        ("a = " + "[" * 100_000, "a.toml", "not valid TOML"),
        (" " * (MAX_CHARS + 1), "a.json", "larger than 30 MB"),
    ],
)
def test_what_is_no_price_list_is_refused(text, name, word):
    with pytest.raises(CatalogError, match="a\\.(json|toml)") as caught:
        read_prices(text, name, as_of=TODAY)
    assert word in str(caught.value)


@pytest.mark.parametrize(
    "price", ["NaN", "1e999999999", "-1e-6", "true", "null", '"1"', "[]", "1e-40", "0." + "1" * 99]
)
def test_impossible_prices_are_dropped(price):
    text = (
        '{"x": {"litellm_provider": "acme", "mode": "chat", '
        f'"input_cost_per_token": {price}, "output_cost_per_token": 1e-6}}}}'
    )
    found = read_prices(text, "a.json", as_of=TODAY)
    assert found.quotes == ()
    assert [len(names) for names in found.dropped.values()] == [1]


@settings(max_examples=50, deadline=None)
@given(st.integers(1000, 10**9).map(lambda number: Decimal(number) / 10**6))
def test_the_three_units_give_the_same_decimal(price):
    per_token = price / 10**6
    lists = [
        f'{{"x": {{"litellm_provider": "a", "input_cost_per_token": {per_token}, '
        f'"output_cost_per_token": {per_token:e}}}}}',
        f'{{"data": [{{"id": "x", "pricing": {{"prompt": "{per_token:f}", '
        f'"completion": "{per_token:f}"}}}}]}}',
        f'{{"a": {{"models": {{"x": {{"cost": {{"input": {price}, "output": {price:f}}}}}}}}}}}',
    ]
    for text in lists:
        (quote,) = read_prices(text, "a.json", as_of=TODAY).quotes
        assert quote.input_usd_per_mtok == quote.output_usd_per_mtok == price


def quotes():
    return [
        quote
        for text in (LITELLM, OPENROUTER, MODELS_DEV)
        for quote in read_prices(text, "a.json", as_of=TODAY).quotes
    ]


def test_matches_are_exact_ids_closest_first_and_never_a_common_beginning():
    matches = suggest_matches(parse_catalog(SMALL), quotes())
    assert [(match.model.id, match.quote.id, match.closeness) for match in matches] == [
        ("cheap", "cheap", Closeness.SAME_ID),
        ("cheap", "acme/cheap", Closeness.SAME_NAME_AND_PROVIDER),
        ("strong", "strong", Closeness.SAME_ID),
        ("strong", "azure/Strong", Closeness.FOLDED_NAME_ELSEWHERE),
    ]


def test_marks_and_case_do_not_separate_a_model_from_itself():
    text = edited(("id: cheap", "id: claude-haiku-4.5"), ("provider: acme", "provider: anthropic"))
    listed = LITELLM.replace('"cheap"', '"anthropic/Claude-Haiku-4-5"').replace(
        '"acme"', '"anthropic"'
    )
    (match,) = suggest_matches(
        parse_catalog(text), read_prices(listed, "a.json", as_of=TODAY).quotes[:1]
    )
    assert match.closeness is Closeness.FOLDED_NAME_AND_PROVIDER


def test_a_reseller_is_not_the_provider():
    listed = LITELLM.replace('"cheap"', '"shop/acme/cheap"').replace('"acme"', '"shop"')
    (match,) = suggest_matches(
        parse_catalog(SMALL), read_prices(listed, "a.json", as_of=TODAY).quotes[:1]
    )
    assert match.closeness is Closeness.SAME_NAME_ELSEWHERE


def test_a_match_tells_old_and_new_prices_and_what_to_know():
    match = suggest_matches(parse_catalog(SMALL), quotes())[0]
    assert match.prices["input_usd_per_mtok"] == (Decimal("0.31"), Decimal("0.275"))
    assert match.changes == (
        "input price 0.31 -> 0.275 USD/Mtok",
        "cached input price (none) -> 0.0275 USD/Mtok",
        "price of long requests (none) -> 0.55/4.5/0.0275 USD/Mtok above 200,000 input tokens",
    )
    assert match.warnings(TODAY) == ("cheap will be retired on 2026-12-31",)
    assert "was retired" in match.warnings(date(2027, 1, 1))[0]


def test_a_confirmed_price_changes_only_prices_source_and_date():
    catalog = parse_catalog(SMALL)
    match = suggest_matches(catalog, quotes())[0]
    document = CatalogDocument.parse(SMALL)
    apply_price(document, match)
    model = parse_catalog(document.text()).model("cheap")
    assert (model.input_usd_per_mtok, model.output_usd_per_mtok) == (0.275, 4.5)
    assert (model.price_source, model.price_date) == ("LiteLLM: cheap", TODAY)
    assert "input_usd_per_mtok: 0.275  # from the price page" in document.text()
    assert "output_usd_per_mtok: 4.50" in document.text()


def test_an_effort_level_takes_no_price_that_its_own_quote_lacks():
    tier = "[{above_tokens: 200000, input_usd_per_mtok: 9, output_usd_per_mtok: 30}]"
    more = f"    cached_input_usd_per_mtok: 0.1\n    long_prompts: {tier}\n"
    text = SMALL.rstrip("\n") + f"\n{more}  - id: strong-high\n    variant_of: strong\n"
    listed = "model,input,output\nstrong,2,3\nstrong-high,1.19,4\n"
    catalog, document = parse_catalog(text), CatalogDocument.parse(text)
    for match in suggest_matches(catalog, read_prices(listed, "l.csv", as_of=TODAY).quotes):
        apply_price(document, match)
    base, level = parse_catalog(document.text()).models[1:]
    assert base.price == ListPrice(2.0, 3.0)
    assert level.price == ListPrice(1.19, 4.0, 1.19)  # cached input costs as other input


def test_old_and_future_prices_are_stale_retired_models_aside():
    text = edited(
        ("price_date: 2026-01-01", "price_date: 2026-06-02"),
        ("price_date: 2026-01-01", "price_date: 2026-01-02"),
    )
    assert stale_prices(parse_catalog(text), TODAY, 90) == {"strong": 150, "cheap": -1}
    assert stale_prices(parse_catalog(text), TODAY, 150) == {"cheap": -1}
    retired = text.replace("status: active", "status: retired", 1)
    assert stale_prices(parse_catalog(retired), TODAY, 90) == {"strong": 150}
