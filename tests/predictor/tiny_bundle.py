"""A tiny real bundle: embeddings, a masked mean, one dynamically quantised layer, K heads."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from hydra_core.base.types import DIMENSIONS, Band
from hydra_core.lab.bundle_writing import write_manifest
from hydra_core.predictor.bundle import Bundle, Manifest

WIDTH = 8
WORDS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "T1", "SHORT", "CODE", "fix", "bug", "write", "poem")
BANDS = (Band(0.1, 0.9), Band(0.0, 0.8), Band(0.2, 0.7), Band(0.05, 0.5))


def graph(
    vocabulary: int, outputs: int = 4, extra_input: str = "", *, vectors: bool = False
) -> onnx.ModelProto:
    """input_ids, attention_mask (n, t) -> sigmoid(W masked_mean(E[input_ids])) (n, K).

    With `vectors` also the mean itself, (n, WIDTH).
    """
    rng = np.random.default_rng(7)
    weights = {
        "E": rng.normal(size=(vocabulary, WIDTH)).astype(np.float32),
        "W": rng.normal(size=(WIDTH, outputs)).astype(np.float32),
        "last": np.array([-1], dtype=np.int64),
        "one": np.array([1], dtype=np.int64),
    }
    nodes = [
        helper.make_node("Gather", ["E", "input_ids"], ["e"]),
        helper.make_node("Cast", ["attention_mask"], ["m"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["m", "last"], ["m3"]),
        helper.make_node("Mul", ["e", "m3"], ["em"]),
        helper.make_node("ReduceSum", ["em", "one"], ["sum"], keepdims=0),
        helper.make_node("ReduceSum", ["m3", "one"], ["count"], keepdims=0),
        helper.make_node("Div", ["sum", "count"], ["mean"]),
        helper.make_node("MatMul", ["mean", "W"], ["logits"], name="head"),
        helper.make_node("Sigmoid", ["logits"], ["probabilities"]),
    ]
    names = ["input_ids", "attention_mask", *([extra_input] if extra_input else [])]
    said = [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["n", outputs])]
    if vectors:
        nodes.append(helper.make_node("Identity", ["mean"], ["vectors"]))
        said.append(helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", WIDTH]))
    body = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "t"]) for name in names],
        said,
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def tokenizer() -> Tokenizer:
    """Words and, for all else, bytes: any text has tokens."""
    pieces = [*WORDS, *(f"<0x{byte:02X}>" for byte in range(256)), *map(chr, range(33, 127))]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    made = Tokenizer(
        models.BPE(vocabulary, [], unk_token="[UNK]", byte_fallback=True, ignore_merges=True)
    )
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return made


def make_bundle(folder: Path, **changes: object) -> Bundle:
    """The tiny bundle written into `folder`, which may hold its own model file already."""
    folder.mkdir(exist_ok=True)
    words = tokenizer()
    words.save(str(folder / "tokenizer.json"))
    model = folder / "model.int8.onnx"
    if not model.exists():
        full = folder / "full.onnx"
        onnx.save(graph(words.get_vocab_size()), full)
        quantize_dynamic(full, model, per_channel=True, weight_type=QuantType.QInt8)
        full.unlink()
    facts: dict[str, object] = {
        "name": "tiny",
        "version": "1",
        "encoder": {"type": "mean", "origin": "made for a test", "licence": "Apache-2.0"},
        "dimensions": DIMENSIONS,
        "bands": BANDS,
        "max_tokens": 64,
        "training": {"examples": 0},
        "quality": {"pearson": {"mean": 0.0}},
    }
    others = changes.pop("other_files", ())
    manifest = Manifest(**(facts | changes))  # type: ignore[arg-type]
    return write_manifest(folder, manifest, other_files=others)  # type: ignore[arg-type]
