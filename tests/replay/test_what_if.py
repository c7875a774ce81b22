"""A draft against what is published, replayed on the same queries."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from hydra_core.base.errors import MismatchError
from hydra_core.catalog import load_catalog
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.replay.compare import replay_policy, what_if
from hydra_core.replay.replay import catalog_scores
from hydra_core.replay.sweep import sweep_catalog

ROOT = Path(__file__).resolve().parents[2]
CATALOG = load_catalog(ROOT / "catalog" / "paper_five_published.yaml")


@pytest.fixture(scope="module")
def evalset():
    return load_evalset(ROOT / "sample_data" / "paper_swebench")


@pytest.fixture(scope="module")
def replayed(evalset):
    def run(catalog):
        scores = catalog_scores(evalset, catalog)
        return replay_policy(
            catalog, sweep_catalog(evalset, catalog, scores, today=date(2026, 1, 1))
        )

    return run


def without(model):
    return replace(CATALOG, models=tuple(m for m in CATALOG.models if m.id != model))


def test_the_same_catalog_changes_nothing(replayed):
    found = what_if(replayed(CATALOG), replayed(CATALOG))
    assert found.comparison.flipped.size == 0
    assert found.comparison.cost_usd.value == 0.0
    assert all(before == after for before, after in found.shares.values())


def test_a_removed_model_hands_its_traffic_on(replayed):
    found = what_if(replayed(CATALOG), replayed(without("gpt-5.3-codex")))
    before, after = found.shares["gpt-5.3-codex"]
    assert before > 0.5
    assert after == 0.0
    assert found.comparison.flipped.size == round(before * 500)
    assert sum(after for _, after in found.shares.values()) == pytest.approx(1.0)


def test_deltas_are_after_minus_before(replayed):
    a, b = replayed(CATALOG), replayed(without("gpt-5.3-codex"))
    found = what_if(a, b).comparison
    assert found.cost_usd.value == pytest.approx(
        b.metrics.mean_cost_usd.value - a.metrics.mean_cost_usd.value
    )
    assert found.cost_usd.lo < found.cost_usd.value < found.cost_usd.hi


def test_another_predictors_catalog_is_refused(replayed):
    with pytest.raises(MismatchError, match="is not scored by"):
        replayed(replace(CATALOG, predictor_fingerprint="0" * 64))


@pytest.mark.parametrize("model", [model.id for model in CATALOG.models])
def test_a_pool_that_lost_a_model_is_held_against_the_same_oracle(replayed, model):
    before, after = replayed(CATALOG), replayed(without(model))
    found = what_if(before, after).comparison
    best = before.data.quality.max(axis=1).mean()
    for side, run in zip(found.retained, (before.run, after.run), strict=True):
        assert side.value == pytest.approx(run.quality.mean() / best)
    assert found.qr.value == pytest.approx(found.retained[1].value - found.retained[0].value)
    assert found.qr.value == pytest.approx(found.quality.value / best)
