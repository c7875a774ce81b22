"""List prices in the manifest of an eval set: as they are written, read and checked."""

import math
from collections.abc import Mapping
from typing import Any, Final

from hydra_core.base.errors import Problem
from hydra_core.base.list_price import ListPrice, LongPromptPrice

_PRICES: Final = ("input", "output", "cached")
#: Prices of long requests, and above how many input tokens they begin.
_LONG, _ABOVE = "long_prompts", "above_tokens"


def price_rows(prices: Mapping[str, ListPrice]) -> dict[str, dict[str, Any]]:
    """As `prices_of` reads them: USD per million tokens, without what is not known."""
    rows = {}
    for model, price in prices.items():
        rows[model] = _row(price)
        if price.long_prompts:
            tiers = price.long_prompts
            rows[model][_LONG] = [{_ABOVE: one.above_tokens, **_row(one)} for one in tiers]
    return rows


def _row(price: ListPrice | LongPromptPrice) -> dict[str, Any]:
    values = (
        price.input_usd_per_mtok, price.output_usd_per_mtok, price.cached_input_usd_per_mtok
    )  # fmt: skip
    return {k: v for k, v in zip(_PRICES, values, strict=True) if v is not None}


def prices_of(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, ListPrice]:
    """Model id -> its price, of rows without problems."""
    return {model: _price(row) for model, row in rows.items()}


def _price(row: Mapping[str, Any]) -> ListPrice:
    tiers = sorted(row.get(_LONG, []), key=lambda one: int(one[_ABOVE]))
    long = (LongPromptPrice(one[_ABOVE], *_values(one)) for one in tiers)
    return ListPrice(*_values(row), tuple(long))


def _values(row: Mapping[str, Any]) -> tuple[float, float, float | None]:
    return row["input"], row["output"], row.get("cached")


def price_problems(prices: object, models: object) -> list[Problem]:
    if not isinstance(prices, dict):
        return [Problem("prices", "must map each model to its price", "or leave it out")]
    known = models if isinstance(models, list) else []
    strange = [model for model in prices if model not in known]
    problems = [Problem(f"prices: {model}", "is not among the models") for model in strange]
    for model, price in prices.items():
        row = dict(price) if isinstance(price, dict) else {}
        tiers = row.pop(_LONG, [])
        if not (_is_row(row) and isinstance(tiers, list) and all(map(_is_tier, tiers))):
            remedy = "{input: 2.5, output: 10, cached: 1.25}, cached may be left out"
            if tiers:
                remedy += f"; {_LONG}: [{{{_ABOVE}: 200000, input: 5, output: 15}}]"
            message = f"must be USD per million tokens, all above 0 or all 0 (free), got {price!r}"
            problems.append(Problem(f"prices: {model}", message, remedy))
    return problems


def _is_row(row: Mapping[str, Any]) -> bool:
    needed = {"input", "output"} <= row.keys() <= set(_PRICES)
    free = all(value == 0 and not isinstance(value, bool) for value in row.values())
    return needed and (free or all(map(_above_zero, row.values())))


def _is_tier(tier: object) -> bool:
    row = dict(tier) if isinstance(tier, dict) else {}
    above = row.pop(_ABOVE, None)
    return isinstance(above, int) and _above_zero(above) and _is_row(row)


def _above_zero(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value < math.inf  # type: ignore[operator]
