"""The training loop: the paper's recipe, resumable, with early stopping, on one or more cores.

Several processes can train one model together, one core each. Gradients are added up, so the
outcome is that of one process apart from rounding and dropout. They wait for each other once an
update, so they are faster than one process of two threads.
"""

import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
import torch
import torch.distributed as dist
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.multiprocessing.spawn import spawn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from tqdm import tqdm

from hydra_core.base.types import Float32Array
from hydra_core.lab.training.network.model import Predictor, load_weights, save_weights
from hydra_core.lab.training.texts.augment import Family
from hydra_core.lab.training.texts.encode import buckets, collate, token_ids
from hydra_core.routing.conversations.context import LastTurn

T = TypeVar("T")


class Team:
    """One process among `size`; alone by default."""

    def __init__(self, rank: int = 0, size: int = 1, meeting: Path | None = None) -> None:
        """Args: own number, number of processes, a new file through which they find each other."""
        self.rank, self.size = rank, size
        if size > 1:
            assert meeting is not None
            dist.init_process_group(
                "gloo", init_method=meeting.resolve().as_uri(), rank=rank, world_size=size
            )

    def share(self, make: Callable[[], T]) -> T:
        """What `make` gives on the first process, on every process."""
        if self.size == 1:
            return make()
        box: list[T | None] = [make() if self.rank == 0 else None]
        dist.broadcast_object_list(box)
        made = box[0]
        assert made is not None
        return made

    def part(self, families: Sequence[Family]) -> list[Family]:
        """This process's families: parts of about equal work."""
        order = sorted(families, key=lambda f: -_work(f))
        parts: list[list[Family]] = [[] for _ in range(self.size)]
        loads = [0] * self.size
        for family in order:
            least = loads.index(min(loads))
            parts[least].append(family)
            loads[least] += _work(family)
        return parts[self.rank]

    def add_gradients(self, model: nn.Module) -> None:
        """Replace every gradient by the sum over the processes."""
        if self.size == 1:
            return
        trained = [p for p in model.parameters() if p.requires_grad]
        for parameter in trained:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [p.grad for p in trained if p.grad is not None]
        flat = parameters_to_vector(gradients)
        dist.all_reduce(flat)
        vector_to_parameters(flat, gradients)

    def wait(self) -> None:
        """Until every process is here."""
        if self.size > 1:
            dist.barrier()


def _work(family: Family) -> int:
    """Bytes of the wordings; what is longer than about 200 tokens is cut before it costs more."""
    return sum(min(len(row.text.encode()), 900) + 40 for row in family)


def together(size: int, job: Callable[[Team], None]) -> None:
    """Run `job`, which must be picklable, in `size` processes of one thread each."""
    with TemporaryDirectory() as folder:
        spawn(_member, (size, Path(folder) / "meeting", job), nprocs=size)


def _member(rank: int, size: int, meeting: Path, job: Callable[[Team], None]) -> None:
    torch.set_num_threads(1)
    job(Team(rank, size, meeting))


_BINS = np.linspace(0.0, 1.0, 21)
_WIDTH = 0.08  # of the smoothing, in labels: a little under one step of the scale
_MOST = 4.0


@dataclass(frozen=True, slots=True)
class Rarity:
    """(bins, K) weights of labels at `_BINS`; the commonest label of a dimension weighs 1."""

    weights: Float32Array

    def __call__(self, targets: Float32Array) -> Float32Array:
        """(n, K) targets -> (n, K) weights."""
        each = [np.interp(targets[:, k], _BINS, w) for k, w in enumerate(self.weights.T)]
        return np.stack(each, 1).astype(np.float32)


def rarity_of(labels: Float32Array, power: float) -> Rarity:
    """(n, K) labels -> weights; `power` 0 weighs all alike, 0.5 is the usual square root."""
    edges = np.append(_BINS - 0.025, 1.025)
    near = np.exp(-0.5 * ((_BINS[:, None] - _BINS) / _WIDTH) ** 2)
    near /= near.sum(1, keepdims=True)
    columns = []
    for k in range(labels.shape[1]):
        density = near @ np.histogram(labels[:, k], edges)[0]
        common = density.max()
        columns.append(np.minimum((np.maximum(density, 1e-9) / common) ** -power, _MOST))
    return Rarity(np.stack(columns, 1).astype(np.float32))


