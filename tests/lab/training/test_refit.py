# ruff: noqa: E402 - torch is looked for before what needs it is imported

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: make test-train")
onnx = pytest.importorskip("onnx", reason="training needs torch: make test-train")

from hydra_core.lab.training.network.heads import KernelConfig, WordConfig, fit_layered, fit_words
from hydra_core.lab.training.network.model import EncoderConfig, Predictor
from hydra_core.lab.training.network.second_stage import SecondHeads, add_heads
from hydra_core.lab.training.ship.export import export_onnx, run_graph, session
from hydra_core.lab.training.ship.refit import RefitError, graft, graph_reader, read_by
from hydra_core.lab.training.ship.release import E5, SCRATCH, Origin, add_vectors
from hydra_core.predictor.bundle import SHIPPED_SMALL, load_bundle

WIDTH, VOCAB = 32, 60


def some_rows(seed: int, n: int = 60) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(4, VOCAB, rng.integers(3, 12)).tolist() for _ in range(n)]


def some_heads(seed: int, landmarks: int, shares: tuple[float, float]) -> SecondHeads:
    rng = np.random.default_rng(seed)
    seen = rng.normal(size=(400, 2 * WIDTH)).astype(np.float32)
    labels = rng.uniform(0, 0.8, (400, 4)).astype(np.float32)
    weight = np.ones(400, np.float32)
    kernel = fit_layered(seen, labels, weight, KernelConfig(landmarks=landmarks), 2)
    words = fit_words(some_rows(seed, 400), labels, weight, VOCAB, WordConfig(buckets=97))
    return SecondHeads(kernel, words, *shares, {})


@pytest.fixture
def model() -> Predictor:
    torch.manual_seed(0)
    config = EncoderConfig(
        vocab=VOCAB, width=WIDTH, layers=2, heads=2, intermediate=48, max_tokens=32
    )
    return Predictor(config).eval()


def exported(model: Predictor, path: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return export_onnx(model, path)


def said_by(model: Predictor, rows: list[list[int]]) -> np.ndarray:
    with torch.inference_mode():
        each = [model(torch.tensor([r]), torch.ones((1, len(r)), dtype=torch.long)) for r in rows]
        return torch.cat(each).numpy()


def test_a_graph_with_new_heads_says_what_the_model_with_them_says(
    model: Predictor, tmp_path: Path
) -> None:
    rows, new = some_rows(5, 9), some_heads(2, 340, (0.6, 0.1))
    add_heads(model, some_heads(1, 300, (0.2, 0.2)))
    path = exported(model, tmp_path / "old.onnx")
    add_vectors(path)
    graph = onnx.shape_inference.infer_shapes(onnx.load(path))
    before = run_graph(session(graph.SerializeToString()), rows)
    graft(graph, new)
    add_heads(model, new)
    after = run_graph(session(graph.SerializeToString()), rows)
    assert np.abs(after - said_by(model, rows)).max() < 1e-4
    assert np.abs(after - before).max() > 1e-2


def test_new_heads_leave_text_vectors_and_main_scores_alone(
    model: Predictor, tmp_path: Path
) -> None:
    rows = some_rows(6, 9)
    add_heads(model, some_heads(1, 300, (0.2, 0.2)))
    graph = onnx.load(exported(model, tmp_path / "old.onnx"))
    seen, said = graph_reader(graph, 2)(rows)
    graft(graph, some_heads(2, 340, (0.6, 0.1)))
    again = graph_reader(graph, 2)(rows)
    assert np.array_equal(seen, again[0])
    assert np.array_equal(said, again[1])
    with torch.inference_mode():
        last = torch.tensor(seen[:, -WIDTH:])
        assert np.abs(torch.sigmoid(model.heads(last)).numpy() - said).max() < 1e-5


def test_heads_can_be_replaced_again(model: Predictor, tmp_path: Path) -> None:
    rows, last = some_rows(7, 5), some_heads(3, 280, (0.5, 0.2))
    add_heads(model, some_heads(1, 300, (0.2, 0.2)))
    graph = onnx.load(exported(model, tmp_path / "old.onnx"))
    graft(graph, some_heads(2, 340, (0.6, 0.1)))
    graft(graph, last)
    add_heads(model, last)
    said = run_graph(session(graph.SerializeToString()), rows)
    assert np.abs(said - said_by(model, rows)).max() < 1e-4


def test_a_graph_without_second_heads_is_refused(model: Predictor, tmp_path: Path) -> None:
    graph = onnx.load(exported(model, tmp_path / "plain.onnx"))
    with pytest.raises(RefitError, match="blend its scores"):
        graft(graph, some_heads(1, 300, (0.2, 0.2)))


def test_a_refitted_bundle_keeps_what_it_reads_and_where_its_encoder_comes_from() -> None:
    bundle, small = load_bundle(), load_bundle(SHIPPED_SMALL)
    assert read_by(replace(bundle, conversation=1)).conversation == 1
    assert read_by(small).max_tokens == small.max_tokens
    assert (Origin.of(bundle), Origin.of(small).type) == (E5, SCRATCH.type)
