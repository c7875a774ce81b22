"""One run of the recipe, from files to a trained predictor and its record, and its ablations."""

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from tokenizers import Tokenizer
from torch import Tensor

from hydra_core.base.errors import HydraError
from hydra_core.base.types import DIMENSIONS
from hydra_core.lab.training.network.fit import FitConfig, FitResult, Fitter, Team
from hydra_core.lab.training.network.model import (
    EncoderConfig,
    Predictor,
    from_pack,
    init_table,
    load_weights,
    predict,
)
from hydra_core.lab.training.network.pretrained import PretrainedPack, TrimmedVocab, read_pack, trim
from hydra_core.lab.training.ship.card import spread
from hydra_core.lab.training.ship.release import metrics, quality_of
from hydra_core.lab.training.texts.augment import AugmentConfig, Drawer, FloatPair
from hydra_core.lab.training.texts.dataset import (
    DataPaths,
    Message,
    SplitPlan,
    Splits,
    read_messages,
    split,
)

_QUANTISED = "_quantized"
_STEPS = 6  # nodes between a quantised product and the bias that is added to it


class RecoverError(HydraError):
    """A graph was not written by this project's exporter."""


def recovered(path: Path) -> dict[str, Tensor]:
    """State of the encoder and the main heads of an INT8 graph; second heads are left out.

    Raises:
        RecoverError: a matrix has no bias behind it, so nothing says where it belongs.
    """
    graph = onnx.load(path).graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    out = {
        name: value
        for name, value in tensors.items()
        if name.startswith("model.") and name.endswith((".bias", "LayerNorm.weight"))
    }
    for node in graph.node:
        for name in node.input:
            if name.endswith(_QUANTISED) and name in tensors:
                whole = _floats(tensors, name.removesuffix(_QUANTISED))
                out[_name(graph, node, name)] = whole if "embeddings" in name else whole.T
    kept = (".encoder.", ".heads.")
    return {
        name.removeprefix("model."): torch.tensor(np.ascontiguousarray(value, np.float32))
        for name, value in out.items()
        if name.startswith(tuple(f"model{part}" for part in kept))
    }


def _floats(tensors: dict[str, NDArray[np.generic]], base: str) -> NDArray[np.float32]:
    whole = tensors[f"{base}{_QUANTISED}"].astype(np.float32)
    zero = tensors[f"{base}_zero_point"].astype(np.float32)
    scale = tensors[f"{base}_scale"].astype(np.float32)
    return np.asarray((whole - zero) * scale, np.float32)


