"""New second heads for a bundle that is shipped already: minutes on a CPU, the encoder untouched.

The heads are fitted in closed form on the vectors that the shipped graph itself gives, and take the
place of the old ones in it. No weight of the word table, the layers, the main heads or the marks of
claims is touched. Outcome models are bound to a bundle's fingerprint, which a refit changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Float32Array
from hydra_core.lab.training.network.heads import KernelConfig, WordConfig
from hydra_core.lab.training.network.model import EncoderConfig
from hydra_core.lab.training.network.second_stage import Read, SecondHeads, fit_second
from hydra_core.lab.training.ship.export import feed_of, session
from hydra_core.lab.training.ship.quantize import lean
from hydra_core.lab.training.ship.release import GRAPH, TOKENIZER, Job, Release, conclude
from hydra_core.predictor.bundle import Bundle

_HALF = "_half"


class RefitError(HydraError):
    """A graph has no second heads that could be replaced."""


def _named(graph: onnx.GraphProto, ending: str) -> str:
    for tensor in graph.initializer:
        if tensor.name.removesuffix(_HALF).endswith(ending):
            return str(tensor.name).removesuffix(_HALF)
    raise RefitError(f"the graph has no tensor {ending}; export a bundle with second heads first")


def _read_by(graph: onnx.GraphProto, tensor: str) -> str:
    """The value that the first node reading `tensor` reads beside it."""
    return str(next(node.input[0] for node in graph.node if tensor in node.input))


def graph_reader(model: onnx.ModelProto, layers: int, *, workers: int = 2) -> Read:
    """Text vectors of a shipped graph, as its kernel heads see them, and its main heads' scores."""
    probed = onnx.ModelProto()
    probed.CopyFrom(model)
    graph = probed.graph
    names = [_read_by(graph, _named(graph, f"kernel.heads.{i}.centre")) for i in range(layers)]
    names += [node.output[0] for node in graph.node if node.op_type == "Sigmoid"][-1:]
    for name in names:
        graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    opened = session(probed.SerializeToString())

    def one(row: Sequence[int]) -> list[Float32Array]:
        return [out[0] for out in opened.run(names, feed_of(opened, row))]

    def read(rows: Sequence[Sequence[int]]) -> tuple[Float32Array, Float32Array]:
        with ThreadPoolExecutor(workers) as pool:
            found = list(pool.map(one, rows))
        seen = np.stack([np.concatenate(out[:-1]) for out in found])
        return seen, np.stack([out[-1] for out in found])

    return read


def graft(model: onnx.ModelProto, heads: SecondHeads) -> None:
    """Put new second heads in place of a graph's old ones, in place.

    The kernel's points are kept in half precision and widened when the graph is opened.

    Raises:
        RefitError: the graph has no kernel or no word head, or so small a kernel that the exporter
            folded parts of it.
    """
    graph = model.graph
    tensors: dict[str, Float32Array] = {
        "words.table": heads.words.table.numpy(),
        "words.offset": heads.words.offset.numpy(),
    }
    for i, head in enumerate(heads.kernel.heads):
        for name, value in head.named_buffers():
            tensors[f"kernel.heads.{i}.{name}"] = value.numpy()
    _share(graph, heads)
    for ending, array in tensors.items():
        if ending.endswith(".points"):
            if sum(_named(graph, ending) in node.input for node in graph.node) < 2:
                raise RefitError("the exporter folded the kernel's points into other constants")
            _halved(graph, _named(graph, ending), array)
        elif not ending.endswith(".offset") or _has(graph, ending):
            # The exporter keeps equal offsets once.
            _replace(graph, _named(graph, ending), array)
    del graph.value_info[:]  # shapes noted while quantising tell of the old number of points
    onnx.checker.check_model(model)


def _has(graph: onnx.GraphProto, ending: str) -> bool:
    return any(tensor.name.endswith(ending) for tensor in graph.initializer)


def _replace(graph: onnx.GraphProto, name: str, value: Float32Array) -> None:
    old = next(tensor for tensor in graph.initializer if tensor.name == name)
    kind = helper.tensor_dtype_to_np_dtype(old.data_type)
    shaped = value.astype(kind).reshape(old.dims if value.size == 1 else value.shape)
    old.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(shaped), name))


def _halved(graph: onnx.GraphProto, name: str, value: Float32Array) -> None:
    half = name + _HALF
    kept = [tensor for tensor in graph.initializer if tensor.name not in (name, half)]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    graph.initializer.append(numpy_helper.from_array(value.astype(np.float16), half))
    if all(name not in node.output for node in graph.node):
        widen = helper.make_node("Cast", [half], [name], f"{name}_widened", to=TensorProto.FLOAT)
        graph.node.insert(0, widen)


def _share(graph: onnx.GraphProto, heads: SecondHeads) -> None:
    """Set both shares: scores = a + word * (b - a), where a = main + kernel * (c - main)."""
    makers: Mapping[str, onnx.NodeProto] = {o: node for node in graph.node for o in node.output}
    value = "scores"
    for name, share in (("word_share", heads.word_share), ("kernel_share", heads.kernel_share)):
        total = makers.get(value)
        scaled = makers.get(total.input[1]) if total is not None and len(total.input) == 2 else None
        if total is None or scaled is None or scaled.op_type != "Mul":
            raise RefitError("the graph does not blend its scores as the exporter writes it")
        scaled.input[1] = name
        kept = [tensor for tensor in graph.initializer if tensor.name != name]
        del graph.initializer[:]
        graph.initializer.extend(kept)
        graph.initializer.append(numpy_helper.from_array(np.array(share, np.float32), name))
        value = total.input[0]


def refit(bundle: Bundle, job: Job, kernel: KernelConfig, words: WordConfig) -> Release:
    """Fit second heads for a bundle, put them into its graph and measure the outcome.

    Args:
        bundle: what is shipped; its encoder and tokenizer are kept.
        job: the new bundle's; its facts get the record of the heads.
        kernel: of the kernel heads.
        words: of the word head.

    Raises:
        RefitError: the bundle's graph has no second heads.
    """
    model = onnx.load(bundle.path / bundle.model)
    lean(model)
    tokenizer = Tokenizer.from_file(str(bundle.path / bundle.tokenizer))
    layers = sum(t.name.endswith(".centre") for t in model.graph.initializer)
    heads = fit_second(
        graph_reader(model, layers), tokenizer, job.splits, kernel, words, job.catalog,
        layers=layers, vocab=tokenizer.get_vocab_size(),
    )  # fmt: skip
    graft(model, heads)
    job.folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, job.folder / GRAPH)
    tokenizer.save(str(job.folder / TOKENIZER))
    facts = {**job.facts, "second_heads": heads.facts(kernel, words)}
    config = EncoderConfig(dimensions=bundle.dimensions, max_tokens=bundle.max_tokens)
    return conclude(replace(job, facts=facts), config, tokenizer, None, bundle.vectors)
