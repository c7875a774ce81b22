"""Public lists as they come: what each says of a model, and which entry is meant."""

import json
import re
from datetime import date

import pytest

from hydra_core.base.errors import CatalogError
from hydra_core.base.list_price import LongPromptPrice
from hydra_core.catalog.prices.lists import read_prices
from hydra_core.catalog.prices.price_file import near_entries, parse_listed

CHAT = {
    "litellm_provider": "openai",
    "mode": "chat",
    "input_cost_per_token": 2.5e-06,
    "output_cost_per_token": 1e-05,
}


def read(listed: object, model: str = "gpt-4o", entries: dict[str, str] | None = None):
    text = json.dumps(listed)
    return parse_listed(text, "list.json", [model], as_of=date(2026, 1, 1), entries=entries)[model]


def dev(**providers: dict[str, float]) -> object:
    return {name: {"models": {"gpt-4o": {"cost": cost}}} for name, cost in providers.items()}


@pytest.mark.parametrize(
    ("stated", "window"),
    [
        ({"max_tokens": 4096, "max_output_tokens": 4096}, None),
        ({"max_tokens": 128_000}, 128_000),
        ({"max_input_tokens": "128000", "max_tokens": 4096}, 128_000),
    ],
)
def test_a_limit_of_answers_is_no_context_window(stated, window):
    assert read({"gpt-4o": CHAT | stated}).listed.context_window == window


def test_a_tier_of_one_side_keeps_the_other_price():
    entry = CHAT | {"output_cost_per_token_above_200k_tokens": 2e-05}
    assert read({"gpt-4o": entry}).price.long_prompts == (LongPromptPrice(200_000, 2.5, 20.0),)


def test_a_tier_above_a_million_tokens():
    entry = CHAT | {"input_cost_per_token_above_1M_tokens": 5e-06}
    assert read({"gpt-4o": entry}).price.long_prompts == (LongPromptPrice(1_000_000, 5.0, 10.0),)


def test_ranges_written_as_text_are_put_in_order():
    dear = {"range": ["256000", "1000000"], **CHAT}
    cheap = {"range": ["0", "256000"], "input_cost_per_token": 4e-07, "output_cost_per_token": 2e-6}
    entry = {"litellm_provider": "dashscope", "mode": "chat", "tiered_pricing": [dear, cheap]}
    price = read({"gpt-4o": entry}).price
    assert price.input_usd_per_mtok == 0.4
    assert price.long_prompts == (LongPromptPrice(256_000, 2.5, 10.0),)


def test_an_id_of_several_providers_is_taken_by_the_entry_that_the_message_names():
    listed = dev(
        azure={"input": 2.75, "output": 11},
        openai={"input": 2.5, "output": 10, "cache_read": 1.25},
    )
    with pytest.raises(CatalogError, match="openai/gpt-4o 2.5 in, 10 out, 1.25 cached") as refused:
        read(listed)
    option = re.search(r"--list-entry (\S+?)=(\S+?)\)", str(refused.value))
    assert read(listed, entries={option[1]: option[2]}).price.input_usd_per_mtok == 2.75
    given = read(listed, entries={"gpt-4o": "openai/gpt-4o"})
    assert (given.price.cached_input_usd_per_mtok, given.listed.provider) == (1.25, "openai")
    assert given.note == "models.dev: openai/gpt-4o"


def test_a_provider_s_own_entry_comes_before_a_reseller_s():
    listed = dev(openai={"input": 2.5, "output": 10})
    reseller = {"models": {"openai/gpt-4o": {"cost": {"input": 9, "output": 9}}}}
    given = read({"openrouter": reseller, **listed}, model="openai/gpt-4o")
    assert given.price.input_usd_per_mtok == 2.5


def test_entries_that_differ_in_the_cached_price_alone_are_asked_for():
    warm = CHAT | {"cache_read_input_token_cost": 1.25e-06}
    with pytest.raises(CatalogError, match="--list-entry gpt-4o=openai/gpt-4o"):
        read({"openai/gpt-4o": warm, "azure/gpt-4o": CHAT})


def test_a_list_with_two_prices_under_one_key_is_refused():
    one, other = json.dumps(CHAT), json.dumps(CHAT | {"input_cost_per_token": 3e-06})
    text = '{"gpt-4o": %s, "gpt-4o": %s}'
    with pytest.raises(CatalogError, match="the key 'gpt-4o' occurs twice"):
        parse_listed(text % (one, other), "list.json", ["gpt-4o"], as_of=date(2026, 1, 1))
    given = parse_listed(text % (one, one), "list.json", ["gpt-4o"], as_of=date(2026, 1, 1))
    assert given["gpt-4o"].price.input_usd_per_mtok == 2.5


def deployment(name, info, **params):
    return {"model_name": name, "litellm_params": params, "model_info": info}


def test_the_models_of_a_litellm_proxy_are_read_by_their_own_names():
    own = {"id": "7f", "mode": "chat", "input_cost_per_token": None, "output_cost_per_token": None}
    listed = {
        "data": [
            deployment("gpt-4o", {**CHAT, "max_input_tokens": 128_000}, model="azure/gpt-4o"),
            deployment("house", own, input_cost_per_token=1e-06, output_cost_per_token="0.000002"),
            deployment("ada", {**CHAT, "mode": "embedding"}),
        ]
    }
    given = read(listed)
    assert (given.price.input_usd_per_mtok, given.price.output_usd_per_mtok) == (2.5, 10)
    assert (given.listed.context_window, given.note) == (128_000, "LiteLLM: gpt-4o")
    house = read(listed, model="house").price
    assert (house.input_usd_per_mtok, house.output_usd_per_mtok) == (1, 2)
    with pytest.raises(KeyError):
        read(listed, model="ada")


