"""New second heads for a bundle that is shipped already: minutes on a CPU, the encoder untouched.

The heads are fitted in closed form on the vectors that the shipped graph itself gives. Outcome
models are bound to a bundle's fingerprint, which a refit changes. A bundle's reference is made anew
without such a change.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from hydra_core.base.errors import BundleError, HydraError
from hydra_core.base.types import Float32Array
from hydra_core.lab.bundle_writing import write_manifest
from hydra_core.lab.training.network.heads import KernelConfig, WordConfig
from hydra_core.lab.training.network.model import EncoderConfig
from hydra_core.lab.training.network.second_stage import Read, SecondHeads, fit_second
from hydra_core.lab.training.ship.export import feed_of, lean, opened_at
from hydra_core.lab.training.ship.release import GRAPH, TOKENIZER, Job, conclude
from hydra_core.lab.training.texts.dataset import Message, Splits
from hydra_core.lab.training.texts.encode import columns
from hydra_core.predictor.bundle import Bundle
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.predictor.reference import REFERENCE, Reference, write_reference

#: Share of held-out ordinary messages within the limit.
KEPT: Final = 0.995
_CENTRES: Final = 128
_ROUNDS: Final = 25
_SEED: Final = 42
#: Messages drawn at random by kind: labelled single ones, wordings of tasks, unlabelled ones.
_DRAWN: Final = {"single": 6000, "tasks": 2000, "unlabelled": 2000}
_LIMITING: Final = 4000
_SINGLE: Final = ("corpus", "ours")
_TASKS: Final = ("parallel", "extra")
_HALF = "_half"


class RefitError(HydraError):
    """A graph has no second heads that could be replaced."""


def _named(graph: onnx.GraphProto, ending: str) -> str:
    for tensor in graph.initializer:
        if tensor.name.removesuffix(_HALF).endswith(ending):
            return str(tensor.name).removesuffix(_HALF)
    raise RefitError(f"the graph has no tensor {ending}; export a bundle with second heads first")


def graph_reader(model: onnx.ModelProto, layers: int) -> Read:
    """Text vectors of a shipped graph, as its kernel heads see them, and its main heads' scores."""
    graph = model.graph
    centres = [_named(graph, f"kernel.heads.{i}.centre") for i in range(layers)]
    names = [
        str(next(node.input[0] for node in graph.node if centre in node.input))
        for centre in centres  # the vectors that each head reads beside it
    ]
    names += [node.output[0] for node in graph.node if node.op_type == "Sigmoid"][-1:]
    opened = opened_at(model, names)

    def one(row: Sequence[int]) -> list[Float32Array]:
        return [out[0] for out in opened.run(names, feed_of(opened, row))]

    def read(rows: Sequence[Sequence[int]]) -> tuple[Float32Array, Float32Array]:
        with ThreadPoolExecutor(2) as pool:
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
        elif not ending.endswith(".offset") or any(
            tensor.name.endswith(ending) for tensor in graph.initializer
        ):  # the exporter keeps equal offsets once
            _replace(graph, _named(graph, ending), array)
    del graph.value_info[:]  # shapes noted while quantising tell of the old number of points
    onnx.checker.check_model(model)


def _replace(graph: onnx.GraphProto, name: str, value: Float32Array) -> None:
    old = next(tensor for tensor in graph.initializer if tensor.name == name)
    kind = helper.tensor_dtype_to_np_dtype(old.data_type)
    shaped = value.astype(kind).reshape(old.dims if value.size == 1 else value.shape)
    old.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(shaped), name))


def _halved(graph: onnx.GraphProto, name: str, value: Float32Array) -> None:
    half = name + _HALF
    _put(graph, numpy_helper.from_array(value.astype(np.float16), half), name, half)
    if all(name not in node.output for node in graph.node):
        widen = helper.make_node("Cast", [half], [name], f"{name}_widened", to=TensorProto.FLOAT)
        graph.node.insert(0, widen)


