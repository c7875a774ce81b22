"""A second head in closed form: RBF features of the text vector, then ridge.

Gradient descent on a small encoder needs many steps to learn what a kernel
ridge regression on the same vectors finds in seconds. The head is fitted on
the vectors of the trained encoder (attacked wordings included, with unchanged
targets) and blended with the sigmoid heads; the share is chosen on validation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from torch import Tensor, nn

FloatArray = NDArray[np.float32]
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
    vectors: FloatArray,
    targets: FloatArray,
    weight: FloatArray,
    config: KernelConfig,
    family: Families | None = None,
) -> KernelHead:
    """Nystroem ridge regression, (n, d), (n, K), (n,) -> head.

    With `config.stillness` the loss also holds the squared distance of every score from the mean
    of its family (wordings of one request: translations, a text with and without a claim), which
    is a quadratic form like the rest, so the fit stays closed.

    Args:
        vectors: text vectors of the trained encoder.
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


def _unrest(
    x: FloatArray, points: FloatArray, gamma: float, family: Families
) -> NDArray[np.float64]:
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
    vectors: FloatArray,
    targets: FloatArray,
    weight: FloatArray,
    config: KernelConfig,
    layers: int,
    family: Families | None = None,
) -> LayeredHead:
    """`fit_kernel` for each of `layers` blocks of columns.

    Separate kernels, averaged, did better than one kernel on all columns.
    """
    blocks = np.split(vectors, layers, axis=1)
    return LayeredHead([fit_kernel(block, targets, weight, config, family) for block in blocks])


def rbf(a: FloatArray, b: FloatArray, gamma: float = 1.0) -> FloatArray:
    """(n, d), (m, d) -> (n, m): exp(-gamma * squared distance)."""
    near = np.square(a).sum(1)[:, None] + np.square(b).sum(1)[None] - 2 * a @ b.T
    return np.exp(-gamma * np.maximum(near, 0)).astype(np.float32)
