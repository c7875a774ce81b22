"""Catalog prices against price lists: suggestions to confirm, retirements, and stale prices.

A suggestion is made only where the ids are equal, perhaps after folding case and marks. Never by a
common beginning: gpt-5 is not gpt-5-mini.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date
from decimal import Decimal
from enum import IntEnum
from typing import Final

from hydra_core.base.list_price import LongPromptPrice
from hydra_core.base.types import Catalog, ModelSpec, ModelStatus
from hydra_core.catalog.editing.document import CatalogDocument, Value
from hydra_core.catalog.identifiers import plain_name
from hydra_core.catalog.prices.quotes import PriceQuote

_MARKS: Final = re.compile(r"[._:\-\s]+")


class Closeness(IntEnum):
    """How a quote's id agrees with the catalog's; a lower one is better."""

    SAME_ID = 0
    SAME_NAME_AND_PROVIDER = 1
    FOLDED_NAME_AND_PROVIDER = 2
    SAME_NAME_ELSEWHERE = 3
    FOLDED_NAME_ELSEWHERE = 4

    def __str__(self) -> str:
        return _CLOSENESS[self]


_CLOSENESS: Final = {
    Closeness.SAME_ID: "same id",
    Closeness.SAME_NAME_AND_PROVIDER: "same name and provider",
    Closeness.FOLDED_NAME_AND_PROVIDER: "same provider, name spelled otherwise",
    Closeness.SAME_NAME_ELSEWHERE: "same name, another provider",
    Closeness.FOLDED_NAME_ELSEWHERE: "another provider, name spelled otherwise",
}


@dataclass(frozen=True, slots=True)
class PriceMatch:
    """A quote that may be the price of a model; somebody has to say so.

    Attributes:
        old_input, old_output, old_cached: The catalog's prices, USD per million tokens, exact.
        old_long: The catalog's prices of long requests.
    """

    model_id: str
    quote: PriceQuote
    closeness: Closeness
    old_input: Decimal
    old_output: Decimal
    old_cached: Decimal | None
    old_date: date
    old_long: tuple[LongPromptPrice, ...] = ()

    @property
    def changes(self) -> tuple[str, ...]:
        """What confirming changes in the prices, in words; empty where they agree."""
        quote = self.quote
        rows = (
            ("input", self.old_input, quote.input_usd_per_mtok),
            ("output", self.old_output, quote.output_usd_per_mtok),
            ("cached input", self.old_cached, quote.cached_input_usd_per_mtok),
        )
        changes = [
            f"{name} price {_shown(old)} -> {_shown(new)} USD/Mtok"
            for name, old, new in rows
            if old != new
        ]
        if self.old_long != quote.price.long_prompts:
            tiers = [_tiers(one) for one in (self.old_long, quote.price.long_prompts)]
            changes.append(f"price of long requests {tiers[0]} -> {tiers[1]}")
        return tuple(changes)

    def warnings(self, today: date) -> tuple[str, ...]:
        """What to know before confirming, in words."""
        quote = self.quote
        found = [*quote.remarks, *(str(tier) for tier in quote.tiers if tier.price is None)]
        if self.old_cached is not None and quote.cached_input_usd_per_mtok is None:
            found.append("the list states no price of cached input: it will cost as other input")
        if quote.retired_on is not None:
            verb = "was retired" if quote.retired_on <= today else "will be retired"
            found.insert(0, f"{quote.id} {verb} on {quote.retired_on.isoformat()}")
        elif quote.deprecated:
            found.insert(0, f"{quote.id} is deprecated")
        if quote.as_of < self.old_date:
            found.append(f"the list is older than the catalog's price of {self.old_date}")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class StalePrice:
    """A price read too long ago; a negative age is a date in the future."""

    model_id: str
    price_date: date
    age_days: int
    price_source: str


def suggest_matches(catalog: Catalog, quotes: Iterable[PriceQuote]) -> tuple[PriceMatch, ...]:
    """All quotes that may be a model's price: by model in catalog order, closest first."""
    by_name: dict[str, list[PriceQuote]] = {}
    for quote in quotes:
        by_name.setdefault(plain_name(quote.id), []).append(quote)
    return tuple(
        match
        for model in catalog.models
        for match in sorted(
            (_match(model, quote) for quote in by_name.get(plain_name(model.id), ())),
            key=lambda match: (match.closeness, match.quote.source, match.quote.id),
        )
    )


