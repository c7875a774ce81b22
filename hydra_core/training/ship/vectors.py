"""The text vector as an output of the graph: what success heads are learned on.

It is the mean token vector of the first layer that the kernel heads read, as it is on the way to
the scores, so it costs no run of its own and no score moves by a bit.
"""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["add_vectors"]

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
