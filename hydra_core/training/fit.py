"""The training loop: the paper's recipe, resumable, with early stopping."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn
from tqdm import tqdm

from hydra_core.training.encode import buckets, collate, token_ids
from hydra_core.training.model import Predictor

log = logging.getLogger(__name__)
FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Example:
    """One training text: (K,) targets in [0, 1] and its weight in the loss.

    `anchor` is the same request in other words whose score must be equal: a
    translation, or the text before an appended claim of difficulty.
    """

    text: str
    target: tuple[float, ...]
    weight: float = 1.0
    anchor: str | None = None


Draw = Callable[[int], list[Example]]
"""Epoch number -> the examples of that epoch, freshly augmented."""


@dataclass(frozen=True, slots=True)
class FitConfig:
    """The recipe. Defaults are the paper's where the paper states them."""

    epochs: int = 5
    batch: int = 32
    learning_rate: float = 5e-5
    head_learning_rate: float = 1e-3
    weight_decay: float = 0.01
    warmup: float = 0.1
    seed: int = 42
    max_tokens: int = 256
    dimension_weights: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)
    consistency: float = 0.0
    freeze_table: bool = True
    patience: int = 2
    precision: str = "bf16"
    save_every: int = 200


@dataclass(frozen=True, slots=True)
class FitResult:
    """What a run leaves behind."""

    best_score: float
    best_epoch: int
    steps: int
    seconds: float
    history: list[dict[str, float]] = field(default_factory=list)


def weighted_bce(logits: Tensor, targets: Tensor, alpha: Tensor, weight: Tensor) -> Tensor:
    """(b, K), (b, K), (K,), (b,) -> scalar. The paper's training objective."""
    each = nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    rows = (each * alpha).sum(1) / alpha.sum()
    return (rows * weight).sum() / weight.sum()


def parameter_groups(model: Predictor, config: FitConfig) -> list[dict[str, object]]:
    """Encoder and heads at their own rates; norms and biases without decay."""
    if config.freeze_table:
        model.encoder.get_input_embeddings().weight.requires_grad_(False)
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        rate = config.head_learning_rate if "heads" in name else config.learning_rate
        decay = config.weight_decay if parameter.ndim > 1 else 0.0
        groups.setdefault((rate, decay), []).append(parameter)
    return [{"params": p, "lr": r, "weight_decay": d} for (r, d), p in groups.items()]


