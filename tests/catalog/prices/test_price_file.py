"""An operator's price file: every price or a problem that names it; nothing is guessed."""

from datetime import date

import pytest

from hydra_core.base.errors import CatalogError
from hydra_core.base.list_price import ListPrice
from hydra_core.catalog.prices.price_file import parse_price_file

GOOD = """\
unit: usd_per_1m_tokens
models:
  gpt-4o: {input: 2.5, output: 10, cached: 1.25, date: 2024-08-06, note: list price}
  "llama-3": {input: 0.9, output: 0.9, date: "2024-07"}
  plain: {input: 1, output: 2}
"""


def test_prices_dates_and_notes_are_read():
    found = parse_price_file(GOOD)
    assert found["gpt-4o"].price == ListPrice(2.5, 10, 1.25)
    assert (found["gpt-4o"].day, found["gpt-4o"].note) == (date(2024, 8, 6), "list price")
    assert found["llama-3"].day == date(2024, 7, 1)
    assert found["plain"].day is None


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("input: 2.5", "input: 0", "gpt-4o", "> 0"),
        ("input: 2.5", "input: -1", "gpt-4o", "> 0"),
        ("input: 2.5", "input: 2.5e-6", "gpt-4o", "2.5e-06 looks like a price per token"),
        ("input: 2.5", "input: .nan", "gpt-4o", "finite"),
        ("input: 2.5, ", "", "gpt-4o", "missing"),
        ("output: 10", "output: ten", "gpt-4o", "number"),
        ("2024-08-06", "last week", "gpt-4o", "date"),
        ('"2024-07"', '"2024-13"', "llama-3", "date"),
        ("usd_per_1m_tokens", "usd_per_token", "unit", "usd_per_1m_tokens"),
        ("plain: {input: 1, output: 2}", "plain: 3", "plain", "mapping"),
        ("plain:", "'GPT 4o':", "GPT 4o", "contains"),
        ("cached: 1.25", "cashed: 1.25", "gpt-4o", "not a known key"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(old, new, place, message):
    with pytest.raises(CatalogError) as caught:
        parse_price_file(GOOD.replace(old, new), "p.yaml")
    told = [p for p in caught.value.problems if place in p.place and message in p.message]
    assert told, str(caught.value)


def test_all_problems_are_listed_at_once():
    text = GOOD.replace("2.5", "0").replace("0.9, output", "-1, output")
    with pytest.raises(CatalogError) as caught:
        parse_price_file(text)
    assert len(caught.value.problems) == 2
