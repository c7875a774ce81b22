"""Prices that a list asks beyond a number of input tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from hydra_core.catalog.prices.quotes import PriceTier, count, is_map, optional_price

_ABOVE: Final = re.compile(
    r"(?P<side>input_cost_per|output_cost_per|cache_read_input)_token(?:_cost)?_above_(?P<number>\d{1,7})k_tokens"
)
_SIDES: Final = {
    "input_cost_per": "input", "output_cost_per": "output", "cache_read_input": "cached"
}  # fmt: skip
_PER_TOKEN: Final = Decimal(1_000_000)
_MOST: Final = 8


def litellm_tiers(entry: Mapping[str, Any]) -> tuple[PriceTier, ...]:
    """The tiers of a LiteLLM entry: keys `..._above_200k_tokens`, or a list `tiered_pricing`."""
    sides: dict[int, dict[str, Any]] = {}
    for key, value in entry.items():
        match = _ABOVE.fullmatch(key)
        if match is not None:
            side = _SIDES[match["side"]]
            sides.setdefault(1000 * int(match["number"]), {})[side] = value
    for tier in _ranges(entry)[1:]:
        sides[tier["from"]] = {name: tier[name] for name in _SIDES.values()}
    base = entry.get("output_cost_per_token")
    return tuple(
        PriceTier(
            above,
            optional_price(prices.get("input"), _PER_TOKEN),
            optional_price(prices.get("output", base), _PER_TOKEN),
            optional_price(prices.get("cached"), _PER_TOKEN),
        )
        for above, prices in sorted(sides.items())[:_MOST]
    )


def base_prices(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """A LiteLLM entry with the prices of its lowest tier, where it has tiers alone."""
    ranges = _ranges(entry)
    if not ranges or "input_cost_per_token" in entry:
        return entry
    first = ranges[0]
    own = {"input_cost_per_token": first["input"], "output_cost_per_token": first["output"]}
    return {**entry, **own, "cache_read_input_token_cost": first["cached"]}


def _ranges(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The ranges of `tiered_pricing`, lowest first."""
    listed = entry.get("tiered_pricing")
    ranges = []
    for tier in listed[:_MOST] if isinstance(listed, list) else []:
        bounds = tier.get("range") if is_map(tier) else None
        if is_map(tier) and isinstance(bounds, list) and bounds:
            ranges.append(
                {
                    "from": count(bounds[0]) or 0,
                    "input": tier.get("input_cost_per_token"),
                    "output": tier.get("output_cost_per_token"),
                    "cached": tier.get("cache_read_input_token_cost"),
                }
            )
    return sorted(ranges, key=lambda tier: int(tier["from"]))


def models_dev_tiers(cost: Mapping[str, Any]) -> tuple[PriceTier, ...]:
    """The tier of a models.dev entry, which knows one above 200,000 tokens."""
    dearer = cost.get("context_over_200k")
    if not is_map(dearer):
        return ()
    prices = (
        optional_price(dearer.get(side), Decimal(1)) for side in ("input", "output", "cache_read")
    )
    return (PriceTier(200_000, *prices),)
