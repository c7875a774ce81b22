"""An outcome model: messages in, predicted success and cost of every model out.

Success is `f0 + d_m`: f0 the difficulty all models share, d_m each model's difference from it. The
log odds of a model with few outcomes are linear in those of the others; a model without any stands
at f0 plus the mean difference of the models its profile lies between.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hydra_core.base.list_price import ListPrice, at_long_prices
from hydra_core.base.types import Float32Array, FloatArray, IntArray
from hydra_core.outcome_model.heads import (
    Features,
    Forest,
    Linear,
    Messages,
    Predicted,
    Raw,
    log_odds,
)


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """One row a query; models in the order of the outcome model.

    Attributes:
        texts: (n,) digests of the texts; empty where the set had none.
        columns: (n, p) standardised features, half precision.
        quality: (n, m) outcomes, NaN where there is none.
        raw: What heads said of each query that had not seen it (cross-fitted).
    """

    query_ids: npt.NDArray[np.str_]
    texts: npt.NDArray[np.uint64]
    columns: npt.NDArray[np.float16]
    quality: FloatArray
    raw: Raw

    def nearest(self, columns: Float32Array, count: int = 5) -> tuple[IntArray, FloatArray]:
        """Rows and similarities (cosine, at most 1) of the learned queries most like one message.

        Args:
            columns: (p,) its standardised features.
        """
        mine = self.columns.astype(np.float32)
        length = np.linalg.norm(mine, axis=1) * max(float(np.linalg.norm(columns)), 1e-12)
        likeness = (mine @ columns) / np.maximum(length, 1e-12)
        best = np.argsort(-likeness, kind="stable")[:count]
        return best, likeness[best].astype(np.float64)

    def rows_of(self, query_ids: Sequence[str], texts: npt.NDArray[np.uint64]) -> IntArray:
        """(k,) the learned row of each query of another table, -1 where it was not learned on."""
        own = _places(self.query_ids, np.array(query_ids, dtype=np.str_))
        if not (self.texts.size and texts.size):
            return own
        # one text may be learned in several rows, which differ by what came before it
        same = (own >= 0) & (self.texts[own] == texts)
        return np.where(same, own, _places(self.texts, texts))

    def shares(self, query_ids: Sequence[str], texts: npt.NDArray[np.uint64]) -> int:
        """How many of these queries were learned on: by text, where both sides have texts."""
        return int((self.rows_of(query_ids, texts) >= 0).sum())


def _places(known: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> IntArray:
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known, wanted, sorter=order), known.size - 1)
    return np.where(known[order[at]] == wanted, order[at], -1)


def text_digests(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """(n,) the first eight bytes of each text's SHA-256; blanks at the ends do not count."""
    heads = b"".join(
        hashlib.sha256(text.strip().encode("utf-8", "surrogatepass")).digest()[:8] for text in texts
    )
    return np.frombuffer(heads, dtype="<u8").astype(np.uint64)


#: With fewer outcomes than this a model has no head of its own.
LEAST_OUTCOMES = 25

_PER_MTOK = 1e-6
#: A message is read in at least its characters / this: a head says little of one longer than any
#: that was learned from.
_MOST_CHARS_PER_TOKEN = 5.0
_LOG_BOUND = 30.0


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One learner's heads, f0 first, and its share in the average."""

    share: float
    heads: Linear | Forest


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """Linear heads for the logarithm of what an answer takes; one output per model.

    Attributes:
        cost_usd: Realised cost in USD: used where tokens are not known.
        input_tokens: Tokens read; None where the set had none.
        output_tokens: Tokens written; likewise.
    """

    cost_usd: Linear
    input_tokens: Linear | None = None
    output_tokens: Linear | None = None


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeHeads:
    """Everything that predicts; models in the order in which they were learned.

    Attributes:
        models: (m,) ids; the b models learned together first.
        parts: Success heads of the first b models: 1 + b outputs, f0 first.
        newcomers: From the log odds of the b models to those of the m - b with few outcomes.
        mean_difference: (m,) mean of outcome minus f0.
    """

    models: tuple[str, ...]
    features: Features
    parts: tuple[Part, ...]
    newcomers: Linear | None
    costs: Costs
    mean_difference: FloatArray

    def read(self, messages: Messages) -> Raw:
        """What the heads say of n messages."""
        columns = self.features.columns(messages)
        wide = self.features.with_products(columns)
        shared = np.zeros((len(columns), 1), dtype=np.float32)
        for part in self.parts:
            seen = wide if isinstance(part.heads, Linear) else columns
            shared = shared + np.float32(part.share) * part.heads(seen)
        difference = shared[:, 1:]
        if self.newcomers is not None:
            odds = self.newcomers(log_odds(shared[:, :1] + difference).astype(np.float32))
            success = 1.0 / (1.0 + np.exp(-odds))
            difference = np.concatenate([difference, success - shared[:, :1]], axis=1)
        none = np.empty((len(columns), 0), dtype=np.float32)
        costs = self.costs
        own = np.log(np.maximum(messages.counts[:, :1], 1) / _MOST_CHARS_PER_TOKEN)
        return Raw(
            shared[:, :1],
            difference,
            costs.cost_usd(wide),
            none
            if costs.input_tokens is None
            else np.maximum(costs.input_tokens(wide), own.astype(np.float32)),
            none if costs.output_tokens is None else costs.output_tokens(wide),
        )

    def for_pool(
        self,
        ids: Sequence[str],
        strength: FloatArray,
        prices: FloatArray | None,
        long: Mapping[int, ListPrice] | None = None,
    ) -> PoolHeads:
        """The heads of one pool, in its order and at its prices.

        Args:
            ids: (m,) the pool's models.
            strength: (m,) mean capability: where a model without outcomes stands.
            prices: (m, 2) USD per million tokens read and written; None to predict cost as it was
                when the heads were learned.
            long: Column -> price of the models that charge long requests more.
        """
        rows = [self.models.index(name) if name in self.models else -1 for name in ids]
        known = [i for i, row in enumerate(rows) if row >= 0]
        mixture = np.zeros((len(self.models), len(rows)), dtype=np.float32)
        mixture[[rows[i] for i in known], known] = 1.0
        offset = np.zeros(len(rows), dtype=np.float32)
        order = sorted(known, key=lambda i: strength[i])
        means = [float(self.mean_difference[rows[i]]) for i in order]
        for i in (i for i, row in enumerate(rows) if row < 0 and order):
            offset[i] = np.interp(strength[i], strength[order], means)
        placed = tuple(name for name, row in zip(ids, rows, strict=True) if row < 0)
        return PoolHeads(self, mixture, offset, prices, placed, long or {})