def _put(graph: onnx.GraphProto, tensor: TensorProto, *old: str) -> None:
    kept = [one for one in graph.initializer if one.name not in old]
    del graph.initializer[:]
    graph.initializer.extend([*kept, tensor])


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
        _put(graph, numpy_helper.from_array(np.array(share, np.float32), name), name)
        value = total.input[0]


def refit(bundle: Bundle, job: Job, kernel: KernelConfig, words: WordConfig) -> Bundle:
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
    return conclude(replace(job, facts=facts), read_by(bundle), tokenizer, None, bundle.vectors)


def read_by(bundle: Bundle) -> EncoderConfig:
    """What a bundle reads, as far as new heads for it must know."""
    return EncoderConfig(
        dimensions=bundle.dimensions,
        max_tokens=bundle.max_tokens,
        conversation=bundle.conversation,
    )


def sample(splits: Splits) -> list[Message]:
    """Messages that every shipped bundle was trained on, drawn at random by kind."""
    kinds = {
        "single": [m for m in splits.train if m.origin in _SINGLE],
        "tasks": [m for m in splits.train if m.origin in _TASKS],
        "unlabelled": list(splits.unlabelled),
    }
    rng = np.random.default_rng(_SEED)
    return [message for kind, pool in kinds.items() for message in _draw(pool, _DRAWN[kind], rng)]


def held_out(splits: Splits) -> list[Message]:
    """Messages that set the limit: the validation split, and single ones no centre was made of.

    Wordings of tasks are more alike than what people send, so none are drawn: a limit that they
    set would flag ordinary messages.
    """
    used = {message.id for message in sample(splits)}
    left = [m for m in splits.train if m.origin in _SINGLE and m.id not in used]
    return [*splits.validation, *_draw(left, _LIMITING, np.random.default_rng(_SEED))]


def _draw(pool: Sequence[Message], most: int, rng: np.random.Generator) -> list[Message]:
    rows = rng.choice(len(pool), min(most, len(pool)), replace=False)
    return [pool[row] for row in np.sort(rows)]


def centres_of(vectors: Float32Array, rng: np.random.Generator) -> Float32Array:
    """(n, d) -> (c, d) means of the vectors nearest to each (k-means, Lloyd), c at most 128."""
    count = min(_CENTRES, len(vectors))
    centres = vectors[rng.choice(len(vectors), count, replace=False)]
    squares = np.einsum("nd,nd->n", vectors, vectors)
    for _ in range(_ROUNDS):
        gaps = squares[:, None] - 2.0 * vectors @ centres.T + (centres**2).sum(axis=1)
        nearest = gaps.argmin(axis=1)
        taken = [vectors[nearest == c].mean(axis=0) for c in np.unique(nearest)]
        centres = np.array(taken, dtype=np.float32)
    return centres


def add_reference(bundle: Bundle, splits: Splits) -> Bundle:
    """Make the bundle's reference and list it; graph, card and fingerprint stay as they are.

    Raises:
        BundleError: The bundle gives no text vectors.
    """
    if not bundle.vectors:
        raise BundleError.of(str(bundle.path), "there are none to compare with", place="vectors")
    predictor = Predictor(bundle)
    learned, held = sample(splits), held_out(splits)
    vectors = predictor.predict_batches(**columns(learned)).vectors
    kept = predictor.predict_batches(**columns(held)).vectors
    assert vectors is not None
    assert kept is not None
    centres = centres_of(vectors, np.random.default_rng(_SEED))
    halved = centres.astype(np.float16).astype(np.float32)
    plain = Reference(halved, 1.0, KEPT)
    limit = float(np.quantile([plain.distance(vector) for vector in kept], KEPT))
    write_reference(bundle.path / REFERENCE, Reference(halved, limit, KEPT))
    facts = {
        "messages": len(learned), "drawn": _DRAWN, "centres": len(centres), "seed": _SEED,
        "held_out": len(held), "kept": KEPT, "limit": round(limit, 4),
    }  # fmt: skip
    training = {**bundle.training, "reference": facts}
    return write_manifest(bundle.path, replace(bundle, reference=REFERENCE, training=training))
