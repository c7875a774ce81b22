"""Requirement labels from real outcomes: what stronger models really did better (paper, Eq. 5).

A folder of replayed queries holds `queries.jsonl.gz` (query_id, text, benchmark, language) and
`outcomes.parquet` (query_id, model, quality in [0, 1]). A query's requirement is the gap between a
strong and a cheap tier of models, max(0, strong - cheap), in the dimensions that its benchmark
asks for. A third of the queries, by a digest of the text, is kept apart and never read here.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

__all__ = ["files", "gaps", "is_kept_apart", "read_outcomes"]

#: Models by tier. The reasoning models lack some benchmarks; where they have none, `STRONG` stands
#: alone.
CHEAP = ("llama-3-8b-instruct", "gpt-3.5-turbo-0125", "claude-3-haiku-20240307", "gemini-1.5-flash")
STRONG = (
    "claude-3-5-sonnet-20240620", "gpt-4o-2024-05-13", "gpt-4o-2024-08-06",
    "claude-3-opus-20240229",
)  # fmt: skip
REASONING = ("o1-mini-2024-09-12", "o1-preview-2024-09-12")

#: What a benchmark asks for, as shares of the gap by dimension.
ASKS: Mapping[str, Mapping[str, float]] = {
    "crux": {"reasoning": 1.0, "code_generation": 0.5},
    "gsm": {"reasoning": 1.0},
    "math-l5": {"reasoning": 1.0},
    "mmlu-redux": {"reasoning": 1.0},
    "zebra-grid": {"reasoning": 1.0},
    "bfcl": {"reasoning": 0.3, "tool_use": 1.0},
}

#: The top of the label scale: a gap of 4 over 5, as the judges give it.
TOP = 0.8


def files(folder: Path) -> list[Path]:
    """The two files of the folder that are read."""
    return [folder / "queries.jsonl.gz", folder / "outcomes.parquet"]


def is_kept_apart(text: str) -> bool:
    """Whether a query belongs to the third that nothing is learned from."""
    return int(hashlib.sha256(f"outer {text[:200]}".encode()).hexdigest(), 16) % 3 == 0


def gaps(quality: pd.DataFrame) -> pd.Series:
    """(n, models) quality by query -> (n,) gap in [0, 1]: max(0, strong - cheap)."""
    cheap = quality[list(CHEAP)].mean(axis=1)
    strong = quality[list(STRONG)].mean(axis=1)
    best = quality.reindex(columns=list(REASONING)).mean(axis=1).fillna(strong)
    return strong.combine(best, max).sub(cheap).clip(lower=0.0)


def read_outcomes(folder: Path, dimensions: Sequence[str]) -> list[dict[str, object]]:
    """Queries that are not kept apart, one object each with id, text, lang, source and labels."""
    queries, outcomes = files(folder)
    lines = gzip.decompress(queries.read_bytes()).decode("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    table = pd.read_parquet(outcomes, columns=["query_id", "model", "quality"])
    gap = gaps(table.pivot(index="query_id", columns="model", values="quality"))
    out: list[dict[str, object]] = []
    for row in rows:
        if is_kept_apart(row["text"]):
            continue
        asked, top = ASKS[row["benchmark"]], TOP * float(gap[row["query_id"]])
        out.append({
            "id": row["query_id"], "text": row["text"], "lang": row["language"],
            "source": row["benchmark"],
            **{name: round(top * asked.get(name, 0.0), 3) for name in dimensions},
        })  # fmt: skip
    return out
