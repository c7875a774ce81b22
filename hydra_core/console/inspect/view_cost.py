"""What one message costs on each model: one estimate, which every panel of Inspect shows.

No streamlit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hydra_core.base.types import Catalog, ModelSpec
from hydra_core.routing.conversations.economics import TurnTokens, billed_usd
from hydra_core.routing.valuation import Valuation


@dataclass(frozen=True, slots=True)
class Answers:
    """Tokens of a mean answer by model, of one eval set; empty where no set here has tokens."""

    tokens: Mapping[str, float]
    evalset: str = ""

    def of(self, model: str) -> float:
        """A model's mean, else the mean of the other models, else 0."""
        others = list(self.tokens.values())
        return self.tokens.get(model, float(np.mean(others)) if others else 0.0)

    @property
    def basis(self) -> str:
        """Where the tokens come from, to end a sentence with."""
        if not self.tokens:
            return "without the answer: no eval set here has the tokens of answers"
        return f"with each model's mean answer in {self.evalset}"


@dataclass(frozen=True, slots=True)
class MessageCosts:
    """One message on every model.

    Attributes:
        usd: Model id -> USD.
        basis: Where the tokens come from, in one sentence.
    """

    usd: Mapping[str, float]
    basis: str


def predicted_costs(catalog: Catalog, valuation: Valuation, further: int) -> MessageCosts:
    """As the catalog predicts, which is what the value rule weighs.

    Args:
        further: Tokens of an image and of earlier context, which no prediction counts.
    """
    valuer = valuation.valuer
    usd = {
        name: cost + further * catalog.model(name).input_usd_per_mtok / 1e6
        for name, cost in zip(valuer.ids, valuation.cost_usd.tolist(), strict=True)
    }
    basis = (
        f"Cost of this message: tokens predicted by the {valuer.source.words}, at the catalog's "
        "prices."
        if valuer.priced
        else f"Cost of this message: predicted by the {valuer.source.words} from the costs of "
        f"{valuer.evalset}."
    )
    return MessageCosts(usd, basis + (f" Plus {further:,} further tokens read." * (further > 0)))


def counted_costs(catalog: Catalog, tokens: int, further: int, answers: Answers) -> MessageCosts:
    """The message's own tokens, and a mean answer, at the catalog's prices."""

    def cost(model: ModelSpec) -> float:
        return billed_usd(model, TurnTokens(0, tokens + further, round(answers.of(model.id))))

    basis = (
        f"Cost of this message: {tokens + further:,} tokens read, counted with the predictor's "
        f"tokenizer, {answers.basis}."
    )
    return MessageCosts({model.id: cost(model) for model in catalog.models}, basis)
