"""A stranger's ONNX file is refused before anything opens it, whatever way it is written."""

import random

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from hydra_core.base.errors import BundleError
from hydra_core.predictor.bundle import SHIPPED
from hydra_core.predictor.graph import graph_problem
from hydra_core.predictor.onnx_predictor import open_apart
from tests.predictor.tiny_bundle import graph, make_bundle


def problem(model):
    data = model if isinstance(model, bytes) else model.SerializeToString()
    return graph_problem(data)


def looped():
    """A body run 2^62 times."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["go_on"]),
            helper.make_node("Identity", ["x"], ["y"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
        ],
    )
    model = graph(8)
    model.graph.initializer.append(numpy_helper.from_array(np.array(2**62), "trips"))
    model.graph.initializer.append(numpy_helper.from_array(np.array(True), "yes"))
    nodes = model.graph.node
    nodes[-1].input[0] = "looped"
    nodes.append(helper.make_node("Loop", ["trips", "yes", "logits"], ["looped"], body=body))
    return model


def outside(field):
    """A weight kept elsewhere; as a flag, as an address, in a constant."""
    model = graph(8)
    tensor = model.graph.initializer[0]
    if field == "constant":
        constant = helper.make_node(
            "Constant", [], ["c"], value=helper.make_tensor("t", 1, [1], [1.0])
        )
        tensor = constant.attribute[0].t
        _point_outside(tensor)
        model.graph.node.append(constant)
    elif field == "flag":
        tensor.data_location = TensorProto.EXTERNAL
    else:
        _point_outside(tensor)
    return model


def _point_outside(tensor):
    for key, value in (("length", "4"), ("offset", "0"), ("location", "../../etc/passwd")):
        tensor.external_data.add(key=key, value=value)


def foreign_domain(declared):
    model = graph(8)
    model.graph.node[0].domain = "evil.example"
    if declared:
        model.opset_import.add(domain="evil.example", version=1)
    return model


def with_function():
    model = graph(8)
    model.functions.add(name="f", domain="")
    return model


def nested():
    """Control flow hidden in an attribute of a harmless name."""
    model = graph(8)
    model.graph.node[0].attribute.append(helper.make_attribute("body", graph(8).graph))
    return model


def sparse():
    model = graph(8)
    model.graph.sparse_initializer.add()
    return model


HOSTILE = {
    "loop": (looped, "control flow 'Loop'"),
    "graph in an attribute": (nested, "a graph inside an operation"),
    "function": (with_function, "functions of its own"),
    "foreign operator": (lambda: foreign_domain(False), "'evil.example'"),
    "foreign opset": (lambda: foreign_domain(True), "'evil.example'"),
    "outside weight by address": (lambda: outside("address"), "outside its own file"),
    "outside weight by flag": (lambda: outside("flag"), "outside its own file"),
    "outside weight in a constant": (lambda: outside("constant"), "outside its own file"),
    "sparse weight": (sparse, "sparse weights"),
    "unknown input": (lambda: graph(8, extra_input="secrets"), "takes the inputs"),
    "no graph": (onnx.ModelProto, "holds 0 graphs"),
}


def reordered(data, rng):
    """The same message with its fields, and those of its graph, in another order."""
    fields, at = [], 0
    while at < len(data):
        start = at
        key, at = varint(data, at)
        if key & 7 == 0:
            _, at = varint(data, at)
        else:
            size, at = varint(data, at)
            if key >> 3 == 7:
                inside = shuffled(data[at : at + size], rng)
                start, at = at, at + size
                fields.append(bytes([58]) + encoded(len(inside)) + inside)
                continue
            at += size
        fields.append(data[start:at])
    rng.shuffle(fields)
    return b"".join(fields)


def shuffled(graph_bytes, rng):
    fields, at = [], 0
    while at < len(graph_bytes):
        start = at
        _, at = varint(graph_bytes, at)
        size, at = varint(graph_bytes, at)
        at += size
        fields.append(graph_bytes[start:at])
    rng.shuffle(fields)
    return b"".join(fields)


def varint(data, at):
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def encoded(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_graph_is_refused_in_whatever_field_order(name):
    made, told = HOSTILE[name]
    data = made().SerializeToString()
    assert told in problem(data)
    for seed in range(10):
        assert told in problem(reordered(data, random.Random(seed)))


@pytest.mark.parametrize("seed", range(5))
def test_a_good_graph_passes_in_whatever_field_order(seed):
    data = graph(8).SerializeToString()
    assert problem(reordered(data, random.Random(seed))) == ""


@pytest.mark.parametrize("name", ["default", "modernbert"])
def test_the_shipped_graphs_pass(name):
    assert problem((SHIPPED.parent / name / "model.int8.onnx").read_bytes()) == ""


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_to_an_end(data):
    assert problem(data)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 3000), st.integers(0, 255))
def test_a_damaged_graph_is_read_to_an_end(at, byte):
    data = bytearray(graph(8).SerializeToString())
    data[at % len(data)] = byte
    assert isinstance(problem(bytes(data)), str)


def test_a_stranger_s_bundle_is_opened_apart_within_limits(tmp_path):
    assert open_apart(make_bundle(tmp_path / "good").path) == "tiny 1"
    model = graph(8)
    huge = numpy_helper.from_array(np.array([2**34], dtype=np.int64), "shape")
    model.graph.initializer.append(huge)
    model.graph.node.insert(0, helper.make_node("ConstantOfShape", ["shape"], ["big"]))
    model.graph.node.insert(1, helper.make_node("ReduceMax", ["big"], ["top"], keepdims=0))
    model.graph.node[-1].input[0] = "logits2"
    model.graph.node.append(helper.make_node("Add", ["logits", "top"], ["logits2"]))
    folder = tmp_path / "huge"
    folder.mkdir()
    (folder / "model.int8.onnx").write_bytes(model.SerializeToString())
    bundle = make_bundle(folder)
    with pytest.raises(BundleError):
        open_apart(bundle.path, seconds=20, memory_bytes=3 << 30)
