"""Price tables as people keep them: every unit, currency and column by its right value."""

from datetime import date

import pytest

from hydra_core.base.errors import CatalogError
from hydra_core.base.list_price import ListPrice
from hydra_core.catalog.prices.lists import read_prices
from hydra_core.catalog.prices.price_file import parse_listed


def _price(text: str) -> ListPrice:
    given = parse_listed(text, "p.csv", ["gpt-4o"], as_of=date(2026, 1, 1))
    return given["gpt-4o"].price


@pytest.mark.parametrize(
    ("unit", "read", "written"),
    [
        ("", "2.5", "10"),
        (" per 1M tokens", "2.5", "10"),
        (" ($/MTok)", "2.5", "10"),
        ("_usd_per_mtok", "2.5", "10"),
        ("_per_1k_tokens", "0.0025", "0.01"),
        ("_usd_per_1k", "0.0025", "0.01"),
        (" price per-1k", "0.0025", "0.01"),
        (" (1K tokens)", "0.0025", "0.01"),
        ("_price_per_ktok", "0.0025", "0.01"),
        (" per 10K tokens", "0.025", "0.1"),
        (" per 100 tokens", "0.00025", "0.001"),
        ("_cost_per_token", "2.5e-06", "1e-05"),
        (" $ per billion tokens", "2500", "10000"),
        (" (¢/1K)", "0.25", "1"),
        ("", "USD 2.5", "USD 10"),
        ("", "2.50 USD per 1M", "10 USD per 1M"),
        ("", '"2,50"', '"10,00"'),
    ],
)
def test_a_unit_is_read_wherever_it_stands(unit: str, read: str, written: str) -> None:
    price = _price(f"model,input{unit},output{unit}\ngpt-4o,{read},{written}\n")
    assert (price.input_usd_per_mtok, price.output_usd_per_mtok) == (2.5, 10)


@pytest.mark.parametrize(
    ("unit", "found"),
    [
        *((unit, "is not in USD") for unit in (" (CAD)", "_eur", " (kr)", " (R$)", " ₩", " in zł")),
        *((unit, "unit that is not read") for unit in (" per 1K chars", " (m$/1K)", " per 7")),
        (" per request", "unit that is not read"),
    ],
)
def test_a_unit_that_is_not_read_is_no_usd_per_million(unit: str, found: str) -> None:
    with pytest.raises(CatalogError, match=found):
        _price(f"model,input{unit},output{unit}\ngpt-4o,2.5,10\n")


@pytest.mark.parametrize("cell", ['"1,250"', "2.5/5", "2.5 per request", "~2.5", "2.5 (≤200K)"])
def test_a_cell_with_two_meanings_is_no_price(cell: str) -> None:
    with pytest.raises(CatalogError, match="line 2, column 'input'"):
        _price(f"model,input,output\ngpt-4o,{cell},10\n")


@pytest.mark.parametrize(
    "headings",
    [
        "batch input,batch output,input,output",
        "priority input,priority output,input,output",
        "audio input,audio output,text input,text output",
        "image input price,image output price,input price,output price",
        "input tokens,output tokens,input,output",
        "training input,flex output,Input price (text/image/video),output",
    ],
)
def test_the_price_of_text_is_taken_from_its_own_column(headings: str) -> None:
    price = _price(f"model,{headings}\ngpt-4o,40,80,2.5,10\n")
    assert (price.input_usd_per_mtok, price.output_usd_per_mtok) == (2.5, 10)


def test_two_columns_that_may_be_the_price_are_refused() -> None:
    with pytest.raises(CatalogError, match="may be the column 'input us', 'input eu'"):
        _price("model,input us,input eu,output\ngpt-4o,2.5,3,10\n")


@pytest.mark.parametrize(
    "headings",
    [
        "input >200K,output >200K,input (<=200K),output (<=200K)",
        "input (above 200,000),output (above 200000),input,output",
    ],
)
def test_prices_of_long_requests_are_a_tier(headings: str) -> None:
    heads = ",".join(f'"{one}"' for one in headings.replace("200,000", "200.000").split(","))
    price = _price(f"model,{heads.replace('200.000', '200,000')}\ngpt-4o,5,15,2.5,10\n")
    assert (price.input_usd_per_mtok, price.output_usd_per_mtok) == (2.5, 10)
    (tier,) = price.long_prompts
    assert (tier.above_tokens, tier.input_usd_per_mtok, tier.output_usd_per_mtok) == (
        200_000,
        5,
        15,
    )