log = logging.getLogger(__name__)


Draw = Callable[[int], list[Family]]
"""Epoch number -> the families of that epoch, freshly augmented."""


@dataclass(frozen=True, slots=True)
class FitConfig:
    """The recipe. Defaults are the paper's where the paper states them.

    `steps` ends the run after that many updates, 0 leaves it to `epochs`. `consistency` weighs the
    spread of scores inside a family, `rarity` is the power by which rare labels weigh more.
    """

    epochs: int = 5
    steps: int = 0
    batch: int = 32
    learning_rate: float = 5e-5
    head_learning_rate: float = 1e-3
    weight_decay: float = 0.01
    warmup: float = 0.1
    seed: int = 42
    max_tokens: int = 256
    dimension_weights: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)
    consistency: float = 0.0
    rarity: float = 0.0
    freeze_table: bool = True
    patience: int = 2
    precision: str = "bf16"
    save_every: int = 200


@dataclass(frozen=True, slots=True)
class FitResult:
    best_score: float
    best_epoch: int
    steps: int
    seconds: float
    history: list[dict[str, float]] = field(default_factory=list)


def weighted_bce(
    logits: Tensor, targets: Tensor, alpha: Tensor, weight: Tensor, rare: Tensor | None = None
) -> Tensor:
    """(b, K), (b, K), (K,), (b,) -> scalar. The paper's training objective.

    `rare`, (b, K), weighs single labels on top.
    """
    each = nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    each = each if rare is None else each * rare
    rows = (each * alpha).sum(1) / alpha.sum()
    return (rows * weight).sum() / weight.sum()


