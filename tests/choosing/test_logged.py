"""Learning from queries with outcomes of some models only: a log alone, and one joined to a set."""

from dataclasses import replace

import numpy as np
import pytest

from hydra_core.base.errors import OutcomeModelError
from hydra_core.choosing.by_rate import with_newcomers
from hydra_core.choosing.learn import learn
from hydra_core.choosing.material import gather
from hydra_core.choosing.sources.few_outcomes import ridge_of_cells
from hydra_core.choosing.sources.newcomers import newcomer_range
from hydra_core.choosing.write import figures_of, write_outcome_model
from hydra_core.evalsets.scores import messages_of
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


def logged_only(folder, complete=300, n=900):
    """A set in which the strongest model answered only queries that the others did not."""
    evalset = partly(folder, complete, n, served=2)
    kept = np.ones((n, 3), dtype=bool)
    kept[:complete, 2] = False
    quality, cost_usd = (np.where(kept, v, np.nan) for v in (evalset.quality, evalset.cost_usd))
    return replace(evalset, quality=quality, cost_usd=cost_usd)


def test_a_model_with_outcomes_in_logs_only_joins_by_them(tmp_path):
    whole = learnable(tmp_path / "whole", 900)
    material = material_of(logged_only(tmp_path / "set"))
    assert (material.models, material.logged_only) == (MODELS[:2], (MODELS[2],))
    found = with_newcomers(learn(material, None, folds=3, curve=False), {}, None)
    figures = figures_of(found)
    assert figures["models"][MODELS[2]] == {"outcomes": 600, "newcomer": True}
    assert figures["models"][MODELS[0]] == {"outcomes": 300, "newcomer": False}
    assert figures["rehearsal"] is None
    (joined,) = figures["newcomers"]
    assert joined["rate"] is None
    assert joined["interval"][0] < whole.quality[:300, 2].mean() < joined["interval"][1]
    assert "600 outcomes, too few of them on queries that the others answered" in found.reason
    assert "What this adds is not measured." in found.reason
    success = found.heads.for_pool(found.material.models, np.zeros(3), None).predict(
        messages_of(whole, FINGERPRINT, WIDTH)
    )
    assert success.success[:, 2].mean() == pytest.approx(whole.quality[:, 2].mean(), abs=0.05)
    means = success.cost_usd.mean(axis=0)
    np.testing.assert_allclose(means, whole.cost_usd.mean(axis=0), rtol=0.1)
    made = write_outcome_model(tmp_path / "model", found, fingerprint=FINGERPRINT)
    assert made.learned.raw.difference.shape == (900, 3)
    assert np.isfinite(made.learned.raw.difference).all()


def test_easy_logged_queries_do_not_flatter_a_model():
    """It was sent easy queries only, and does on every query what the others do."""
    rng = np.random.default_rng(3)
    easy = np.repeat([False, True], 400)
    others = np.where(easy[:, None], [0.8, 0.85], [0.3, 0.35])
    own = np.where(easy, (rng.random(800) < 0.82).astype(float), np.nan)
    mean, low, high = newcomer_range(others, own, None, others)
    assert low < others.mean() < high
    assert mean == pytest.approx(others.mean(), abs=0.03)
    assert np.nanmean(own) > others.mean() + 0.2


def test_logged_outcomes_move_a_rate(tmp_path):
    evalset = logged_only(tmp_path / "set")
    kept = evalset.quality.copy()
    kept[360:, 2] = np.nan
    messages = messages_of(evalset, FINGERPRINT, WIDTH)
    material = gather(replace(evalset, quality=kept), messages, MODELS[:2], [MODELS[2]])
    assert material.logged.n == 60
    found = with_newcomers(learn(material, None, folds=3, curve=False), {MODELS[2]: 0.3}, None)
    (joined,) = found.newcomers
    assert joined.outcomes == 60
    assert joined.success[0] > 0.4


def test_a_model_with_too_few_outcomes_anywhere_is_refused(tmp_path):
    evalset = logged_only(tmp_path / "set")
    quality = evalset.quality.copy()
    quality[320:, 2] = np.nan
    with pytest.raises(OutcomeModelError, match=r"has 20 outcomes \(at least 25 are needed") as bad:
        material_of(replace(evalset, quality=quality))
    others = ",".join(name for i, name in enumerate(evalset.models) if i != 2)
    assert f"--models {others}" in str(bad.value)


def test_a_log_that_says_nothing_names_what_to_collect(tmp_path):
    found = learn(material_of(partly(tmp_path / "set", 200, signal=0.0)), None, folds=3)
    sentence = figures_of(found)["logged"]["sentence"]
    assert not found.recommend
    assert "added" in sentence
