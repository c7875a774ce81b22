"""Costs where none were recorded: list prices the operator gives, times tokens.

Prices are never guessed: a model without one is a problem. Tokens are the recorded ones where
there are any; else they follow from the length of the text (`base/tokens.py`); where not even the
answer's text is known, the operator says how many tokens an answer of that model has on average.
Every cost made this way marks its eval set as estimated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.list_price import ListPrice
from hydra_core.catalog.prices.quotes import price_number


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """List price of one model; the mean tokens of an answer where nobody counted them."""

    price: ListPrice
    answer_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class PriceCard:
    """Prices by model id."""

    prices: Mapping[str, ModelPrice] = field(default_factory=dict)

    def problems(self, models: Sequence[str], *, need_answers: bool = False) -> list[Problem]:
        """What is missing to estimate the cost of these models."""
        found = []
        for model in models:
            price = self.prices.get(model)
            if price is None:
                remedy = f"give --price {model}=INPUT,OUTPUT in USD per million tokens"
                found.append(Problem(model, "no cost was recorded and it has no price", remedy))
            elif need_answers and price.answer_tokens is None:
                remedy = f"give --price {model}=INPUT,OUTPUT,TOKENS with the mean length of answers"
                found.append(Problem(model, "its answers' tokens were not recorded", remedy))
        return found

    def require_used(self, models: Sequence[str]) -> None:
        """Make sure that every price is that of one of these models.

        Raises:
            EvalSetError: Some are not.
        """
        there = f"models: {', '.join(models[:20])}"
        strange = [model for model in self.prices if model not in models]
        unused = [Problem(model, "is no model of these files", there) for model in strange]
        if unused:
            raise EvalSetError("--price", unused)

    def notes(self, models: Sequence[str], tokens: str) -> str:
        """How the costs were made, for the eval set's manifest."""
        listed = []
        for model in (m for m in models if m in self.prices):
            price, answer = self.prices[model].price, self.prices[model].answer_tokens
            more = f" ({answer:g} tokens an answer)" if answer else ""
            usd = f"{price.input_usd_per_mtok:g}/{price.output_usd_per_mtok:g}"
            listed.append(f"{model} {usd}{more}")
        return f"Estimated: {tokens} times USD per Mtok in/out: {', '.join(listed)}"


def parse_prices(texts: Sequence[str]) -> PriceCard:
    """A card from texts `ID=INPUT,OUTPUT`, with `,ANSWER_TOKENS` or `,cached=PRICE` behind it.

    Raises:
        EvalSetError: With every text that is none.
    """
    problems: list[Problem] = []
    prices: dict[str, ModelPrice] = {}
    for text in texts:
        stated, _, cached = text.partition(",cached=")
        model, _, numbers = stated.rpartition("=")
        read = [price_number(part) for part in numbers.split(",")]
        values = [] if None in read else [float(value) for value in read if value is not None]
        per_cached = price_number(cached) if cached else None
        if cached and per_cached is None:
            values = []
        cached_price = None if per_cached is None else float(per_cached)
        if not model or len(values) not in (2, 3):
            form = "ID=INPUT,OUTPUT[,ANSWER_TOKENS][,cached=PRICE]"
            problems.append(Problem(repr(text), f"is not {form}"))
        elif any(value < 0 for value in (*values, cached_price or 0.0)):
            problems.append(Problem(repr(text), "holds a number that is not >= 0"))
        elif model in prices:
            problems.append(Problem(repr(text), f"names {model} twice"))
        else:
            tokens = values[2] if len(values) == 3 else None
            prices[model] = ModelPrice(ListPrice(values[0], values[1], cached_price), tokens)
    if problems:
        raise EvalSetError("--price", problems)
    return PriceCard(prices)
