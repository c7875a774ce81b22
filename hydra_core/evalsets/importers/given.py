"""What an operator gives beside the files of an import: models, prices, which score counts.

Where no costs were recorded they are list prices times tokens. Prices are never guessed: a model
without one is a problem. Tokens are the recorded ones where
there are any; else they follow from the length of the text (`base/tokens.py`); where not even the
answer's text is known, the operator says how many tokens an answer of that model has on average.
Every cost made this way marks its eval set as estimated.
"""

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Final

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.list_price import FREE, ListPrice
from hydra_core.catalog.identifiers import proposed_ids
from hydra_core.catalog.prices.quotes import ABOVE_ZERO, FREE_WORD, LEAST_PRICE, price_number
from hydra_core.evalsets.importers.reading.bounded import TableFile
from hydra_core.evalsets.rules import model_id_problem


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """List price of one model; the mean tokens of an answer where nobody counted them."""

    price: ListPrice
    answer_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class PriceCard:
    prices: Mapping[str, ModelPrice] = field(default_factory=dict)

    def problems(self, models: Sequence[str], *, need_answers: bool = False) -> list[Problem]:
        """What is missing to estimate the cost of these models."""
        found = []
        for model in models:
            price = self.prices.get(model)
            if price is None:
                remedy = f"give --price {model}=INPUT,OUTPUT in USD per million tokens"
                found.append(Problem(model, "no cost was recorded and it has no price", remedy))
            elif need_answers and price.answer_tokens is None and price.price != FREE:
                remedy = f"give --price {model}=INPUT,OUTPUT,TOKENS with the mean length of answers"
                found.append(Problem(model, "its answers' tokens were not recorded", remedy))
        return found

    def require_used(self, models: Sequence[str]) -> None:
        """Make sure that every price is that of one of these models, or raise EvalSetError."""
        there = f"models: {', '.join(models[:20])}"
        strange = [model for model in self.prices if model not in models]
        unused = [Problem(model, "is no model of these files", there) for model in strange]
        EvalSetError.raise_any("--price", unused)

    def notes(self, models: Sequence[str], tokens: str) -> str:
        """How the costs were made, for the eval set's manifest."""
        listed = []
        for model in (m for m in models if m in self.prices):
            price, answer = self.prices[model].price, self.prices[model].answer_tokens
            more = f" ({answer:g} tokens an answer)" if answer else ""
            usd = f"{price.input_usd_per_mtok:g}/{price.output_usd_per_mtok:g}"
            listed.append(f"{model} {usd}{more}")
        return f"Estimated: {tokens} times USD per Mtok in/out: {', '.join(listed)}"


def _faults(place: str, prices: Sequence[float], *, free: bool = False) -> list[Problem]:
    """What keeps a model's prices from being USD per million tokens.

    Args:
        free: Whether somebody says that the model costs nothing.
    """
    if min(prices) <= 0 and not (free and not any(prices)):
        return [Problem(place, "holds a price that is not above 0", ABOVE_ZERO)]
    small = [price for price in prices if 0 < price < LEAST_PRICE]
    return [
        Problem(place, f"{price:g} looks like a price per token",
                f"per million tokens it would be {1e6 * price:g}")
        for price in small
    ]  # fmt: skip


def price_card(
    prices: Mapping[str, tuple[float, float]], answers: Mapping[str, float], free: Collection[str]
) -> PriceCard:
    """A card of (input, output) by model.

    Args:
        answers: Model -> tokens of an answer, where they are given.
        free: Models of which somebody says that they cost nothing.

    Raises:
        EvalSetError: With every price that is none.
    """
    faults = [_faults(model, pair, free=model in free) for model, pair in prices.items()]
    EvalSetError.raise_any("prices", [fault for found in faults for fault in found])
    return PriceCard({
        model: ModelPrice(ListPrice(*pair), answers.get(model)) for model, pair in prices.items()
    })  # fmt: skip


