"""Alpha against the krippendorff package and a worked example; its bootstrap; tables; sampling."""

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra_core.base.errors import EvalSetError
from hydra_core.console.eval_sets.audit import draw_sample
from hydra_core.lab.audit.tables import alpha, alpha_interval, audit, from_csv, slices, to_csv


def test_the_worked_example():
    """Krippendorff (2011), "Computing Krippendorff's alpha-reliability", section F: .849."""
    gap = np.nan
    ratings = np.array(
        [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, gap, gap, gap],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, gap, 3],
            [gap, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, gap],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, gap],
        ]
    )
    assert alpha(ratings) == pytest.approx(0.849, abs=5e-4)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), raters=st.integers(2, 5), items=st.integers(3, 40))
def test_alpha_is_the_krippendorff_packages(seed, raters, items):
    rng = np.random.default_rng(seed)
    ratings = rng.integers(1, 6, (raters, items)).astype(float)
    ratings[rng.random(ratings.shape) < 0.3] = np.nan
    paired = ratings[:, np.isfinite(ratings).sum(axis=0) >= 2]
    if paired.size == 0 or np.nanmin(paired) == np.nanmax(paired):
        assert np.isnan(alpha(ratings))
        return
    oracle = krippendorff.alpha(reliability_data=ratings, level_of_measurement="interval")
    assert alpha(ratings) == pytest.approx(oracle, abs=1e-9)


def test_the_bootstrap_interval_is_that_of_resampled_items():
    rng = np.random.default_rng(3)
    true = rng.normal(size=60)
    ratings = true + rng.normal(size=(3, 60))
    found = alpha_interval(ratings, rng=np.random.default_rng(1), resamples=4000)
    drawn = [alpha(ratings[:, rng.integers(0, 60, 60)]) for _ in range(2000)]
    assert (found.lo, found.hi) == pytest.approx(
        tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.03
    )


def test_cells_of_one_message_are_resampled_together():
    rng = np.random.default_rng(4)
    ratings = np.tile(rng.normal(size=30) + rng.normal(scale=0.7, size=(2, 30)), 4)
    clusters = np.tile(np.arange(30), 4)
    together, apart = (
        alpha_interval(ratings, rng=np.random.default_rng(0), clusters=by)
        for by in (clusters, None)
    )
    assert together.value == pytest.approx(apart.value)
    assert together.hi - together.lo > 1.5 * (apart.hi - apart.lo)


def test_the_papers_layout_has_pooled_and_averaged_apart():
    rng = np.random.default_rng(2)
    human = rng.random((50, 4)) * np.array([1.0, 0.6, 0.3, 0.9])
    ratings = np.clip(human + rng.normal(scale=0.05, size=(3, 50, 4)), 0, 1)
    predictor = human - 0.15
    found = audit(ratings, predictor, human, ["a", "b", "c", "d"], ["x", "y", "z"], resamples=50)
    rows = {row.name: row for row in found.rows}
    assert list(rows) == ["a", "b", "c", "d", "pooled", "averaged"]
    assert rows["averaged"].predictor.value == pytest.approx(
        np.mean([rows[name].predictor.value for name in "abcd"])
    )
    assert rows["pooled"].predictor.value != pytest.approx(rows["averaged"].predictor.value)
    assert rows["c"].predictor_bias.value == pytest.approx(-0.15, abs=0.02)
    stacked = [ratings.mean(axis=0).T.ravel(), predictor.T.ravel()]
    oracle = krippendorff.alpha(reliability_data=stacked, level_of_measurement="interval")
    assert rows["pooled"].predictor.value == pytest.approx(oracle)


def test_a_slice_has_its_own_error():
    human, predictor = np.zeros((4, 2)), np.array([[0.1] * 2, [0.1] * 2, [0.3] * 2, [0.3] * 2])
    rows = slices(human, predictor, None, {"language": ["en", "en", "ja", "ja"]})
    assert [(row["part"], row["n"]) for row in rows] == [("en", 2), ("ja", 2)]
    assert rows[1]["predictor_mae"] == pytest.approx(0.3)


def test_every_language_is_in_the_sample_and_chance_comes_from_the_seed():
    languages = ["en"] * 900 + ["th"] * 5 + ["ko"] * 20
    scores = np.random.default_rng(0).random((925, 4))
    drawn = draw_sample(languages, scores, None, 60, rng=np.random.default_rng(7))
    assert len(set(drawn.tolist())) == 60
    assert {languages[i] for i in drawn} == {"en", "th", "ko"}
    again = draw_sample(languages, scores, None, 60, rng=np.random.default_rng(7))
    assert (drawn == again).all()


def test_ratings_come_back_from_csv_as_they_went(tmp_path):
    rows = [
        ("q1", "ana", (1.0, 5.0), 'says "=1+1", twice\nthen stops'),
        ("q2", "bo", (3.0, 2.5), ""),
    ]
    path = tmp_path / "r.csv"
    path.write_bytes(to_csv(rows, ["a", "b"]))
    assert from_csv(path, ["a", "b"], ["q1", "q2"]) == rows
    path.write_bytes(to_csv([("q9", "", (0.0, 5.0), "")], ["a", "b"]))
    with pytest.raises(EvalSetError) as caught:
        from_csv(path, ["a", "b"], ["q1"])
    assert "query_id 'q9' is not in the sample" in str(caught.value)
    assert "a must be a number from 1 to 5, got '0.0'" in str(caught.value)
    assert "rater is empty" in str(caught.value)


def test_rows_without_a_score_are_not_rated_and_a_file_may_be_of_one_rater(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("query_id,a,b\nq1,,\nq2,4,5\n")
    assert from_csv(path, ["a", "b"], ["q1", "q2"], rater="ana") == [("q2", "ana", (4, 5), "")]
    path.write_text("query_id,a,b\nq1,4,\n")
    with pytest.raises(EvalSetError, match="b must be a number from 1 to 5, got ''"):
        from_csv(path, ["a", "b"], ["q1"], rater="ana")


def test_translations_of_one_task_are_resampled_together():
    rng = np.random.default_rng(5)
    human = np.tile(rng.random((20, 1)), (4, 1))
    predictor = np.clip(human + np.tile(rng.normal(scale=0.2, size=(20, 1)), (4, 1)), 0, 1)
    ratings, groups = np.stack([human, human]), np.tile(np.arange(20), 4)
    together, apart, one = (
        audit(ratings, predictor, None, ["a"], ["x", "y"], groups=by).rows[0]
        for by in (groups, None, np.zeros(80, dtype=np.intp))
    )
    for name in ("predictor", "predictor_bias"):
        wide, narrow, none = (getattr(row, name) for row in (together, apart, one))
        assert wide.value == pytest.approx(narrow.value)
        assert wide.hi - wide.lo > 1.5 * (narrow.hi - narrow.lo)
        assert not none.known  # one task says nothing of others
