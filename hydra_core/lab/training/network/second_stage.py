"""Fits the second heads on what the quantised encoder gives and reads, and their shares."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from hydra_core.base.types import BoolArray, Float32Array
from hydra_core.lab.training.network.heads import (
    KernelConfig,
    LayeredHead,
    WordConfig,
    WordHead,
    fit_layered,
    fit_words,
)
from hydra_core.lab.training.network.model import Predictor
from hydra_core.lab.training.ship.card import parallel_report, pool_on
from hydra_core.lab.training.ship.export import export_module, feed_of, session, variant_of
from hydra_core.lab.training.ship.release import pearsons
from hydra_core.lab.training.texts.augment import attack
from hydra_core.lab.training.texts.dataset import Message, Origin, Splits
from hydra_core.lab.training.texts.encode import collate, token_ids
from hydra_core.predictor.score_bands import score_bands
from hydra_core.routing.conversations.context import LastTurn

KERNEL_SHARES = (0.0, 0.2, 0.35, 0.5, 0.65, 0.8)
WORD_SHARES = (0.0, 0.1, 0.2, 0.3)  # more would be a bag of words with an encoder beside it

# Real messages are what these heads are for. What we wrote and what was replayed is of another
# kind, and our own tasks, which the encoder learns from, weigh little as labels: they are here for
# their families, whose scores should lie together.
_WEIGHT: Mapping[Origin, float] = {
    "corpus": 1.0, "parallel": 1.5, "ours": 0.7, "written": 0.25, "outcomes": 1.0, "extra": 1.0,
}  # fmt: skip

# The head that reads words learns from these alone: what we wrote and what was replayed has words
# of its own. Fitted on all, its share of .2 was worth .005 less Pearson on validation messages, and
# the wordings of held tasks lay 5 % further apart.
_WORDS_OF: frozenset[Origin] = frozenset({"corpus", "parallel", "ours"})
_TASKS = 0.3  # of our own tasks, by `_WORDINGS` languages
_WORDINGS = 5
#: Tokens of a message at most, in fitting and in choosing shares.
_FIT_CAP, _CHOICE_CAP = 256, 512
_ATTACKED = 0.1  # of the messages have a copy that carries a claim
_WORKERS = 2

Read = Callable[[Sequence[Sequence[int]]], tuple[Float32Array, Float32Array]]
"""Rows of ids -> (n, layers * width) text vectors and (n, K) scores of the main heads."""


@dataclass(frozen=True, slots=True)
class SecondHeads:
    """What stands beside the main heads, with its shares of the score."""

    kernel: LayeredHead
    words: WordHead
    kernel_share: float
    word_share: float
    worth: Mapping[str, float]

    def facts(self, kernel: KernelConfig, words: WordConfig) -> dict[str, object]:
        """For the record of the bundle."""
        return {
            "kernel": asdict(kernel) | {"share": self.kernel_share},
            "words": asdict(words) | {"share": self.word_share},
            "validation_worth_by_shares": dict(self.worth),
        }


class _Vectors(nn.Module):
    def __init__(self, model: Predictor) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.model.layered(input_ids, attention_mask)


def vectors(model: Predictor, rows: Sequence[Sequence[int]]) -> Float32Array:
    """(n,) rows of ids -> (n, layers * width) text vectors of the INT8 encoder."""
    with tempfile.TemporaryDirectory() as name:
        source = export_module(_Vectors(model), model, Path(name) / "v.onnx", "vectors")
        graph = session(variant_of(source, "int8_full", Path(name) / "v8.onnx"))

    def one(row: Sequence[int]) -> Float32Array:
        return np.asarray(graph.run(None, feed_of(graph, row))[0][0], np.float32)

    with ThreadPoolExecutor(_WORKERS) as pool:
        return np.stack(list(pool.map(one, rows)))


@dataclass(frozen=True, slots=True)
class Wordings:
    """Texts, (n, K) labels, (n,) weights, (n,) numbers of families, -1 for none, (n,) for words."""

    texts: list[LastTurn]
    labels: Float32Array
    weight: Float32Array
    family: NDArray[np.int64]
    for_words: BoolArray


def wordings(messages: Sequence[Message], *, attacked: float, seed: int) -> Wordings:
    """Labelled messages, some with a copy that carries a claim, and a sample of our tasks."""
    rng = np.random.default_rng(seed)
    names: dict[str, int] = {}
    rows: list[tuple[LastTurn, tuple[float, ...], float, int, bool]] = []
    for message in _sampled(messages, rng):
        copies = [message.asked]
        if message.task is None and rng.random() < attacked:
            copies.append(copies[0]._replace(text=attack(message.text, message.lang, rng)))
        name = message.task or (message.id if len(copies) > 1 else None)
        number = -1 if name is None else names.setdefault(name, len(names))
        weight, for_words = _WEIGHT[message.origin], message.origin in _WORDS_OF
        rows += [(copy, message.labels or (), weight, number, for_words) for copy in copies]
    texts, labels, weights, family, kept = zip(*rows, strict=True)
    return Wordings(
        list(texts), np.array(labels, np.float32), np.array(weights, np.float32),
        np.array(family, np.int64), np.array(kept, np.bool_),
    )  # fmt: skip


def _sampled(messages: Sequence[Message], rng: np.random.Generator) -> list[Message]:
    out = [m for m in messages if m.origin in _WEIGHT and m.origin != "extra"]
    tasks: dict[str, list[Message]] = {}
    for message in messages:
        if message.origin == "extra" and message.task is not None:
            tasks.setdefault(message.task, []).append(message)
    for wordings_of in tasks.values():
        if rng.random() < _TASKS:
            out += [wordings_of[i] for i in rng.permutation(len(wordings_of))[:_WORDINGS]]
    return out


def reader(model: Predictor) -> Read:
    """What the INT8 encoder of a trained model gives, and its main heads say."""

    def read(rows: Sequence[Sequence[int]]) -> tuple[Float32Array, Float32Array]:
        seen = vectors(model, rows)
        with torch.inference_mode():
            last = torch.tensor(seen[:, -model.config.width :])
            return seen, torch.sigmoid(model.heads(last)).numpy()

    return read


def fit_second(
    read: Read, tokenizer: Tokenizer, splits: Splits, kernel: KernelConfig, words: WordConfig,
    catalog: Path, *, layers: int, vocab: int,
) -> SecondHeads:  # fmt: skip
    """Fit the second heads on the training split, their shares on validation and held tasks.

    Args:
        read: gives the vectors that the heads will see at run time.
        splits: training messages, and those that choose the shares.
        catalog: on which routes are compared.
        layers: blocks of columns in the text vectors.
        vocab: rows of the word table.
    """
    known = wordings(splits.train, attacked=_ATTACKED, seed=kernel.seed)
    rows = token_ids(tokenizer, known.texts, _FIT_CAP)
    judges = [*splits.validation, *splits.tasks]
    ids = token_ids(tokenizer, [m.asked for m in judges], _CHOICE_CAP)
    seen, said = read([*rows, *ids])
    first = len(rows)
    second = fit_layered(seen[:first], known.labels, known.weight, kernel, layers, known.family)
    chosen = np.flatnonzero(known.for_words)
    third = fit_words(
        [rows[i] for i in chosen], known.labels[chosen], known.weight[chosen], vocab, words
    )
    with torch.inference_mode():
        near = second(torch.tensor(seen[first:])).numpy()
        batch = [collate([row]) for row in ids]
        heard = np.concatenate([third(b.input_ids, b.attention_mask).numpy() for b in batch])
    found: dict[tuple[float, float], float] = {}
    for k, w in product(KERNEL_SHARES, WORD_SHARES):
        scores = (1 - w) * ((1 - k) * said[first:] + k * near) + w * heard
        found[k, w] = worth(judges, scores, catalog)
    shares = max(found, key=lambda pair: found[pair])
    return SecondHeads(
        second, third, *shares, {f"{k}, {w}": round(v, 4) for (k, w), v in found.items()}
    )


def add_heads(model: Predictor, heads: SecondHeads) -> None:
    """Put second heads into a model, in place; one without a share stays out."""
    model.kernel_share, model.word_share = heads.kernel_share, heads.word_share
    model.kernel = heads.kernel if heads.kernel_share else None
    model.words = heads.words if heads.word_share else None


def worth(messages: Sequence[Message], scores: Float32Array, catalog: Path) -> float:
    """What a choice of shares is judged by.

    Pearson on messages, 0.3 of that on tasks, and half of the share of routes as in English.
    """
    truth = np.array([m.labels for m in messages])
    task = np.array([m.task is not None for m in messages])
    tasks = [m for m in messages if m.task is not None]
    plain, hard = (np.mean(pearsons(scores[part], truth[part])) for part in (~task, task))
    models = pool_on(catalog, [(b.lo, b.hi) for b in score_bands(scores[~task])])
    same = parallel_report(tasks, scores[task], models).same_route
    return float(plain + 0.3 * hard + 0.5 * np.mean(list(same.values())))
