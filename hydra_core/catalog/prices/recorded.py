"""Prices beside recorded costs: where tokens times price is far from what was paid, and why."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Final, Protocol

import numpy as np

from hydra_core.base.list_price import ListPrice
from hydra_core.base.types import FloatArray
from hydra_core.catalog.prices.quotes import PriceQuote

#: A factor that is mentioned, and one that has to be confirmed; in either direction.
_MENTIONED: Final = 1.5
_CONFIRMED: Final = 3.0
#: Beyond these USD per million tokens, input and output together, a recorded cost is no USD.
_LEAST_USD, _MOST_USD = 0.005, 700.0


class Recorded(Protocol):
    """An eval set or a draft of one: (n, m) costs and tokens."""

    @property
    def models(self) -> tuple[str, ...]:
        """Model ids, one a column."""

    @property
    def cost_usd(self) -> FloatArray:
        """(n, m) USD, NaN where not known."""

    @property
    def extras(self) -> Mapping[str, FloatArray]:
        """Tokens among others, (n, m) each."""


@dataclass(frozen=True, slots=True)
class CostGap:
    """One model whose price and recorded costs do not agree.

    Attributes:
        computed_usd: Mean of tokens times price, USD per query.
        reason: What it looks like, '' where it looks like nothing known.
    """

    model: str
    computed_usd: float
    recorded_usd: float
    reason: str = ""

    @property
    def factor(self) -> float:
        """How many times the larger is the smaller."""
        ratio = self.computed_usd / self.recorded_usd
        return max(ratio, 1 / ratio) if ratio else math.inf

    @property
    def must_be_confirmed(self) -> bool:
        """Whether it is too large to go on without somebody's word."""
        return self.factor >= _CONFIRMED

    def __str__(self) -> str:
        factor = f"a factor of {_factor(self.factor)}" if self.computed_usd else "the price is free"
        text = (
            f"{self.model}: the price times the recorded tokens gives "
            f"${_plain(self.computed_usd)} a query, ${_plain(self.recorded_usd)} was recorded "
            f"({factor})"
        )
        return f"{text}; {self.reason}" if self.reason else text


def cost_gaps(recorded: Recorded, prices: Mapping[str, ListPrice]) -> tuple[CostGap, ...]:
    """Models whose recorded costs differ from tokens times price by 1.5 or more, widest first."""
    gaps = []
    compared = 0
    for column, model in enumerate(recorded.models):
        pair = _means(recorded, column, prices[model]) if model in prices else None
        if pair is None:
            continue
        compared += 1
        gap = CostGap(model, *pair)
        if gap.factor >= _MENTIONED:
            gaps.append(gap)
    ratios = [gap.computed_usd / gap.recorded_usd for gap in gaps]
    alike = 1 < compared == len(gaps) and 0 < max(ratios) < 1.5 * min(ratios)
    explained = [
        replace(gap, reason=_reason(gap, recorded, prices[gap.model], alike=alike)) for gap in gaps
    ]
    return tuple(sorted(explained, key=lambda gap: -gap.factor))


def _means(recorded: Recorded, column: int, price: ListPrice) -> tuple[float, float] | None:
    """(computed, recorded) mean USD over the queries that have tokens and a cost."""
    extras = recorded.extras
    if "input_tokens" not in extras or "output_tokens" not in extras:
        return None
    read, written = (extras[f"{side}_tokens"][:, column] for side in ("input", "output"))
    cached = extras["cached_input_tokens"][:, column] if "cached_input_tokens" in extras else 0.0
    usd = price.usd(read, written, cached)
    paid = recorded.cost_usd[:, column]
    rows = np.isfinite(usd) & np.isfinite(paid) & (paid > 0)
    rows &= (usd > 0) | (price.blended(1.0) == 0)
    if not rows.any():
        return None
    return float(usd[rows].mean()), float(paid[rows].mean())


def _reason(gap: CostGap, recorded: Recorded, price: ListPrice, *, alike: bool) -> str:
    """What a gap looks like, by its size and by what the other models have."""
    ratio = gap.computed_usd / gap.recorded_usd
    if not ratio:
        return ""
    if alike and 1 / 150 < ratio < 1 / 60:
        return "the costs look like cents"
    if alike and 1 / 2_000 < ratio < 1 / 500:
        return "the costs look like thousandths of a USD, or the prices like ones per thousand"
    if 1 / 2_500 < ratio < 1 / 400:
        return "the price looks like one per thousand tokens; a price here is per million"
    if ratio < 1 / 400_000:
        return "the price looks like one per token; a price here is per million"
    cached = recorded.extras.get("cached_input_tokens")
    if ratio > 1 and cached is None:
        return "part of the input may have been cached, which the table does not say"
    warm = cached is not None and (cached[:, recorded.models.index(gap.model)] > 0).any()
    if ratio > 1 and warm and price.cached_input_usd_per_mtok is None:
        return "part of the input was cached, and the price of cached input is not given"
    return ""


def _plain(value: float) -> str:
    """Three significant digits without an exponent, fewer for a tiny one: 0.0249, 0.000006."""
    exact = Decimal(f"{value:.6g}")
    digits = 3 if value >= 1e-4 else 2
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    rounded = (
        exact.quantize(step, ROUND_HALF_UP) if exact.adjusted() < digits else exact.to_integral()
    )
    text = f"{rounded:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _factor(value: float) -> str:
    if value < 10:
        return f"{value:.1f}"
    digits = 10 ** (len(str(int(value))) - 2)
    return f"{round(value / digits) * digits:,}"


def implausible_costs(recorded: Recorded) -> tuple[str, ...]:
    """Models whose recorded cost per token is no price in USD that anybody asks; in words."""
    extras = recorded.extras
    if "input_tokens" not in extras or "output_tokens" not in extras:
        return ()
    tokens = extras["input_tokens"] + extras["output_tokens"]
    known = np.isfinite(tokens) & np.isfinite(recorded.cost_usd) & (recorded.cost_usd > 0)
    odd = []
    for column, model in enumerate(recorded.models):
        rows = known[:, column]
        total = float(tokens[rows, column].sum())
        if total:
            rate = 1e6 * float(recorded.cost_usd[rows, column].sum()) / total
            if not _LEAST_USD <= rate <= _MOST_USD:
                odd.append(f"{model} (${_plain(rate)})")
    if not odd:
        return ()
    return (
        f"the recorded costs per million tokens are no usual price: {', '.join(odd)}; check "
        "that costs are in USD a query",
    )


def tier_notes(recorded: Recorded, listed: Mapping[str, PriceQuote]) -> tuple[str, ...]:
    """Queries longer than what the lower price is asked for, by model, in words."""
    read = recorded.extras.get("input_tokens")
    notes = []
    for column, model in enumerate(recorded.models):
        tiers = listed[model].tiers if model in listed else ()
        if read is None or not tiers:
            continue
        beyond = int((read[:, column] > tiers[0].above_tokens).sum())
        if beyond:
            text = f"{beyond:,} queries of {model} cost the price of long requests"
            priced = all(tier.price is not None for tier in tiers)
            lacks = "" if priced else "; the list states no usable one, so they cost more than here"
            notes.append(f"{text} ({tiers[0]}){lacks}")
    return tuple(notes)
