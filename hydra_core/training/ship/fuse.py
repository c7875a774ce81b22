"""Attention written out in single steps -> one fused node, with the same scores.

onnxruntime's own optimiser does not recognise the exporter's pattern. The fused operator works
block by block and never writes the (heads, t, t) table to memory, which is what long messages
wait for.
"""

from __future__ import annotations

import onnx
from onnx import helper

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
    needed = {output.name for output in graph.graph.output}
    kept: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
    del graph.graph.node[:]
    graph.graph.node.extend(reversed(kept))
    if all(entry.domain != _DOMAIN for entry in graph.opset_import):
        graph.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
