"""Fits the kernel head on what the quantised encoder gives, and its share."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hydra_core.training.dataset import Message, Splits
from hydra_core.training.encode import token_ids
from hydra_core.training.export import export_module, session
from hydra_core.training.kernel_head import KernelConfig, fit_layered
from hydra_core.training.model import Predictor
from hydra_core.training.quantize import variant_of
from hydra_core.training.suffixes import attack

FloatArray = NDArray[np.float32]
SHARES = (0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 1.0)

# A kernel has only so many landmarks: what there is much of, in few languages, is thinned out.
_KEPT = {"corpus": 1.0, "parallel": 1.0, "extra": 0.4, "ours": 0.35}
_WEIGHT = {"corpus": 1.0, "parallel": 1.5, "extra": 1.5, "ours": 0.7}


class _Vectors(nn.Module):
    def __init__(self, model: Predictor) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.model.layered(input_ids, attention_mask)


def vectors(model: Predictor, rows: Sequence[Sequence[int]], *, workers: int = 2) -> FloatArray:
    """(n,) rows of ids -> (n, layers * width) text vectors of the INT8 encoder."""
    with tempfile.TemporaryDirectory() as name:
        source = export_module(_Vectors(model), model, Path(name) / "v.onnx", "vectors")
        graph = session(variant_of(source, "int8_full", Path(name) / "v8.onnx"))

    def one(row: Sequence[int]) -> FloatArray:
        ids = np.array([row], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        return np.asarray(graph.run(None, feed)[0][0], np.float32)

    with ThreadPoolExecutor(workers) as pool:
        return np.stack(list(pool.map(one, rows)))


def wordings(
    messages: Sequence[Message], *, attacked: float, seed: int
) -> tuple[list[str], FloatArray, FloatArray]:
    """Texts, (n, K) labels and (n,) weights: messages and some attacked copies."""
    rng = np.random.default_rng(seed)
    texts, labels, weight = [], [], []
    for message in messages:
        if rng.random() >= _KEPT[message.origin]:
            continue
        copies = [message.text]
        if rng.random() < attacked:
            copies.append(attack(message.text, message.lang, rng).text)
        texts += copies
        labels += [message.labels] * len(copies)
        weight += [_WEIGHT[message.origin]] * len(copies)
    return texts, np.array(labels, np.float32), np.array(weight, np.float32)


def add_kernel(
    model: Predictor, tokenizer: object, splits: Splits, config: KernelConfig,
    *, attacked: float = 0.4, max_tokens: int = 256,
) -> dict[str, float]:  # fmt: skip
    """Fit the kernel head on the training split, its share on validation.

    The model is changed in place. Returns mean Pearson by share.
    """
    texts, labels, weight = wordings(splits.train, attacked=attacked, seed=config.seed)
    seen = vectors(model, token_ids(tokenizer, texts, max_tokens))
    head = fit_layered(seen, labels, weight, config, len(model.layers_seen))
    held = [m for m in splits.validation if m.origin == "corpus"]
    new = torch.tensor(vectors(model, token_ids(tokenizer, [m.text for m in held], 512)))
    truth = np.array([m.labels for m in held])
    with torch.inference_mode():
        plain = torch.sigmoid(model.heads(new[:, -model.config.width :])).numpy()
        kernel = head(new).numpy()
    found = {
        share: float(np.mean([
            np.corrcoef((1 - share) * plain[:, k] + share * kernel[:, k], truth[:, k])[0, 1]
            for k in range(truth.shape[1])
        ]))
        for share in SHARES
    }  # fmt: skip
    model.kernel, model.blend = head, max(found, key=lambda share: found[share])
    return {str(share): round(value, 4) for share, value in found.items()}
