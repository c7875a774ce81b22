import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from hydra_core.lab.training.texts.dataset import (
    CHEAP,
    REASONING,
    STRONG,
    files,
    gaps,
    is_kept_apart,
    read_outcomes,
)


def replayed(folder: Path, texts: list[str], benchmark: str, cheap: float, strong: float) -> Path:
    queries, outcomes = files(folder)
    lines = [
        json.dumps({"query_id": f"q{i}", "text": t, "benchmark": benchmark, "language": "en"})
        for i, t in enumerate(texts)
    ]
    queries.write_bytes(gzip.compress("\n".join(lines).encode()))
    rows = [
        (f"q{i}", model, quality)
        for i in range(len(texts))
        for models, quality in ((CHEAP, cheap), (STRONG, strong))
        for model in models
    ]
    pd.DataFrame(rows, columns=["query_id", "model", "quality"]).to_parquet(outcomes)
    return folder


def test_a_requirement_is_what_the_strong_tier_does_better(tmp_path: Path) -> None:
    folder = replayed(tmp_path, [f"query {i}" for i in range(30)], "bfcl", 0.25, 1.0)
    found = read_outcomes(folder, ("reasoning", "debugging", "tool_use"))
    for row in found:
        assert row["tool_use"] == pytest.approx(0.6)
        assert row["reasoning"] == pytest.approx(0.18)
        assert row["debugging"] == 0.0


def test_what_no_model_or_every_model_solves_requires_nothing() -> None:
    models = [*CHEAP, *STRONG, *REASONING]
    table = pd.DataFrame([[0.0] * len(models), [1.0] * len(models)], columns=models)
    assert gaps(table).tolist() == [0.0, 0.0]


def test_a_better_cheap_tier_is_no_negative_requirement() -> None:
    table = pd.DataFrame([[1.0] * 4 + [0.0] * 4], columns=[*CHEAP, *STRONG])
    assert gaps(table).tolist() == [0.0]


def test_the_third_that_is_kept_apart_is_never_read(tmp_path: Path) -> None:
    texts = [f"a query of its own, number {i}" for i in range(200)]
    folder = replayed(tmp_path, texts, "gsm", 0.0, 1.0)
    read = {str(row["text"]) for row in read_outcomes(folder, ("reasoning",))}
    assert read == {text for text in texts if not is_kept_apart(text)}
    assert 100 < len(read) < 170
