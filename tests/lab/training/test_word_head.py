# ruff: noqa: E402 - torch is looked for before what needs it is imported

import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: make test-train")
onnx = pytest.importorskip("onnx", reason="training needs torch: make test-train")

from hydra_core.lab.training.network.heads import WordConfig, WordHead, counts, fit_words
from hydra_core.lab.training.network.model import EncoderConfig, Predictor
from hydra_core.lab.training.ship.export import export_onnx, run_graph, session, variant_of
from hydra_core.lab.training.texts.encode import collate

CONFIG = WordConfig(buckets=97, ridge=0.3)


def sentences(n: int = 400) -> tuple[list[list[int]], np.ndarray]:
    """Token 7 costs .6 on the first dimension, the pair 11 12 on the second."""
    rng = np.random.default_rng(0)
    rows = [[0, *rng.integers(13, 60, rng.integers(3, 12)).tolist(), 2] for _ in range(n)]
    for i, row in enumerate(rows):
        row[1:1] = [[7], [11, 12], [12, 11], []][i % 4]
    truth = np.zeros((n, 2), np.float32)
    truth[::4, 0] = truth[1::4, 1] = 0.6
    return rows, truth


def head_of(rows: list[list[int]], truth: np.ndarray) -> WordHead:
    return fit_words(rows, truth, np.ones(len(rows), np.float32), 60, CONFIG)


def said_by(head: WordHead, rows: list[list[int]]) -> np.ndarray:
    batch = collate(rows)
    return head(batch.input_ids, batch.attention_mask).numpy()


def test_it_learns_words_and_the_order_of_two() -> None:
    rows, truth = sentences()
    said = said_by(head_of(rows[:300], truth[:300]), rows[300:])
    assert np.corrcoef(said[:, 0], truth[300:, 0])[0, 1] > 0.9
    assert np.corrcoef(said[:, 1], truth[300:, 1])[0, 1] > 0.9
    assert said[1::4, 1].mean() > said[2::4, 1].mean() + 0.2


def test_padding_does_not_change_a_score() -> None:
    rows, truth = sentences()
    head = head_of(rows, truth)
    together = said_by(head, rows[:8])
    alone = np.concatenate([said_by(head, [row]) for row in rows[:8]])
    assert np.allclose(together, alone, atol=1e-6)


def test_the_head_says_what_the_regression_says() -> None:
    rows, truth = sentences()
    head = head_of(rows, truth)
    table, offset = head.table.float().numpy(), head.offset.numpy()
    expected = np.clip(counts(rows, 60, CONFIG.buckets) @ table + offset, 0, 1)
    assert np.allclose(said_by(head, rows), expected, atol=1e-5)


def test_a_quantised_graph_keeps_the_head_whole(tmp_path: Path) -> None:
    rows, truth = sentences()
    torch.manual_seed(0)
    model = Predictor(
        EncoderConfig(
            vocab=60, width=32, layers=2, heads=2, intermediate=48, max_tokens=32,
            dimensions=("a", "b"),
        )
    ).eval()  # fmt: skip
    model.words, model.word_share = head_of(rows, truth), 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = export_onnx(model, tmp_path / "a.onnx")
        graph = variant_of(source, "int8_full", tmp_path / "b.onnx")
    said = run_graph(session(graph), rows[:20])
    assert np.allclose(said, said_by(model.words, rows[:20]), atol=1e-4)
    halves = [
        t for t in onnx.load(graph).graph.initializer if t.data_type == onnx.TensorProto.FLOAT16
    ]
    assert [list(t.dims) for t in halves] == [[60 + CONFIG.buckets, 2]]
