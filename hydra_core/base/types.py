"""The frozen nouns shared by every layer (words as in the paper)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hydra_core.base.fitted_blocks import Promised, SuccessBlock
from hydra_core.base.list_price import ListPrice, LongPromptPrice


class Rule(StrEnum):
    """What decides a route: profiles against requirements, or predicted success against cost."""

    SHORTFALL = "shortfall"
    VALUE = "value"


class SuccessSource(StrEnum):
    """Where the value rule takes predicted success and cost from."""

    OUTCOME_MODEL = "outcome_model"
    SUCCESS_PROFILES = "success_profiles"

    @property
    def words(self) -> str:
        """As a sentence says it."""
        return self.value.replace("_", " ")


class Selection(StrEnum):
    """How the point that is judged came about; only the first two may use a pointwise interval."""

    FIXED = "fixed"
    CROSS_FITTED = "cross_fitted"
    LOOKED = "looked"


@dataclass(frozen=True, slots=True)
class Chosen:
    """On which queries a policy was chosen, and how.

    Attributes:
        queries: Digest of the queries (`EvalSet.queries_digest`): the same for the same queries
            under another name, with other models, prices or clusters.
        evalset: Name that the set had.
        how: Seen with its outcomes (looked), or chosen on one part and measured on another.
        knob_alone: Whether tau (or V) is all that was chosen there, not weights, profiles or pool.
        sample: Marks of some of the queries (`sameness.sample_of`), so that a renamed list or a
            part of it is known again; empty in a catalog from before there were marks.
    """

    queries: str
    evalset: str
    how: Selection
    knob_alone: bool
    sample: tuple[str, ...] = ()


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


#: A stall is not raised more often than this, and V not beyond any price.
_MOST_STEPS: Final = 20
_MOST_USD: Final = 1e12


@dataclass(frozen=True, slots=True)
class Stall:
    """What an agent's stall raises: tools that fail in a row, or the same call made again.

    Attributes:
        after: So many in a row are a stall; twice as many raise twice, and so on.
        requirement_step: Added to every requirement under the shortfall rule, in (0, 1].
        value_factor: V is multiplied by it under the value rule, > 1.
    """

    after: int
    requirement_step: float = 0.1
    value_factor: float = 4.0

    def steps(self, stalled: int) -> int:
        """How often the requirement is raised."""
        return min(stalled // self.after, _MOST_STEPS)

    def worth(self, value_usd: float, steps: int) -> float:
        """V in USD once it was raised so often."""
        return min(value_usd * self.value_factor**steps, _MOST_USD)


class Period(StrEnum):
    """For how long a budget is, in UTC."""

    DAY = "day"
    MONTH = "month"


class WhenSpent(StrEnum):
    """What happens once a budget is used up: error 429, or the cheapest model goes on."""

    REFUSE = "refuse"
    CHEAPEST = "cheapest"


@dataclass(frozen=True, slots=True)
class TeamBudget:
    """What a team may spend, and how routes get cheaper on the way there.

    Attributes:
        usd: For one period.
        falls_from: Share of the budget from which V falls (or tau grows), in [0, 1).
        cheapest_from: Share from which only the cheapest eligible model is left, above it.
        least: V is multiplied by this (tau divided) at `cheapest_from`, and in between on a
            straight line from 1, in (0, 1].
        when_spent: At 100 %.
    """

    usd: float
    per: Period = Period.MONTH
    falls_from: float = 0.5
    cheapest_from: float = 0.9
    least: float = 0.1
    when_spent: WhenSpent = WhenSpent.REFUSE

    def factor(self, used: float) -> float:
        """What V is multiplied by (tau divided) once this share of the budget is used."""
        way = (used - self.falls_from) / (self.cheapest_from - self.falls_from)
        return 1.0 - (1.0 - self.least) * min(max(way, 0.0), 1.0)

    def knob(self, rule: Rule, knob: float, used: float) -> float:
        """tau or V once this share of the budget is used."""
        factor = self.factor(used)
        return knob * factor if rule is Rule.VALUE else knob / factor


@dataclass(frozen=True, slots=True)
class Team:
    """What holds for the requests of one team.

    Attributes:
        models: The only models for them, None for all.
        tau, value_usd: Instead of the policy's own, None for those.
        budget: None for no limit.
    """

    models: frozenset[str] | None = None
    tau: float | None = None
    value_usd: float | None = None
    budget: TeamBudget | None = None

    def knob(self, policy: Policy) -> float:
        """tau, or V in USD, before any of the budget is used."""
        own = self.value_usd if policy.rule is Rule.VALUE else self.tau
        return policy.knob if own is None else own


@dataclass(frozen=True, slots=True)
class Policy:
    """The operator's runtime settings.

    Attributes:
        tau: Largest acceptable weighted shortfall, >= 0.
        weights: Stored weights w_k > 0 (not yet band-compensated), catalog dimension order.
        cost_basis: What orders the models by cost.
        price_ratio: Input tokens per output token for the blended list price (3 means 3:1).
        health_floor: Models with health below it are vetoed, in [0, 1].
        value_usd: V of the value rule, what one more resolved query is worth, USD > 0; None where
            that rule was never set up.
        success_from: What the value rule predicts with; None where the catalog holds one of the
            two at most.
        chosen_on: The eval sets it was chosen on, as far as anybody recorded that.
        stall: None for nothing.
        require: Tags that a model must have to be routed to.
        teams: Team -> what holds for its requests.
        second_usd: What a second of waiting costs beside V (value rule), USD >= 0.
    """

    tau: float
    weights: tuple[float, ...]
    cost_basis: CostBasis = CostBasis.LIST_PRICE
    price_ratio: float = 3.0
    sticky: StickyPolicy = field(default_factory=StickyPolicy)
    health_floor: float = 0.10
    rule: Rule = Rule.SHORTFALL
    value_usd: float | None = None
    success_from: SuccessSource | None = None
    defences: Defences = field(default_factory=Defences)
    chosen_on: tuple[Chosen, ...] = ()
    stall: Stall | None = None
    require: frozenset[str] = frozenset()
    promise: Promised | None = None
    teams: Mapping[str, Team] = field(default_factory=dict)
    second_usd: float = 0.0

    @property
    def knob(self) -> float:
        """What the operator turns under the policy's rule: tau, or V in USD."""
        by_value = self.rule is Rule.VALUE and self.value_usd is not None
        return float(self.value_usd or 0.0) if by_value else self.tau


FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.intp]
#: Pool indices of many routes: intp, or unsigned bytes where there are many.
ChoiceArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]
#: Told how far long work is: (done, total).
Progress = Callable[[int, int], None]

#: The paper's four dimensions, those of the shipped predictor and of what training makes. K is
#: data, not code: a catalog may have others.
DIMENSIONS = ("reasoning", "code_generation", "debugging", "tool_use")
#: A last dimension that no predictor scores: every query requires it in full.
LEVEL_DIMENSION = "level"


class Ability(StrEnum):
    """What a request may need beside vision and tools; a catalog says which a model lacks."""

    STRUCTURED_OUTPUT = "structured_output"
    PARALLEL_TOOLS = "parallel_tools"
    PDF = "pdf"
    AUDIO = "audio"


class ModelStatus(StrEnum):
    """Lifecycle of a model in the pool; only `active` and `retiring` (before its date) route."""

    ACTIVE = "active"
    DISABLED = "disabled"
    RETIRING = "retiring"
    RETIRED = "retired"

    @property
    def in_pool(self) -> bool:
        """Active, or retiring: whether its day has come is looked at when a pool is made."""
        return self in (ModelStatus.ACTIVE, ModelStatus.RETIRING)


@dataclass(frozen=True, slots=True)
class Band:
    """The predictor's empirical score band of one dimension, both ends in [0, 1], lo < hi."""

    lo: float
    hi: float

    @property
    def width(self) -> float:
        """hi - lo (the paper's Delta_k)."""
        return self.hi - self.lo


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark or subgroup of the evidence, the key `id` in a model's `scores`.

    Attributes:
        importance: alpha_b >= 0.
        weights: omega_{b,k} in [0, 1] in the catalog's dimension order; 0 = not exercised.
    """

    id: str
    importance: float
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model of the pool. Prices are USD per million tokens.

    Attributes:
        scores: Benchmark id -> resolution rate in [0, 1].
        overrides: Capabilities set by hand, dimension -> value in [0, 1]; a dimension not named
            is derived from `scores`. Empty means all derived.
        variant_of: The model that this one is with another effort; '' for a model of its own.
        shares_prompt_cache: Whether the provider reads the prompt cache of `variant_of` for it.
        tags: What holds for it, such as `eu` or `zdr`: requests and policies may require tags.
        lacks: What it cannot do; it gets no request that needs it.
        long_prompts: Prices of long requests, the shortest first.
        latency_s, ttft_s: Mean seconds to the end of an answer and to its first piece; None where
            nobody measured them.
    """

    id: str
    provider: str
    status: ModelStatus
    input_usd_per_mtok: float
    output_usd_per_mtok: float
    context_window: int
    vision: bool
    tools: bool
    scores: Mapping[str, float]
    overrides: Mapping[str, float]
    price_source: str
    price_date: date
    cached_input_usd_per_mtok: float | None = None
    retire_on: date | None = None
    notes: str = ""
    variant_of: str = ""
    shares_prompt_cache: bool = False

    @property
    def base(self) -> str:
        """The model that its variants are shown with: itself, or what it is a variant of."""
        return self.variant_of or self.id

    @property
    def cache_key(self) -> str:
        """Models with the same key read one prompt cache."""
        return self.variant_of if self.shares_prompt_cache else self.id

    tags: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    long_prompts: tuple[LongPromptPrice, ...] = ()
    latency_s: float | None = None
    ttft_s: float | None = None

    @property
    def price(self) -> ListPrice:
        """Its list price."""
        return ListPrice(
            self.input_usd_per_mtok,
            self.output_usd_per_mtok,
            self.cached_input_usd_per_mtok,
            self.long_prompts,
        )


