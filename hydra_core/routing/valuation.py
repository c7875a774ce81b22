"""What a decision under the value rule rests on: predicted success and cost, V, and why."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hydra_core.base.errors import RoutingError
from hydra_core.base.intervals import normal_quantile
from hydra_core.base.list_price import long_prices
from hydra_core.base.spelling import signed, usd
from hydra_core.base.types import Catalog, Float32Array, FloatArray, Pool, Rule, SuccessSource
from hydra_core.outcome_model.format import catalog_outcome_model
from hydra_core.outcome_model.heads import Messages, Predicted
from hydra_core.outcome_model.model import OutcomeModel, PoolHeads
from hydra_core.outcome_model.success_profiles import SuccessProfiles, catalog_success_profiles
from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.predictor.signals import surface_counts

_NEIGHBOURS = 5
_NO_COLUMNS = np.empty(0, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A query learned on that is like this one, and what the pool's models achieved on it.

    Attributes:
        likeness: Cosine similarity of features, at most 1.
        outcomes: Model id -> quality in [0, 1]; a model without an outcome there is not in it.
    """

    query_id: str
    likeness: float
    outcomes: dict[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Valuation:
    """Predictions for one message, in the order of the pool.

    Attributes:
        value_usd: V, what one more resolved query is worth, USD.
        success: (m,) predicted success in [0, 1].
        cost_usd: (m,) predicted cost of this query, USD.
        columns: (p,) what was read of the message, standardised; empty where only the
            predictions are known.
        seconds: (m,) expected time of an answer; None where a second has no price.
    """

    valuer: Valuer
    value_usd: float
    success: FloatArray
    cost_usd: FloatArray
    columns: Float32Array
    seconds: FloatArray | None = None
    second_usd: float = 0.0

    @property
    def weighed_usd(self) -> FloatArray:
        """(m,) what is weighed against success: cost, and time at its price."""
        if self.seconds is None:
            return self.cost_usd
        return self.cost_usd + self.second_usd * self.seconds

    @property
    def net(self) -> FloatArray:
        """(m,) success - cost / V, time at its price in the cost: the largest is chosen."""
        return self.success - self.weighed_usd / self.value_usd

    def range_of(self, i: int) -> tuple[float, float] | None:
        """95 % interval of what similar predictions came to, widened to hold the prediction itself.

        None for a placed model, and under success profiles: a catalog holds no such record.
        """
        model = self.valuer.outcome_model
        name = self.valuer.ids[i]
        if model is None or name not in model.models:
            return None
        n, said, achieved = model.reliability[model.models.index(name)].T
        near = int(np.abs(np.where(n > 0, said, np.inf) - self.success[i]).argmin())
        if not n[near]:
            return None
        spread = max(achieved[near] * (1 - achieved[near]), 0.01)
        half = normal_quantile() * np.sqrt(spread / n[near])
        here = float(self.success[i])
        middle = achieved[near] + (here - said[near])
        low, high = np.clip([middle - half, middle + half], 0, 1)
        return min(float(low), here), max(float(high), here)

    def neighbours(self, count: int = _NEIGHBOURS) -> tuple[Neighbour, ...]:
        """The learned queries most like this one; none under success profiles.

        Raises:
            OutcomeModelError: The record of what was learned on is damaged.
        """
        model = self.valuer.outcome_model
        if model is None:
            return ()
        learned = model.learned
        rows, likeness = learned.nearest(self.columns, count)
        found = []
        for row, like in zip(rows.tolist(), likeness.tolist(), strict=True):
            known = zip(model.models, learned.quality[row].tolist(), strict=True)
            outcomes = {n: q for n, q in known if n in self.valuer.ids and not np.isnan(q)}
            found.append(Neighbour(str(learned.query_ids[row]), like, outcomes))
        return tuple(found)

    def why_not(self, i: int, chosen: int) -> str:
        """One sentence on a model that was not chosen."""
        gain = self.success[i] - self.success[chosen]
        extra = self.weighed_usd[i] - self.weighed_usd[chosen]
        points = f"{signed(100 * gain, 0)} pp"
        if gain <= 0 <= extra:
            return f"{points}, and no cheaper: {usd(extra)} more."
        price, worth = usd(extra / gain), usd(self.value_usd)
        if gain < 0:
            return (
                f"{points}, {usd(-extra)} cheaper: saves {price} for each resolved query "
                f"lost; one is worth {worth} to you."
            )
        return (
            f"{points} for {usd(extra)} more: {price} for one more resolved query; you pay {worth}."
        )

    def receipt(self) -> dict[str, Any]:
        """JSON-ready terms of the whole decision."""
        valuer, model = self.valuer, self.valuer.outcome_model
        named = {} if model is None else {"sha256": model.digest}
        return {
            "value_usd": self.value_usd,
            valuer.source.value: {**named, "evalset": valuer.evalset},
            "learner": valuer.source.words if model is None else model.learner,
            "placed_by_profile": list(valuer.predictions.placed),
            "cost_from_prices": valuer.predictions.priced,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Valuer:
    """What predicts success and cost, lined up with one catalog revision's pool.

    Attributes:
        predictions: Success heads or success profiles of the pool.
        value_usd: V, USD.
        evalset: Name of the eval set that it was learned from or fitted to.
        digest: SHA-256 (hex) over all that its predictions rest on: outcome model or success
            profiles, models and prices, and the profiles that a model without outcomes is placed
            by. V is not among it.
        outcome_model: Where the heads come from; None for success profiles.
    """

    predictions: PoolHeads | SuccessProfiles
    pool: Pool
    value_usd: float
    evalset: str
    evalset_digest: str
    digest: str
    outcome_model: OutcomeModel | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """(m,) the pool's models."""
        return self.pool.ids

    @property
    def source(self) -> SuccessSource:
        """Heads or profiles."""
        if isinstance(self.predictions, PoolHeads):
            return SuccessSource.OUTCOME_MODEL
        return SuccessSource.SUCCESS_PROFILES

    @property
    def reads_sizes(self) -> bool:
        """Whether a model's price depends on how long a request is."""
        return bool(self.predictions.long)

    def predict(self, messages: Messages, sizes: FloatArray | None = None) -> Predicted:
        """Success and cost, (n, m) in the order of the pool.

        `sizes` are (n,) input tokens of the whole requests, 0 where they are not known.
        """
        if isinstance(self.predictions, PoolHeads):
            return self.predictions.predict(messages, sizes)
        return self.predictions.predict(self.pool.capped(messages.requirements), sizes=sizes)

    def of_requirements(
        self, requirements: FloatArray, sizes: FloatArray | None = None
    ) -> Predicted | None:
        """As `predict` from (n, K) requirements alone; None where heads read the text."""
        if isinstance(self.predictions, PoolHeads):
            return None
        return self.predictions.predict(self.pool.capped(requirements), sizes=sizes)

    def value(
        self, text: str, prediction: Prediction, sizes: FloatArray | None = None
    ) -> Valuation:
        """Predict for one message; `sizes` is (1,), as `predict` takes it.

        Raises:
            RoutingError: Heads read text vectors, and the predictor gives none.
        """
        valued = self.from_requirements(prediction.requirements[0], sizes)
        if valued is not None:
            return valued
        assert isinstance(self.predictions, PoolHeads)
        messages = messages_of(text, prediction)
        found = self.predictions.predict(messages, sizes)
        columns = self.predictions.heads.features.columns(messages)[0]
        return Valuation(self, self.value_usd, found.success[0], found.cost_usd[0], columns)

    def from_requirements(
        self, requirements: FloatArray, sizes: FloatArray | None = None
    ) -> Valuation | None:
        """As `value` from (K,) requirements alone; None where heads read the text."""
        if isinstance(self.predictions, PoolHeads):
            return None
        need = self.pool.capped(np.asarray(requirements, np.float64))
        success, cost_usd = self.predictions.predict_one(need, sizes)
        return Valuation(self, self.value_usd, success, cost_usd, _NO_COLUMNS)

    def answer_tokens(self, text: str, prediction: Prediction) -> FloatArray | None:
        """(m,) tokens that each model is predicted to write; None where they are not known.

        Raises:
            RoutingError: Heads read text vectors, and the predictor gives none.
        """
        if not isinstance(self.predictions, PoolHeads):
            written = self.predictions.answer_tokens(self.pool.capped(prediction.requirements))
            return None if written is None else written[0]
        heads = self.predictions
        tokens = heads.tokens(heads.heads.read(messages_of(text, prediction)))
        return None if tokens is None else tokens[1][0]

    def of_predictions(self, success: Sequence[float], cost_usd: Sequence[float]) -> Valuation:
        """Predictions made before, (m,) each in the order of the pool; nothing read beside them.

        Raises:
            RoutingError: They are not one a model.
        """
        m, counts = len(self.ids), (len(success), len(cost_usd))
        if counts != (m, m):
            message = f"{counts[0]} and {counts[1]} predictions for a pool of {m} models"
            raise RoutingError(message, http_status=400)
        p, c = np.asarray(success, dtype=np.float64), np.asarray(cost_usd, dtype=np.float64)
        return Valuation(self, self.value_usd, p, c, _NO_COLUMNS)


def messages_of(text: str, prediction: Prediction) -> Messages:
    """One scored message as heads read it; RoutingError where it has no text vector."""
    if prediction.vectors is None:
        raise RoutingError(
            "the value rule needs a predictor bundle with text vectors", http_status=500
        )
    vectors = prediction.vectors.astype(np.float16)
    return Messages(prediction.requirements, vectors, surface_counts([text]))


def valuer_of(catalog: Catalog, pool: Pool) -> Valuer | None:
    """The valuer of a catalog that routes by value; None under the shortfall rule.

    Raises:
        OutcomeModelError: Its outcome model is missing, damaged or another one.
        MismatchError: The outcome model belongs to another predictor bundle.
    """
    policy, block = catalog.policy, catalog.success_profiles
    if policy.rule is not Rule.VALUE or policy.value_usd is None:
        return None
    specs = [catalog.model(name) for name in pool.ids]
    prices = np.array([[s.input_usd_per_mtok, s.output_usd_per_mtok] for s in specs])
    long = long_prices([one.price for one in specs])
    tiers = [[place, *map(str, price.long_prompts)] for place, price in long.items()]
    if catalog.success_source is SuccessSource.SUCCESS_PROFILES and block is not None:
        profiles = catalog_success_profiles(catalog, pool)
        caps = None if pool.caps is None else pool.caps.tolist()
        levels = pool.capabilities.mean(axis=1).tolist() if profiles.placed else None
        digest = _sha256(block.sha256, pool.ids, prices.tolist(), caps, levels, *tiers)
        return Valuer(profiles, pool, policy.value_usd, block.evalset, block.digest, digest)
    model = catalog_outcome_model(catalog)
    levels = pool.capabilities.mean(axis=1)
    heads = model.heads.for_pool(pool.ids, levels, prices, long)
    digest = _sha256(model.digest, pool.ids, levels.tolist(), prices.tolist(), *tiers)
    return Valuer(heads, pool, policy.value_usd, model.evalset, model.evalset_digest, digest, model)


def _sha256(*rests_on: object) -> str:
    return hashlib.sha256(json.dumps(rests_on).encode()).hexdigest()
