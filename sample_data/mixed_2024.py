"""Public benchmark questions of 2024 with real outcomes, and a catalog and outcome model of them.

Outcomes, costs and ids are real; the questions themselves are left out, and so is the part whose
licence is missing (bfcl). Built from the replay data beside the project where it is there: the
questions are scored in a temporary folder, which is deleted.
"""

import gzip
import json
import tempfile
from datetime import date
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.types import ListPrice
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.prices.price_file import GivenPrice
from hydra_core.catalog.schema import parse_catalog
from hydra_core.choosing.initial_catalog import initial_catalog
from hydra_core.choosing.learn import learn
from hydra_core.choosing.material import gather, outcomes_of_replay
from hydra_core.choosing.sources.profiles import fit_success_profiles
from hydra_core.choosing.write import with_success_profiles, write_outcome_model
from hydra_core.evalsets.evalset import EvalSet, load_evalset, save_evalset
from hydra_core.evalsets.scores import (
    load_scores,
    load_text_facts,
    messages_of,
    save_scores,
    score_evalset,
)
from hydra_core.evalsets.suspects import answer, suspects
from hydra_core.export.release import write_release
from hydra_core.predictor.bundle import Bundle
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.replay.replay import align_catalog

SOURCE: Final = Path(__file__).parents[2] / "shared" / "data" / "replay" / "mixed-2024"
_MADE: Final = date(2026, 11, 22)
_DAY: Final = date(2024, 7, 1)
#: USD per million tokens read and written, list prices of mid 2024.
_PRICE: Final = {
    "llama-3-8b-instruct": ListPrice(0.2, 0.2),
    "gpt-3.5-turbo-0125": ListPrice(0.5, 1.5),
    "llama-3-70b-instruct": ListPrice(0.9, 0.9),
    "claude-3-5-sonnet-20240620": ListPrice(3.0, 15.0),
    "claude-3-opus-20240229": ListPrice(15.0, 75.0),
}
MODELS: Final = tuple(_PRICE)
_LEFT_OUT: Final = ("bfcl",)
#: Spends about half of the range between the cheapest and the best model.
#: Numbers kept of each text vector: more than the principal components that heads read.
_COORDINATES: Final = 64
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
    """The set with its texts, for building and for benchmarks; it must not be shipped.

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
        name="Public benchmark questions of 2024, real outcomes",
        origin=_ORIGIN,
        licence=_LICENCE,
        cost_estimated=True,
        price_notes=_PRICES,
        queries=queries,
        models=models,
        quality=values.pop("quality"),
        cost_usd=values.pop("cost_usd"),
        extras=values,
        prices={model: price for model, price in _PRICE.items() if model in models},
        force=True,
    )


def without_texts(whole: EvalSet, bundle: Bundle, folder: Path) -> EvalSet:
    """The same set, scored, without its texts and without the part that may not be shipped."""
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
        dependence=whole.dependence,
        prices=whole.prices,
        force=True,
    )
    scores = load_scores(whole, bundle.fingerprint)
    facts = load_text_facts(whole, bundle.fingerprint)
    assert scores is not None
    assert facts is not None
    kept = type(facts)(facts.vectors[rows], facts.counts[rows])
    save_scores(
        made, bundle.fingerprint, bundle.dimensions, scores[rows], kept, coordinates=_COORDINATES
    )
    return made


def catalog(evalset: EvalSet, bundle: Bundle, path: Path) -> None:
    """Write the catalog of the set's pool to `path`, and its outcome model beside it.

    The catalog routes by success profiles, the best source that stands in YAML alone; the outcome
    model that it names is what heads would add.
    """
    scores = load_scores(evalset, bundle.fingerprint)
    assert scores is not None
    note = "list price of mid 2024, as remembered, not looked up again"
    made = initial_catalog(
        evalset,
        scores,
        {model: GivenPrice(price, _DAY, note) for model, price in _PRICE.items()},
        name="public benchmark questions of 2024, five models",
        predictor=bundle.name,
        fingerprint=bundle.fingerprint,
        dimensions=bundle.dimensions,
        today=_MADE,
    )
    messages = messages_of(evalset, bundle.fingerprint, bundle.vectors)
    material = gather(evalset, messages, evalset.models)
    prices = [_PRICE[model] for model in material.models]
    learned = learn(
        material, np.array([[p.input_usd_per_mtok, p.output_usd_per_mtok] for p in prices])
    )
    folder = path.with_suffix("")
    model = write_outcome_model(folder, learned, fingerprint=bundle.fingerprint, force=True)
    document = CatalogDocument.parse(made.text, path.name)
    document.set("outcome_model", {"path": folder.name, "sha256": model.digest})
    parsed = parse_catalog(document.text(), path.name)
    data = align_catalog(evalset, parsed, scores, today=_MADE)
    outcomes = outcomes_of_replay(data, evalset)
    fitted = fit_success_profiles(outcomes)
    write_release(path, with_success_profiles(document.text(), parsed, fitted, outcomes, evalset))


def build(folder: Path, catalogs: Path, source: Path = SOURCE) -> EvalSet:
    """Write the set without texts to `folder`, its catalog to `catalogs`; both are replaced.

    Raises:
        EvalSetError: The data are not there, or the folder cannot be written.
    """
    predictor = default_predictor()
    with tempfile.TemporaryDirectory() as scratch:
        whole = read(Path(scratch) / "whole", source)
        score_evalset(whole, predictor)
        whole = load_evalset(whole.path)
        same = suspects(whole.queries)  # by text and id: puzzles of one template are many
        whole = answer(whole, same, accepted=True)
        made = without_texts(whole, predictor.bundle, folder)
        catalog(made, predictor.bundle, catalogs / f"{folder.name}.yaml")
        return made