@dataclass(frozen=True, slots=True, eq=False)
class PoolHeads:
    """Outcome heads for one pool.

    Attributes:
        mixture: (all, m) which head answers for a model; a column of 0 for one without outcomes.
        offset: (m,) added to f0: 0, or the place by profile of a model without outcomes.
        prices: (m, 2) USD per million tokens read and written, or None.
        placed: Models without outcomes.
        long: Column -> price of the models that charge long requests more.
    """

    heads: OutcomeHeads
    mixture: Float32Array
    offset: Float32Array
    prices: FloatArray | None
    placed: tuple[str, ...]
    long: Mapping[int, ListPrice]

    def predict(self, messages: Messages, sizes: FloatArray | None = None) -> Predicted:
        """Success and cost of every model of the pool for n messages.

        Args:
            sizes: As `at_long_prices` takes them.
        """
        return self.combine(self.heads.read(messages), sizes)

    def combine(self, raw: Raw, sizes: FloatArray | None = None) -> Predicted:
        """The same from what the heads said, cross-fitted say."""
        success = raw.shared + raw.difference @ self.mixture + self.offset
        return Predicted(np.clip(success, 0.0, 1.0).astype(np.float64), self._cost_usd(raw, sizes))

    @property
    def priced(self) -> bool:
        """Whether cost is predicted tokens times the pool's prices, else as it was learned."""
        return self.prices is not None and self.heads.costs.input_tokens is not None

    def tokens(self, raw: Raw) -> tuple[FloatArray, FloatArray] | None:
        """(n, m) tokens read and written; None where the set that was learned on had none."""
        if not raw.input_tokens.shape[1]:
            return None
        return np.exp(self._spread(raw.input_tokens)), np.exp(self._spread(raw.output_tokens))

    def _cost_usd(self, raw: Raw, sizes: FloatArray | None) -> FloatArray:
        tokens = None if self.prices is None else self.tokens(raw)
        if tokens is None or self.prices is None:
            return np.exp(self._spread(raw.cost_usd) + self._dearer())
        read, written = tokens
        usual = _PER_MTOK * (read * self.prices[:, 0] + written * self.prices[:, 1])
        return at_long_prices(usual, self.long, tokens, sizes)

    def _dearer(self) -> FloatArray:
        """(m,) log of how much dearer by price a model without outcomes is than those with."""
        own = self.mixture.any(axis=0)
        if self.prices is None or own.all() or not own.any():
            return np.zeros(own.size)
        blended = np.log(self.prices @ np.array([3.0, 1.0]))
        return np.where(own, 0.0, blended - blended[own].mean())

    def _spread(self, logs: Float32Array) -> FloatArray:
        """(n, all) logarithms -> (n, m); a model without outcomes has the mean of the others."""
        shares = self.mixture.copy()
        shares[:, ~shares.any(axis=0)] = 1.0 / len(shares)
        result: FloatArray = np.clip(logs @ shares, -_LOG_BOUND, _LOG_BOUND).astype(np.float64)
        return result


@dataclass(frozen=True, eq=False)
class OutcomeModel:
    """A checked outcome model.

    Attributes:
        digest: SHA-256 (hex) of its manifest, which holds those of its files.
        fingerprint: The predictor bundle whose vectors and requirements it reads.
        vectors: Width of those vectors.
        outcomes: (m,) queries with an outcome, in the order of the heads' models.
        learner: What was chosen, in words.
        reliability: (m, bins, 3) number, mean predicted and mean achieved success of similar
            cross-fitted predictions.
        open_learned: Reads what it was learned on, when that is asked for.
        figures: What `learn` found.
    """

    path: Path
    digest: str
    fingerprint: str
    vectors: int
    evalset: str
    evalset_digest: str
    outcomes: tuple[int, ...]
    learner: str
    heads: OutcomeHeads
    reliability: FloatArray
    open_learned: Callable[[], Learned]
    figures: Mapping[str, object]

    @property
    def models(self) -> tuple[str, ...]:
        """(m,) ids in the order of the heads."""
        return self.heads.models

    @cached_property
    def learned(self) -> Learned:
        """The queries it was learned on, with cross-fitted predictions.

        Raises:
            OutcomeModelError: The file is damaged.
        """
        return self.open_learned()
