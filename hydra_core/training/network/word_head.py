"""A head that reads words, not meaning: a ridge regression on tokens and pairs of tokens.

It errs on other messages than the encoder does, costs two table look-ups a token, and stays inside
the graph: every token, and every hashed pair of neighbours, has one weight for each dimension (in
half precision); the score is their sum over the square root of the number of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import Ridge
from torch import Tensor, nn

FloatArray = NDArray[np.float32]
_STEP = 9973


@dataclass(frozen=True, slots=True)
class WordConfig:
    """Hash buckets for pairs (a prime), ridge of the fit, and how often a feature must occur."""

    buckets: int = 262_139
    ridge: float = 20.0
    least: int = 2


class WordHead(nn.Module):
    """(b, t) token ids and mask -> (b, K) scores in [0, 1]."""

    table: Tensor
    offset: Tensor

    def __init__(self, vocab: int, buckets: int, outputs: int) -> None:
        super().__init__()
        self.vocab, self.buckets = vocab, buckets
        self.register_buffer("table", torch.zeros(vocab + buckets, outputs, dtype=torch.float16))
        self.register_buffer("offset", torch.zeros(outputs))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(b, t), (b, t) -> (b, K)."""
        mask = attention_mask.to(self.offset.dtype)
        hashed = torch.remainder(input_ids[:, :-1] * _STEP + input_ids[:, 1:], self.buckets)
        single = nn.functional.embedding(input_ids, self.table).float()
        double = nn.functional.embedding(hashed + self.vocab, self.table).float()
        total = (single * mask.unsqueeze(-1)).sum(1) + (double * mask[:, 1:].unsqueeze(-1)).sum(1)
        return (total / mask.sum(1, keepdim=True).sqrt() + self.offset).clamp(0, 1)


def counts(rows: Sequence[Sequence[int]], vocab: int, buckets: int) -> sparse.csr_matrix:
    """(n,) rows of ids -> (n, vocab + buckets) occurrences over the root of the length."""
    columns, starts, values = [], [0], []
    for row in rows:
        ids = np.asarray(row, np.int64)
        pairs = (ids[:-1] * _STEP + ids[1:]) % buckets + vocab
        columns.append(np.concatenate([ids, pairs]))
        starts.append(starts[-1] + len(columns[-1]))
        values.append(np.full(len(columns[-1]), 1 / np.sqrt(len(ids)), np.float32))
    parts = (np.concatenate(values), np.concatenate(columns), np.array(starts))
    return sparse.csr_matrix(parts, shape=(len(rows), vocab + buckets))


def fit_words(
    rows: Sequence[Sequence[int]],
    targets: FloatArray,
    weight: FloatArray,
    vocab: int,
    config: WordConfig,
) -> WordHead:
    """(n,) rows of ids, (n, K) labels, (n,) weights -> head.

    Rarer features weigh more (inverse document frequency); those in fewer than `least` rows get
    no weight at all.
    """
    found = counts(rows, vocab, config.buckets)
    within = np.asarray((found > 0).sum(0)).ravel()
    rarity = np.where(within < config.least, 0.0, np.log((1 + len(rows)) / (1 + within)) + 1)
    ridge = Ridge(alpha=config.ridge, solver="sparse_cg")
    ridge.fit(found @ sparse.diags(rarity), targets, sample_weight=weight)
    head = WordHead(vocab, config.buckets, targets.shape[1])
    head.table.copy_(torch.tensor((ridge.coef_ * rarity).T, dtype=torch.float32))
    head.offset.copy_(torch.tensor(ridge.intercept_, dtype=torch.float32))
    return head
