"""The graph of a bundle: opened with every check, and run for one message.

One run gives the scores and, where the bundle has them, the claim logit of every token and the
message's text vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hydra_core.base.errors import BundleError
from hydra_core.base.types import Float32Array, FloatArray
from hydra_core.predictor.bundle import Bundle

_DOMAINS: Final = frozenset({b"", b"ai.onnx", b"com.microsoft"})
_CONTROL_FLOW: Final = frozenset({b"Loop", b"If", b"Scan", b"SequenceMap"})
_MOST_NODES: Final = 50_000
#: Optional outputs: claim logits of the tokens, and what success heads are learned on.
_CLAIMS, _VECTORS = "claims", "vectors"
_OUTPUTS: Final = frozenset({_CLAIMS, _VECTORS})
_INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids", "position_ids"})

_Field = tuple[int, int | memoryview]


class _MalformedError(Exception):
    """Not a protobuf, or not one of ONNX."""


def graph_problem(data: bytes) -> str:
    """What is wrong with an ONNX file, '' when it may be opened."""
    try:
        return _model_problem(memoryview(data))
    except _MalformedError as error:
        return f"is not an ONNX file: {error}"


def _model_problem(data: memoryview) -> str:
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
    return _graph_problem(graphs[0])


def _graph_problem(graph: memoryview) -> str:
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
    if "input_ids" not in asked or asked - _INPUTS:
        return f"takes the inputs {sorted(asked)}, only {sorted(_INPUTS)} can be given"
    if not named[12] or set(named[12][1:]) - _OUTPUTS:
        return f"gives {named[12][:5]}; after the scores only {sorted(_OUTPUTS)} are known"
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
    """Refuse outside weights: onnxruntime would look for them, and no fingerprint covers them."""
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
    found = b""
    for number, inner in _fields(_message(value)):
        if number == wanted:
            found = bytes(_message(inner))
    return found


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")


def _shown(name: bytes) -> str:
    return ascii(_text(name)[:60])


if TYPE_CHECKING:
    import onnxruntime


_IntTensor = npt.NDArray[np.int64]


class GraphRun(NamedTuple):
    """What one run gives: (K,) raw scores, (t,) claim logits or None, (d,) vector, d may be 0."""

    scores: FloatArray
    claims: FloatArray | None
    vector: Float32Array


class Graph:
    """The opened graph of a bundle. Safe to share between threads.

    Args:
        threads: Threads inside one run.

    Raises:
        BundleError: The graph cannot be opened, or it is not the one that the bundle describes.
    """

    def __init__(self, bundle: Bundle, threads: int) -> None:
        self._bundle = bundle
        self._session = _open_session(bundle, threads)
        self._inputs = frozenset(node.name for node in self._session.get_inputs())
        scores, *others = (node.name for node in self._session.get_outputs())
        if bundle.vectors and _VECTORS not in others:
            message = f"has no output {_VECTORS!r}, bundle.yaml says there is one"
            raise foreign(bundle, bundle.model, message)
        wanted = [*([_CLAIMS] if _CLAIMS in others else []), *([_VECTORS] * bool(bundle.vectors))]
        self.finds_claims = _CLAIMS in wanted
        self._outputs = [scores, *wanted]

    def run(self, ids: Sequence[int]) -> GraphRun:
        """One message, unpadded.

        Args:
            ids: (t,) token ids.

        Raises:
            BundleError: The graph fails, or gives something else than scores and vector.
        """
        try:
            found = self._session.run(self._outputs, _feeds(ids, self._inputs))
        except _ort_errors() as error:
            message = f"could not be run: {first_line(error)}"
            raise foreign(self._bundle, self._bundle.model, message) from error
        scores = self._row(found[0], len(self._bundle.dimensions), "scores").astype(np.float64)
        claims = np.asarray(found[1][0], dtype=np.float64) if self.finds_claims else None
        width = self._bundle.vectors
        vector = self._row(found[-1], width, "vectors") if width else _NO_VECTOR
        return GraphRun(scores, claims, vector)

    def _row(self, values: Float32Array, width: int, what: str) -> Float32Array:
        if values.shape != (1, width) or not np.isfinite(values).all():
            expected = f"finite {what} of shape (1, {width}) were expected"
            message = f"gave shape {values.shape}, {expected}"
            raise foreign(self._bundle, self._bundle.model, message)
        row: Float32Array = values[0]
        return row


_NO_VECTOR = np.empty(0, dtype=np.float32)


def foreign(bundle: Bundle, file: str, message: str) -> BundleError:
    """The error for a file that is not what the bundle says."""
    remedy = "install the bundle again, or make it with this version's training"
    return BundleError.of(str(bundle.path), message, remedy, place=file)


def first_line(error: Exception) -> str:
    """The first line of a library's message, at most 200 characters."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]


def _feeds(ids: Sequence[int], inputs: frozenset[str]) -> dict[str, _IntTensor]:
    """The inputs the graph asks for, each (1, t) int64."""
    tokens = np.array([ids], dtype=np.int64)
    feeds = {
        "input_ids": tokens,
        "attention_mask": np.ones_like(tokens),
        "token_type_ids": np.zeros_like(tokens),
        "position_ids": np.arange(tokens.shape[1], dtype=np.int64)[None, :],
    }
    return {name: feeds[name] for name in inputs}


def _open_session(bundle: Bundle, threads: int) -> onnxruntime.InferenceSession:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.enable_mem_pattern = False  # one pattern per length would be kept forever
    options.log_severity_level = 4  # what is wrong is raised, not logged
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if adds_in_16_bits():  # with this every x86-64 CPU adds as exactly, in half as much time again
        options.add_session_config_entry("session.x64quantprecision", "1")
    graph = (bundle.path / bundle.model).read_bytes()
    problem = graph_problem(graph)
    if problem:
        raise foreign(bundle, bundle.model, problem)
    try:
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except _ort_errors() as error:
        message = f"is not a usable ONNX model: {first_line(error)}"
        raise foreign(bundle, bundle.model, message) from error


#: One node, MatMulInteger of `a` (n, 64) uint8 and a stored column of 64 times 127; -> `c` int32.
_PROBE = (
    b'\x08\x08:\x88\x01\n\x18\n\x01a\n\x01b\x12\x01c"\rMatMulInteger\x12\x01g*K\x08@\x08\x01\x10\x03B\x01bJ@'
    + b"\x7f" * 64
    + b"Z\x11\n\x01a\x12\x0c\n\n\x08\x02\x12\x06\n\x00\n\x02\x08@"
    + b"b\t\n\x01c\x12\x04\n\x02\x08\x06B\x04\n\x00\x10\r"
)


@lru_cache(maxsize=1)
def adds_in_16_bits() -> bool:
    """Whether this CPU adds INT8 products in 16 bits, which overflow.

    One without VNNI does: scores moved by .006 in the mean, by up to .14. onnxruntime's own guess
    at it takes some CPUs with VNNI for such a one, so the largest products are added and looked at.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(_PROBE, options, providers=["CPUExecutionProvider"])
    most = np.full((3, 64), 255, dtype=np.uint8)
    return bool((session.run(None, {"a": most})[0] != 64 * 255 * 127).any())


@lru_cache(maxsize=1)
def _ort_errors() -> tuple[type[Exception], ...]:
    """All that onnxruntime raises; its classes have no common base of their own."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    found = (value for value in vars(state).values() if isinstance(value, type))
    return (*(kind for kind in found if issubclass(kind, Exception)), RuntimeError)