@dataclass(frozen=True, slots=True)
class RealisedCosts:
    """What the models really cost, for the cost basis `realised`.

    Attributes:
        evalset: Name of the eval set that they were measured on; `digest` is its SHA-256 (hex).
        usd_per_query: Model id -> mean realised cost, USD per query, >= 0.
    """

    evalset: str
    digest: str
    usd_per_query: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class OutcomeModelRef:
    """Which outcome model a catalog means.

    Attributes:
        path: Its folder, absolute or relative to the catalog's folder or the workspace.
        sha256: Of its manifest (hex): a model learned anew is another one.
    """

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Catalog:
    """A validated catalog: evidence, models and policy, bound to one predictor bundle's bands.

    Attributes:
        predictor_fingerprint: Of the bundle whose score bands these are.
        bands: One per dimension, catalog dimension order.
        digest: SHA-256 (hex) of the YAML text it came from.
        source: File name or label for messages.
        realised_costs: Measured costs that order the models under the basis `realised`; None
            where they must come from an eval set.
        outcome_model, success_profiles: What the value rule may predict with.
        folder: Where its file lies, '' for a text without one.
    """

    name: str
    dimensions: tuple[str, ...]
    predictor: str
    predictor_fingerprint: str
    bands: tuple[Band, ...]
    policy: Policy
    benchmarks: tuple[Benchmark, ...]
    models: tuple[ModelSpec, ...]
    digest: str = ""
    source: str = ""
    notes: str = ""
    realised_costs: RealisedCosts | None = None
    outcome_model: OutcomeModelRef | None = None
    success_profiles: SuccessBlock | None = None
    folder: str = ""

    @property
    def success_source(self) -> SuccessSource | None:
        """What the value rule predicts with; None where it has nothing."""
        if self.outcome_model is not None and self.success_profiles is not None:
            return self.policy.success_from
        if self.outcome_model is not None:
            return SuccessSource.OUTCOME_MODEL
        return None if self.success_profiles is None else SuccessSource.SUCCESS_PROFILES

    def model(self, model_id: str) -> ModelSpec:
        """The model with this id.

        Raises:
            KeyError: No such model.
        """
        for spec in self.models:
            if spec.id == model_id:
                return spec
        raise KeyError(model_id)


@dataclass(frozen=True, slots=True)
class Pool:
    """What the matcher needs of a catalog: the routable models as arrays, catalog order.

    Attributes:
        ids: (m,) model ids.
        capabilities: (m, K) in [0, 1], read-only.
        cost: (m,) what orders the models: blended list price (USD per million tokens) or mean
            realised cost (USD per query), read-only.
        weights: (K,) band-compensated weights w~ (Eq. 4), read-only.
        caps: (K,) the largest scores that count, None for no caps.
        level: Whether the last dimension is `LEVEL_DIMENSION`.
        variants: Model id -> the model that it is a variant of.
    """

    ids: tuple[str, ...]
    capabilities: FloatArray
    cost: FloatArray
    weights: FloatArray
    caps: FloatArray | None = None
    level: bool = False
    variants: Mapping[str, str] = field(default_factory=dict)

    def capped(self, requirements: FloatArray) -> FloatArray:
        """(..., K) scores as they count: at most the caps, and 1 on a level that nothing scores."""
        if self.level and requirements.shape[-1] == self.weights.size - 1:
            full = np.ones((*requirements.shape[:-1], 1))
            requirements = np.concatenate([requirements, full], axis=-1)
        if self.caps is None:
            return requirements
        return np.minimum(requirements, self.caps)
