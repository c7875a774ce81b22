"""Predictor -> ONNX in FP32, INT8 and FP16, and the check that nothing was lost on the way.

`int8` leaves the attention projections in float32 (the paper's choice), `int8_full` quantises them
too. Weights are symmetric int8 per output channel, activations are quantised as the graph runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers.float16 import convert_float_to_float16
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
        return self.model(input_ids, attention_mask)


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


def opened_at(graph: onnx.ModelProto, names: Sequence[str]) -> onnxruntime.InferenceSession:
    """A session that also gives these inner values of a graph, which stays as it is."""
    probed = onnx.ModelProto()
    probed.CopyFrom(graph)
    for name in names:
        probed.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    return session(probed.SerializeToString())


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


_DOMAIN = "com.microsoft"


def fuse_attention(graph: onnx.ModelProto) -> int:
    """Replace every softmax attention by one node, in place; returns how many there were.

    The pattern is BERT's: scores = q k' * scale + mask, softmax, times v; q, k and v are (b, t,
    heads * width) before they are split into heads. Anything else is left as it is.
    """
    maker = {name: node for node in graph.graph.node for name in node.output}
    users: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    heads = _heads(graph)
    fused: dict[str, onnx.NodeProto] = {}
    for node in graph.graph.node:
        if node.op_type == "Softmax" and heads:
            made = _fused(node, maker, users, heads, len(fused))
            if made is not None:
                fused[made.output[0]] = made
    if fused:
        _rewrite(graph, fused)
    return len(fused)


def _heads(graph: onnx.ModelProto) -> int:
    """Heads of the encoder, from the shape that splits q into heads; 0 if there is none."""
    tensors = {t.name: t for t in graph.graph.initializer}
    whole = next((t for name, t in tensors.items() if name.endswith("LayerNorm.bias")), None)
    for node in graph.graph.node:
        if whole is not None and node.op_type == "Concat" and len(node.input) == 4:
            width = tensors.get(node.input[3])
            if width is not None and list(width.dims) == [1]:
                return int(whole.dims[0]) // int(onnx.numpy_helper.to_array(width)[0])
    return 0


def _back(name: str, maker: dict[str, onnx.NodeProto], *kinds: str) -> str | None:
    """The first input at the end of a chain of producers of these kinds."""
    for kind in kinds:
        node = maker.get(name)
        if node is None or node.op_type != kind:
            return None
        name = node.input[0]
    return name


def _fused(
    softmax: onnx.NodeProto,
    maker: dict[str, onnx.NodeProto],
    users: dict[str, list[onnx.NodeProto]],
    heads: int,
    number: int,
) -> onnx.NodeProto | None:
    scores = _back(softmax.input[0], maker, "Add", "Mul")
    product = maker.get(scores or "")
    after = users.get(softmax.output[0], [])
    if product is None or product.op_type != "MatMul" or len(after) != 1:
        return None
    query, key = (_back(name, maker, "Transpose", "Reshape") for name in product.input)
    value = _back(after[0].input[1], maker, "Transpose", "Reshape")
    joined = users[after[0].output[0]][0]
    output = users[joined.output[0]][0]
    if query is None or key is None or value is None or output.op_type != "Reshape":
        return None
    return helper.make_node(
        "MultiHeadAttention", [query, key, value, "", "attention_mask_32"], [output.output[0]],
        name=f"attention_{number}", domain=_DOMAIN, num_heads=heads,
    )  # fmt: skip


def _rewrite(graph: onnx.ModelProto, fused: dict[str, onnx.NodeProto]) -> None:
    cast = helper.make_node(
        "Cast", ["attention_mask"], ["attention_mask_32"], to=onnx.TensorProto.INT32
    )
    nodes = [cast, *(fused.get(node.output[0], node) for node in graph.graph.node)]
    _keep_needed(graph.graph, nodes)
    if all(entry.domain != _DOMAIN for entry in graph.opset_import):
        graph.opset_import.append(helper.make_opsetid(_DOMAIN, 1))


_MASK = "attention_mask"
_KEY_MASK = 4  # of the fused operator's inputs


def lean(model: onnx.ModelProto) -> None:
    """Rewrite a graph in place; one that is lean already stays as it is."""
    graph = model.graph
    makers = {name: node for node in graph.node for name in node.output}
    for node in graph.node:
        if node.op_type == "LayerNormalization":
            before = makers.get(node.input[0])
            if before is not None and before.op_type == "Add":
                before.op_type = "Sum"
        if node.op_type == "MultiHeadAttention" and len(node.input) == _KEY_MASK + 1:
            del node.input[3:]
    if any(given.name == _MASK for given in graph.input):
        _ones(graph)
    _keep_needed(graph, list(graph.node))
    onnx.checker.check_model(model)


def _ones(graph: onnx.GraphProto) -> None:
    """Make the mask from the shape of the ids, and take it off the inputs."""
    kept = [given for given in graph.input if given.name != _MASK]
    del graph.input[:]
    graph.input.extend(kept)
    one = helper.make_tensor("one", TensorProto.INT64, [1], [1])
    graph.node.insert(0, helper.make_node("Shape", ["input_ids"], ["mask_shape"]))
    made = helper.make_node("ConstantOfShape", ["mask_shape"], [_MASK], value=one)
    graph.node.insert(1, made)


def _keep_needed(graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto]) -> None:
    """Put those of `nodes` into the graph that its outputs need, in their order."""
    needed = {output.name for output in graph.output}
    kept: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
    del graph.node[:]
    graph.node.extend(reversed(kept))


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
