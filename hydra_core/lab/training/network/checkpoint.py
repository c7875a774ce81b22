"""Weights of a model on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from hydra_core.base.types import Float32Array
from hydra_core.lab.training.network.model import Predictor
from hydra_core.lab.training.texts.encode import buckets, collate, token_ids
from hydra_core.routing.conversations.context import LastTurn


def predict(
    model: Predictor, tokenizer: Tokenizer, texts: Sequence[str | LastTurn], *,
    max_tokens: int = 512, batch: int = 64, precision: str = "fp32",
) -> Float32Array:  # fmt: skip
    """Texts -> (n, K) scores, in length-bucketed batches."""
    rows = token_ids(tokenizer, texts, max_tokens)
    out = np.zeros((len(rows), len(model.config.dimensions)), np.float32)
    model.eval()
    for block, part in _forward(model, rows, batch, precision):
        out[block] = part
    return out


def _forward(
    model: Predictor, rows: Sequence[list[int]], batch: int, precision: str
) -> Iterator[tuple[list[int], Float32Array]]:
    device, half = next(model.parameters()).device, precision == "bf16"
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=half):
        for block in buckets([len(r) for r in rows], batch):
            data = collate([rows[i] for i in block]).to(device)
            scores = model(data.input_ids, data.attention_mask).float()
            yield block, np.asarray(scores.cpu().numpy(), np.float32)


def save_weights(model: Predictor, path: Path) -> None:
    """Write the state of a model, whole or not at all."""
    part = path.with_suffix(".part")
    torch.save(model.state_dict(), part)
    os.replace(part, path)


def load_weights(path: Path) -> dict[str, Tensor]:
    """Read what `save_weights` wrote; tensors only, nothing is executed."""
    state: dict[str, Tensor] = torch.load(path, weights_only=True, map_location="cpu")
    return state
