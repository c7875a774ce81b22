# ruff: noqa: E402 - torch is looked for before what needs it is imported

import warnings
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="training needs torch: make test-train")
torch = pytest.importorskip("torch", reason="training needs torch: make test-train")

from hydra_core.base.types import Band
from hydra_core.lab.evaluate import reliability
from hydra_core.lab.training.network.model import EncoderConfig, Predictor
from hydra_core.lab.training.ship.export import (
    export_onnx,
    fuse_attention,
    nodes_within,
    parity,
    run_graph,
    session,
    variant_of,
)
from hydra_core.lab.training.ship.release import apply_all, fit_all
from hydra_core.predictor.score_bands import score_bands


@pytest.fixture(scope="module", params=["bert", "modernbert"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    torch.manual_seed(0)
    config = EncoderConfig(
        kind=request.param, vocab=80, width=64, layers=2, heads=2, intermediate=96, max_tokens=64
    )
    model = Predictor(config).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = export_onnx(model, tmp_path_factory.mktemp("graph") / "fp32.onnx")
    rng = np.random.default_rng(0)
    rows = [rng.integers(4, 80, n).tolist() for n in (2, 5, 17, 40, 64)]
    with torch.inference_mode():
        truth = np.concatenate(
            [model(torch.tensor([r]), torch.ones((1, len(r)), dtype=torch.long)) for r in rows]
        )
    return path, rows, truth


def test_the_fp32_graph_says_what_torch_says(exported) -> None:
    path, rows, truth = exported
    assert np.abs(run_graph(session(path), rows) - truth).max() < 1e-4


@pytest.mark.parametrize("variant", ["int8", "int8_full", "fp16"])
def test_quantised_graphs_stay_near(exported, variant, tmp_path: Path) -> None:
    path, rows, truth = exported
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = variant_of(path, variant, tmp_path / "x.onnx")
    assert other.stat().st_size < path.stat().st_size
    assert parity(truth, run_graph(session(other), rows)).mean_delta <= 0.01


def test_attention_is_found_in_the_graph(exported) -> None:
    graph = onnx.load(exported[0]).graph
    names = set(nodes_within(exported[0], ".att"))
    inside = [n for n in graph.node if n.op_type == "MatMul" and n.name in names]
    outside = [n for n in graph.node if n.op_type in {"MatMul", "Gemm"} and n.name not in names]
    assert len(inside) >= 8
    assert len(outside) >= 5


def test_fused_attention_says_the_same(exported, request, tmp_path: Path) -> None:
    path, rows, truth = exported
    graph = onnx.load(path)
    before = len(graph.graph.node)
    count = fuse_attention(graph)
    bert = "[bert" in request.node.name
    assert count == (2 if bert else 0)
    onnx.save(graph, tmp_path / "fused.onnx")
    fused = session(tmp_path / "fused.onnx")
    assert np.abs(run_graph(fused, rows) - truth).max() < 1e-4
    if bert:
        assert len(graph.graph.node) < before
        ids = np.pad(np.array([rows[2]], np.int64), ((0, 0), (0, 9)), constant_values=1)
        mask = (np.arange(ids.shape[1]) < len(rows[2])).astype(np.int64)[None]
        padded = fused.run(None, {"input_ids": ids, "attention_mask": mask})[0]
        assert np.abs(padded - truth[2]).max() < 1e-4


def test_recalibration_is_monotone_and_helps() -> None:
    rng = np.random.default_rng(0)
    raw = rng.uniform(0.05, 0.6, (400, 2)).astype(np.float32)
    truth = np.clip(raw * 1.4 - 0.1, 0, 0.8)
    curves = fit_all(raw, truth, np.ones(400, np.float32))
    assert all(np.all(np.diff(c.y) >= 0) for c in curves)
    assert np.abs(apply_all(curves, raw) - truth).mean() < 0.5 * np.abs(raw - truth).mean()


def test_bands_are_percentiles_and_reliability_has_its_counts() -> None:
    scores = np.linspace(0, 1, 101, dtype=np.float32)[:, None]
    assert score_bands(scores) == (Band(0.05, 0.95),)
    assert sum(reliability(scores[:, 0], scores[:, 0]).count) == 101
