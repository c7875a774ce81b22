# ruff: noqa: E402 - torch is looked for before what needs it is imported

import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: make test-train")
onnx = pytest.importorskip("onnx", reason="training needs torch: make test-train")

import onnxruntime

from hydra_core.lab.training.network.model import EncoderConfig, Predictor
from hydra_core.lab.training.ship.export import (
    export_onnx,
    fuse_attention,
    lean,
    run_graph,
    session,
    variant_of,
)

ROWS = [np.random.default_rng(n).integers(4, 80, n).tolist() for n in (2, 5, 17, 40, 64)]
Exported = tuple[Predictor, Path]


@pytest.fixture(scope="module", params=["bert", "modernbert"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    torch.manual_seed(0)
    config = EncoderConfig(
        kind=request.param, vocab=80, width=64, layers=2, heads=2, intermediate=96, max_tokens=64
    )
    model = Predictor(config).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model, export_onnx(model, tmp_path_factory.mktemp("graph") / "fp32.onnx")


def test_a_lean_graph_says_what_the_model_says_and_asks_for_ids_alone(exported: Exported) -> None:
    model, path = exported
    with torch.inference_mode():
        each = [model(torch.tensor([r]), torch.ones((1, len(r)), dtype=torch.long)) for r in ROWS]
    graph = onnx.load(path)
    fuse_attention(graph)
    lean(graph)
    opened = session(graph.SerializeToString())
    assert [given.name for given in opened.get_inputs()] == ["input_ids"]
    assert np.abs(run_graph(opened, ROWS) - torch.cat(each).numpy()).max() < 1e-4


def test_a_lean_graph_stays_as_it_is(exported: Exported) -> None:
    graph = onnx.load(exported[1])
    fuse_attention(graph)
    lean(graph)
    once = graph.SerializeToString()
    lean(graph)
    assert graph.SerializeToString() == once


def test_rows_of_one_length_say_together_what_they_say_alone(exported: Exported) -> None:
    graph = onnx.load(exported[1])
    fuse_attention(graph)
    lean(graph)
    opened = session(graph.SerializeToString())
    ids = np.random.default_rng(1).integers(4, 80, (3, 12))
    together = opened.run(None, {"input_ids": ids})[0]
    assert np.abs(together - run_graph(opened, ids.tolist())).max() < 1e-5


def test_the_slow_fusion_is_left_out_of_an_int8_graph(exported: Exported, tmp_path: Path) -> None:
    """What onnxruntime makes of a shipped variant: additions and layer norms of their own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = variant_of(exported[1], "int8_full", tmp_path / "int8.onnx")
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "opened.onnx")
    options.log_severity_level = 4
    onnxruntime.InferenceSession(str(made), options, providers=["CPUExecutionProvider"])
    kinds = [node.op_type for node in onnx.load(tmp_path / "opened.onnx").graph.node]
    assert "SkipLayerNormalization" not in kinds
    assert kinds.count("LayerNormalization") == 5
