"""An operator's own price file: model -> list price in USD per million tokens, read strictly.

unit: usd_per_1m_tokens
models:
  gpt-4o: {input: 2.5, output: 10, cached: 1.25, date: 2024-08-06, note: public list price}
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from hydra_core.base.errors import CatalogError, Problem
from hydra_core.base.reading.fields import POSITIVE, Problems, Section
from hydra_core.base.reading.nodes import MapNode, ScalarNode, shown
from hydra_core.base.reading.yaml_reader import read_yaml
from hydra_core.base.types import ListPrice
from hydra_core.catalog.identifiers import id_problem
from hydra_core.catalog.prices.lists import read_prices
from hydra_core.catalog.schema import read_catalog_text

_UNITS: Final = ("usd_per_1m_tokens", "usd_per_mtok")
_REMEDY: Final = "give the price in USD per million tokens, above 0"
_MONTH: Final = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class GivenPrice:
    """The price of one model and what the file says of it; `day` None where it says none.

    A date that names only a month counts as its first day.
    """

    price: ListPrice
    day: date | None = None
    note: str = ""


def read_price_file(path: Path) -> dict[str, GivenPrice]:
    """The prices in a file.

    Raises:
        CatalogError: It cannot be read, or a price is missing, 0 or not a number; all are listed.
    """
    return parse_price_file(read_catalog_text(path), path.name)


def parse_price_file(text: str, source: str = "prices") -> dict[str, GivenPrice]:
    """The prices in a YAML text.

    Raises:
        CatalogError: Every problem, with its line and the way out.
    """
    root, found = read_yaml(text)
    problems = Problems(list(found))
    prices: dict[str, GivenPrice] = {}
    if isinstance(root, MapNode):
        prices = _prices(Section(root, "", problems))
    elif root is not None:
        problems.add("", root.line, f"must be a mapping, got {shown(root)}", "see the guide")
    if problems.found:
        raise CatalogError(source, problems.listed())
    return prices


def listed_prices(path: Path, models: Sequence[str]) -> dict[str, GivenPrice]:
    """Prices of these models from a public list (LiteLLM, OpenRouter, models.dev).

    Raises:
        CatalogError: The list cannot be read, or lists a model at more than one price.
    """
    day = date.fromtimestamp(path.stat().st_mtime)
    return parse_listed(read_catalog_text(path), path.name, models, as_of=day)


def parse_listed(
    text: str, source: str, models: Sequence[str], *, as_of: date
) -> dict[str, GivenPrice]:
    """Prices of these models from the text of a public list.

    A model counts as listed under its own id, or under it behind a provider ("openai/gpt-4o").

    Raises:
        CatalogError: The list cannot be read, or lists a model at more than one price.
    """
    quotes = read_prices(text, source, as_of=as_of).quotes
    problems, found = [], {}
    for model in models:
        own = [quote for quote in quotes if quote.id == model]
        hits = own or [quote for quote in quotes if quote.id.rsplit("/", 1)[-1] == model]
        different = {(hit.input_usd_per_mtok, hit.output_usd_per_mtok) for hit in hits}
        if len(different) > 1:
            listed = ", ".join(hit.id for hit in hits[:4])
            remedy = f"say which yourself (on the command line --price {model}=INPUT,OUTPUT)"
            problems.append(Problem(model, f"is listed at several prices ({listed})", remedy))
        elif hits:
            cached = hits[0].cached_input_usd_per_mtok
            price = ListPrice(
                float(hits[0].input_usd_per_mtok),
                float(hits[0].output_usd_per_mtok),
                None if cached is None else float(cached),
            )
            found[model] = GivenPrice(price, as_of, f"{hits[0].source.value}: {hits[0].id}")
    if problems:
        raise CatalogError(source, problems)
    return found


def _prices(root: Section) -> dict[str, GivenPrice]:
    root.known(("unit", "models"))
    unit = root.text("unit", "write unit: usd_per_1m_tokens", required=False)
    if unit and unit not in _UNITS:
        root.wrong("unit", f"must be {_UNITS[0]}, got {unit!r}", "convert the prices")
    models = root.section("models", "model: {input: 2.5, output: 10}")
    if models is None:
        return {}
    found = {}
    for name, (_, node) in models.node.entries.items():
        problem = id_problem(name)
        if problem is not None:
            models.wrong(name, *problem)
        if not isinstance(node, MapNode):
            models.wrong(name, f"must be a mapping, got {shown(node)}", "{input: 2.5, output: 10}")
            continue
        given = _given(Section(node, models.at(name), models.problems))
        if given is not None:
            found[name] = given
    return found


def _given(section: Section) -> GivenPrice | None:
    section.known(("input", "output", "cached", "date", "note"))
    price_in = section.number("input", POSITIVE, _REMEDY)
    price_out = section.number("output", POSITIVE, _REMEDY)
    cached = section.number("cached", POSITIVE, _REMEDY, required=False)
    day = _day(section)
    note = section.text("note", "write text", required=False, limit=500)
    if price_in is None or price_out is None:
        return None
    return GivenPrice(ListPrice(price_in, price_out, cached), day, note)


def _day(section: Section) -> date | None:
    node = section.node.get("date")
    if isinstance(node, ScalarNode) and isinstance(node.value, str):
        month = _MONTH.fullmatch(node.value)
        if month is not None:
            return date(int(month[1]), int(month[2]), 1)
    return section.day("date", "the day the price was read, as YYYY-MM-DD", required=False)
