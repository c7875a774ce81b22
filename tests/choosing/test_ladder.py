"""The ladder says which source is worth it, and of what it cannot tell apart."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.quality.sources import cross_fit_heads, ladder
from hydra_core.choosing.lift import recommendation
from hydra_core.choosing.sources.ladder import Kind, _ladder, fit_of, fit_rung
from hydra_core.choosing.sources.promise import promise, walk
from tests.choosing.learning_sets import learnable, material_of
from tests.choosing.sets import outcomes


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A set whose text vectors predict success and whose requirements predict nothing."""
    material = material_of(learnable(tmp_path_factory.mktemp("ladder") / "set", 900))
    return ladder(material, folds=3), material


def test_only_heads_gain_where_requirements_say_nothing(found):
    made, _ = found
    assert [rung.kind for rung in made.rungs] == list(Kind)
    assert made.best_yaml is None
    assert made.rung(Kind.HEADS).lift.mean.lo > 0.03
    assert made.heads_add.value == pytest.approx(made.rung(Kind.HEADS).lift.mean.value)


def test_a_gain_that_follows_the_groups_is_said_to(found):
    """The set's groups are its easy and its hard queries: within them nothing is gained."""
    made, material = found
    assert made.recommended is Kind.HEADS
    assert "The gain comes from telling the groups apart" in made.rung(Kind.HEADS).reason
    kinds = ladder(material, folds=3, groups_are_traffic=True)
    assert "because you said" in kinds.rung(Kind.HEADS).reason


def test_a_gain_between_groups_is_not_recommended_where_a_grader_is_in_doubt(tmp_path):
    """The cheap model never solves what is hard, and the others often do."""
    evalset = learnable(tmp_path / "set", 600)
    hard = (evalset.queries["group"] == "hard").to_numpy()[:, None]
    quality = np.where(hard & (np.arange(3) == 0), 0.0, evalset.quality)
    made = ladder(material_of(replace(evalset, quality=quality)), folds=3)
    assert made.recommended is None
    assert made.reason.startswith("The gain comes from telling the groups apart")
    assert "Check the grader first" in made.reason


def test_the_answer_is_plain_json(found):
    made, _ = found
    read = json.loads(json.dumps(made.numbers(), allow_nan=False))
    assert {one["kind"] for one in read["sources"]} == {kind.value for kind in Kind}
    one = read["sources"][3]
    assert {"kind", "lift", "recommend", "reason", "n", "needs", "coupling"} <= set(one)
    assert set(one["lift"]) == {"points", "mean", "interval", "simultaneous", "unit"}
    assert set(one["lift"]["points"]) == {"25", "50", "75"}


def test_heads_may_be_left_out(found):
    _, material = found
    made = ladder(material, heads=False, folds=3)
    assert made.rung(Kind.HEADS) is None
    assert made.heads_add is None


@pytest.mark.parametrize("kind", [Kind.PROFILES, Kind.SUCCESS])
def test_a_source_that_gains_is_recommended(kind):
    rung = fit_rung(kind, outcomes())
    assert rung.recommend
    assert rung.reason.startswith("Use it: +")
    assert rung.numbers()["n"] == 1_500
    assert rung.profiles.models == outcomes().models


def test_profiles_are_not_fitted_to_few_queries():
    rung = fit_rung(Kind.PROFILES, outcomes(400))
    assert not rung.recommend
    assert "400 queries" in rung.reason
    assert rung.lift.mean.lo > 0
    told = _ladder((rung,), ()).reason  # the table shows its interval: no gain is not the reason
    assert told.endswith(
        "shows a gain that counts. Fitted profiles: do not fit profiles to 400 queries: below 500 "
        "they follow chance."
    )


def test_where_one_model_is_the_cheapest_and_the_best_all_sources_say_so():
    free = replace(outcomes(), cost_usd=np.zeros_like(outcomes().cost_usd))
    told = _ladder((fit_rung(Kind.SUCCESS, free),), ()).reason
    assert told == "Keep one model: it is both the cheapest and the best here."


def test_a_gain_that_is_not_recommended_says_why():
    """Keeping the fixed mix despite an interval above 0 is not for want of a gain."""
    lift = fit_rung(Kind.SUCCESS, outcomes()).lift
    told = [
        recommendation(one, widened=widened)[1].partition(" (")[0]
        for one, widened in (
            (lift, 1e6),
            (replace(lift, band=replace(lift.band, estimate=lift.band.estimate - 1.0)), 1.0),
            (replace(lift, mean=replace(lift.mean, lo=-0.01)), 1.0),
        )
    ]
    assert told == [
        "Keep the fixed mix: the gain is too small for the best of several sources",
        "Keep the fixed mix: the gain is not there at every cost",
        "Keep the fixed mix: no measurable gain here",
    ]


def test_heads_are_learned_not_fitted():
    with pytest.raises(ValueError, match="learn"):
        fit_of(Kind.HEADS)


def test_a_promise_stands_on_cross_fitted_profiles():
    data = outcomes(2_000)
    ranked = fit_rung(Kind.SUCCESS, data).cross_fitted.ranked
    taus, choice = walk(ranked.shortfalls, ranked.order)
    rng = np.random.default_rng(0)
    made = promise(data.models, data.quality, data.cost_usd, taus, choice, within=0.05, rng=rng)
    assert made.kept
    assert made.saving > 0.1


def test_too_few_queries_for_the_folds_are_refused(found):
    _, material = found
    with pytest.raises(ValueError, match="cannot be cut"):
        cross_fit_heads(material.take(np.arange(3)), folds=5)
