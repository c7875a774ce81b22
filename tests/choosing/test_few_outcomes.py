"""The fixed recipe for few outcomes fits heads of the usual kind."""

from dataclasses import replace

import numpy as np
import pytest

from hydra_core.choosing.lift import lift_of
from hydra_core.choosing.sources.few_outcomes import fit_few
from tests.choosing.learning_sets import MODELS, learnable, material_of


def lift(material, heads, rows):
    pool = heads.for_pool(material.models, np.zeros(len(material.models)), None)
    predicted = pool.predict(material.messages.take(rows))
    return lift_of(
        material.quality[rows], material.cost_usd[rows], predicted, None, np.random.default_rng(0)
    )


def test_a_text_vector_that_predicts_success_is_found_in_200_outcomes(tmp_path):
    material = material_of(learnable(tmp_path / "set", 800))
    heads = fit_few(material.take(np.arange(200)), seed=0)
    assert lift(material, heads, np.arange(200, 800)).mean.lo > 0.03


def test_it_is_the_same_for_the_same_seed(tmp_path):
    material = material_of(learnable(tmp_path / "set", 200))
    first, again = (fit_few(material, seed=3).read(material.messages) for _ in range(2))
    assert (first.difference == again.difference).all()


def test_costs_are_the_models_own_on_average(tmp_path):
    material = material_of(learnable(tmp_path / "set", 300))
    heads = fit_few(material, seed=0)
    pool = heads.for_pool(material.models, np.zeros(3), None)
    found = pool.predict(material.messages).cost_usd.mean(axis=0)
    assert found == pytest.approx(material.cost_usd.mean(axis=0), rel=0.02)


def test_a_model_with_few_outcomes_becomes_a_newcomer(tmp_path):
    material = material_of(learnable(tmp_path / "set", 400, known={"strong": 40}))
    heads = fit_few(material, seed=0)
    assert heads.newcomers is not None
    assert heads.models == MODELS
    assert lift(material, heads, material.complete) is not None
    success = heads.for_pool(MODELS, np.zeros(3), None).predict(material.messages).success
    assert success[:, 2].mean() == pytest.approx(0.9, abs=0.08)


def test_a_newcomer_whose_outcomes_are_all_left_out_follows_the_others(tmp_path):
    """A small share of the queries, as the learning curve draws it, may hold none of them."""
    whole = material_of(learnable(tmp_path / "set", 400, known={"strong": 40}))
    material = replace(whole, cost_usd=np.where(np.isfinite(whole.quality), whole.cost_usd, np.nan))
    heads = fit_few(material.take(np.arange(100, 300)), seed=0)
    found = heads.for_pool(MODELS, np.zeros(3), None).predict(material.messages)
    assert np.isfinite(found.success).all()
    assert np.isfinite(found.cost_usd).all()
