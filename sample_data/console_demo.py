"""A synthetic eval set over this project's own 40 tasks in 16 languages (640 messages)."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from hydra_core.base.types import DIMENSIONS, FloatArray, ModelSpec
from hydra_core.catalog.schema import load_catalog
from hydra_core.evalsets.evalset import EvalSet, load_evalset, save_evalset
from hydra_core.evalsets.scores import score_evalset
from hydra_core.evalsets.suspects import answer, look
from hydra_core.predictor.languages import group_of
from hydra_core.predictor.onnx_predictor import default_predictor
from sample_data.item_response import MODELS, Messages, draw_outcomes, draw_tokens

__all__ = ["SEED", "TASKS", "build", "read_tasks", "score"]

HERE = Path(__file__).parent
TASKS = HERE / "console_demo_tasks.jsonl"
CATALOG = HERE.parent / "catalog" / "paper_five.yaml"
SEED = 2
_PER_MTOK = 1e-6


def read_tasks() -> pd.DataFrame:
    """(640) rows as written: id, task, lang, text, one label per dimension, tier."""
    lines = TASKS.read_text(encoding="utf-8").splitlines()
    return pd.DataFrame([json.loads(line) for line in lines])


def _queries(tasks: pd.DataFrame) -> pd.DataFrame:
    """The query table; a task is one cluster, as its languages share one difficulty."""
    queries = pd.DataFrame(
        {
            "query_id": tasks["id"],
            "text": tasks["text"],
            "language": tasks["lang"],
            "group": [group_of(code) for code in tasks["lang"]],
            "cluster": tasks["task"],
        }
    )
    for dimension in DIMENSIONS:
        queries[f"label_{dimension}"] = tasks[dimension].astype(np.float64)
    return queries


def _messages(queries: pd.DataFrame) -> Messages:
    return Messages(
        requirements=queries[[f"label_{d}" for d in DIMENSIONS]].to_numpy(dtype=np.float64),
        task=pd.factorize(queries["cluster"])[0],
        language=pd.factorize(queries["language"])[0],
        groups=tuple(queries["group"]),
    )


def _specs() -> list[ModelSpec]:
    """The models as the catalog says that the set is made for."""
    catalog = load_catalog(CATALOG)
    return [catalog.model(model) for model in MODELS]


def _prices() -> tuple[FloatArray, FloatArray]:
    """(m,) input and output USD per million tokens."""
    specs = _specs()
    return (
        np.array([spec.input_usd_per_mtok for spec in specs]),
        np.array([spec.output_usd_per_mtok for spec in specs]),
    )


def build(folder: Path) -> EvalSet:
    """Write the eval set to `folder`, replacing one that is there; scores are made by `score`."""
    rng = np.random.default_rng(SEED)
    queries = _queries(read_tasks())
    messages = _messages(queries)
    quality = draw_outcomes(messages, rng)
    input_tokens, output_tokens = draw_tokens(messages, rng)
    input_price, output_price = _prices()
    cost_usd = (input_tokens * input_price + output_tokens * output_price) * _PER_MTOK
    return save_evalset(
        folder,
        name="Console demo: 40 tasks in 16 languages",
        origin="Tasks written for this project; outcomes and costs simulated by "
        "sample_data/build.py (see sample_data/README.md)",
        licence="Apache-2.0",
        synthetic=True,
        cost_estimated=True,
        price_notes="Simulated tokens times the prices of catalog/paper_five.yaml.",
        queries=queries,
        models=MODELS,
        quality=quality,
        cost_usd=np.round(cost_usd, 8),
        extras={"input_tokens": input_tokens, "output_tokens": output_tokens},
        prices={spec.id: spec.price for spec in _specs()},
        force=True,
    )


def score(folder: Path) -> int:
    """Score the set with the shipped bundle and look for dependent queries; how many there are.

    Raises:
        BundleError: No bundle is shipped, or it is damaged.
    """
    evalset = load_evalset(folder)
    count = len(score_evalset(evalset, default_predictor()))
    answer(evalset, look(evalset), accepted=True)
    return count
