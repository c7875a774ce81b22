"""The operator's runtime settings: the nouns of a catalog's `policy` section."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hydra_core.selection import Chosen, Rule

__all__ = ["CostBasis", "Defences", "Policy", "StickyMode", "StickyPolicy"]


class CostBasis(StrEnum):
    """What orders the models by cost: the list price, or the mean realised cost of an eval set."""

    LIST_PRICE = "list_price"
    REALISED = "realised"

    @property
    def unit(self) -> str:
        """Unit of the cost that orders the models."""
        return "USD / Mtok" if self is CostBasis.LIST_PRICE else "USD / query"


class StickyMode(StrEnum):
    """How a conversation keeps its model (paper section "Prompt-cache-preserving routing").

    Adaptive is ours (the paper's future work): every turn is scored, and the model is kept until it
    falls short by more than tau and a margin, or another is worth more than the lost prompt cache.
    """

    PER_REQUEST = "per_request"
    PER_CONTENT = "per_content"
    PER_SESSION = "per_session"
    ADAPTIVE = "adaptive"


@dataclass(frozen=True, slots=True)
class StickyPolicy:
    """Conversation stickiness.

    Attributes:
        threshold: gamma in [0, 1]: a turn that requires less keeps its model.
        ttl_s: How long a model is remembered, in seconds.
        margin: How far beyond tau the kept model may fall short (adaptive, shortfall rule), >= 0;
            the value rule weighs the lost prompt cache instead.
    """

    mode: StickyMode = StickyMode.PER_SESSION
    threshold: float = 0.0
    ttl_s: float = 3600.0
    margin: float = 0.05


@dataclass(frozen=True, slots=True)
class Defences:
    """What holds where a predictor is fooled, or a conversation runs away.

    Attributes:
        score_caps: Dimension -> the largest score in [0, 1] that counts under the shortfall rule.
        budget_usd: What a conversation may spend before only the cheapest model is left, USD;
            None for no limit.
    """

    score_caps: Mapping[str, float] = field(default_factory=dict)
    budget_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """The operator's runtime settings.

    Attributes:
        tau: Largest acceptable weighted shortfall, >= 0.
        weights: Stored weights w_k > 0 (not yet band-compensated), catalog dimension order.
        cost_basis: What orders the models by cost.
        price_ratio: Input tokens per output token for the blended list price (3 means 3:1).
        sticky: Conversation stickiness.
        health_floor: Models with health below it are vetoed, in [0, 1].
        rule: Which rule decides.
        value_usd: V of the value rule, what one more resolved query is worth, USD > 0; None where
            that rule was never set up.
        defences: Those that are switched on.
        chosen_on: The eval sets it was chosen on, as far as anybody recorded that.
    """

    tau: float
    weights: tuple[float, ...]
    cost_basis: CostBasis = CostBasis.LIST_PRICE
    price_ratio: float = 3.0
    sticky: StickyPolicy = field(default_factory=StickyPolicy)
    health_floor: float = 0.10
    rule: Rule = Rule.SHORTFALL
    value_usd: float | None = None
    defences: Defences = field(default_factory=Defences)
    chosen_on: tuple[Chosen, ...] = ()

    @property
    def knob(self) -> float:
        """What the operator turns under the policy's rule: tau, or V in USD."""
        by_value = self.rule is Rule.VALUE and self.value_usd is not None
        return float(self.value_usd or 0.0) if by_value else self.tau
