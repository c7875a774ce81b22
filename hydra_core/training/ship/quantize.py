"""FP32 graph -> INT8 and FP16 variants.

`int8` leaves the attention projections in float32 (the paper's choice),
`int8_full` quantises them too. Weights are symmetric int8 per output channel,
activations are quantised when the graph runs.

When a variant drifts past its bound (`Parity.within`), train it in: `observe`
puts fake-quantised weights in place of the linear layers' own, a few hundred
more steps with `Fitter` at a tenth of the rate follow, then the graph is
exported as usual (quantisation-aware training with a straight-through
estimator).
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import onnx
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers.float16 import convert_float_to_float16
from torch import Tensor, nn
from torch.nn.utils import parametrize

from hydra_core.training.ship.fuse import fuse_attention
from hydra_core.training.ship.lean import lean

Variant = Literal["fp32", "fp16", "int8", "int8_full"]
VARIANTS: tuple[Variant, ...] = ("fp32", "fp16", "int8", "int8_full")
_SCOPES = "pkg.torch.onnx.name_scopes"


def variant_of(source: Path, variant: Variant, target: Path) -> Path:
    """Write one variant of an FP32 graph to `target`."""
    if variant == "fp32":
        target.write_bytes(source.read_bytes())
    elif variant == "fp16":
        graph = onnx.load(source)
        onnx.save(convert_float_to_float16(graph, keep_io_types=True), target)
    else:
        # The kernel head compares distances, and the word head adds up small weights: rounding
        # would undo both.
        excluded = nodes_within(source, ".kernel") + nodes_within(source, ".words")
        excluded += nodes_within(source, ".att") if variant == "int8" else []
        quantize_dynamic(
            source, target, per_channel=True, weight_type=QuantType.QInt8,
            nodes_to_exclude=excluded, op_types_to_quantize=["MatMul", "Gemm", "Gather"],
            extra_options={"MatMulConstBOnly": True},
        )  # fmt: skip
    if variant != "fp16":  # the fused operator wants float32 around it
        graph = onnx.load(target)
        fuse_attention(graph)
        lean(graph)
        onnx.save(graph, target)
    return target


def nodes_within(path: Path, scope: str) -> list[str]:
    """Names of the nodes of a module, e.g. ".att" for all attention blocks."""
    graph = onnx.load(path, load_external_data=False).graph
    return [
        node.name
        for node in graph.node
        if any(p.key == _SCOPES and scope in p.value for p in node.metadata_props)
    ]


class FakeInt8(nn.Module):
    """A weight rounded to int8 per output channel; gradients pass through."""

    def forward(self, weight: Tensor) -> Tensor:
        scale = weight.detach().abs().amax(1, keepdim=True).clamp_min(1e-8) / 127.0
        rounded = (weight / scale).round().clamp(-127, 127) * scale
        return weight + (rounded - weight).detach()


def observe(model: nn.Module, on: bool = True) -> int:
    """Switch quantisation-aware weights on or off; returns the layers touched."""
    layers = [m for m in model.modules() if isinstance(m, nn.Linear)]
    for layer in layers:
        if on and not parametrize.is_parametrized(layer, "weight"):
            parametrize.register_parametrization(layer, "weight", FakeInt8())
        elif not on and parametrize.is_parametrized(layer, "weight"):
            parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    torch.set_grad_enabled(True)
    return len(layers)