def test_a_list_of_objects_without_prices_is_of_no_known_list():
    with pytest.raises(CatalogError, match="is none of the price lists"):
        read({"data": [{"id": "gpt-4o", "object": "model"}]})


@pytest.mark.parametrize(
    ("model", "entry"),
    [
        ("claude-4-5-haiku", "claude-haiku-4-5"),
        ("claude-haiku-4.5", "anthropic.claude-haiku-4-5-20251001-v1:0"),
        ("claude-haiku-4-5", "bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0"),
        ("anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("claude-haiku-4-5", "vertex_ai/claude-haiku-4-5@20251001"),
        ("llama3-1-70b-instruct", "meta.llama3-1-70b-instruct-v1:0"),
        ("gpt-5-4", None),
        ("claude-haiku-5-4", None),
        ("haiku-4-5", None),
    ],
)
def test_a_name_in_another_order_or_of_bedrock_is_proposed(model, entry):
    listed = {entry or "claude-haiku-4-5": CHAT, "gpt-4.5": CHAT, "qwen2.5-72b": CHAT}
    quotes = read_prices(json.dumps(listed), "list.json", as_of=date(2026, 1, 1)).quotes
    proposed = {name: quote.id for name, quote in near_entries([model], quotes).items()}
    assert proposed == ({model: entry} if entry else {})


def test_the_entry_of_the_same_spelling_comes_before_one_in_another_order():
    listed = {"claude-haiku-4-5": CHAT, "claude-4.5-haiku": CHAT}
    quotes = read_prices(json.dumps(listed), "list.json", as_of=date(2026, 1, 1)).quotes
    assert near_entries(["claude-4-5-haiku"], quotes)["claude-4-5-haiku"].id == "claude-4.5-haiku"


def test_an_alias_of_litellm_has_the_price_of_what_it_stands_for():
    listed = {"bedrock/opus-latest": {"alias_of": "opus-5"}, "opus-5": CHAT, "x": {"alias_of": "y"}}
    prices = read_prices(json.dumps(listed), "list.json", as_of=date(2026, 1, 1))
    assert [(one.id, one.in_words) for one in prices.quotes] == [
        ("bedrock/opus-latest", "2.5 in, 10 out"), ("opus-5", "2.5 in, 10 out"),
    ]  # fmt: skip
    assert prices.dropped == {"no price": ["x"]}


def test_what_a_litellm_entry_asks_beside_its_tokens_is_said():
    night = {"input_cost_per_token": 1e-7, "windows": [{"hours_utc": "00:00-06:00"}]}
    listed = {
        "a": CHAT | {"input_cost_per_request": 0.005},
        "b": CHAT | {"off_peak_pricing": night},
    }
    quotes = read_prices(json.dumps(listed), "list.json", as_of=date(2026, 1, 1)).quotes
    assert [one.remarks for one in quotes] == [
        ("plus 0.005 USD per request",),
        ("other prices hold at some times or places, which are not read",),
    ]


def test_the_entry_of_the_provider_in_the_models_name_is_proposed_before_a_resellers():
    listed = {"gmi/openai/gpt-5.4": CHAT | {"litellm_provider": "gmi"}, "gpt-5.4": CHAT}
    quotes = read_prices(json.dumps(listed), "list.json", as_of=date(2026, 1, 1)).quotes
    assert near_entries(["openai/gpt-5.4"], quotes)["openai/gpt-5.4"].id == "gpt-5.4"


def test_vercels_steps_hold_from_their_first_token_and_keep_what_they_do_not_name():
    tiers = [("0.000001", 0), ("0.0000018", 32_001), ("0.000003", 128_001)]
    pricing = {
        "input": "0.000001", "output": "0.000005", "input_cache_read": "0.0000002",
        "input_tiers": [{"cost": cost, "min": low} for cost, low in tiers],
        "output_tiers": [{"cost": "0.000005", "min": 0}, {"cost": "0.000009", "min": 32_001}],
    }  # fmt: skip
    rows = [
        {"id": "qwen/max", "type": "language", "context_window": 262_144, "tags": ["tool-use"],
         "pricing": pricing},
        {"id": "x/embed", "type": "embedding", "pricing": {"input": "0.00000002"}},
        {"id": "x/steps", "type": "language", "pricing": {
            "input_tiers": [{"cost": "0.000002", "min": 0}],
            "output_tiers": [{"cost": "0.000004", "min": 0}], "varies_by_provider": True}},
    ]  # fmt: skip
    listed = read_prices(json.dumps({"data": rows}), "list.json", as_of=date(2026, 1, 1))
    assert [(one.id, one.provider, one.in_words, one.remarks) for one in listed.quotes] == [
        ("qwen/max", "qwen", "1 in, 5 out, 0.2 cached", ()),
        ("x/steps", "x", "2 in, 4 out", ("the prices differ by provider",)),
    ]
    first = listed.quotes[0]
    assert (first.context_window, first.vision, first.tools) == (262_144, False, True)
    assert first.price.long_prompts == (
        LongPromptPrice(32_000, 1.8, 9.0, 0.2), LongPromptPrice(128_000, 3.0, 9.0, 0.2),
    )  # fmt: skip
    assert listed.dropped == {"not a chat model": ["x/embed"]}