def parse_prices(texts: Sequence[str]) -> PriceCard:
    """A card from texts ID=free or ID=INPUT,OUTPUT, with ANSWER_TOKENS or cached=PRICE behind it.

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
        if model and numbers.strip().lower() == FREE_WORD and not cached and model not in prices:
            prices[model] = ModelPrice(FREE)
        elif not model or len(values) not in (2, 3):
            form = "ID=INPUT,OUTPUT[,ANSWER_TOKENS][,cached=PRICE] or ID=free"
            problems.append(Problem(repr(text), f"is not {form}"))
        elif faults := _faults(
            repr(text), [*values[:2], *([] if cached_price is None else [cached_price])]
        ):
            problems += faults
        elif min(values) < 0:
            problems.append(Problem(repr(text), "holds a number of tokens below 0"))
        elif model in prices:
            problems.append(Problem(repr(text), f"names {model} twice"))
        else:
            tokens = values[2] if len(values) == 3 else None
            prices[model] = ModelPrice(ListPrice(values[0], values[1], cached_price), tokens)
    EvalSetError.raise_any("--price", problems)
    return PriceCard(prices)


class AskNames(dict[str, str]):
    """Instead of a choice of models: an import stops with `NamesKnown` once names are read."""


class NamesKnown(Exception):  # noqa: N818 (an answer, not a fault)
    """The names of models that the files hold; nothing was imported.

    Attributes:
        names: As the files name them.
        scores: The scores that may be the quality, where one has to be chosen.
        labels: Label -> how often it stands as feedback; each needs a worth.
    """

    def __init__(
        self,
        names: Sequence[str],
        scores: Sequence[str] = (),
        labels: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(f"the files name {len(names)} models")
        self.names, self.scores, self.labels = tuple(names), tuple(scores), dict(labels or {})


@dataclass(frozen=True, slots=True)
class Given:
    """What an operator gave beside the files.

    Attributes:
        more: The files that belong to them (see `Format.more`).
        models: Model id -> the name in the files; empty takes every one under its own name.
        prices: For what has no cost of its own.
        score: Which feedback is the quality, '' for the only one.
        scale: The quality that means 1.
        labels: Label -> quality, where feedback is given in words.
        text_path: Where the message stands in a harness's row, '' for its usual place.
    """

    more: Sequence[TableFile] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    prices: PriceCard = field(default_factory=PriceCard)
    score: str = ""
    scale: float = 1.0
    labels: Mapping[str, float] = field(default_factory=dict)
    text_path: str = ""

    @property
    def asks(self) -> bool:
        """Whether it only asks for the names of the models."""
        return isinstance(self.models, AskNames)

    def chosen_models(self, known: Sequence[str]) -> tuple[dict[str, str], list[Problem]]:
        """Upstream name -> model id for the models to import, and what is wrong with the choice.

        Raises:
            NamesKnown: It only asks which there are.
        """
        if self.asks:
            raise NamesKnown(known)
        wanted = dict(self.models) or {name: name for name in known}
        problems = []
        for model, name in wanted.items():
            bad = model_id_problem(model, f"--model {model[:40]}")
            if bad is not None and not self.models:
                flag = quote(f"{proposed_ids([name])[name]}={name}")
                bad = replace(bad, remedy=f"name it yourself, such as --model {flag}")
            problems += [bad] if bad is not None else []
            if name not in known:
                near = difflib.get_close_matches(name, known, n=3, cutoff=0.3) or list(known)[:5]
                remedy = f"models like it: {', '.join(near)}"
                problems.append(Problem(f"{model}={name}", "there is no such model", remedy))
        names = list(wanted.values())
        twice = sorted({name for name in names if names.count(name) > 1})
        problems += [Problem(name, "stands for several models", "name it once") for name in twice]
        return {name: model for model, name in wanted.items()}, problems


#: Every model under its own name, and the one score there is.
NOTHING: Final = Given()
