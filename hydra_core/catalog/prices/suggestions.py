"""Catalog prices against price lists: suggestions to confirm, retirements, and stale prices.

A suggestion is made only where the ids are equal, perhaps after folding case and marks. Never by a
common beginning: gpt-5 is not gpt-5-mini.
"""

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


#: As a catalog and a quote name them.
_PRICES: Final = ("input_usd_per_mtok", "output_usd_per_mtok", "cached_input_usd_per_mtok")


@dataclass(frozen=True, slots=True)
class PriceMatch:
    """A quote that may be the price of a model; somebody has to say so."""

    model: ModelSpec
    quote: PriceQuote
    closeness: Closeness

    @property
    def prices(self) -> dict[str, tuple[Decimal | None, Decimal | None]]:
        """Price, as a catalog names it -> the model's and the quote's, USD per Mtok, exact."""
        old = (getattr(self.model, key) for key in _PRICES)
        return {
            key: (None if price is None else exact(price), getattr(self.quote, key))
            for key, price in zip(_PRICES, old, strict=True)
        }

    @property
    def changes(self) -> tuple[str, ...]:
        """What confirming changes in the prices, in words; empty where they agree."""
        changes = [
            f"{key.removesuffix('_usd_per_mtok').replace('_', ' ')} price {_shown(old)} -> "
            f"{_shown(new)} USD/Mtok"
            for key, (old, new) in self.prices.items()
            if old != new
        ]
        tiers = (self.model.long_prompts, self.quote.price.long_prompts)
        if tiers[0] != tiers[1]:
            changes.append(f"price of long requests {_tiers(tiers[0])} -> {_tiers(tiers[1])}")
        return tuple(changes)

    def warnings(self, today: date) -> tuple[str, ...]:
        """What to know before confirming, in words."""
        quote = self.quote
        found = [*quote.remarks, *(str(tier) for tier in quote.tiers if tier.price is None)]
        if (
            self.model.cached_input_usd_per_mtok is not None
            and quote.cached_input_usd_per_mtok is None
        ):
            found.append("the list states no price of cached input: it will cost as other input")
        if quote.retired_on is not None:
            verb = "was retired" if quote.retired_on <= today else "will be retired"
            found.insert(0, f"{quote.id} {verb} on {quote.retired_on.isoformat()}")
        elif quote.deprecated:
            found.insert(0, f"{quote.id} is deprecated")
        if quote.as_of < self.model.price_date:
            found.append(f"the list is older than the catalog's price of {self.model.price_date}")
        return tuple(found)


def suggest_matches(catalog: Catalog, quotes: Iterable[PriceQuote]) -> tuple[PriceMatch, ...]:
    """All quotes that may be a model's price: by model in catalog order, closest first."""
    by_name: dict[str, list[PriceQuote]] = {}
    for quote in quotes:
        by_name.setdefault(plain_name(quote.id), []).append(quote)
    return tuple(
        match
        for model in catalog.models
        for match in sorted(
            (
                PriceMatch(model, quote, _closeness(model, quote))
                for quote in by_name.get(plain_name(model.id), ())
            ),
            key=lambda match: (match.closeness, match.quote.source, match.quote.id),
        )
    )


def apply_price(document: CatalogDocument, match: PriceMatch) -> None:
    """Write a confirmed quote into the catalog: prices, their source and their date.

    A price of cached input or of long requests that the list does not state is removed: it came
    from another list. An effort level, which would take its base's, gets what holds without one.

    Raises:
        CatalogError: The model is not in the document.
    """
    quote, path = match.quote, ("models", match.model.id)
    for key, (old, new) in match.prices.items():
        if new is None and old is not None and match.model.variant_of:
            document.set(*path, key, quote.input_usd_per_mtok)
        elif new is None and old is not None:
            document.remove(*path, key)
        elif new is not None and (new != old or match.model.variant_of):
            document.set(*path, key, new)
    tiers = quote.price.long_prompts
    if tiers:
        document.set(*path, "long_prompts", tiers_value(tiers))
    elif match.model.long_prompts and match.model.variant_of:
        document.set(*path, "long_prompts", [])
    elif match.model.long_prompts:
        document.remove(*path, "long_prompts")
    document.set(*path, "price_source", f"{quote.source.value}: {quote.id}")
    document.set(*path, "price_date", quote.as_of)


def tiers_value(tiers: Iterable[LongPromptPrice]) -> Value:
    """Prices of long requests as a catalog holds them."""
    return [
        {name: value for name, value in asdict(tier).items() if value is not None} for tier in tiers
    ]


def stale_prices(catalog: Catalog, today: date, max_age_days: int) -> dict[str, int]:
    """Model id -> days since its price was read, where that is more, or < 0 (a date to come).

    Retired models are left out.
    """
    ages = {
        model.id: (today - model.price_date).days
        for model in catalog.models
        if model.status is not ModelStatus.RETIRED
    }
    return {model: age for model, age in ages.items() if not 0 <= age <= max_age_days}


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
