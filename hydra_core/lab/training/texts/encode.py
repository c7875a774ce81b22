"""Message -> token ids, by the console's own rules (`hydra_core/predictor/tokens.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import torch
from tokenizers import Tokenizer
from torch import Tensor

from hydra_core.lab.training.texts.dataset import Message
from hydra_core.predictor.tokens import model_text, shorten
from hydra_core.routing.conversations.context import LastTurn

_PAD = 1


@dataclass(frozen=True, slots=True)
class Batch:
    """(b, t) int64 ids and mask."""

    input_ids: Tensor
    attention_mask: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same batch where a model is."""
        return Batch(self.input_ids.to(device), self.attention_mask.to(device))


def token_ids(
    tokenizer: Tokenizer, texts: Sequence[str | LastTurn], max_tokens: int
) -> list[list[int]]:
    """Ids of prefix, context and message, at most `max_tokens` each, specials included.

    A text alone is a first turn, with nothing before it.
    """
    asked = [LastTurn(text) if isinstance(text, str) else text for text in texts]
    full = [model_text(a.text, a.turn, max_tokens, context=a.context) for a in asked]
    return [shorten(e.ids, max_tokens) for e in tokenizer.encode_batch(full)]


class Columns(TypedDict):
    """Messages as a predictor takes them, (n,) each."""

    texts: list[str]
    turns: list[int]
    contexts: list[str]


def columns(messages: Sequence[Message]) -> Columns:
    """What `Predictor.predict_batches` is to score."""
    return {
        "texts": [m.text for m in messages],
        "turns": [m.turn for m in messages],
        "contexts": [m.context for m in messages],
    }


def collate(rows: Sequence[Sequence[int]]) -> Batch:
    """Rows of ids -> one padded batch, as long as its longest row."""
    longest = max(len(row) for row in rows)
    ids = torch.full((len(rows), longest), _PAD, dtype=torch.long)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
        mask[i, : len(row)] = 1
    return Batch(ids, mask)


def buckets(lengths: Sequence[int], batch: int, tokens: int = 8192) -> list[list[int]]:
    """Index batches of like length: at most `batch` rows and `tokens` padded tokens."""
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    out: list[list[int]] = []
    for i in order:
        if not out or len(out[-1]) == batch or lengths[i] * (len(out[-1]) + 1) > tokens:
            out.append([])
        out[-1].append(i)
    return out
