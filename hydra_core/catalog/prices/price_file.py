"""An operator's own price file: model -> list price in USD per million tokens, read strictly.

unit: usd_per_1m_tokens
models:
  gpt-4o: {input: 2.5, output: 10, cached: 1.25, date: 2024-08-06, note: public list price}
  llama-on-our-own-machine: free
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from hydra_core.base.errors import CatalogError, Problem
from hydra_core.base.list_price import FREE, ListPrice
from hydra_core.base.reading.fields import Section, read_mapping
from hydra_core.base.reading.yaml_reader import MapNode, ScalarNode, shown
from hydra_core.catalog.identifiers import id_problem, plain_name
from hydra_core.catalog.prices.lists import LIST_ENDINGS, read_prices
from hydra_core.catalog.prices.quotes import ABOVE_ZERO, FREE_WORD, PriceQuote
from hydra_core.catalog.schema import read_catalog_text

_SHOWN: Final = 4
_UNITS: Final = ("usd_per_1m_tokens", "usd_per_mtok")
_DATED: Final = re.compile(r"[-@](?:20\d{2}-?\d{2}-?\d{2}|latest)$")
#: What Bedrock puts around a name: us.anthropic.claude-haiku-4-5-20251001-v1:0.
_BEDROCK: Final = re.compile(r"^(?:[a-z]+[0-9]*\.)+(?=[a-z])|-v[0-9]+:[0-9]+(?::\w+)?$")
_FORM: Final = "write models: {gpt-4o: {input: 2.5, output: 10}}"
_MONTH: Final = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class GivenPrice:
    """The price of one model and what the file says of it; `day` None where it says none.

    A date that names only a month counts as its first day.

    Attributes:
        listed: The entry of a public list that it was read from: window, vision, tools, provider.
    """

    price: ListPrice
    day: date | None = None
    note: str = ""
    listed: PriceQuote | None = None


def read_price_file(path: Path) -> dict[str, GivenPrice]:
    """The prices in a file.

    Raises:
        CatalogError: It cannot be read, or a price is missing, 0 or not a number; all are listed.
    """
    return parse_price_file(read_catalog_text(path), path.name)


def parse_price_file(text: str, source: str = "prices") -> dict[str, GivenPrice]:
    """The prices in a YAML text; CatalogError lists every problem with its line."""
    root, problems = read_mapping(text, _FORM)
    prices = {} if root is None else _prices(root)
    if problems.found:
        raise CatalogError(source, problems.listed())
    return prices


def listed_prices(
    path: Path, models: Sequence[str], entries: Mapping[str, str] | None = None
) -> dict[str, GivenPrice]:
    """Prices of these models from a public list (LiteLLM, OpenRouter, models.dev).

    Raises:
        CatalogError: As `parse_listed`.
    """
    day = date.fromtimestamp(path.stat().st_mtime)
    return parse_listed(read_catalog_text(path), path.name, models, as_of=day, entries=entries)


def parse_listed(
    text: str,
    source: str,
    models: Sequence[str],
    *,
    as_of: date,
    entries: Mapping[str, str] | None = None,
) -> dict[str, GivenPrice]:
    """Prices of these models from the text of a public list.

    A model counts as listed under its own id, or under it behind a provider ("openai/gpt-4o").
    Other entries are taken only where `entries` says so; `near_entries` proposes them.

    Args:
        entries: Model -> id of the list's entry that is its price.

    Raises:
        CatalogError: The list cannot be read, lists a model at more than one price, or lacks an
            entry that was named.
    """
    listed = read_prices(text, source, as_of=as_of)
    quotes = listed.quotes
    problems, found = [], {}
    for model in models:
        wanted = (entries or {}).get(model, model)
        hits = _named(quotes, wanted)
        if len({hit.price for hit in hits}) > 1:
            problems.append(_several(model, hits))
        elif hits:
            quote = hits[0]
            note = f"{quote.source.value}: {quote.entry}"
            found[model] = GivenPrice(quote.price, quote.as_of, note, quote)
        elif wanted != model and not _named(listed.free, wanted):
            problems.append(Problem(model, f"the list has no entry {wanted!r}", "look at its ids"))
    CatalogError.raise_any(source, problems)
    return found


def free_entries(
    text: str,
    source: str,
    models: Sequence[str],
    *,
    as_of: date,
    entries: Mapping[str, str] | None = None,
) -> dict[str, PriceQuote]:
    """What the text of a list says of these models, where it has them at a price of 0.

    A price file in YAML says nothing else.

    Args:
        entries: As for `parse_listed`.

    Raises:
        CatalogError: The list cannot be read.
    """
    if not source.lower().endswith(LIST_ENDINGS):
        return {}
    free = read_prices(text, source, as_of=as_of).free
    found = {model: _named(free, (entries or {}).get(model, model)) for model in models}
    return {model: hits[0] for model, hits in found.items() if hits}


def _named(quotes: Sequence[PriceQuote], wanted: str) -> list[PriceQuote]:
    """The quotes of an entry, else of an id, else of it behind a provider."""
    return (
        [quote for quote in quotes if quote.entry == wanted]
        or [quote for quote in quotes if quote.id == wanted]
        or [quote for quote in quotes if quote.id.rsplit("/", 1)[-1] == wanted]
    )


def _several(model: str, hits: Sequence[PriceQuote]) -> Problem:
    remedy = f"say its price, on the command line --price {model}=INPUT,OUTPUT"
    if len({hit.entry for hit in hits}) == len(hits):
        remedy = f"say which one, on the command line --list-entry {model}={hits[0].entry}"
    prices = (f"{hit.entry} {hit.in_words}" for hit in hits[:_SHOWN])
    more = f" and {len(hits) - _SHOWN} more" if len(hits) > _SHOWN else ""
    return Problem(model, f"is listed at several prices ({'; '.join(prices)}{more})", remedy)


def near_entries(models: Sequence[str], quotes: Iterable[PriceQuote]) -> dict[str, PriceQuote]:
    """For each of these models the list's entry that may be its price; to be confirmed.

    Names agree but for what stands before the last slash, case, the marks ``. _ - :``, a date
    behind one of them, what Bedrock puts around them, and the order of their words. The entry of
    the provider that the model's name begins with is proposed, else the closest in spelling.
    """
    by_name: dict[str, list[PriceQuote]] = {}
    for quote in quotes:
        for name in set(_spellings(quote.id)):
            by_name.setdefault(name, []).append(quote)
    proposed = {}
    for model in models:
        near = next((by_name[name] for name in _spellings(model) if name in by_name), [])
        if near:
            seller = model.casefold().rpartition("/")[0].rpartition("/")[2]
            proposed[model] = min(near, key=lambda q: (
                q.provider.casefold() != seller, -_closeness(model, q.id), len(q.id), q.id
            ))  # fmt: skip
    return proposed


def _closeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one.casefold(), other.casefold()).ratio()


def _spellings(model: str) -> tuple[str, str, str]:
    """A name folded ever further; numbers keep their order, so that gpt-4-5 is not gpt-5-4."""
    bare = _BEDROCK.sub("", model.strip().rsplit("/", 1)[-1].casefold())
    undated = _DATED.sub("", plain_name(bare))
    words = sorted(undated.split("-"), key=lambda word: "" if word.isdigit() else word)
    return plain_name(model), undated, "-".join(words)


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
        if isinstance(node, ScalarNode) and node.value == FREE_WORD:
            found[name] = GivenPrice(FREE, None, "free, as the price file says")
            continue
        if not isinstance(node, MapNode):
            models.wrong(name, f"must be a mapping, got {shown(node)}", "{input: 2.5, output: 10}")
            continue
        given = _given(Section(node, models.at(name), models.problems))
        if given is not None:
            found[name] = given
    return found


def _given(section: Section) -> GivenPrice | None:
    section.known(("input", "output", "cached", "date", "note"))
    price_in = section.price("input", ABOVE_ZERO)
    price_out = section.price("output", ABOVE_ZERO)
    cached = section.price("cached", ABOVE_ZERO, required=False)
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