class Fitter:
    """Trains one model in one folder; `run` picks up where it was stopped."""

    def __init__(
        self, model: Predictor, tokenizer: Tokenizer, config: FitConfig, folder: Path
    ) -> None:
        self.model, self.tokenizer, self.config = model, tokenizer, config
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.optimizer = torch.optim.AdamW(parameter_groups(model, config))
        self.step, self.epoch, self.best = 0, 0, (-1.0, -1)
        self.history: list[dict[str, float]] = []

    def run(self, draw: Draw, judge: Callable[[Predictor], dict[str, float]]) -> FitResult:
        """Train until the epochs are done or `judge`'s "score" stops rising.

        Args:
            draw: gives the examples of an epoch.
            judge: validation metrics of the model; "score" chooses the epoch.
        """
        started = time.monotonic()
        torch.manual_seed(self.config.seed)
        self._resume()
        total = max(1, self.config.epochs * self._steps_per_epoch(draw))
        while self.epoch < self.config.epochs:
            self._train_epoch(draw(self.epoch), total)
            self.epoch += 1
            metrics = judge(self.model)
            self.history.append({"epoch": self.epoch, "step": self.step, **metrics})
            log.info("epoch %d: %s", self.epoch, json.dumps(metrics))
            if metrics["score"] > self.best[0]:
                self.best = (metrics["score"], self.epoch)
                save_weights(self.model, self.folder / "best.pt")
            self._save()
            if self.epoch - self.best[1] >= self.config.patience:
                break
        self.model.load_state_dict(load_weights(self.folder / "best.pt"))
        seconds = time.monotonic() - started
        result = FitResult(*self.best, self.step, seconds, self.history)
        record = {"config": asdict(self.config), "result": asdict(result)}
        (self.folder / "run.json").write_text(json.dumps(record, indent=1) + "\n")
        return result

    def _steps_per_epoch(self, draw: Draw) -> int:
        return len(self._batches(draw(0), np.random.default_rng(0)))

    def _batches(self, examples: Sequence[Example], rng: np.random.Generator) -> list[list[int]]:
        # Like lengths share a batch, drawn from pools so that batches stay mixed.
        lengths = np.array([len(e.text.encode()) for e in examples])
        pools = np.array_split(rng.permutation(len(examples)), max(1, len(examples) // 1024))
        out = [
            [int(pool[i]) for i in block]
            for pool in pools
            for block in buckets(lengths[pool].tolist(), self.config.batch, tokens=1 << 60)
        ]
        rng.shuffle(out)
        return out

    def _train_epoch(self, examples: Sequence[Example], total: int) -> None:
        rng = np.random.default_rng((self.config.seed, self.epoch))
        batches = self._batches(examples, rng)
        done = self.step - self.epoch * len(batches) if self.step else 0
        self.model.train()
        bar = tqdm(batches[max(0, done) :], desc=f"epoch {self.epoch + 1}", mininterval=10)
        for block in bar:
            for group in self.optimizer.param_groups:
                group.setdefault("peak", group["lr"])
                group["lr"] = group["peak"] * rate_at(self.step, total, self.config.warmup)
            loss = self._update([examples[i] for i in block])
            self.step += 1
            bar.set_postfix(loss=f"{loss:.4f}")
            if self.step % self.config.save_every == 0:
                self._save()

    def _update(self, rows: Sequence[Example]) -> float:
        loss = self._loss(rows)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return float(loss.detach())

    def _loss(self, rows: Sequence[Example]) -> Tensor:
        targets = torch.tensor([r.target for r in rows], dtype=torch.float32)
        weight = torch.tensor([r.weight for r in rows], dtype=torch.float32)
        alpha = torch.tensor(self.config.dimension_weights)
        logits = self._logits([r.text for r in rows])
        loss = weighted_bce(logits, targets, alpha, weight)
        paired = [i for i, r in enumerate(rows) if r.anchor is not None]
        if paired and self.config.consistency:
            other = self._logits([rows[i].anchor or "" for i in paired])
            gap = torch.sigmoid(logits[paired]) - torch.sigmoid(other)
            loss = loss + self.config.consistency * gap.square().sum(1).mean()
        return loss

    def _logits(self, texts: Sequence[str]) -> Tensor:
        batch = collate(token_ids(self.tokenizer, texts, self.config.max_tokens))
        with torch.autocast("cpu", torch.bfloat16, enabled=self.config.precision == "bf16"):
            return self.model.logits(batch.input_ids, batch.attention_mask).float()

    def _save(self) -> None:
        state = {
            "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
            "step": self.step, "epoch": self.epoch, "best": list(self.best),
            "history": self.history,
        }  # fmt: skip
        part = self.folder / "last.pt.part"
        torch.save(state, part)
        os.replace(part, self.folder / "last.pt")

    def _resume(self) -> None:
        last = self.folder / "last.pt"
        if not last.is_file():
            return
        state = torch.load(last, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.epoch = state["step"], state["epoch"]
        self.best, self.history = tuple(state["best"]), state["history"]
        log.info("resumed at step %d", self.step)


def rate_at(step: int, total: int, warmup: float) -> float:
    """Share of the peak rate: linear warm-up, then a cosine to zero."""
    rise = max(1, int(total * warmup))
    if step < rise:
        return (step + 1) / rise
    return float(0.5 * (1 + np.cos(np.pi * min(1.0, (step - rise) / max(1, total - rise)))))


def save_weights(model: Predictor, path: Path) -> None:
    """Write the state of a model, whole or not at all."""
    part = path.with_suffix(".part")
    torch.save(model.state_dict(), part)
    os.replace(part, path)


def load_weights(path: Path) -> dict[str, Tensor]:
    """Read what `save_weights` wrote; tensors only, nothing is executed."""
    state: dict[str, Tensor] = torch.load(path, weights_only=True)
    return state


def predict(
    model: Predictor, tokenizer: Tokenizer, texts: Sequence[str], *,
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
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        for block in buckets([len(r) for r in rows], batch):
            data = collate([rows[i] for i in block])
            scores = model(data.input_ids, data.attention_mask).float()
            yield block, np.asarray(scores.numpy(), np.float32)
