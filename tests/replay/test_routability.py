"""An operator learns whether routing can help, and what is wrong with the set, before tuning."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hydra_core.evalsets.suspects import normalised
from hydra_core.replay.routability import (
    auc_interval,
    difficulty,
    duplicates,
    missing_data,
    overlaps,
    perfect_router,
    routability,
    solve_patterns,
)
from tests.evalsets.sets import queries, saved
from tests.replay.conftest import make_data


def told(n=400, *, informative=True):
    data = make_data(n=n, m=2)
    hard = np.random.default_rng(5).random(n) < 0.5
    noise = np.random.default_rng(6).random(n) < 0.1
    data.quality[:, 0] = ~(hard ^ noise)
    data.quality[:, 1] = ~(hard & noise)
    said = hard if informative else np.random.default_rng(7).random(n) < 0.5
    return data, [f"{'prove this lemma' if h else 'sort a list'} {i}" for i, h in enumerate(said)]


@pytest.fixture(scope="module")
def telling():
    return routability(*told())


def test_a_text_that_tells_is_called_predictive(telling):
    found = telling
    assert found.predictive
    assert found.aucs[0].model == "m0"
    assert found.aucs[0].text.lo > 0.8
    assert "routing can help" in found.text


def test_a_text_that_does_not_tell_is_not():
    found = routability(*told(informative=False))
    assert not found.predictive
    assert found.aucs[0].text.lo < 0.5 < found.aucs[0].text.hi
    assert "expect little" in found.text


def test_the_one_answer_is_that_of_the_reading_that_predicts_more():
    found = routability(*told(informative=False))
    by_reading = {
        "the text": np.median([one.text.value for one in found.aucs]),
        "the requirement scores": np.median([one.scores.value for one in found.aucs]),
    }
    assert found.predicted == max(by_reading.values()) == by_reading[found.source]
    assert found.source in found.text


def test_the_bounds_by_hand():
    data, _ = told()
    found = perfect_router(data)
    assert found.best == "m1"
    assert found.gain.value == pytest.approx(
        data.quality.max(axis=1).mean() - data.quality[:, 1].mean()
    )
    assert found.decidable == pytest.approx((data.quality[:, 0] != data.quality[:, 1]).mean())
    assert 0 < found.saving < 1


def test_models_behind_a_gate_do_not_differ():
    data, _ = told()
    closed = np.zeros(data.quality.shape, dtype=bool)
    closed[: len(closed) // 2, 0] = True
    differ = data.quality[:, 0] != data.quality[:, 1]
    found = perfect_router(replace(data, closed=closed))
    assert found.decidable == pytest.approx((differ & ~closed[:, 0]).mean())


def test_a_handful_of_queries_gives_bounds_but_no_auc():
    data = make_data(n=6)
    found = routability(data, ["a"] * 6)
    assert (found.aucs, found.advantage, found.predictive) == ((), None, False)
    assert "too few" in found.text


@pytest.mark.slow
def test_progress_rises_by_ones_to_its_end():
    seen = []
    found = routability(*told(100), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 8) for done in range(9)]  # 5 parts, 2 models, one against the other
    assert found == routability(*told(100))


def test_what_progress_raises_stops_the_measurement():
    def stop(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        routability(*told(100), progress=stop)


def test_auc_by_hand_and_its_extremes():
    target = np.array([False, False, True, True])
    assert auc_interval(np.array([1.0, 2.0, 3.0, 4.0]), target).value == 1.0
    assert auc_interval(np.array([1.0, 3.0, 2.0, 4.0]), target).value == 0.75
    assert auc_interval(np.zeros(4), target).value == 0.5


def test_dependent_queries_count_once_in_the_interval_of_an_auc():
    rng = np.random.default_rng(3)
    target = rng.random(400) < 0.4
    scores = rng.normal(size=400) + target
    plain = auc_interval(scores, target)
    alone = auc_interval(scores, target, np.arange(400))
    assert alone.value == pytest.approx(plain.value)
    assert alone.hi - alone.lo == pytest.approx(plain.hi - plain.lo, rel=0.05)
    four = (np.tile(values, 4) for values in (scores, target, np.arange(400)))
    dependent = auc_interval(*four)
    assert (dependent.lo, dependent.hi) == pytest.approx((alone.lo, alone.hi), abs=1e-6)


def test_patterns_count_who_solves_what():
    quality = np.array([[1, 0], [1, 0], [1, 1], [0, 0], [np.nan, 1]])
    found = solve_patterns(["a", "b"], quality)
    assert [(p.models, p.queries) for p in found] == [(("a",), 2), ((), 1), (("a", "b"), 1)]


def test_patterns_of_a_leaderboard_with_many_models():
    models = [f"m{i}" for i in range(100)]
    found = solve_patterns(models, np.vstack([np.eye(100)[99], np.eye(100)[99], np.eye(100)[3]]))
    assert [(p.models, p.queries) for p in found] == [(("m99",), 2), (("m3",), 1)]


def test_duplicates_are_found_through_case_space_and_punctuation(tmp_path):
    frame = pd.DataFrame(
        {
            "query_id": ["a", "b", "c", "d"],
            "text": ["Fix it!", " fix  IT", "Other", "!!!"],
            "language": "en",
            "cluster": ["x", "y", "z", "w"],
        }
    )
    quality = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    evalset = saved(tmp_path / "s", queries=frame, quality=quality, cost_usd=quality)
    (group,) = duplicates(evalset)
    assert (group.query_ids, group.clustered, group.outcomes_differ) == (("a", "b"), False, True)
    one = saved(
        tmp_path / "t", queries=frame.assign(cluster="x"), quality=quality, cost_usd=quality
    )
    assert duplicates(one)[0].clustered
    for name, unknown, differ in (("u", 0, False), ("v", 1, True)):
        gaps = quality.copy()
        gaps[0, unknown] = np.nan  # nobody knows whether it differs
        (group,) = duplicates(saved(tmp_path / name, queries=frame, quality=gaps, cost_usd=quality))
        assert group.outcomes_differ is differ


def test_texts_without_letters_are_not_all_one_text():
    assert normalised("!!!") != normalised("???")


def test_texts_that_another_set_holds_are_named(tmp_path):
    evalset = saved(tmp_path / "s")
    found = overlaps(evalset, {"train": ["fix the BUG."], "none": ["unheard of"]})
    assert [(o.other, o.queries, o.examples) for o in found] == [("train", 1, ("a",))]


def test_gaps_are_counted_and_said(tmp_path):
    found = missing_data(saved(tmp_path / "s"))
    assert (found.complete, dict(found.by_model)) == (2, {"cheap": (0, 1), "strong": (1, 1)})
    assert "2 of 3 queries are complete" in str(found)


def test_difficulty_by_language_counts_complete_rows_only(tmp_path):
    evalset = saved(tmp_path / "s", queries=queries())
    (english,) = difficulty(evalset)
    assert (english.name, english.n, english.oracle) == ("en", 2, 1.0)
    assert english.quality.value == pytest.approx(0.75)
    assert english.decidable == 0.5
    assert difficulty(evalset, "group") == ()


def test_difficulty_counts_dependent_queries_once(tmp_path):
    quality = np.random.default_rng(0).random((100, 2))
    frame = pd.DataFrame({"query_id": [f"q{i}" for i in range(200)], "language": "en"})
    twice = np.concatenate([quality] * 2)
    once = saved(tmp_path / "a", queries=frame[:100], quality=quality, cost_usd=quality)
    dependent = frame.assign(cluster=[f"c{i % 100}" for i in range(200)])
    both = saved(tmp_path / "b", queries=dependent, quality=twice, cost_usd=twice)
    (one,), (two,) = difficulty(once), difficulty(both)
    assert two.quality.value == pytest.approx(one.quality.value)
    assert two.quality.lo == pytest.approx(one.quality.lo)
