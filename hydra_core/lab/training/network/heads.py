"""The second heads: kernel regressions on text vectors, and a ridge regression on words.

The word head errs on other messages than the encoder does and stays inside the graph: every token,
and every hashed pair of neighbours, has one weight for each dimension.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import Ridge
from torch import Tensor, nn

from hydra_core.base.types import Float32Array, FloatArray

Families = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KernelConfig:
    """Landmarks, width of the kernel, ridge of the fit.

    `stillness` weighs how far scores inside a family lie from the family's mean.
    """

    landmarks: int = 3000
    gamma: float = 1.0
    ridge: float = 0.1
    seed: int = 42
    stillness: float = 10.0


class KernelHead(nn.Module):
    """(b, d) text vectors -> (b, K) scores in [0, 1]."""

    centre: Tensor
    scale: Tensor
    points: Tensor
    coefficients: Tensor
    offset: Tensor

    def __init__(self, width: int, landmarks: int, outputs: int, gamma: float = 1.0) -> None:
        super().__init__()
        self.gamma = gamma
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("scale", torch.ones(()))
        self.register_buffer("points", torch.zeros(width, landmarks))
        self.register_buffer("coefficients", torch.zeros(landmarks, outputs))
        self.register_buffer("offset", torch.zeros(outputs))

    def forward(self, pooled: Tensor) -> Tensor:
        """(b, d) -> (b, K)."""
        x = (pooled - self.centre) / self.scale
        near = x.square().sum(1, keepdim=True) - 2 * (x @ self.points)
        kernel = torch.exp(-self.gamma * (near + self.points.square().sum(0)).clamp_min(0))
        return (kernel @ self.coefficients + self.offset).clamp(0, 1)


def fit_kernel(
    vectors: Float32Array,
    targets: Float32Array,
    weight: Float32Array,
    config: KernelConfig,
    family: Families | None = None,
) -> KernelHead:
    """Nystroem ridge regression, (n, d), (n, K), (n,) -> head.

    With `config.stillness` the loss also holds the squared distance of every score from the mean
    of its family (wordings of one request: translations, a text with and without a claim), which
    is a quadratic form like the rest, so the fit stays closed.

    Args:
        targets: labels, the same for all wordings of a message.
        weight: weight of each row in the squared loss; 0 for one that only has a family.
        config: number of landmarks (drawn from the rows that weigh anything), kernel, ridges.
        family: (n,) number of each row's family, -1 for none.
    """
    known = np.flatnonzero(weight > 0)
    count = min(config.landmarks, len(known))
    head = KernelHead(vectors.shape[1], count, targets.shape[1], config.gamma)
    centre = vectors[known].mean(0)
    scale = float(np.sqrt(np.square(vectors[known] - centre).sum(1).mean()))
    x = (vectors - centre) / scale
    chosen = np.random.default_rng(config.seed).choice(known, count, replace=False)
    # The shipped graph keeps the points in half precision: fit with what it will compare with.
    points = x[chosen].astype(np.float16).astype(np.float32)
    kernel = rbf(points, points, config.gamma)
    mean = np.average(targets, axis=0, weights=weight)
    normal = config.ridge * kernel.astype(np.float64)
    right = np.zeros((count, targets.shape[1]))
    for start in range(0, len(x), 4096):
        block = slice(start, start + 4096)
        phi = rbf(x[block], points, config.gamma).astype(np.float64)
        weighted = phi * weight[block, None]
        normal += weighted.T @ phi
        right += weighted.T @ (targets[block] - mean)
    if config.stillness and family is not None:
        normal += config.stillness * _unrest(x, points, config.gamma, family)
    normal[np.diag_indices_from(normal)] += 1e-6 * np.trace(normal) / count
    solved = cho_solve(cho_factor(normal), right)
    head.centre.copy_(torch.tensor(centre))
    head.scale.fill_(scale)
    head.points.copy_(torch.tensor(points.T.copy()))
    head.coefficients.copy_(torch.tensor(solved, dtype=torch.float32))
    head.offset.copy_(torch.tensor(mean, dtype=torch.float32))
    return head


def _unrest(x: Float32Array, points: Float32Array, gamma: float, family: Families) -> FloatArray:
    """(landmarks, landmarks): the form that gives the spread of scores inside families."""
    rows = np.flatnonzero(family >= 0)
    names, owner = np.unique(family[rows], return_inverse=True)
    phi = rbf(x[rows], points, gamma).astype(np.float64)
    means = np.zeros((len(names), len(points)))
    np.add.at(means, owner, phi)
    phi -= (means / np.bincount(owner)[:, None])[owner]
    return np.asarray(phi.T @ phi)


class LayeredHead(nn.Module):
    """(b, layers * d) -> (b, K): the mean of one kernel head for each layer."""

    def __init__(self, heads: list[KernelHead]) -> None:
        super().__init__()
        self.heads = nn.ModuleList(heads)

    def forward(self, vectors: Tensor) -> Tensor:
        """(b, layers * d) -> (b, K)."""
        parts = vectors.chunk(len(self.heads), 1)
        said = [head(part) for head, part in zip(self.heads, parts, strict=True)]
        return torch.stack(said).mean(0)


def fit_layered(
    vectors: Float32Array,
    targets: Float32Array,
    weight: Float32Array,
    config: KernelConfig,
    layers: int,
    family: Families | None = None,
) -> LayeredHead:
    """`fit_kernel` for each of `layers` blocks of columns.

    Separate kernels, averaged, did better than one kernel on all columns.
    """
    blocks = np.split(vectors, layers, axis=1)
    return LayeredHead([fit_kernel(block, targets, weight, config, family) for block in blocks])


def rbf(a: Float32Array, b: Float32Array, gamma: float = 1.0) -> Float32Array:
    """(n, d), (m, d) -> (n, m): exp(-gamma * squared distance)."""
    near = np.square(a).sum(1)[:, None] + np.square(b).sum(1)[None] - 2 * a @ b.T
    return np.exp(-gamma * np.maximum(near, 0)).astype(np.float32)


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
    targets: Float32Array,
    weight: Float32Array,
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
