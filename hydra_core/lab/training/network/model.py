"""The predictor network: an encoder, pooling, dropout and K sigmoid heads."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import BertConfig, BertModel, ModernBertConfig, ModernBertModel, PreTrainedModel

from hydra_core.base.types import DIMENSIONS, Float32Array
from hydra_core.lab.training.network.heads import LayeredHead, WordHead
from hydra_core.lab.training.network.pretrained import PretrainedPack
from hydra_core.lab.training.texts.encode import buckets, collate, token_ids
from hydra_core.routing.conversations.context import LastTurn

Kind = Literal["bert", "modernbert"]
Pooling = Literal["cls", "mean"]


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """Everything that fixes the shape of the network.

    `dimensions` is data: K heads, one for each name. `max_tokens` caps the input (the paper: 512).
    `dropout` stands before the heads, as in the paper, `encoder_dropout` behind every block of the
    encoder; attention has none, which keeps it on its fast path. `conversation` is the form of the
    context that it reads before a message, 0 for the message alone.
    """

    kind: Kind = "bert"
    pooling: Pooling = "mean"
    vocab: int = 50_000
    width: int = 384
    layers: int = 6
    heads: int = 12
    intermediate: int = 1536
    max_tokens: int = 512
    dropout: float = 0.1
    encoder_dropout: float = 0.0
    dimensions: tuple[str, ...] = DIMENSIONS
    conversation: int = 0

    @staticmethod
    def modernbert_base() -> EncoderConfig:
        """The paper's encoder: 149M parameters, [CLS] pooling."""
        return EncoderConfig(
            "modernbert", "cls", vocab=50_368, width=768, layers=22, heads=12, intermediate=1152
        )


def build_encoder(config: EncoderConfig) -> PreTrainedModel:
    """A randomly initialised encoder with eager attention (fewer ONNX nodes)."""
    eager: dict[str, Any] = {"attn_implementation": "eager"}
    if config.kind == "bert":
        return BertModel(
            BertConfig(
                vocab_size=config.vocab, hidden_size=config.width, pad_token_id=1,
                num_hidden_layers=config.layers, num_attention_heads=config.heads,
                intermediate_size=config.intermediate, max_position_embeddings=config.max_tokens,
                hidden_dropout_prob=config.encoder_dropout,
                attention_probs_dropout_prob=0.0,
                layer_norm_eps=1e-12, **eager,
            ),
            add_pooling_layer=False,
        )  # fmt: skip
    return ModernBertModel(
        ModernBertConfig(
            vocab_size=config.vocab, hidden_size=config.width, pad_token_id=1, cls_token_id=0,
            bos_token_id=0, sep_token_id=2, eos_token_id=2, num_hidden_layers=config.layers,
            num_attention_heads=config.heads, intermediate_size=config.intermediate,
            max_position_embeddings=max(config.max_tokens, 512),
            embedding_dropout=config.encoder_dropout, mlp_dropout=config.encoder_dropout,
            attention_dropout=0.0, **eager,
        )
    )  # fmt: skip


