"""What heads say of messages: before a pool is known, and for one pool."""

from __future__ import annotations

from dataclasses import dataclass

from hydra_core.base.types import Float32Array, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Raw:
    """What the heads say of n messages, before a pool and its prices are known.

    Attributes:
        shared: (n, 1) f0.
        difference: (n, m) each model's difference from it.
        cost_usd: (n, m) log of the cost as it was when the heads were learned.
        input_tokens: (n, m) log of the tokens read; (n, 0) where they are not known.
        output_tokens: (n, m) log of the tokens written; likewise.
    """

    shared: Float32Array
    difference: Float32Array
    cost_usd: Float32Array
    input_tokens: Float32Array
    output_tokens: Float32Array

    def take(self, rows: IntArray) -> Raw:
        """Some of the messages."""
        return Raw(*(getattr(self, name)[rows] for name in Raw.__slots__))


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """Predictions for n messages and the m models of a pool.

    Attributes:
        success: (n, m) in [0, 1].
        cost_usd: (n, m) USD of the query.
    """

    success: FloatArray
    cost_usd: FloatArray

    def take(self, rows: IntArray) -> Predicted:
        """Some of the messages."""
        return Predicted(self.success[rows], self.cost_usd[rows])