def apply_price(document: CatalogDocument, match: PriceMatch) -> None:
    """Write a confirmed quote into the catalog: prices, their source and their date.

    A price of cached input or of long requests that the list does not state is removed: it came
    from another list.

    Raises:
        CatalogError: The model is not in the document.
    """
    quote, path = match.quote, ("models", match.model_id)
    new: dict[str, tuple[Decimal | None, Decimal | None]] = {
        "input_usd_per_mtok": (match.old_input, quote.input_usd_per_mtok),
        "output_usd_per_mtok": (match.old_output, quote.output_usd_per_mtok),
        "cached_input_usd_per_mtok": (match.old_cached, quote.cached_input_usd_per_mtok),
    }
    for key, (old, value) in new.items():
        if value is None and old is not None:
            document.remove(*path, key)
        elif value is not None and value != old:
            document.set(*path, key, value)
    tiers = quote.price.long_prompts
    if tiers:
        document.set(*path, "long_prompts", tiers_value(tiers))
    elif match.old_long:
        document.remove(*path, "long_prompts")
    document.set(*path, "price_source", f"{quote.source.value}: {quote.id}")
    document.set(*path, "price_date", quote.as_of)


def tiers_value(tiers: Iterable[LongPromptPrice]) -> Value:
    """Prices of long requests as a catalog holds them."""
    return [
        {name: value for name, value in asdict(tier).items() if value is not None} for tier in tiers
    ]


def stale_prices(catalog: Catalog, today: date, max_age_days: int) -> tuple[StalePrice, ...]:
    """Models not retired whose price is older than that or dated in the future, oldest first."""
    aged = [
        StalePrice(model.id, model.price_date, (today - model.price_date).days, model.price_source)
        for model in catalog.models
        if model.status is not ModelStatus.RETIRED
    ]
    stale = [price for price in aged if not 0 <= price.age_days <= max_age_days]
    return tuple(sorted(stale, key=lambda price: price.price_date))


def _match(model: ModelSpec, quote: PriceQuote) -> PriceMatch:
    cached = model.cached_input_usd_per_mtok
    return PriceMatch(
        model_id=model.id,
        quote=quote,
        closeness=_closeness(model, quote),
        old_input=exact(model.input_usd_per_mtok),
        old_output=exact(model.output_usd_per_mtok),
        old_cached=None if cached is None else exact(cached),
        old_date=model.price_date,
        old_long=model.long_prompts,
    )


def _closeness(model: ModelSpec, quote: PriceQuote) -> Closeness:
    same_name = quote.id.rsplit("/", 1)[-1] == model.id.rsplit("/", 1)[-1]
    sellers = [quote.provider] if quote.provider else quote.id.split("/")[:-1]
    providers = {_folded(seller) for seller in sellers}
    if _folded(model.provider) in providers:
        if quote.id == model.id:
            return Closeness.SAME_ID
        fits = Closeness.SAME_NAME_AND_PROVIDER, Closeness.FOLDED_NAME_AND_PROVIDER
    else:
        fits = Closeness.SAME_NAME_ELSEWHERE, Closeness.FOLDED_NAME_ELSEWHERE
    return fits[0] if same_name else fits[1]


def _shown(price: Decimal | None) -> str:
    return "(none)" if price is None else f"{price:f}"


def _tiers(tiers: tuple[LongPromptPrice, ...]) -> str:
    return "; ".join(map(str, tiers)) or "(none)"


def exact(price: float) -> Decimal:
    """The decimal number that a price was written as: 0.31, not 0.309999..."""
    return Decimal(repr(float(price)))


def _folded(name: str) -> str:
    return _MARKS.sub("-", name.casefold()).strip("-")