def squared_spread(scores: Tensor, owner: Tensor, families: int) -> Tensor:
    """(n, K) scores, (n,) family of each -> scalar: squared distances from the family's mean."""
    counts = scores.new_zeros(families).index_add_(0, owner, scores.new_ones(len(owner)))
    means = scores.new_zeros(families, scores.shape[1]).index_add_(0, owner, scores)
    return (scores - (means / counts[:, None])[owner]).square().sum()


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
        self,
        model: Predictor,
        tokenizer: Tokenizer,
        config: FitConfig,
        folder: Path,
        team: Team | None = None,
    ) -> None:
        self.model, self.tokenizer, self.config = model, tokenizer, config
        self.folder, self.team = folder, team or Team()
        folder.mkdir(parents=True, exist_ok=True)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model.to(self.device)
        self.optimizer = torch.optim.AdamW(parameter_groups(model, config))
        self.step, self.epoch, self.best = 0, 0, (-1.0, -1)
        self.history: list[dict[str, float]] = []
        self.rarity: Rarity | None = None

    def run(self, draw: Draw, judge: Callable[[Predictor], dict[str, float]]) -> FitResult:
        """Train until the epochs or steps are done or `judge`'s "score" stops rising.

        Args:
            judge: validation metrics of the model; "score" chooses the epoch.
        """
        started = time.monotonic()
        torch.manual_seed(self.config.seed + self.team.rank)
        self._resume()
        total = self.config.steps
        while self.epoch < self.config.epochs and not (total and self.step >= total):
            families = self.team.share(lambda: draw(self.epoch))
            if self.config.rarity:
                targets = [row.target for family in families for row in family]
                self.rarity = rarity_of(np.array(targets, np.float32), self.config.rarity)
            steps = self._steps(families)
            total = total or max(1, self.config.epochs * len(steps))
            self._train_epoch(steps, total)
            self.epoch += 1
            self._judged(self.team.share(lambda: judge(self.model)))
            if self.epoch - self.best[1] >= self.config.patience:
                break
        self.model.load_state_dict(load_weights(self.folder / "best.pt"))
        seconds = time.monotonic() - started
        result = FitResult(*self.best, self.step, seconds, self.history)
        if self.team.rank == 0:
            record = {"config": asdict(self.config), "result": asdict(result)}
            (self.folder / "run.json").write_text(json.dumps(record, indent=1) + "\n")
        return result

    def _judged(self, metrics: dict[str, float]) -> None:
        self.history.append({"epoch": self.epoch, "step": self.step, **metrics})
        better = metrics["score"] > self.best[0]
        if better:
            self.best = (metrics["score"], self.epoch)
        if self.team.rank == 0:
            log.info("epoch %d: %s", self.epoch, json.dumps(metrics))
            if better:
                save_weights(self.model, self.folder / "best.pt")
            self._save()
        self.team.wait()

    def _steps(self, families: Sequence[Family]) -> list[list[Family]]:
        """Families in random order, at least `batch` wordings an update."""
        rng = np.random.default_rng((self.config.seed, self.epoch))
        out: list[list[Family]] = [[]]
        rows = 0
        for i in rng.permutation(len(families)):
            if rows >= self.config.batch:
                out.append([])
                rows = 0
            out[-1].append(families[i])
            rows += len(families[i])
        return out

    def _train_epoch(self, steps: Sequence[list[Family]], total: int) -> None:
        done = max((int(h["step"]) for h in self.history), default=0)
        self.model.train()
        quiet = self.team.rank > 0
        bar = tqdm(
            steps[max(0, self.step - done) :], desc=f"epoch {self.epoch + 1}", mininterval=10,
            disable=quiet,
        )  # fmt: skip
        for families in bar:
            for group in self.optimizer.param_groups:
                group.setdefault("peak", group["lr"])
                group["lr"] = group["peak"] * rate_at(self.step, total, self.config.warmup)
            loss = self._update(families)
            self.step += 1
            bar.set_postfix(loss=f"{loss:.4f}")
            if self.step % self.config.save_every == 0 and not quiet:
                self._save()
            if self.step >= total:
                break

    def _update(self, families: Sequence[Family]) -> float:
        weight = sum(row.weight for family in families for row in family)
        loss = self._loss(self.team.part(families), weight)
        self.optimizer.zero_grad()
        if loss is not None:
            loss.backward()
        self.team.add_gradients(self.model)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return 0.0 if loss is None else float(loss.detach())

    def _loss(self, families: Sequence[Family], weight: float) -> Tensor | None:
        """This worker's part of the loss; the parts of all workers add up to it."""
        rows = [row for family in families for row in family]
        if not rows:
            return None
        targets = torch.tensor([r.target for r in rows], dtype=torch.float32)
        each = torch.tensor([r.weight for r in rows], dtype=torch.float32, device=self.device)
        alpha = torch.tensor(self.config.dimension_weights, device=self.device)
        logits = self._logits([r.asked for r in rows])
        rare = None
        if self.rarity is not None:
            rare = torch.tensor(self.rarity(targets.numpy()), device=self.device)
        loss = weighted_bce(logits, targets.to(self.device), alpha, each, rare)
        loss = loss * each.sum() / weight
        if self.config.consistency:
            numbers = [i for i, family in enumerate(families) for _ in family]
            owner = torch.tensor(numbers, device=self.device)
            gap = squared_spread(torch.sigmoid(logits), owner, len(families))
            loss = loss + self.config.consistency * gap / weight
        return loss

    def _logits(self, texts: Sequence[LastTurn]) -> Tensor:
        """(n, K) logits; texts of like length go through the encoder together."""
        ids = token_ids(self.tokenizer, texts, self.config.max_tokens)
        out: list[Tensor] = []
        order: list[int] = []
        for block in buckets([len(row) for row in ids], len(ids), tokens=2048):
            batch = collate([ids[i] for i in block]).to(self.device)
            half = self.config.precision == "bf16"
            with torch.autocast(self.device.type, torch.bfloat16, enabled=half):
                out.append(self.model.logits(batch.input_ids, batch.attention_mask).float())
            order += block
        return torch.cat(out)[torch.argsort(torch.tensor(order, device=self.device))]

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
        state = torch.load(last, weights_only=True, map_location=self.device)
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
