"""Price lists from a spreadsheet: headings for people, units, other currencies, bad cells."""

from datetime import date
from decimal import Decimal

import pytest

from hydra_core.base.errors import CatalogError
from hydra_core.catalog.prices.lists import read_prices
from hydra_core.catalog.prices.quotes import PriceSource
from hydra_core.choosing.initial_catalog import prices_of_text, proposed_entries

DAY = date(2026, 6, 1)


@pytest.mark.parametrize(
    ("heading", "cells"),
    [
        ("model,input,output,cached", "a,2.5,10,0.25"),
        ("Model,Input price,Output price,Cached input", "a,$2.50,$10,$.25"),
        ("Name;Prompt ($/MTok);Completion ($/MTok);Cache read ($/MTok)", "a;2.5;10;0.25"),
        ("model\tinput per 1K\toutput per 1K\tcached per 1K", "a\t.0025\t.01\t.00025"),
        ("model,input_per_token,output_per_token,cached_per_token", "a,2.5e-6,1e-5,2.5e-7"),
        ("model,input,output,cached", "a,$2.50 / 1M tokens,0.01/1K,2.5e-7 per token"),
        ("model,input (cents per 1M),output (¢ / 1M),cached ct per 1K", "a,250,1000,.025"),
        ("model,input in cents,output,cached", "a,$2.50,1000¢ / MTok,25 cents"),
        ("Model,Input (cache hit),Input (cache miss),Output", "a,.25,2.5,10"),
        ("Model,Uncached input,Cached input,Output", "a,2.5,.25,10"),
        ("Model,Context,Max output,Input,Output,Cache write,Cached", "a,1M,64K,2.5,10,3,.25"),
    ],
)  # fmt: skip
def test_a_table_is_read_by_its_headings_and_units(heading, cells):
    listed = read_prices(f"{heading}\n{cells}\n", "prices.csv", as_of=DAY)
    assert listed.source is PriceSource.TABLE
    (quote,) = listed.quotes
    prices = (quote.input_usd_per_mtok, quote.output_usd_per_mtok, quote.cached_input_usd_per_mtok)
    assert (quote.id, *prices) == ("a", Decimal("2.5"), Decimal(10), Decimal("0.25"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("model,input\na,1\n", "output: no column has it"),
        ("model,input,input,output\na,1,2,3\n", "column 'input': occurs twice"),
        ("model,input (EUR),output\na,1,2\n", r"column 'input \(EUR\)': is not in USD"),
        ("model,input,output\na,€1,2\n", r"line 2, column 'input': is no price in USD: '€1'"),
        (
            "model;input;output\na;1,500;2\n",
            r"line 2, column 'input': is no price in USD: '1,500'",
        ),
        ("model,input,output\na,1\n", "line 2: has 2 cells instead of 3"),
        ("model,input,output\na,1 per image,2\n", "'1 per image'"),
        ("model,input,output\na,tbd,2\n", "line 2, column 'input': is no price in USD: 'tbd'"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text, says):
    with pytest.raises(CatalogError, match=says):
        read_prices(text, "prices.csv", as_of=DAY)


def test_blank_and_zero_prices_are_no_prices():
    text = "model,input,output\na,,2\nb,0,2\nc,1,2\n"
    listed = read_prices(text, "prices.csv", as_of=DAY)
    assert [quote.id for quote in listed.quotes] == ["c"]
    assert sorted(listed.dropped.values()) == [["a"], ["b"]]


def test_a_row_gives_a_model_its_price_day_and_provider():
    text = "model,provider,input,output,date\na,acme,1,2,2026-05-04\n"
    given = prices_of_text(text, "p.csv", ["a"], DAY)["a"]
    assert (given.listed.provider, given.listed.as_of) == ("acme", date(2026, 5, 4))
    assert given.day == date(2026, 5, 4)


@pytest.mark.parametrize("name", ["prices.csv", "prices.md"])
def test_a_table_pasted_from_a_page_in_markdown_is_read(name):
    text = "| Model | Input | Output |\n|---|---:|---:|\n| a | $2.50 | $15 |\n"
    text = f"# Prices\n\n{text}\nOf May.\n" if name.endswith("md") else text
    (quote,) = read_prices(text, name, as_of=DAY).quotes
    assert (quote.id, quote.input_usd_per_mtok, quote.output_usd_per_mtok) == ("a", 2.5, 15)


def test_a_name_spelled_otherwise_is_proposed_and_not_taken():
    text = "Model,Input,Output\nGPT 5 mini,1,2\n"
    assert prices_of_text(text, "p.csv", ["gpt-5-mini"], DAY) == {}
    assert proposed_entries(text, "p.csv", ["gpt-5-mini"], DAY)["gpt-5-mini"].id == "GPT 5 mini"


@pytest.mark.parametrize(
    ("heading", "cells", "window", "vision", "tools", "retired"),
    [
        ("Context", "400k", 400_000, None, None, None),
        ("Context window,Vision,Tools", "1M,yes,no", 1_000_000, True, False, None),
        ("context_length,Input modalities,Function calling", "131072,text + image,✓",
         131_072, True, True, None),
        ("Max input tokens,modality,Retired on", '"200,000",text,2027-03-31',
         200_000, False, None, date(2027, 3, 31)),
        ("Context (tokens),Vision,Deprecated", "-,n/a,no", None, None, None, None),
        ("Context,Vision,Tools", "1.05M,?,unknown", 1_050_000, None, None, None),
    ],
)  # fmt: skip
def test_what_a_row_says_beside_prices_is_kept(heading, cells, window, vision, tools, retired):
    text = f"model,Input tokens ($/M),output,{heading}\na,1,2,{cells}\n"
    (quote,) = read_prices(text, "prices.csv", as_of=DAY).quotes
    assert (quote.context_window, quote.vision, quote.tools) == (window, vision, tools)
    assert (quote.retired_on, quote.deprecated) == (retired, False)
    assert (quote.input_usd_per_mtok, quote.output_usd_per_mtok) == (1, 2)


@pytest.mark.parametrize("cell", ["01.10.2026", "1.10.2026", "2026-10-01"])
def test_a_day_before_its_month_is_read_where_points_part_them(cell):
    text = f"model,input,output,Retirement,Date\na,1,2,{cell},{cell}\n"
    (quote,) = read_prices(text, "prices.csv", as_of=DAY).quotes
    assert quote.retired_on == quote.as_of == date(2026, 10, 1)


def test_the_last_day_of_deprecation_and_retirement_is_the_day_of_retirement():
    text = "model,input,output,Deprecated,Shutdown date\na,1,2,no,2027-01-01\n"
    text += "b,1,2,2026-05-01,2026-10-01\nc,1,2,yes,\n"
    found = read_prices(text, "prices.csv", as_of=DAY).quotes
    days = (date(2027, 1, 1), date(2026, 10, 1), None)
    assert tuple(quote.retired_on for quote in found) == days
    assert [quote.deprecated for quote in found] == [False, False, True]


@pytest.mark.parametrize("cell", ["03/2026", "3.2026", "2026-03"])
def test_a_price_of_a_month_is_of_its_first_day_as_in_a_price_file(cell):
    (quote,) = read_prices(f"model,input,output,As of\na,1,2,{cell}\n", "p.csv", as_of=DAY).quotes
    assert quote.as_of == date(2026, 3, 1)


@pytest.mark.parametrize(
    ("heading", "cell"),
    [
        *(
            ("Context", "large"),
            ("Vision", "partly"),
            ("Tools", "beta"),
            ("Retired", "next spring"),
            ("Retired", "01/10/2026"),
            ("Retired", "10.13.2026"),
            ("Date", "01/10/2026"),
            ("Date", "13/2026"),
            ("Retired", "03/2026"),
        ),
        *(("Context", "128.000"), ("Context", "1.5"), ("Tools", "x")),
    ],
)
def test_a_fact_that_cannot_be_read_is_named_with_its_place(heading, cell):
    text = f"model,input,output,{heading}\na,1,2,{cell}\n"
    with pytest.raises(CatalogError, match=f"line 2, column '{heading}': cannot be read: '{cell}'"):
        read_prices(text, "prices.csv", as_of=DAY)
