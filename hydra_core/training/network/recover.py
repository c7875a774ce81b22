"""Float weights of a shipped bundle, to train on from where its graph stands.

A bundle keeps no checkpoint. Every quantised matrix of its graph is turned back into floats, named
by the bias that is added to what it gives; the rest is in the graph as it was. The rounding stays:
scores differ from the graph's by under a hundredth on average.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import Tensor

from hydra_core.errors import HydraError

__all__ = ["RecoverError", "recovered"]

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
