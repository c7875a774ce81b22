"""Soft scores of a cheap teacher, out of fold, for the targets of `fit --teacher`.

The mean of three kernel ridge regressions, on the frozen text vectors of layers 6, 9 and 12 beside
twelve surface features, and of a ridge on character n-grams. No message is scored by a regression
that saw its label or a wording of its task.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from tokenizers import Tokenizer

from hydra_core.base.types import Float32Array, IntArray
from hydra_core.lab.training.network.heads import rbf
from hydra_core.lab.training.network.model import EncoderConfig, Predictor, from_pack
from hydra_core.lab.training.network.pretrained import PretrainedPack
from hydra_core.lab.training.texts.dataset import Message, group_of
from hydra_core.lab.training.texts.encode import buckets, collate
from hydra_core.predictor.tokens import shorten

Rows = Sequence[int] | IntArray
Scorer = Callable[[Rows], Float32Array]
LAYERS = (6, 9, 12)
FOLDS = 5
_CAP, _BLOCK, _SEED = 256, 2000, 42


def surface(text: str) -> list[float]:
    """(12,) what a glance at a message tells: length, lines, code, errors, script."""
    head = text[:4000]
    return [
        np.log1p(len(text)), np.log1p(text.count("\n")), float("?" in text),
        np.log1p(text.count("`")), np.log1p(sum(sign.isdigit() for sign in head)),
        np.log1p(text.count("/")), np.log1p(text.count("{") + text.count(";")),
        float("rror" in text), float("def " in text), np.log1p(len(text.split())),
        sum(ord(sign) > 0x2E80 for sign in head[:1000]) / max(1, len(head[:1000])),
        np.log1p(text.count("- ")),
    ]  # fmt: skip


def frozen_vectors(
    pack: PretrainedPack, rows: NDArray[np.int64], tokenizer: Tokenizer, texts: Sequence[str]
) -> Float32Array:
    """(n, layers * width) mean token vectors of the pretrained encoder's `LAYERS`."""
    model: Predictor = from_pack(pack, EncoderConfig(), rows, range(12)).eval()
    model.layers_seen = LAYERS
    model.encoder.set_attn_implementation("sdpa")
    ids = [
        shorten(e.ids, _CAP) for e in tokenizer.encode_batch([f"query: {t[:6000]}" for t in texts])
    ]
    out = np.zeros((len(ids), len(LAYERS) * pack.width), np.float32)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        for block in buckets([len(row) for row in ids], 64, tokens=4096):
            batch = collate([ids[i] for i in block])
            out[block] = model.layered(batch.input_ids, batch.attention_mask).float().numpy()
    return out


def kernel_ridge(
    vectors: Float32Array, glance: Float32Array, labels: Float32Array, train: Rows
) -> Scorer:
    """Exact ridge regression on an RBF kernel, fitted on the rows `train` of (n, d), (n, 12)."""
    centre = vectors[train].mean(0)
    scale = float(np.sqrt(np.square(vectors[train] - centre).sum(1).mean()))
    middle, spread = glance[train].mean(0), glance[train].std(0) + 1e-9
    side = 0.25 * (glance - middle) / spread / np.sqrt(glance.shape[1])
    points = np.hstack([(vectors - centre) / scale, side]).astype(np.float32)
    known = points[train]
    kernel = rbf(known, known)
    kernel[np.diag_indices_from(kernel)] += 0.1
    mean = labels[train].mean(0)
    solved = cho_solve(cho_factor(kernel, overwrite_a=True), labels[train] - mean)

    def score(rows: Rows) -> Float32Array:
        blocks = [rows[i : i + _BLOCK] for i in range(0, len(rows), _BLOCK)]
        return np.vstack([rbf(points[block], known) @ solved for block in blocks]) + mean

    return score


def out_of_fold(messages: Sequence[Message], vectors: Float32Array) -> Float32Array:
    """(n,) labelled messages and (n, layers * width) -> (n, K) scores in [0, 1]."""
    labels = np.array([m.labels for m in messages], np.float32)
    glance = np.array([surface(m.text) for m in messages])
    texts = [m.text[:2000] for m in messages]
    signs = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 4), min_df=3, max_features=120_000, sublinear_tf=True
    ).fit_transform(texts)
    groups = group_of(messages)
    fold_of = np.random.default_rng(_SEED).integers(FOLDS, size=groups.max() + 1)[groups]
    out = np.zeros_like(labels)
    for fold in range(FOLDS):
        train, test = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        parts = np.split(vectors, len(LAYERS), axis=1)
        said = [kernel_ridge(part, glance, labels, train)(test) for part in parts]
        ridge = Ridge(alpha=2.0, solver="sparse_cg").fit(signs[train], labels[train])
        out[test] = np.clip(np.mean([*said, ridge.predict(signs[test])], axis=0), 0, 1)
    return out


def write_teacher(
    path: Path, messages: Sequence[Message], scores: Float32Array, names: Sequence[str]
) -> None:
    """JSONL of id and soft scores, as `fit --teacher` reads it."""
    rows = (
        {"id": m.id, **{n: round(float(v), 4) for n, v in zip(names, s, strict=True)}}
        for m, s in zip(messages, scores, strict=True)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
