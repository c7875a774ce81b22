"""What an ONNX file of a bundle may hold, read from its bytes before anything opens it.

A bundle may come from a stranger. An ONNX file is a protobuf, so nothing in it is executed on
loading, but it can ask for files outside itself, for loops of 2^62 turns (a running graph does not
hear Ctrl-C), for functions that hide either, and for operators of other libraries. This walks the
wire format itself: fields in any order, unknown ones skipped, nested messages to a bounded depth.
Field numbers are those of onnx.proto3 (ModelProto 1.x).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

__all__ = ["graph_problem"]

_DOMAINS: Final = frozenset({b"", b"ai.onnx", b"com.microsoft"})
_CONTROL_FLOW: Final = frozenset({b"Loop", b"If", b"Scan", b"SequenceMap"})
_MOST_NODES: Final = 50_000

_Field = tuple[int, int | memoryview]


class _MalformedError(Exception):
    """Not a protobuf, or not one of ONNX."""


def graph_problem(data: bytes, outputs: frozenset[str], inputs: frozenset[str]) -> str:
    """What is wrong with an ONNX file, '' when it may be opened.

    Args:
        data: The whole file.
        outputs: Names that may follow the first output.
        inputs: Names that may be asked for.
    """
    try:
        return _model_problem(memoryview(data), outputs, inputs)
    except _MalformedError as error:
        return f"is not an ONNX file: {error}"


def _model_problem(data: memoryview, outputs: frozenset[str], inputs: frozenset[str]) -> str:
    graphs = []
    for number, value in _fields(data):
        if number == 7:
            graphs.append(_message(value))
        elif number == 8 and _only(value, 1) not in _DOMAINS:
            return f"needs the operators of {_shown(_only(value, 1))}, which are not ONNX's own"
        elif number in (20, 25):
            return "holds training steps" if number == 20 else "holds functions of its own"
    if len(graphs) != 1:
        return f"holds {len(graphs)} graphs, 1 was expected"
    return _graph_problem(graphs[0], outputs, inputs)


def _graph_problem(graph: memoryview, outputs: frozenset[str], inputs: frozenset[str]) -> str:
    named: dict[int, list[str]] = {11: [], 12: []}
    stored, nodes = set(), 0
    for number, value in _fields(graph):
        problem = ""
        if number == 1:
            nodes += 1
            problem = _node_problem(_message(value))
        elif number == 5:
            stored.add(_text(_only(value, 8)))
            problem = _tensor_problem(_message(value))
        elif number == 15:
            problem = "holds sparse weights"
        elif number in named:
            named[number].append(_text(_only(value, 1)))
        if problem or nodes > _MOST_NODES:
            return problem or f"holds more than {_MOST_NODES:,} operations"
    asked = set(named[11]) - stored
    if "input_ids" not in asked or asked - inputs:
        return f"takes the inputs {sorted(asked)}, only {sorted(inputs)} can be given"
    if not named[12] or set(named[12][1:]) - outputs:
        return f"gives {named[12][:5]}; after the scores only {sorted(outputs)} are known"
    return ""


def _node_problem(node: memoryview) -> str:
    kind = b""
    for number, value in _fields(node):
        if number == 4:
            kind = bytes(_message(value))
            if kind in _CONTROL_FLOW:
                return f"holds the control flow {_shown(kind)}"
        elif number == 7 and bytes(_message(value)) not in _DOMAINS:
            return (
                f"holds an operation of {_shown(bytes(_message(value)))}, which is not ONNX's own"
            )
        elif number == 5:
            problem = _attribute_problem(_message(value))
            if problem:
                return problem
    return "" if kind else "holds an operation without a name"


def _attribute_problem(attribute: memoryview) -> str:
    for number, value in _fields(attribute):
        if number in (6, 11):
            return "holds a graph inside an operation"
        if number in (22, 23):
            return "holds sparse weights"
        if number in (5, 10):
            problem = _tensor_problem(_message(value))
            if problem:
                return problem
    return ""


def _tensor_problem(tensor: memoryview) -> str:
    """onnxruntime would look for outside weights in the working folder or beside the model, and
    the fingerprint does not cover them."""
    for number, value in _fields(tensor):
        if number == 13 or (number == 14 and value != 0):
            return "keeps weights outside its own file"
    return ""


def _fields(data: memoryview) -> Iterator[_Field]:
    """Number and value of every field: a whole number, or the bytes of text and messages."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if not number:
            raise _MalformedError(f"field 0 at byte {at}")
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        size = {1: 8, 5: 4}.get(wire)
        if wire == 2:
            size, at = _varint(data, at)
        if size is None or at + size > end:
            raise _MalformedError(f"cut off, or of an unknown type, at byte {at}")
        yield number, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte, at = data[at], at + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), at
    raise _MalformedError(f"a number without an end at byte {at}")


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise _MalformedError("a number where a message was expected")
    return value


def _only(value: int | memoryview, wanted: int) -> bytes:
    """The last bytes of one field of a message, b'' where it is not there."""
    found = b""
    for number, inner in _fields(_message(value)):
        if number == wanted:
            found = bytes(_message(inner))
    return found


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")


def _shown(name: bytes) -> str:
    return ascii(_text(name)[:60])
