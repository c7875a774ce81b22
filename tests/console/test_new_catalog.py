"""Prices as entered in the table: nothing guessed, everything wrong named."""

import json
from datetime import date

import pytest

from hydra_core.base.errors import CatalogError
from hydra_core.base.list_price import FREE, ListPrice
from hydra_core.catalog.prices.price_file import GivenPrice, free_entries
from hydra_core.choosing.initial_catalog import (
    entered_prices,
    free_key,
    price_table,
    prices_of_text,
    proposed_entries,
    recorded_prices,
)

GIVEN = {"a": GivenPrice(ListPrice(1.0, 2.0), date(2025, 1, 2), "list")}


def edited(model, **cells):
    table = price_table(["a", "b"], GIVEN).astype(object)
    for name, value in cells.items():
        table.loc[table["model"] == model, name] = value
    return entered_prices(table, GIVEN)


def test_models_without_a_price_are_named():
    entered = edited("a")
    assert entered.missing == ("b",)
    assert not entered.complete


def test_half_a_price_is_none():
    assert edited("b", input=1.0).missing == ("b",)


def test_a_price_that_was_not_changed_keeps_its_date_and_an_edited_one_does_not():
    kept = dict(edited("b", input=3.0, output=4.0).prices)
    assert kept["a"] == GIVEN["a"]
    assert kept["b"] == GivenPrice(ListPrice(3.0, 4.0), None, "given by the operator")
    assert dict(edited("a", output=2.5).prices)["a"].day is None


def test_what_a_list_says_of_a_free_model_holds_beside_the_price_that_is_typed():
    text = "Model,Input,Output,Context window\nb,0,0,200000\n"
    free = free_entries(text, "p.csv", ["a", "b"], as_of=date(2025, 1, 2))
    table = price_table(["a", "b"], GIVEN)
    table.loc[table["model"] == "b", ["input", "output"]] = 0.01
    kept = dict(entered_prices(table, GIVEN, free).prices)
    assert kept["b"].price == ListPrice(0.01, 0.01)
    assert kept["b"].listed.context_window == 200_000


def test_a_model_is_free_where_the_word_stands_for_both_prices():
    kept = dict(edited("b", input="free", output="Free").prices)
    assert kept["b"].price == FREE
    assert edited("b", input="free", output=0).problems
    assert edited("b", input="free", output=2).problems


@pytest.mark.parametrize("value", [0.0, -5.0, float("inf")])
@pytest.mark.parametrize("column", ["input", "output", "cached"])
def test_a_price_that_cannot_be_is_named_with_the_way_out(column, value):
    entered = edited("a", **{column: value})
    (problem,) = entered.problems
    assert problem.place == "a"
    assert f"{value:g}" in problem.message
    assert "above 0" in problem.remedy
    assert not entered.complete


def test_typed_prices_are_read_as_price_tables_read_them_and_others_named():
    assert dict(edited("b", input="$0,40", output="40 ct", cached="").prices)["b"].price == (
        ListPrice(0.4, 0.4)
    )
    entered = edited("b", input="3k", output="1/2", cached="n/a")
    assert [problem.message for problem in entered.problems] == [
        "input price is 3k", "output price is 1/2", "cached input price is n/a",
    ]  # fmt: skip


def test_a_model_that_is_not_used_needs_no_price():
    entered = edited("b", use=False)
    assert entered.models == ("a",)
    assert entered.complete


def test_an_eval_sets_own_prices_say_where_they_come_from():
    table = price_table(["a"], recorded_prices({"a": ListPrice(1.0, 2.0, 0.5)}))
    assert table.loc[0, ["input", "output", "cached"]].tolist() == [1.0, 2.0, 0.5]
    assert "eval set" in table.loc[0, "source"]


def test_a_price_file_and_a_public_list_are_read_and_other_models_left_out():
    text = "models:\n  a: {input: 1, output: 2}\n  c: {input: 1, output: 2}\n"
    assert list(prices_of_text(text, "p.yaml", ["a", "b"], date(2025, 1, 1))) == ["a"]
    costs = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}
    listed = json.dumps({"b": {**costs, "litellm_provider": "x"}})
    found = prices_of_text(listed, "p.json", ["a", "b"], date(2025, 1, 1))
    assert found["b"].price == ListPrice(1.0, 2.0)
    with pytest.raises(CatalogError, match="input"):
        prices_of_text("models: {a: {input: 0, output: 2}}", "p.yaml", ["a"], date(2025, 1, 1))


def test_a_catalogs_key_is_free():
    assert free_key("My Set", ["my_set", "my_set_2"]) == "my_set_3"


def test_an_entry_of_another_name_is_proposed_and_taken_once_it_is_named():
    entry = {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2.5e-06,
             "output_cost_per_token": 1.5e-05}  # fmt: skip
    text, today = json.dumps({"gpt-5.4": entry}), date(2026, 1, 2)
    assert prices_of_text(text, "list.json", ["openai/gpt-5.4"], today) == {}
    near = proposed_entries(text, "list.json", ["openai/gpt-5.4"], today)
    assert near["openai/gpt-5.4"].id == "gpt-5.4"
    entries = {"openai/gpt-5.4": "gpt-5.4"}
    given = prices_of_text(text, "list.json", ["openai/gpt-5.4"], today, entries)
    assert given["openai/gpt-5.4"].price == ListPrice(2.5, 15.0)