class Predictor(nn.Module):
    """(b, t) token ids and mask -> (b, K) requirement scores in (0, 1)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = build_encoder(config)
        self.dropout = nn.Dropout(config.dropout)
        # K independent linear heads are the K rows of one matrix.
        self.heads = nn.Linear(config.width, len(config.dimensions))
        nn.init.normal_(self.heads.weight, std=0.02)
        nn.init.constant_(self.heads.bias, -2.0)
        self.kernel: LayeredHead | None = None
        self.words: WordHead | None = None
        self.kernel_share = self.word_share = 0.0
        self.layers_seen: tuple[int, ...] = (config.layers * 2 // 3, config.layers)

    def logits(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(b, t), (b, t) -> (b, K) before the sigmoid."""
        return self.heads(self.dropout(self.pooled(input_ids, attention_mask)))

    def pooled(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(b, t), (b, t) -> (b, width) text vectors."""
        out = self.encoder(input_ids=input_ids, attention_mask=attention_mask)
        return self._pool(out.last_hidden_state, attention_mask)

    def layered(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(b, t), (b, t) -> (b, layers * width) text vectors of `layers_seen`, last one last."""
        out = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=True
        )
        seen = [self._pool(out.hidden_states[i], attention_mask) for i in self.layers_seen]
        return torch.cat(seen, 1)

    def _pool(self, hidden: Tensor, attention_mask: Tensor) -> Tensor:
        if self.config.pooling == "cls":
            return hidden[:, 0]
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        return (hidden * mask).sum(1) / mask.sum(1)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(b, t), (b, t) -> (b, K) scores. Eq. 1 of the paper's predictor.

        The scores of the second heads, where there are any, are blended in by their shares.
        """
        if self.kernel is None:
            scores = torch.sigmoid(self.logits(input_ids, attention_mask))
        else:
            seen = self.layered(input_ids, attention_mask)
            scores = torch.sigmoid(self.heads(seen[:, -self.config.width :]))
            scores = scores + self.kernel_share * (self.kernel(seen) - scores)
        if self.words is not None:
            scores = scores + self.word_share * (self.words(input_ids, attention_mask) - scores)
        return scores


def from_pack(
    pack: PretrainedPack,
    config: EncoderConfig,
    rows: NDArray[np.int64],
    layers: Sequence[int],
) -> Predictor:
    """A BERT predictor with chosen layers and rows of a pretrained pack.

    Args:
        config: its vocab and layers are replaced by what is chosen.
        rows: (v,) rows of the word table to keep.
        layers: which pretrained layers become layers 0, 1, ...
    """
    config = replace(
        config, kind="bert", vocab=len(rows), layers=len(layers), width=pack.width,
        heads=pack.heads, intermediate=pack.intermediate,
    )  # fmt: skip
    model = Predictor(config)
    missing, unexpected = model.encoder.load_state_dict(
        _bert_state(pack.tensors, rows, layers, config.max_tokens), strict=False
    )
    assert not unexpected, unexpected
    assert all("position_ids" in name for name in missing), missing
    return model


_LAYER_NAMES = {
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
    "ao": "attention.output.dense", "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm",
}  # fmt: skip


def _bert_state(
    tensors: Mapping[str, NDArray[np.float32]],
    rows: NDArray[np.int64],
    layers: Sequence[int],
    positions: int,
) -> dict[str, Tensor]:
    state = {
        "embeddings.word_embeddings.weight": torch.tensor(tensors["emb.word"][rows]),
        "embeddings.position_embeddings.weight": torch.tensor(tensors["emb.pos"][:positions]),
        "embeddings.token_type_embeddings.weight": torch.tensor(tensors["emb.type"]),
        "embeddings.LayerNorm.weight": torch.tensor(tensors["emb.ln.w"]),
        "embeddings.LayerNorm.bias": torch.tensor(tensors["emb.ln.b"]),
    }
    for new, old in enumerate(layers):
        for short, name in _LAYER_NAMES.items():
            for suffix, word in (("w", "weight"), ("b", "bias")):
                key = f"encoder.layer.{new}.{name}.{word}"
                state[key] = torch.tensor(tensors[f"l{old}.{short}.{suffix}"])
    return state


def init_table(model: Predictor, table: NDArray[np.float32]) -> None:
    """Set the word table of a ModernBERT student from pretrained rows.

    A narrower student takes the leading principal directions of the table
    (v, d) -> (v, width), rescaled to the initial spread of its own table.
    """
    weight = cast(Tensor, model.encoder.get_input_embeddings().weight)
    if table.shape[1] != weight.shape[1]:
        centred = table - table.mean(0)
        _, _, axes = np.linalg.svd(centred[:: max(1, len(table) // 20_000)], full_matrices=False)
        table = np.asarray(centred @ axes[: weight.shape[1]].T, np.float32)
    with torch.no_grad():
        weight.copy_(torch.tensor(table * (weight.std().item() / float(table.std()))))


def predict(
    model: Predictor, tokenizer: Tokenizer, texts: Sequence[str | LastTurn], *,
    max_tokens: int = 512, batch: int = 64, precision: str = "fp32",
) -> Float32Array:  # fmt: skip
    """Texts -> (n, K) scores, in length-bucketed batches."""
    rows = token_ids(tokenizer, texts, max_tokens)
    out = np.zeros((len(rows), len(model.config.dimensions)), np.float32)
    model.eval()
    device, half = next(model.parameters()).device, precision == "bf16"
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=half):
        for block in buckets([len(r) for r in rows], batch):
            data = collate([rows[i] for i in block]).to(device)
            out[block] = model(data.input_ids, data.attention_mask).float().cpu().numpy()
    return out


def save_weights(model: Predictor, path: Path) -> None:
    """Write the state of a model, whole or not at all."""
    part = path.with_suffix(".part")
    torch.save(model.state_dict(), part)
    os.replace(part, path)


def load_weights(path: Path) -> dict[str, Tensor]:
    """Read what `save_weights` wrote; tensors only, nothing is executed."""
    return torch.load(path, weights_only=True, map_location="cpu")
