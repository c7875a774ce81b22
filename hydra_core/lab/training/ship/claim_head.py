"""The head that finds appended claims of difficulty: a small network on token vectors.

It learns from the token vectors of layers 4 and 6 of the exported graph which tokens belong to a
claim, and becomes the graph's output `claims` (`hydra_core/predictor/onnx_predictor.py`). Written
families only; the probes of `lab/robustness/probes.yaml` are never seen.
"""

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from torch import nn

from hydra_core.base.types import Float32Array
from hydra_core.lab.training.ship.export import feed_of, opened_at
from hydra_core.lab.training.texts.augment import FAMILIES, JOINS, claim, honest_endings, languages
from hydra_core.lab.training.texts.dataset import Message
from hydra_core.predictor.signals import signal_prefix

_HIDDEN = 64
_LONGEST = 700
_CAP = 300
_SHORT = 900
_TEXTS = 20_000


def wordings(messages: Sequence[Message], n: int, seed: int) -> Iterator[tuple[str, int]]:
    """Texts and where the claim begins; every other one has none (its whole length).

    A third of the texts end with a sentence that looks like a claim and belongs to the request.
    """
    chance, rng = random.Random(seed), np.random.default_rng(seed)
    endings = honest_endings()
    for number in range(n):
        message = chance.choice(messages)
        text = message.text[-_LONGEST:]
        if message.lang in endings and chance.random() < 1 / 3:
            text = text.rstrip() + chance.choice(JOINS) + chance.choice(endings[message.lang])
        if number % 2 == 0:
            yield text, len(text)
            continue
        draw, family = chance.random(), chance.choice(FAMILIES)
        lang = message.lang if draw < 0.6 else "en" if draw < 0.9 else chance.choice(languages())
        said = claim(lang, family, rng)
        if chance.random() < 0.15:
            said = said.lower().rstrip(".")
        yield text + chance.choice(JOINS) + said, len(text)


def layer_outputs(graph: onnx.ModelProto) -> tuple[str, str]:
    """Names of the token vectors after the last layer and after the last but two."""
    norms = [node for node in graph.graph.node if node.op_type == "LayerNormalization"]
    return norms[-1].output[0], norms[-5].output[0]


def token_vectors(
    graph: onnx.ModelProto, tokenizer: Tokenizer, texts: Sequence[tuple[str, int]]
) -> tuple[Float32Array, Float32Array]:
    """(tokens, 2 * width) vectors and (tokens,) whether each belongs to a claim."""
    names = layer_outputs(graph)
    opened = opened_at(graph, names)

    def one(example: tuple[str, int]) -> tuple[Float32Array, Float32Array]:
        text, start = example
        prefix = signal_prefix(text, 1)
        encoding = tokenizer.encode(prefix + text)
        last, earlier = opened.run(list(names), feed_of(opened, encoding.ids[:_CAP]))
        offsets = np.array(encoding.offsets[:_CAP])
        inside = offsets[:, 1] > offsets[:, 0]
        marks = offsets[inside, 0] - len(prefix) >= start
        return np.hstack([last[0], earlier[0]])[inside], marks.astype(np.float32)

    with ThreadPoolExecutor(2) as pool:
        vectors, marks = zip(*pool.map(one, texts), strict=True)
    return np.vstack(vectors), np.concatenate(marks)


def fit_head(vectors: Float32Array, marks: Float32Array, epochs: int = 6) -> list[Float32Array]:
    """w1 (2w, h), b1 (h,), w2 (h, 1), b2 (1,), with the scaling of the input folded in."""
    torch.manual_seed(0)
    mean, spread = vectors.mean(0), vectors.std(0) + 1e-6
    inputs, targets = torch.tensor((vectors - mean) / spread), torch.tensor(marks)
    first, second = nn.Linear(inputs.shape[1], _HIDDEN), nn.Linear(_HIDDEN, 1)
    network = nn.Sequential(nn.Dropout(0.2), first, nn.ReLU(), second)
    optimizer = torch.optim.AdamW(network.parameters(), 1e-3, weight_decay=0.05)
    for _ in range(epochs):
        for rows in torch.randperm(len(inputs)).split(2048):
            logits = network(inputs[rows])[:, 0]
            loss = nn.functional.binary_cross_entropy_with_logits(logits, targets[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    w1 = first.weight.detach().numpy() / spread
    b1 = first.bias.detach().numpy() - w1 @ mean
    return [w1.T, b1, second.weight.detach().numpy().T, second.bias.detach().numpy()]


def add_head(graph: onnx.ModelProto, weights: Sequence[Float32Array]) -> None:
    """Add the output `claims` (n, t) to a graph, in place."""
    for name, value in zip(("w1", "b1", "w2", "b2"), weights, strict=True):
        tensor = numpy_helper.from_array(np.ascontiguousarray(value, np.float32), f"claims_{name}")
        graph.graph.initializer.append(tensor)
    axis = numpy_helper.from_array(np.array([2], np.int64), "claims_axis")
    graph.graph.initializer.append(axis)
    steps: tuple[tuple[str, list[str], str, dict[str, Any]], ...] = (
        ("Concat", list(layer_outputs(graph)), "claims_h", {"axis": -1}),
        ("MatMul", ["claims_h", "claims_w1"], "claims_m", {}),
        ("Add", ["claims_m", "claims_b1"], "claims_a", {}),
        ("Relu", ["claims_a"], "claims_r", {}),
        ("MatMul", ["claims_r", "claims_w2"], "claims_o", {}),
        ("Add", ["claims_o", "claims_b2"], "claims_p", {}),
        ("Squeeze", ["claims_p", "claims_axis"], "claims", {}),
    )
    for kind, inputs, output, options in steps:
        graph.graph.node.append(
            helper.make_node(kind, inputs, [output], f"{output}_node", **options)
        )
    output = helper.make_tensor_value_info("claims", TensorProto.FLOAT, ["n", "t"])
    graph.graph.output.append(output)
    onnx.checker.check_model(graph)


def strip_traces(graph: onnx.ModelProto) -> None:
    """Drop what the exporter notes about the machine it ran on, in place."""
    del graph.metadata_props[:]
    del graph.graph.metadata_props[:]
    for node in graph.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""


def add_claims(path: Path, tokenizer: Tokenizer, messages: Sequence[Message]) -> None:
    """Fit the head on an exported graph's own token vectors and write it into the graph."""
    short = [m for m in messages if len(m.text) < _SHORT]
    graph = onnx.load(path)
    texts = list(wordings(short, _TEXTS, seed=1))
    add_head(graph, fit_head(*token_vectors(graph, tokenizer, texts)))
    strip_traces(graph)
    onnx.save(graph, path)
