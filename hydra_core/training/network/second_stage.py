"""Fits the second heads on what the quantised encoder gives and reads, and their shares."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from hydra_core.training.network.kernel_head import KernelConfig, fit_layered
from hydra_core.training.network.model import Predictor
from hydra_core.training.network.word_head import WordConfig, fit_words
from hydra_core.training.ship.calibrate import bands_of
from hydra_core.training.ship.export import export_module, session
from hydra_core.training.ship.probe import parallel_report, pool_on
from hydra_core.training.ship.quantize import variant_of
from hydra_core.training.ship.release import pearsons
from hydra_core.training.texts.dataset import Message, Splits
from hydra_core.training.texts.encode import collate, token_ids
from hydra_core.training.texts.suffixes import attack

FloatArray = NDArray[np.float32]
KERNEL_SHARES = (0.0, 0.2, 0.35, 0.5, 0.65, 0.8)
WORD_SHARES = (0.0, 0.1, 0.2, 0.3)  # more would be a bag of words with an encoder beside it

# Real messages are what these heads are for: our own tasks, which the encoder learns from, made
# them worse on messages and no better on tasks. A kernel has only so many landmarks, so what there
# is much of, in few languages, is thinned out.
_KEPT = {"corpus": 1.0, "parallel": 1.0, "ours": 0.35}
_WEIGHT = {"corpus": 1.0, "parallel": 1.5, "ours": 0.7}


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
        if rng.random() >= _KEPT.get(message.origin, 0.0):
            continue
        copies = [message.text]
        if rng.random() < attacked:
            copies.append(attack(message.text, message.lang, rng).text)
        texts += copies
        labels += [message.labels] * len(copies)
        weight += [_WEIGHT[message.origin]] * len(copies)
    return texts, np.array(labels, np.float32), np.array(weight, np.float32)


def add_heads(
    model: Predictor, tokenizer: Tokenizer, splits: Splits, kernel: KernelConfig,
    words: WordConfig, catalog: Path, *, attacked: float = 0.4, max_tokens: int = 256,
) -> dict[str, float]:  # fmt: skip
    """Fit the second heads on the training split, their shares on validation and held tasks.

    The model is changed in place. Routes are compared on `catalog`. Returns the worth (see
    `worth`) by "kernel share, word share".
    """
    texts, labels, weight = wordings(splits.train, attacked=attacked, seed=kernel.seed)
    rows = token_ids(tokenizer, texts, max_tokens)
    judges = [*splits.validation, *splits.tasks]
    ids = token_ids(tokenizer, [m.text for m in judges], model.config.max_tokens)
    both = vectors(model, [*rows, *ids])
    seen, new = both[: len(rows)], torch.tensor(both[len(rows) :])
    second = fit_layered(seen, labels, weight, kernel, len(model.layers_seen))
    third = fit_words(rows, labels, weight, model.config.vocab, words)
    with torch.inference_mode():
        said = torch.sigmoid(model.heads(new[:, -model.config.width :])).numpy()
        near = second(new).numpy()
        batch = [collate([row]) for row in ids]
        read = np.concatenate([third(b.input_ids, b.attention_mask).numpy() for b in batch])
    found: dict[tuple[float, float], float] = {}
    for k, w in product(KERNEL_SHARES, WORD_SHARES):
        scores = (1 - w) * ((1 - k) * said + k * near) + w * read
        found[k, w] = worth(judges, scores, catalog)
    model.kernel_share, model.word_share = max(found, key=lambda shares: found[shares])
    model.kernel = second if model.kernel_share else None
    model.words = third if model.word_share else None
    return {f"{k}, {w}": round(value, 4) for (k, w), value in found.items()}


def worth(messages: Sequence[Message], scores: FloatArray, catalog: Path) -> float:
    """What a choice of shares is judged by.

    Pearson on messages, 0.3 of that on tasks, and half of the share of routes as in English.
    """
    truth = np.array([m.labels for m in messages])
    task = np.array([m.task is not None for m in messages])
    tasks = [m for m in messages if m.task is not None]
    plain, hard = (np.mean(pearsons(scores[part], truth[part])) for part in (~task, task))
    models = pool_on(catalog, bands_of(scores[~task]))
    same = parallel_report(tasks, scores[task], models).same_route
    return float(plain + 0.3 * hard + 0.5 * np.mean(list(same.values())))
