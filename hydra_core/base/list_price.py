"""What a model's tokens cost by its list price: the one computation of costs from tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

_Array: TypeAlias = npt.NDArray[np.float64]
_Tokens = TypeVar("_Tokens", float, _Array)


@dataclass(frozen=True, slots=True)
class LongPromptPrice:
    """What all tokens of a request cost, USD per million, whose input is longer than that.

    Up to `above_tokens` input tokens, cached ones among them, are still charged less.
    """

    above_tokens: int
    input_usd_per_mtok: float
    output_usd_per_mtok: float
    cached_input_usd_per_mtok: float | None = None

    def __str__(self) -> str:
        cached = self.cached_input_usd_per_mtok
        more = "" if cached is None else f"/{cached:g}"
        prices = f"{self.input_usd_per_mtok:g}/{self.output_usd_per_mtok:g}{more}"
        return f"{prices} USD/Mtok above {self.above_tokens:,} input tokens"


@dataclass(frozen=True, slots=True)
class ListPrice:
    """USD per million tokens; `cached` None where cached input costs as much as other input.

    `long_prompts` are prices of long requests, the shortest first.
    """

    input_usd_per_mtok: float
    output_usd_per_mtok: float
    cached_input_usd_per_mtok: float | None = None
    long_prompts: tuple[LongPromptPrice, ...] = ()

    def usd(
        self,
        read: npt.ArrayLike,
        written: npt.ArrayLike,
        cached: npt.ArrayLike = 0.0,
        *,
        size: npt.ArrayLike | None = None,
    ) -> _Array:
        """(n,) USD of requests by their tokens; NaN where tokens read or written are not known.

        Args:
            cached: Those read that came from a cache; NaN counts as none.
            size: Input tokens of the whole request, by which its price is chosen; None: `read`.
        """
        inward, outward = np.asarray(read, dtype=np.float64), np.asarray(written, dtype=np.float64)
        warm = np.nan_to_num(np.asarray(cached, dtype=np.float64))
        total = _tokens_usd(self, inward, outward, warm)
        whole = inward if size is None else np.asarray(size, dtype=np.float64)
        for tier in self.long_prompts:
            total = np.where(
                whole > tier.above_tokens, _tokens_usd(tier, inward, outward, warm), total
            )
        return total

    def usd_of_one(
        self, read: float, written: float, cached: float = 0.0, *, size: float | None = None
    ) -> float:
        """USD of one request, as `usd` without arrays: it is asked in every decision."""
        at: ListPrice | LongPromptPrice = self
        whole = read if size is None else size
        for tier in self.long_prompts:
            at = tier if whole > tier.above_tokens else at
        return _tokens_usd(at, read, written, cached if cached > 0 else 0.0)

    def blended(self, price_ratio: float) -> float:
        """USD per million tokens at `price_ratio` input tokens for each output token."""
        total = price_ratio * self.input_usd_per_mtok + self.output_usd_per_mtok
        return total / (price_ratio + 1.0)


#: Of a model that costs nothing, where somebody says so: a 0 alone may stand for an unknown price.
FREE: Final = ListPrice(0.0, 0.0)


def long_prices(prices: Sequence[ListPrice]) -> dict[int, ListPrice]:
    """Place -> price of those that charge long requests more."""
    return {place: price for place, price in enumerate(prices) if price.long_prompts}


def at_long_prices(
    cost_usd: _Array,
    prices: Mapping[int, ListPrice],
    tokens: tuple[_Array, _Array],
    sizes: _Array | None = None,
) -> _Array:
    """Predicted costs with long requests at the price of their length.

    Args:
        cost_usd: (n, m) at the price of short requests.
        prices: Column -> price, as from `long_prices`.
        tokens: (n, m) predicted tokens read, and written.
        sizes: (n,) input tokens of the whole requests, 0 where nobody knows them: there, and
            without `sizes`, the predicted ones choose the price.
    """
    if not prices:
        return cost_usd
    found = cost_usd.copy()
    for column, price in prices.items():
        read, written = (part[:, column] for part in tokens)
        size = read if sizes is None else np.where(sizes > 0, sizes, read)
        long = size > price.long_prompts[0].above_tokens
        found[long, column] = price.usd(read[long], written[long], size=size[long])
    return found


def _tokens_usd(
    price: ListPrice | LongPromptPrice, read: _Tokens, written: _Tokens, cached: _Tokens
) -> _Tokens:
    warm = price.cached_input_usd_per_mtok
    warm = price.input_usd_per_mtok if warm is None else warm
    fresh = (read - cached) * price.input_usd_per_mtok
    return (fresh + cached * warm + written * price.output_usd_per_mtok) / 1e6
