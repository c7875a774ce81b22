"""Making a catalog from an eval set: the table of prices, what it lacks, the catalog's name."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import pandas as pd

from hydra_core.base.errors import Problem
from hydra_core.base.list_price import ListPrice
from hydra_core.base.types import Catalog
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.prices.lists import LIST_ENDINGS, read_prices
from hydra_core.catalog.prices.price_file import (
    GivenPrice,
    near_entries,
    parse_listed,
    parse_price_file,
)
from hydra_core.catalog.prices.quotes import PriceQuote, price_number
from hydra_core.evalsets.folders import folder_name

#: The columns of the table that hold USD per million tokens, and what a problem calls them.
PRICE_COLUMNS = {"input": "input price", "output": "output price", "cached": "cached input price"}
_REMEDY = "give it in USD per million tokens, above 0"


@dataclass(frozen=True, slots=True)
class EnteredPrices:
    """What the table of prices says.

    Attributes:
        models: The models that are to be in the catalog.
        prices: Model and price of those that have one.
        missing: Models that are to be in it and have no price.
        problems: Prices that cannot be.
    """

    models: tuple[str, ...]
    prices: tuple[tuple[str, GivenPrice], ...]
    missing: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def complete(self) -> bool:
        """Whether a catalog can be made of it."""
        return bool(self.models) and not self.missing and not self.problems


def recorded_prices(prices: Mapping[str, ListPrice]) -> dict[str, GivenPrice]:
    """What an eval set recorded, as prices of a new catalog."""
    note = "price at recording, from the eval set"
    return {model: GivenPrice(price, None, note) for model, price in prices.items()}


def prices_of_text(
    text: str,
    name: str,
    models: Sequence[str],
    today: date,
    entries: Mapping[str, str] | None = None,
) -> dict[str, GivenPrice]:
    """Prices of these models from a price file (YAML), or a price list (JSON, TOML, CSV, TSV).

    Args:
        entries: Model -> id of the list's entry that is its price.

    Raises:
        CatalogError: It cannot be read; all problems are listed.
    """
    if name.lower().endswith(LIST_ENDINGS):
        return parse_listed(text, name, models, as_of=today, entries=entries)
    given = parse_price_file(text, name)
    return {model: given[model] for model in models if model in given}


def proposed_entries(
    text: str, name: str, models: Sequence[str], today: date
) -> dict[str, PriceQuote]:
    """Entries of a public list that may be the price of these models, which it does not name.

    Raises:
        CatalogError: It cannot be read.
    """
    if not models or not name.lower().endswith(LIST_ENDINGS):
        return {}
    return near_entries(models, read_prices(text, name, as_of=today).quotes)


def price_table(models: Sequence[str], given: Mapping[str, GivenPrice]) -> pd.DataFrame:
    """One row a model: whether it is used, its prices where known, and where they come from."""
    known = [given.get(model) for model in models]
    prices = [one.price if one else ListPrice(math.nan, math.nan) for one in known]
    return pd.DataFrame(
        {
            "use": [True] * len(models),
            "model": list(models),
            "input": [price.input_usd_per_mtok for price in prices],
            "output": [price.output_usd_per_mtok for price in prices],
            "cached": pd.Series([p.cached_input_usd_per_mtok for p in prices], dtype="float64"),
            "source": [(one.note or "price file") if one else "" for one in known],
        }
    )


def entered_prices(table: pd.DataFrame, given: Mapping[str, GivenPrice]) -> EnteredPrices:
    """The prices of an edited `price_table`; nothing is guessed.

    Args:
        given: What it was filled with; a price that was not changed keeps its date and note.
    """
    used = table[table["use"].astype(bool)]
    prices, missing, problems = [], [], []
    for row in used.to_dict("records"):
        model = str(row["model"])
        read = {name: price_number(row[name]) for name in PRICE_COLUMNS}
        wrong = [
            name
            for name, price in read.items()
            if not pd.isna(row[name]) and (price is None or price <= 0)
        ]
        problems += [
            Problem(model, f"{PRICE_COLUMNS[name]} is {row[name]:g}", _REMEDY) for name in wrong
        ]
        per_input, per_output, per_cached = (
            None if price is None else float(price) for price in read.values()
        )
        if pd.isna(row["input"]) or pd.isna(row["output"]):
            missing.append(model)
        elif per_input is not None and per_output is not None and not wrong:
            price = ListPrice(per_input, per_output, per_cached)
            given_price = given[model].price if model in given else price
            if replace(given_price, long_prompts=()) == price:
                price = given_price
            before = given.get(model)
            kept = before if before is not None and before.price == price else None
            listed = before.listed if before is not None else None
            own = GivenPrice(price, None, "given by the operator", listed)
            prices.append((model, kept or own))
    models = tuple(map(str, used["model"]))
    return EnteredPrices(models, tuple(prices), tuple(missing), tuple(problems))


def covered(models: Collection[str], catalogs: Sequence[Catalog | None]) -> bool:
    """Whether some catalog knows every one of these models."""
    return any(
        set(models) <= {model.id for model in catalog.models} for catalog in catalogs if catalog
    )


def free_key(name: str, taken: Collection[str]) -> str:
    """What a catalog of this name is called in the store: plain, and not taken yet."""
    base, number = folder_name(name), 1
    key = base
    while key in taken:
        number += 1
        key = f"{base}_{number}"
    return key


def named(text: str, name: str) -> str:
    """A catalog's text under another name.

    Raises:
        CatalogError: The name cannot be one.
    """
    document = CatalogDocument.parse(text)
    document.set("name", name)
    return document.text()
