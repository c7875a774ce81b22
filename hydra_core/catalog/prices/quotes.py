"""What a price list says about a model, and how single fields of untrusted lists are read."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, TypeGuard

from hydra_core.base.list_price import ListPrice, LongPromptPrice

#: What a catalog takes for a price per million tokens, and more than anybody asks.
LEAST_PRICE: Final = Decimal("0.001")
_MOST: Final = Decimal(100_000)
_OUTSIDE: Final = (
    f"a price outside ${LEAST_PRICE} to ${_MOST:,} per million tokens (check the unit)"
)


class PriceSource(StrEnum):
    """Whose list it is."""

    LITELLM = "LiteLLM"
    OPENROUTER = "OpenRouter"
    MODELS_DEV = "models.dev"
    VERCEL = "Vercel AI Gateway"
    TABLE = "price table"


@dataclass(frozen=True, slots=True)
class PriceTier:
    """Prices beyond a number of input tokens, USD per million; None where the list's is no price.

    Attributes:
        above_tokens: Input tokens of a request that are still charged the lower price.
    """

    above_tokens: int
    input_usd_per_mtok: Decimal | None
    output_usd_per_mtok: Decimal | None
    cached_input_usd_per_mtok: Decimal | None = None

    @property
    def price(self) -> LongPromptPrice | None:
        """The prices, None where the list's are none."""
        read, written = self.input_usd_per_mtok, self.output_usd_per_mtok
        if read is None or written is None:
            return None
        cached = self.cached_input_usd_per_mtok
        warm = None if cached is None else float(cached)
        return LongPromptPrice(self.above_tokens, float(read), float(written), warm)

    def __str__(self) -> str:
        prices = (self.input_usd_per_mtok, self.output_usd_per_mtok)
        shown = " / ".join("(no usable price)" if p is None else f"{p:f}" for p in prices)
        return f"above {self.above_tokens:,} input tokens {shown} USD/Mtok in/out"


@dataclass(frozen=True, slots=True)
class PriceQuote:
    """What one list says about one model. Prices are USD per million tokens, exact.

    Attributes:
        id: The id in that list, such as ``azure/gpt-5.4`` or ``anthropic/claude-haiku-4.5``.
        provider: Who serves it at this price, '' where the list does not say.
        vision, tools: None where the list does not say.
        retired_on: The day it is switched off, None where the list gives none.
        remarks: What the prices leave out, such as one per request.
        tiers: Prices of long prompts, by their number of input tokens.
    """

    source: PriceSource
    id: str
    provider: str
    input_usd_per_mtok: Decimal
    output_usd_per_mtok: Decimal
    cached_input_usd_per_mtok: Decimal | None
    context_window: int | None
    vision: bool | None
    tools: bool | None
    deprecated: bool
    retired_on: date | None
    as_of: date
    remarks: tuple[str, ...] = ()
    tiers: tuple[PriceTier, ...] = ()

    @property
    def entry(self) -> str:
        """The name that tells it from the other entries: models.dev lists an id once a provider."""
        by_provider = self.source is PriceSource.MODELS_DEV and self.provider
        return f"{self.provider}/{self.id}" if by_provider else self.id

    @property
    def in_words(self) -> str:
        """Its prices, such as `2.5 in, 10 out, 1.25 cached`."""
        cached = self.cached_input_usd_per_mtok
        warm = "" if cached is None else f", {cached:f} cached"
        return f"{self.input_usd_per_mtok:f} in, {self.output_usd_per_mtok:f} out{warm}"

    @property
    def price(self) -> ListPrice:
        """The price with those of long requests, as far as the list's are prices."""
        cached = self.cached_input_usd_per_mtok
        return ListPrice(
            float(self.input_usd_per_mtok),
            float(self.output_usd_per_mtok),
            None if cached is None else float(cached),
            tuple(tier.price for tier in self.tiers if tier.price is not None),
        )


