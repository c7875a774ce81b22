"""A newcomer is placed by its rate, and outcomes move it."""

import numpy as np
import pytest

from hydra_core.choosing.sources.few_outcomes import fit_few
from hydra_core.choosing.sources.newcomers import (
    newcomer_head,
    place_newcomer,
    shift_of_rate,
)
from hydra_core.outcome_model.heads import log_odds
from tests.choosing.learning_sets import MODELS as SMALL
from tests.choosing.learning_sets import learnable, material_of


def said(head, success):
    odds = head(log_odds(success).astype(np.float32))[:, 0]
    return 1 / (1 + np.exp(-odds))


def others(n=800, seed=0):
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, 1.2, (n, 1))
    return 1 / (1 + np.exp(-(ability + [0.0, 0.5])))


@pytest.mark.parametrize("rate", [0.05, 0.4, 0.62, 0.93])
def test_without_outcomes_the_mean_is_the_rate(rate):
    success = others()
    assert said(newcomer_head(success, rate=rate), success).mean() == pytest.approx(rate, abs=1e-3)


def test_without_outcomes_it_keeps_the_others_order_of_difficulty():
    success = others()
    mine = said(newcomer_head(success, rate=0.8), success)
    odds = [log_odds(values) for values in (mine, success)]
    assert np.corrcoef(odds[0], odds[1].mean(axis=1))[0, 1] > 0.98


def test_outcomes_correct_a_wrong_rate():
    success = others()
    rng = np.random.default_rng(1)
    quality = (rng.random(len(success)) < 0.4).astype(float)
    errors = []
    for count in (0, 50, 800):
        some = np.where(np.arange(len(quality)) < count, quality, np.nan)
        mine = said(newcomer_head(success, some, rate=0.8), success)
        errors.append(abs(mine.mean() - quality.mean()))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.1


def test_a_newcomer_with_neither_rate_nor_outcomes_is_refused():
    with pytest.raises(ValueError, match="neither"):
        newcomer_head(others())
    with pytest.raises(ValueError, match="between 0 and 1"):
        shift_of_rate(np.zeros(3), 62.0)


def test_a_model_joins_success_heads_without_any_outcome(tmp_path):
    """Its success has the mean of its rate, its tokens are those of the others."""
    material = material_of(learnable(tmp_path / "set", 400), SMALL[:2])
    heads = fit_few(material, seed=0)
    pool = heads.for_pool(material.models, np.zeros(2), None)
    success = pool.predict(material.messages).success
    joined = place_newcomer(heads, material.messages, success, "strong", rate=0.8)
    assert joined.models == SMALL
    prices = np.array([[0.1, 0.4], [1.0, 4.0], [5.0, 20.0]])
    found = joined.for_pool(SMALL, np.zeros(3), prices).predict(material.messages)
    assert found.success[:, 2].mean() == pytest.approx(0.8, abs=0.02)
    assert found.cost_usd[:, 2] / found.cost_usd[:, 1] == pytest.approx(5.0, rel=0.01)
    with pytest.raises(ValueError, match="already"):
        place_newcomer(joined, material.messages, success, "strong", rate=0.8)


def test_tokens_of_a_newcomer_move_with_its_outcomes(tmp_path):
    material = material_of(learnable(tmp_path / "set", 400), SMALL[:2])
    heads = fit_few(material, seed=0)
    success = np.full((400, 2), 0.5)
    wordy = np.where(np.arange(400) < 25, 3.0 * material.output_tokens[:, 0], np.nan)
    some = np.where(np.arange(400) < 25, 1.0, np.nan)
    joined = place_newcomer(
        heads, material.messages, success, "wordy", quality=some, rate=0.5, output_tokens=wordy
    )
    raw = joined.read(material.messages).output_tokens
    more = np.exp(raw[:, 2] - raw[:, 0]).mean()
    assert more == pytest.approx(np.sqrt(3.0), rel=0.1)  # 25 outcomes weigh as much as the prior
