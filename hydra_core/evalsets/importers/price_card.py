"""Costs where none were recorded: list prices the operator gives, times tokens.

Prices are never guessed: a model without one is a problem. Tokens are the recorded ones where
there are any; else they follow from the length of the text (UTF-8 bytes / 4, which suits English
prose and is within about a third for code and other scripts); where not even the answer's text is
known, the operator says how many tokens an answer of that model has on average. Every cost made
this way marks its eval set as estimated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.types import ListPrice

#: UTF-8 bytes that are counted as one token where no token count was recorded.
BYTES_PER_TOKEN = 4.0


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """List price of one model in USD per million tokens; `answer_tokens` where nobody counted."""

    input_usd_per_mtok: float
    output_usd_per_mtok: float
    answer_tokens: float | None = None

    @property
    def price(self) -> ListPrice:
        """The list price alone."""
        return ListPrice(self.input_usd_per_mtok, self.output_usd_per_mtok)

    def cost_usd(self, input_tokens: float, output_tokens: float) -> float:
        """USD of one query."""
        total = self.input_usd_per_mtok * input_tokens + self.output_usd_per_mtok * output_tokens
        return total / 1e6


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

    def notes(self, models: Sequence[str], tokens: str) -> str:
        """How the costs were made, for the eval set's manifest."""
        listed = [
            f"{model} {price.input_usd_per_mtok:g}/{price.output_usd_per_mtok:g}"
            + (f" ({price.answer_tokens:g} tokens an answer)" if price.answer_tokens else "")
            for model, price in ((m, self.prices[m]) for m in models if m in self.prices)
        ]
        return f"Estimated: {tokens} times USD per Mtok in/out: {', '.join(listed)}"


def text_tokens(text: str) -> float:
    """Tokens of a text, estimated from its length."""
    return len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN


def parse_prices(texts: Sequence[str]) -> PriceCard:
    """A card from `ID=INPUT,OUTPUT` or `ID=INPUT,OUTPUT,ANSWER_TOKENS`, one text per model.

    Raises:
        EvalSetError: With every text that is none.
    """
    problems: list[Problem] = []
    prices: dict[str, ModelPrice] = {}
    for text in texts:
        model, _, numbers = text.rpartition("=")
        try:
            values = [float(part) for part in numbers.split(",")]
        except ValueError:
            values = []
        if not model or len(values) not in (2, 3):
            problems.append(Problem(repr(text), "is not ID=INPUT,OUTPUT[,ANSWER_TOKENS]"))
        elif not all(math.isfinite(value) and value >= 0 for value in values):
            problems.append(Problem(repr(text), "holds a number that is not >= 0"))
        elif model in prices:
            problems.append(Problem(repr(text), f"names {model} twice"))
        else:
            prices[model] = ModelPrice(*values)
    if problems:
        raise EvalSetError("--price", problems)
    return PriceCard(prices)