def test_excels_sep_line_names_the_delimiter() -> None:
    assert _price("sep=;\nmodel;input;output\ngpt-4o;2,5;10\n") == ListPrice(2.5, 10)


def test_a_model_with_two_cached_prices_is_refused() -> None:
    both = r"several prices \(gpt-4o .*1\.25.*; gpt-4o .*0\.25"
    with pytest.raises(CatalogError, match=both):
        _price("model,input,output,cached\ngpt-4o,2.5,10,1.25\ngpt-4o,2.5,10,0.25\n")


@pytest.mark.parametrize(
    ("unit", "read", "written"),
    [
        ("per 1K tokens", "0.0025", "0.01"),
        ("1K tokens", "0.0025", "0.01"),
        ("USD / 1M tokens", "2.5", "10"),
        ("¢ per 1K", "0.25", "1"),
        ("token", "2.5e-6", "1e-5"),
        ("", "2.5", "10"),
    ],
)
def test_a_column_of_units_counts_for_its_row(unit: str, read: str, written: str) -> None:
    rows = f"other,per 1M tokens,1,2,usd\ngpt-4o,{unit},{read},{written},USD\n"
    price = _price(f"model,Unit,input,output,Currency\n{rows}")
    assert (price.input_usd_per_mtok, price.output_usd_per_mtok) == (2.5, 10)


@pytest.mark.parametrize(
    ("column", "cell", "found"),
    [
        ("currency", "EUR", "is not in USD: 'EUR'"),
        ("Price unit", "EUR per 1M", "is not in USD: 'EUR per 1M'"),
        ("unit", "1K characters", "states a unit that is not read: '1K characters'"),
        ("unit", "per request", "states a unit that is not read: 'per request'"),
    ],
)
def test_a_unit_of_a_row_that_is_not_read_is_refused(column: str, cell: str, found: str) -> None:
    with pytest.raises(CatalogError, match=f"line 2, column '{column}': {found}"):
        _price(f"model,{column},input,output\ngpt-4o,{cell},2.5,10\n")


@pytest.mark.parametrize("money", ["DBU/1M", "credits", "multiplier", "quota points"])
def test_amounts_that_are_no_money_are_refused(money: str) -> None:
    with pytest.raises(CatalogError, match=r"column 'input \(.*\)': is not in USD"):
        _price(f"model,input ({money}),output ({money})\ngpt-4o,2.5,10\n")


@pytest.mark.parametrize("column", ["request", "Per call fee", "reasoning", "discount (%)"])
def test_what_a_table_asks_beside_its_prices_is_said(column: str) -> None:
    text = f"model,input,output,{column}\ngpt-4o,2.5,10,0.005\nother,1,2,0\n"
    first, second = read_prices(text, "p.csv", as_of=date(2026, 1, 1)).quotes
    assert first.remarks == (f"'{column}' is '0.005', which is not a part of the price here",)
    assert second.remarks == ()


@pytest.mark.parametrize(
    "unit",
    [
        "USD thousand tokens",
        "(USD thousand tokens)",
        "1k tokens",
        "$, 1,000 tokens",
        "pro 1.000 Tokens",
    ],
)
def test_a_number_of_tokens_without_a_mark_before_it_is_the_unit(unit: str) -> None:
    text = f'model,"input {unit}","output {unit}"\ngpt-4o,0.0025,0.01\n'
    assert _price(text) == ListPrice(2.5, 10)


@pytest.mark.parametrize(("above", "tokens"), [(">1M tokens", 10**6), ("above 200 K", 200_000)])
def test_a_price_of_long_requests_starts_at_thousands_or_millions(above: str, tokens: int) -> None:
    price = _price(f"model,input,output,input {above},output {above}\ngpt-4o,2.5,10,5,15\n")
    assert [tier.above_tokens for tier in price.long_prompts] == [tokens]


def test_a_price_of_images_is_no_answer_about_vision() -> None:
    text = "model,input,output,Image input\ngpt-4o,2.5,10,$7\nother,1,2,yes\n"
    first, second = read_prices(text, "p.csv", as_of=date(2026, 1, 1)).quotes
    assert first.remarks == ("'Image input' is '$7', which is not a part of the price here",)
    assert (first.vision, second.vision) == (None, True)
