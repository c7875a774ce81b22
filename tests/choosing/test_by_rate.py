"""A model joins what was learned by its rate: placed, written, and never counted as measured."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hydra_core.base.errors import OutcomeModelError
from hydra_core.choosing.by_rate import (
    COUNTS,
    need_rates,
    rehearsal_of,
    rehearse_profiles,
    with_newcomers,
)
from hydra_core.choosing.learn import learn
from hydra_core.choosing.write import write_outcome_model
from tests.choosing.learning_sets import FINGERPRINT, MODELS, learnable, material_of
from tests.choosing.sets import outcomes

PRICES = {"cheap": (0.1, 0.4), "middle": (1.0, 4.0), "strong": (5.0, 20.0)}


@pytest.fixture(scope="module")
def evalset(tmp_path_factory):
    return learnable(tmp_path_factory.mktemp("rate") / "set", 400)


@pytest.fixture(scope="module")
def learned(evalset):
    """Of the cheap and the middle model; the strong one is not known."""
    material = material_of(evalset, MODELS[:2])
    prices = np.array([PRICES[name] for name in material.models])
    return learn(material, prices, folds=3, curve=False)


def without(learned, kept=0):
    """What was learned where the set has so many outcomes of the strong model."""
    evalset = learned.material.evalset
    quality = evalset.quality.copy()
    quality[kept:, 2] = np.nan
    known = replace(evalset, quality=quality)
    return replace(learned, material=replace(learned.material, evalset=known))


def test_without_outcomes_it_has_the_mean_of_its_rate_and_its_own_price(learned):
    found = with_newcomers(without(learned), {"strong": 0.9}, PRICES)
    assert found.heads.models == MODELS
    assert found.predicted.success[:, 2].mean() == pytest.approx(0.9, abs=0.02)
    dearer = found.predicted.cost_usd[:, 2].mean() / found.predicted.cost_usd[:, 1].mean()
    assert dearer == pytest.approx(5.0, rel=0.1)
    assert (found.lift, found.recommend) == (learned.lift, learned.recommend)
    assert "strong joins by its rate of 90 %: taken to solve 90 % (86 to 93 %)" in found.reason
    assert "What this adds is not measured." in found.reason


def test_its_few_outcomes_correct_a_wrong_rate(learned):
    means = [
        with_newcomers(without(learned, kept), {"strong": 0.5}, PRICES).newcomers[0].success
        for kept in (0, 25, 100)
    ]
    assert [one[0] for one in means] == sorted(one[0] for one in means)  # it solves 90 %
    widths = [high - low for _, low, high in means]
    assert widths == sorted(widths, reverse=True)


def test_it_is_written_with_how_sure_it_is(learned, tmp_path):
    found = with_newcomers(without(learned, 10), {"strong": 0.9}, PRICES)
    made = write_outcome_model(tmp_path / "model", found, fingerprint=FINGERPRINT)
    figures = json.loads((tmp_path / "model" / "figures.json").read_text())
    assert made.models == MODELS
    assert made.outcomes == (400, 400, 10)
    assert figures["models"]["strong"] == {"outcomes": 10, "newcomer": True}
    (about,) = figures["newcomers"]
    assert (about["name"], about["rate"], about["outcomes"]) == ("strong", 0.9, 10)
    assert about["interval"][0] < about["success"] < about["interval"][1]


def test_a_rate_is_rehearsed_on_models_with_outcomes(evalset):
    material = material_of(evalset)
    found = rehearsal_of(learn(material, None, folds=3, curve=False))
    assert tuple(found.kept) == COUNTS
    assert 0.3 < found.kept[0] < 1.2
    assert found.kept_wrong[0] < found.kept[0] + 0.1
    assert "The risk is a wrong rate" in found.sentence


def test_a_rate_is_for_models_with_few_outcomes_and_between_0_and_1(evalset, learned):
    assert need_rates(evalset, {"strong": 0.9, "new": 0.5}) == {"new": 0.5}
    assert need_rates(without(learned, 100).material.evalset, {"strong": 0.9}) == {"strong": 0.9}
    with pytest.raises(OutcomeModelError, match=r"'new'.*between 0 and 1, got 62"):
        need_rates(evalset, {"new": 62.0})


def test_a_rate_is_rehearsed_on_success_profiles_where_nothing_was_learned():
    found = rehearse_profiles(outcomes(1_500))
    assert 0.3 < found.kept[0] < 1.2
    assert rehearse_profiles(outcomes(1_500, signal=0.0)) is None  # nothing could be kept
