"""Scores of a model in torch, without its export."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from hydra_core.routing.conversations.context import LastTurn
from hydra_core.training.network.model import Predictor
from hydra_core.training.texts.encode import buckets, collate, token_ids

FloatArray = NDArray[np.float32]


def predict(
    model: Predictor, tokenizer: Tokenizer, texts: Sequence[str | LastTurn], *,
    max_tokens: int = 512, batch: int = 64, precision: str = "fp32",
) -> FloatArray:  # fmt: skip
    """Texts -> (n, K) scores, in length-bucketed batches."""
    rows = token_ids(tokenizer, texts, max_tokens)
    out = np.zeros((len(rows), len(model.config.dimensions)), np.float32)
    model.eval()
    for block, part in _forward(model, rows, batch, precision):
        out[block] = part
    return out


def _forward(
    model: Predictor, rows: Sequence[list[int]], batch: int, precision: str
) -> Iterator[tuple[list[int], FloatArray]]:
    device, half = next(model.parameters()).device, precision == "bf16"
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=half):
        for block in buckets([len(r) for r in rows], batch):
            data = collate([rows[i] for i in block]).to(device)
            scores = model(data.input_ids, data.attention_mask).float()
            yield block, np.asarray(scores.cpu().numpy(), np.float32)
