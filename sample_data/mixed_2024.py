"""A real set without texts: ids, outcomes, tokens, costs and text vectors of mixed traffic.

Outcomes, costs and ids are facts; the messages themselves stay where they are, and so does the part
whose licence is missing (bfcl). Built from the replay data beside the project where it is there:
the messages are scored in a temporary folder, which is thrown away.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Final

import pandas as pd

from hydra_core.errors import EvalSetError, Problem
from hydra_core.evaluation.evalset.evalset import EvalSet, load_evalset, save_evalset
from hydra_core.evaluation.evalset.score_files import load_scores, load_text_facts, save_scores
from hydra_core.evaluation.evalset.scoring import score_evalset
from hydra_core.predictor.bundle import Bundle
from hydra_core.predictor.onnx_predictor import default_predictor

__all__ = ["MODELS", "SOURCE", "build", "read", "without_texts"]

SOURCE: Final = Path(__file__).parents[2] / "shared" / "data" / "replay" / "mixed-2024"
MODELS: Final = ("gemini-1.5-flash", "llama-3-70b-instruct", "claude-3-5-sonnet-20240620")
_LEFT_OUT: Final = ("bfcl",)
_ORIGIN: Final = (
    "ZeroEval (github.com/WildEval/ZeroEval, commit 8c1485ed): GSM8K, MATH, CRUXEval, MMLU-Redux, "
    "ZebraLogic; real outcomes of 2024, scored by ZeroEval's rules. Texts are not included"
)
_LICENCE: Final = (
    "outcomes: Apache-2.0 (ZeroEval); benchmarks: GSM8K, MATH and CRUXEval MIT, MMLU-Redux "
    "CC-BY-4.0, ZebraLogic not stated"
)
_PRICES: Final = (
    "Estimated: cl100k tokens times the list prices of 2024; on mmlu-redux and zebra-grid the "
    "length of answers is a mean of the model there."
)


def read(folder: Path, source: Path = SOURCE, models: tuple[str, ...] = MODELS) -> EvalSet:
    """The set with its texts, for building and for benchmarks; never to be shipped.

    Raises:
        EvalSetError: The data are not there.
    """
    if not (source / "outcomes.parquet").is_file():
        problem = Problem("", "is not there", "put the replay data beside the project")
        raise EvalSetError(str(source), [problem])
    with gzip.open(source / "queries.jsonl.gz", "rt", encoding="utf-8") as lines:
        frame = pd.DataFrame([json.loads(line) for line in lines])
    outcomes = pd.read_parquet(source / "outcomes.parquet")
    ids = frame["query_id"]

    def matrix(column: str) -> pd.DataFrame:
        wide = outcomes.pivot(index="query_id", columns="model", values=column)
        return wide.loc[ids, list(models)]

    queries = frame[["query_id", "text", "language"]].assign(group=frame["benchmark"])
    names = ("quality", "cost_usd", "input_tokens", "output_tokens")
    values = {name: matrix(name).to_numpy(dtype=float) for name in names}
    return save_evalset(
        folder,
        name="Mixed traffic of 2024, real outcomes",
        origin=_ORIGIN,
        licence=_LICENCE,
        cost_estimated=True,
        price_notes=_PRICES,
        queries=queries,
        models=models,
        quality=values.pop("quality"),
        cost_usd=values.pop("cost_usd"),
        extras=values,
        force=True,
    )


def without_texts(whole: EvalSet, bundle: Bundle, folder: Path) -> EvalSet:
    """The same set, scored, less its texts and the part that may not be shipped."""
    rows = (~whole.queries["group"].isin(_LEFT_OUT)).to_numpy().nonzero()[0]
    made = save_evalset(
        folder,
        name=whole.name,
        origin=whole.origin,
        licence=whole.licence,
        cost_estimated=whole.cost_estimated,
        price_notes=whole.price_notes,
        queries=whole.queries.iloc[rows].drop(columns="text").reset_index(drop=True),
        models=whole.models,
        quality=whole.quality[rows],
        cost_usd=whole.cost_usd[rows],
        extras={name: values[rows] for name, values in whole.extras.items()},
        force=True,
    )
    scores = load_scores(whole, bundle.fingerprint)
    facts = load_text_facts(whole, bundle.fingerprint)
    assert scores is not None
    assert facts is not None
    kept = type(facts)(facts.vectors[rows], facts.counts[rows])
    save_scores(made, bundle.fingerprint, bundle.dimensions, scores[rows], kept)
    return made


def build(folder: Path, source: Path = SOURCE) -> EvalSet:
    """Write the set without texts to `folder`, replacing one that is there.

    Raises:
        EvalSetError: The data are not there, or the folder cannot be written.
    """
    predictor = default_predictor()
    with tempfile.TemporaryDirectory() as scratch:
        whole = read(Path(scratch) / "whole", source)
        score_evalset(whole, predictor)
        return without_texts(load_evalset(whole.path), predictor.bundle, folder)
