"""Predictor -> ONNX, and the check that nothing was lost on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hydra_core.base.types import Float32Array
from hydra_core.lab.training.network.model import Predictor

_OPSET = 18


class _Graph(nn.Module):
    """The predictor as it is exported: float32, no dropout, no autocast."""

    def __init__(self, model: Predictor) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        scores: Tensor = self.model(input_ids, attention_mask)
        return scores


@dataclass(frozen=True, slots=True)
class Parity:
    """How far two sets of scores are apart, over texts and dimensions."""

    mean_delta: float
    worst_delta: float
    spearman: float


def export_onnx(model: Predictor, path: Path) -> Path:
    """Write the FP32 graph: (n, t) int64 ids and mask -> (n, K) scores."""
    return export_module(_Graph(model), model, path, "scores")


def export_module(module: nn.Module, model: Predictor, path: Path, output: str) -> Path:
    """Write a graph with the predictor's inputs and any one output.

    Args:
        module: what is exported; it wraps `model`, whose attention is switched to eager, which
            needs fewer nodes.
    """
    module, model = module.eval(), model.eval()
    model.encoder.set_attn_implementation("eager")
    ids = torch.randint(4, model.config.vocab, (2, 24))
    count = torch.export.Dim("n", min=1)
    tokens = torch.export.Dim("t", min=2, max=model.config.max_tokens)
    sizes = {0: count, 1: tokens}
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(
        module, (ids, torch.ones_like(ids)), str(path),
        input_names=["input_ids", "attention_mask"], output_names=[output],
        dynamic_shapes=(sizes, sizes), opset_version=_OPSET,
        dynamo=True, external_data=False, verbose=False,
    )  # fmt: skip
    graph = onnx.load(path)
    del graph.graph.value_info[:]  # stale shapes make quantize_dynamic fail
    onnx.checker.check_model(graph)
    onnx.save(graph, path)
    return path


def session(graph: Path | bytes) -> onnxruntime.InferenceSession:
    """A session as the console opens it, of a file or of bytes: one thread, no spinning."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    source = graph if isinstance(graph, bytes) else str(graph)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def run_graph(graph: onnxruntime.InferenceSession, rows: Sequence[Sequence[int]]) -> Float32Array:
    """Rows of ids, one run each and unpadded (as the console does) -> (n, K)."""
    return np.asarray([graph.run(None, feed_of(graph, row))[0][0] for row in rows], np.float32)


def feed_of(
    graph: onnxruntime.InferenceSession, row: Sequence[int]
) -> dict[str, NDArray[np.int64]]:
    """What a graph asks for of one message: its ids, and a mask of ones if it wants one."""
    ids = np.array([row], np.int64)
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    return {node.name: given[node.name] for node in graph.get_inputs()}


def parity(reference: Float32Array, other: Float32Array) -> Parity:
    """(n, K), (n, K) -> distance; the Spearman is the worst over dimensions."""
    from scipy.stats import spearmanr

    delta = np.abs(reference - other)
    ranks = [
        float(spearmanr(reference[:, k], other[:, k]).statistic) for k in range(reference.shape[1])
    ]
    return Parity(float(delta.mean()), float(delta.max()), min(ranks))
