"""What a verdict says: how its point came about, what carries it, and what to do next."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from statsmodels.regression.linear_model import OLS

from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import usd
from hydra_core.base.types import Selection
from hydra_core.replay.band import MIN_MOVED
from hydra_core.replay.fixed_mix import matched_cost_mix, matched_gain
from hydra_core.replay.metrics import picked, single_models, upper_hull
from hydra_core.replay.replay import replay
from hydra_core.replay.verdict import VerdictLabel, verdict
from tests.replay.conftest import make_data


def lucky(moved, n=6_554):
    """Two models of equal quality; the moved queries happen to be those only the dear one solves.

    Args:
        moved: Queries sent to the dear one.
    """
    data = make_data(n, 2)
    quality = np.random.default_rng(0).random((n, 2)) < 0.5
    quality[:moved] = [False, True]
    choice = np.zeros(n, dtype=np.intp)
    choice[:moved] = 1
    return replace(data, quality=quality.astype(float), cost_usd=np.ones((n, 2)) * [1, 2]), choice


def test_few_moved_queries_carry_no_verdict_however_certain():
    said = verdict(*lucky(7), Selection.FIXED)
    assert said.interval.lo > 0
    assert (said.label, said.moved) == (VerdictLabel.SAME, 7)
    assert said.title == "Too few queries move for a result"
    needs = "7 of 6,554 independent queries go elsewhere; a result needs 20."
    assert needs in said.details
    enough = verdict(*lucky(MIN_MOVED), Selection.FIXED)
    assert (enough.label, enough.moved) == (VerdictLabel.BETTER, MIN_MOVED)


def test_moved_queries_are_counted_in_clusters():
    data, choice = lucky(40)
    clustered = replace(data, clusters=np.arange(6_554) // 4)
    said = verdict(clustered, choice, Selection.FIXED)
    assert (said.moved, said.independent, said.label) == (10, 1_639, VerdictLabel.SAME)


def test_an_effect_that_prints_as_zero_is_none():
    said = verdict(*lucky(20, n=60_000), Selection.FIXED)
    assert 0 < said.delta < 0.0005
    assert said.interval.lo > 0
    assert said.label is VerdictLabel.SAME
    assert "The difference is under 0.05 points." in said.details


def test_more_queries_do_not_tell_what_models_without_outcomes_achieve():
    data = make_data(300, seed=4, signal=0.0)
    known = verdict(data, replay(data, 0.3), Selection.FIXED)
    wide = replace(known, delta=0.01, interval=Interval(0.01, -0.02, 0.13))
    assert "would show a difference of this size" in " ".join(wide.details)
    assert "would show a difference" not in " ".join(replace(wide, unknown=0.1).details)


def test_a_point_chosen_by_looking_is_judged_by_the_band():
    data = make_data(600)
    choice = replay(data, 0.3)
    alone = verdict(data, choice, Selection.FIXED)
    critical = (alone.delta / alone.interval.standard_error) * 1.02
    looked = verdict(data, choice, Selection.LOOKED, critical=critical)
    assert (alone.label, looked.label) == (VerdictLabel.BETTER, VerdictLabel.SAME)
    assert alone.next == "Publish it, and check it on new traffic."
    tuned = replace(alone, tuned_here=True)
    assert tuned.next == "Before you publish it, check its cross-fitted gain."
    assert looked.interval == alone.interval
    error = (alone.interval.hi - alone.delta) / stats.t.ppf(0.975, 599)
    wanted = (alone.delta - critical * error, alone.delta + critical * error)
    assert (looked.simultaneous.lo, looked.simultaneous.hi) == pytest.approx(wanted)
    assert looked.judged_by == looked.simultaneous
    assert looked.how == "tau was picked on these queries, so the interval covers the whole curve."
    assert looked.how in looked.details
    assert "Let Find choose a setting" in looked.next
    with pytest.raises(ValueError, match="judged by a band"):
        verdict(data, choice, Selection.LOOKED)


@pytest.mark.parametrize(
    ("selection", "told"),
    [(Selection.FIXED, "fixed beforehand"), (Selection.CROSS_FITTED, "picked on other queries")],
)
def test_every_verdict_names_constant_cost_interval_choice_and_next_step(selection, told):
    data = make_data(600)
    said = verdict(data, replay(data, 0.3), selection)
    for part in (said.constant.action, "points, 95 % interval", said.next):
        assert part in said.text
    for part in (usd(said.mean_cost_usd), told):
        assert part in " ".join(said.details)
    assert said.text.count(". ") == 1


def test_open_questions_about_dependence_are_said():
    data = replace(make_data(300), dependence="Nobody has looked.")
    assert "Nobody has looked." in verdict(data, replay(data, 0.3), Selection.FIXED).details


def test_a_tie_says_how_many_queries_would_show_it():
    data = make_data(200, signal=0.6, seed=1)
    said = verdict(data, replay(data, 0.3), Selection.FIXED)
    assert said.label is VerdictLabel.SAME
    assert said.delta > 0
    z = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    needed = 200 * (z * said.interval.standard_error / said.delta) ** 2
    count = f"About {float(f'{needed:.2g}'):,.0f} independent queries"
    assert any(one.startswith(count) for one in said.details)


@pytest.mark.parametrize("clustered", [False, True])
def test_gain_at_the_same_cost_is_the_difference_of_lifts_with_statsmodels_error(clustered):
    clusters = np.repeat(np.arange(200), 3) if clustered else None
    data = make_data(600, clusters=clusters)
    before, after = replay(data, 0.1), replay(data, 0.3)
    found = matched_gain(data, before, after)
    hull = upper_hull(single_models(data))
    lifts, rows = [], []
    for choice in (before, after):
        quality, cost = picked(data.quality, choice), picked(data.cost_usd, choice)
        mix = matched_cost_mix(hull, cost.mean())
        a, b, share = mix.cheap.index, mix.strong.index, mix.strong_share
        lifts.append(quality.mean() - mix.quality)
        mixed = [(1 - share) * v[:, a] + share * v[:, b] for v in (data.quality, data.cost_usd)]
        rows.append(quality - mixed[0] - mix.quality_per_usd * (cost - mixed[1]))
    assert found.quality.value == pytest.approx(lifts[1] - lifts[0])
    units = np.arange(600) if clusters is None else clusters
    fit = OLS(rows[1] - rows[0], np.ones(600)).fit(cov_type="cluster", cov_kwds={"groups": units})
    half = stats.t.ppf(0.975, np.unique(units).size - 1) * fit.bse[0]
    assert found.quality.hi - found.quality.value == pytest.approx(half)


def test_a_gain_holds_what_models_without_outcomes_leave_open():
    data = make_data(300, seed=6)
    data.quality[:, 1] = 0.0
    before, after = np.tile([0, 1, 2], 100), np.tile([1, 2, 2], 100)
    open_ = matched_gain(replace(data, unmeasured=("m1",)), before, after).quality
    known = matched_gain(data, before, after).quality
    assert open_.value == pytest.approx(known.value)
    assert open_.lo < known.lo - 0.3
    assert open_.hi > known.hi + 0.3


def test_a_cheaper_but_worse_policy_gains_nothing():
    data = make_data(2_000, signal=0.0)
    rng = np.random.default_rng(0)
    before, after = ((rng.random(2_000) < share).astype(np.intp) for share in (0.8, 0.3))
    assert picked(data.cost_usd, after).mean() < 0.7 * picked(data.cost_usd, before).mean()
    assert not matched_gain(data, before, after).gains
