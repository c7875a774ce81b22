"""Learning from queries with outcomes of some models only: a log alone, and one joined to a set."""

from dataclasses import replace

import numpy as np
import pytest

from hydra_core.base.errors import OutcomeModelError
from hydra_core.choosing.learn import learn
from hydra_core.choosing.logged import ridge_of_cells
from hydra_core.choosing.material import gather
from hydra_core.choosing.write import figures_of, write_outcome_model
from hydra_core.evalsets.score_files import messages_of
from tests.choosing.learning_sets import FINGERPRINT, MODELS, WIDTH, learnable


def partly(folder, complete, n=600, *, served=None, signal=3.0):
    """A set whose first queries every model answered, and of whose others one model did."""
    evalset = learnable(folder, n, signal=signal)
    rng = np.random.default_rng(5)
    column = rng.integers(0, 3, n) if served is None else np.full(n, served)
    kept = np.zeros((n, 3), dtype=bool)
    kept[:complete] = True
    kept[np.arange(n), column] = True
    quality, cost_usd = (np.where(kept, v, np.nan) for v in (evalset.quality, evalset.cost_usd))
    return replace(evalset, quality=quality, cost_usd=cost_usd)


def material_of(evalset):
    return gather(evalset, messages_of(evalset, FINGERPRINT, WIDTH), MODELS)


def test_the_ridge_of_complete_outcomes_is_that_of_means_and_differences():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(200, 4)).astype(np.float32)
    columns -= columns.mean(axis=0)
    quality = (rng.random((200, 3)) < 0.5).astype(float)
    found = ridge_of_cells(columns, quality)(columns)
    success = found[:, :1] + found[:, 1:]
    # complete data split into the mean over models and each model's difference from it
    gram = columns.T @ columns
    mean = quality.mean(axis=1)
    shared = np.linalg.solve(gram + 0.1 * 200 * np.eye(4), columns.T @ (mean - mean.mean()))
    own = quality - mean[:, None]
    slopes = np.linalg.solve(gram + 3.0 * 200 * np.eye(4), columns.T @ own)
    expected = mean.mean() + columns @ shared[:, None] + columns @ slopes
    expected = expected + own.mean(axis=0) / 1.02
    np.testing.assert_allclose(success, expected, atol=2e-3)


def test_a_log_joins_complete_rows_and_what_it_added_is_shown(tmp_path):
    material = material_of(partly(tmp_path / "set", 60))
    assert (material.n, material.together, material.logged.n) == (60, 3, 540)
    assert sum(material.counted) == 3 * 60 + 540
    found = learn(material, None, folds=3)
    logged = figures_of(found)["logged"]
    assert (logged["queries"], logged["outcomes"]) == (540, 540)
    assert logged["used"]
    without, added = logged["lift_without"]["lift"], logged["added"]["lift"]
    assert found.lift.mean.value == pytest.approx(without + added)
    made = write_outcome_model(tmp_path / "model", found, fingerprint=FINGERPRINT)
    assert made.learned.raw.shared.shape[0] == 600
    assert np.isfinite(made.learned.raw.difference).all()


def test_a_log_alone_is_learned_and_never_recommended(tmp_path):
    material = material_of(partly(tmp_path / "set", 0))
    found = learn(material, None, folds=3)
    assert (found.lift, found.recommend) == (None, False)
    assert "Have every model answer about 250" in found.reason
    success = found.heads.for_pool(MODELS, np.zeros(3), None).predict(material.messages).success
    hard = material.evalset.queries["group"].to_numpy() == "hard"
    gain = success[:, 2] - success[:, 0]
    assert gain[hard].mean() > gain[~hard].mean() + 0.1


def test_logged_twins_of_a_held_out_query_are_not_learned_on(tmp_path):
    material = material_of(partly(tmp_path / "set", 100))
    logged = replace(material.logged, clusters=np.resize(material.clusters, material.logged.n))
    kept = replace(material, logged=logged).take(np.arange(40))
    assert set(kept.logged.clusters) == set(material.clusters[:40])


def test_a_model_whose_outcomes_are_all_logged_is_counted_right(tmp_path):
    evalset = partly(tmp_path / "set", 100, served=2)
    quality = evalset.quality.copy()
    quality[:100, 2] = np.nan
    with pytest.raises(OutcomeModelError, match="has 500 outcomes, 0 of them on queries with the"):
        material_of(replace(evalset, quality=quality))


def test_a_log_that_says_nothing_names_what_to_collect(tmp_path):
    found = learn(material_of(partly(tmp_path / "set", 200, signal=0.0)), None, folds=3)
    sentence = figures_of(found)["logged"]["sentence"]
    assert not found.recommend
    assert "added" in sentence
