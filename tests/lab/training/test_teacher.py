# ruff: noqa: E402 - torch is looked for before what needs it is imported

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs torch: make test-train")

from hydra_core.lab.training.network.teacher import (
    LAYERS,
    kernel_ridge,
    out_of_fold,
    surface,
    write_teacher,
)
from hydra_core.lab.training.texts.dataset import Message


def tasks(count: int, rng: np.random.Generator) -> tuple[list[Message], np.ndarray, np.ndarray]:
    """Tasks in four wordings with equal vectors; the first label follows the vectors, the second
    is noise that only a wording of the same task could tell."""
    vectors = rng.normal(size=(count, 6)).astype(np.float32).repeat(4, axis=0)
    follows = 0.4 + 0.3 * np.tanh(vectors[:, 0])
    noise = rng.random(count).repeat(4)
    messages = [
        Message(
            f"m{i}", f"{rng.integers(1 << 60):x} {rng.integers(1 << 60):x}", "en", "parallel",
            "own", f"t{i // 4}", (float(follows[i]), float(noise[i])),
        )
        for i in range(4 * count)
    ]  # fmt: skip
    return messages, np.tile(vectors, len(LAYERS)), np.stack([follows, noise], 1)


def test_scores_follow_what_generalises_and_never_a_wording_of_the_same_task() -> None:
    messages, vectors, truth = tasks(150, np.random.default_rng(0))
    scores = out_of_fold(messages, vectors)
    assert np.corrcoef(scores[:, 0], truth[:, 0])[0, 1] > 0.8
    assert abs(np.corrcoef(scores[:, 1], truth[:, 1])[0, 1]) < 0.2
    assert scores.min() >= 0
    assert scores.max() <= 1


def test_kernel_ridge_remembers_what_it_was_fitted_on() -> None:
    rng = np.random.default_rng(1)
    x, glance = rng.normal(size=(80, 5)).astype(np.float32), rng.normal(size=(80, 12))
    y = (x[:, :1] * x[:, 1:2] > 0).astype(np.float32)
    score = kernel_ridge(x, glance, y, range(80))(range(80))
    assert np.corrcoef(score[:, 0], y[:, 0])[0, 1] > 0.95


def test_a_glance_is_twelve_finite_numbers_of_any_text() -> None:
    for text in ("", "x", "def f(): return {1: 2}; // error 404?\n" * 500, "修复它"):
        values = surface(text)
        assert len(values) == 12
        assert np.isfinite(values).all()


def test_the_file_is_what_fit_reads(tmp_path: Path) -> None:
    messages, _, truth = tasks(1, np.random.default_rng(2))
    write_teacher(tmp_path / "t.jsonl", messages, truth, ("a", "b"))
    rows = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [m.id for m in messages]
    assert rows[0]["a"] == pytest.approx(truth[0, 0], abs=1e-4)