@dataclass(frozen=True, slots=True)
class PriceList:
    """One list as read: its quotes in file order, and reason -> ids of what was dropped.

    Attributes:
        free: Entries that ask nothing, which are dropped as prices; what else they say holds.
    """

    source: PriceSource
    quotes: tuple[PriceQuote, ...]
    dropped: Mapping[str, Sequence[str]]
    free: tuple[PriceQuote, ...] = ()


class SkipEntry(Exception):  # noqa: N818
    """This entry gives no usable price; the message says why."""


#: What says that a model costs nothing; 0 often stands for a price that nobody knows.
FREE_WORD: Final = "free"
ABOVE_ZERO: Final = (
    "give USD per million tokens, above 0; of a self-hosted model what it costs you, such as 0.01, "
    "or if it costs nothing the word free"
)
NO_PRICE: Final = "a price of 0 or less, which is no list price"


def listed_pair(read: Any, written: Any, factor: Decimal) -> tuple[Decimal, Decimal]:  # noqa: ANN401
    """`listed_price` of input and output; (0, 0) of a model that asks nothing for either."""
    if price_number(read) == price_number(written) == 0:
        return Decimal(0), Decimal(0)
    return listed_price(read, factor), listed_price(written, factor)


def listed_price(value: Any, factor: Decimal) -> Decimal:  # noqa: ANN401
    """`value` times `factor` as USD per million tokens.

    Raises:
        SkipEntry: It is not a number above 0, or out of all bounds.
    """
    number = price_number(value)
    if number is None:
        raise SkipEntry("no price")
    if number <= 0:
        raise SkipEntry(NO_PRICE)
    if number.adjusted() > 6 or number.adjusted() < -18 or len(number.as_tuple().digits) > 25:
        raise SkipEntry(_OUTSIDE)
    price = (number * factor).normalize()
    if not LEAST_PRICE <= price <= _MOST:
        raise SkipEntry(_OUTSIDE)
    return price if price.as_tuple().exponent not in range(1, 40) else price.quantize(Decimal(1))


def optional_price(value: Any, factor: Decimal) -> Decimal | None:  # noqa: ANN401
    try:
        return listed_price(value, factor)
    except SkipEntry:
        return None


def count(value: Any) -> int | None:  # noqa: ANN401
    """A positive whole number, None where there is none."""
    number = price_number(value)
    return int(number) if number is not None and 0 < number <= 10**9 else None


def flag(value: Any) -> bool | None:  # noqa: ANN401
    """true or false, None where neither is said."""
    return value if isinstance(value, bool) else None


def word(value: Any) -> str:  # noqa: ANN401
    """Text of at most 300 characters, '' where there is none."""
    return value[:300] if isinstance(value, str) else ""


def day(value: Any) -> date | None:  # noqa: ANN401
    """The date at the start of a text, None where there is none."""
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


def is_map(value: Any) -> TypeGuard[dict[str, Any]]:  # noqa: ANN401
    return isinstance(value, dict)


_NUMBER: Final = re.compile(
    r"[-+]?(?:[0-9]{1,12}\.?[0-9]{0,30}|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?"
)


#: A comma is read where it can only be a decimal comma: 2,50 and 0,125, but not 1,250.
_COMMA: Final = re.compile(r"[-+]?(?:0?,[0-9]{1,30}|[0-9]{1,12},(?:[0-9]{1,2}|[0-9]{4,30}))")


def price_number(value: object) -> Decimal | None:
    """Read a plain finite number; through Decimal 0.31 stays 0.31. None for anything else.

    The comma of a text such as 2,50 is a decimal comma.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    text = str(value).strip()
    text = text.replace(",", ".") if _COMMA.fullmatch(text) else text
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def share_number(value: object) -> Decimal | None:
    """Read a share such as 0.72 or 72 %. None for anything else."""
    text = str(value).strip()
    percent = price_number(text[:-1]) if text.endswith("%") else None
    return price_number(value) if percent is None else percent / 100
