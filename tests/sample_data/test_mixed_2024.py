"""The real set: no texts, only what may be shipped, and what the console says of it first."""

from datetime import date
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hydra_core.catalog import load_catalog
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.scores import load_scores, load_text_facts, score_path
from hydra_core.outcome_model.format import catalog_outcome_model
from hydra_core.predictor.bundle import load_bundle
from hydra_core.replay.evaluation import evaluate
from hydra_core.replay.sweep import sweep_by_value, sweep_catalog
from hydra_core.replay.verdict import VerdictLabel

TODAY = date(2026, 11, 1)


@pytest.fixture(scope="module")
def evalset():
    return load_evalset(Path("sample_data/mixed_2024"))


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(Path("catalog/mixed_2024.yaml"))


def test_it_is_real_and_holds_no_texts(evalset):
    assert not evalset.synthetic
    assert evalset.cost_estimated
    assert evalset.texts is None
    assert "bfcl" not in set(evalset.queries["group"])
    assert "ZeroEval" in evalset.origin
    assert "Apache-2.0" in evalset.licence
    assert not any(evalset.missing_quality.values())


def test_it_is_scored_by_the_shipped_bundle_with_vectors_reduced(evalset):
    bundle = load_bundle()
    facts = load_text_facts(evalset, bundle.fingerprint)
    assert facts.vectors.shape == (evalset.n, bundle.vectors)
    stored = pq.read_schema(score_path(evalset.path, bundle.fingerprint)).field("text.vector")
    assert stored.type.list_size == 64


def test_the_shortfall_rule_does_not_win_and_the_learned_one_is_recommended(evalset, catalog):
    scores = load_scores(evalset, catalog.predictor_fingerprint)
    found = evaluate(sweep_catalog(evalset, catalog, scores, today=TODAY), catalog.policy.tau)
    assert found.verdict.label is VerdictLabel.WORSE
    model = catalog_outcome_model(catalog)
    assert model.evalset_digest == evalset.digest
    assert model.figures["recommend"]
    assert model.figures["lift"]["interval"][0] > 0.02


def test_weights_are_cautioned_of_only_where_they_decide(evalset, catalog):
    scores = load_scores(evalset, catalog.predictor_fingerprint)
    by_profile = sweep_catalog(evalset, catalog, scores, today=TODAY)
    assert "weights, profiles or a pool" in evaluate(by_profile, catalog.policy.tau).caution
    model = catalog_outcome_model(catalog)
    by_value = sweep_by_value(evalset, catalog, model, cross_fitted=True, today=TODAY)
    assert not evaluate(by_value, catalog.policy.value_usd).caution