def _name(graph: onnx.GraphProto, node: onnx.NodeProto, matrix: str) -> str:
    if "embeddings" in matrix:
        return matrix.removesuffix(_QUANTISED)
    value = node.output[0]
    for _ in range(_STEPS):
        after = next((other for other in graph.node if value in other.input), None)
        if after is None:
            break
        bias = next((name for name in after.input if name.endswith(".bias")), None)
        if bias is not None:
            return f"{bias.removesuffix('bias')}weight"
        value = after.output[0]
    raise RecoverError(f"{matrix}: no bias follows; export the bundle with this project's exporter")


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weight in the loss by where a message comes from."""

    corpus: float = 1.0
    parallel: float = 2.0
    extra: float = 1.5
    ours: float = 0.7
    written: float = 0.7
    outcomes: float = 0.4
    unlabelled: float = 0.4


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides the outcome of a run, apart from the data.

    `layers` are the pretrained layers a BERT student starts from; a ModernBERT student takes only
    the word table. `soft` is the share of the teachers' scores in the targets of labelled messages.
    """

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    fit: FitConfig = field(default_factory=FitConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    plan: SplitPlan = field(default_factory=SplitPlan)
    weights: Weights = field(default_factory=Weights)
    layers: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    vocab: int = 44_000
    soft: float = 0.3
    unlabelled_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Material:
    """The parts a run is made of, read once."""

    splits: Splits
    tokenizer: Tokenizer
    model: Predictor
    digests: dict[str, str]


def prepare(paths: DataPaths, pack_file: Path, recipe: Recipe) -> Material:
    """Read data and pretrained weights, split, trim the vocabulary, build the model."""
    encoder = recipe.encoder
    messages = read_messages(paths, encoder.dimensions, conversation=encoder.conversation)
    splits = split(messages, recipe.plan)
    pack = read_pack(pack_file)
    trimmed = vocabulary(pack, messages, recipe.vocab)
    if encoder.kind == "bert":
        model = from_pack(pack, encoder, trimmed.rows, recipe.layers)
    else:
        model = Predictor(replace(encoder, vocab=len(trimmed.rows)))
        init_table(model, pack.tensors["emb.word"][trimmed.rows])
    return Material(splits, trimmed.tokenizer, model, paths.digests())


def vocabulary(pack: PretrainedPack, messages: Sequence[Message], size: int) -> TrimmedVocab:
    """The word rows to keep, by how often the messages use them.

    Parallel tasks weigh more: they alone hold every language evenly. What is added later stays
    out, so that a run can go on from the weights of an earlier one.
    """
    texts = [m.text for m in messages if m.origin in ("corpus", "parallel", "ours", "unlabelled")]
    texts += [m.text for m in messages if m.origin == "parallel"] * 3
    return trim(pack.vocab, texts, size=size)


def targets_of(
    messages: Sequence[Message], recipe: Recipe, teacher: dict[str, tuple[float, ...]] | None
) -> dict[str, FloatPair]:
    """Target and weight of every message that has a label or a teacher's score."""
    weight = asdict(recipe.weights)
    out: dict[str, FloatPair] = {}
    for message in messages:
        taught = (teacher or {}).get(message.id)
        if message.labels is None and taught is None:
            continue
        target = message.labels or taught or ()
        if message.labels is not None and taught is not None and message.task is None:
            pairs = zip(message.labels, taught, strict=True)
            target = tuple((1 - recipe.soft) * a + recipe.soft * b for a, b in pairs)
        out[message.id] = (target, weight[message.origin])
    return out


def judge_on(
    messages: Sequence[Message], tokenizer: Tokenizer, precision: str
) -> Callable[[Predictor], dict[str, float]]:
    """Validation metrics; "score" weighs messages and parallel tasks."""

    def judge(model: Predictor) -> dict[str, float]:
        scores = predict(model, tokenizer, [m.asked for m in messages], precision=precision)
        found = quality_of(messages, scores)
        flat = {
            f"{part}_{key}": block[key]
            for part, block in found.items()
            for key in ("pearson", "mae")
        }
        flat["parallel_spread"] = spread(messages, scores)
        flat["score"] = flat["messages_pearson"] + 0.3 * flat.get("parallel_pearson", 0.0)
        return flat

    return judge


def run(
    material: Material,
    recipe: Recipe,
    folder: Path,
    *,
    start: Path | None = None,
    teacher: dict[str, tuple[float, ...]] | None = None,
    team: Team | None = None,
) -> FitResult:
    """Train in `folder`, resuming there, and write the record of the run.

    Args:
        folder: checkpoints, `recipe.json`, `run.json`, `tokenizer.json`.
        start: weights to start from instead of the pretrained ones: a checkpoint, or the INT8
            graph of a bundle.
        teacher: soft scores by message id.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if start is not None:
        material.model.load_state_dict(
            recovered(start) if start.suffix == ".onnx" else load_weights(start)
        )
    material.model.encoder.set_attn_implementation("sdpa")
    material.tokenizer.save(str(folder / "tokenizer.json"))
    pool = [*material.splits.train, *material.splits.unlabelled]
    targets = targets_of(pool, recipe, teacher)
    drawn = [m for m in pool if m.id in targets]
    record = {"recipe": asdict(recipe), "data": material.digests, "texts": len(drawn)}
    (folder / "recipe.json").write_text(json.dumps(record, indent=1) + "\n")
    draw = Drawer(
        drawn, targets, recipe.augment, seed=recipe.fit.seed, share=recipe.unlabelled_share
    )
    judge = judge_on(material.splits.validation, material.tokenizer, recipe.fit.precision)
    return Fitter(material.model, material.tokenizer, recipe.fit, folder, team).run(draw, judge)


def settings(recipe: Recipe) -> Iterator[tuple[str, Recipe]]:
    """Named variations of one recipe."""
    for count in range(1, len(DIMENSIONS) + 1):
        encoder = replace(recipe.encoder, dimensions=DIMENSIONS[:count])
        fit = replace(recipe.fit, dimension_weights=(1.0,) * count)
        yield f"K = {count}", replace(recipe, encoder=encoder, fit=fit)
    modern = replace(
        recipe.encoder, kind="modernbert", pooling="cls", layers=4, width=256, heads=4,
        intermediate=384,
    )  # fmt: skip
    for cap in (512, 2048):
        encoder = replace(modern, max_tokens=cap)
        fit = replace(recipe.fit, max_tokens=cap)
        yield f"{cap} tokens", replace(recipe, encoder=encoder, fit=fit)
    for layers, width in ((2, 128), (4, 256), (6, 384)):
        encoder = replace(
            modern, layers=layers, width=width, heads=width // 64, intermediate=width * 3 // 2
        )
        yield f"{layers} layers, {width} wide", replace(recipe, encoder=encoder)


def table(paths: DataPaths, pack: Path, recipe: Recipe, out: Path, texts: int) -> str:
    """Train every setting on `texts` messages and give a Markdown table.

    A small budget ranks settings only roughly; raise `texts` and
    `fit.epochs` for figures to rely on.
    """
    lines = [
        "| setting | Pearson | MAE | ms / text | parameters |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, variation in settings(recipe):
        material = prepare(paths, pack, variation)
        kept = _first(material.splits, texts, recipe.fit.seed)
        material = Material(kept, material.tokenizer, material.model, material.digests)
        run(material, variation, out / name.replace(" ", "_").replace(",", ""))
        lines.append(_row(name, material))
    return "\n".join(lines)


def _first(splits: Splits, texts: int, seed: int) -> Splits:
    order = np.random.default_rng(seed).permutation(len(splits.train))[:texts]
    return replace(splits, train=tuple(splits.train[int(i)] for i in order), unlabelled=())


def _row(name: str, material: Material) -> str:
    test = [m for m in material.splits.validation if m.origin == "corpus"]
    started = time.perf_counter()
    scores = predict(material.model, material.tokenizer, [m.asked for m in test], batch=1)
    each = (time.perf_counter() - started) / max(1, len(test)) * 1e3
    found = metrics(test, scores)
    size = sum(p.numel() for p in material.model.parameters()) / 1e6
    return f"| {name} | {found['pearson']:.3f} | {found['mae']:.3f} | {each:.1f} | {size:.1f} M |"
