"""Intervals and paired tests against published figures and reference libraries."""

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from hydra_core.replay.significance import (
    clustered_wilson,
    detectable_effect,
    holm,
    influence_interval,
    mcnemar,
    mean_interval,
    paired_bootstrap,
    rate_interval,
    ratio_interval,
    sample_size,
    wilson,
)


@pytest.mark.parametrize(
    ("resolved", "lo", "hi"),
    [(431, 82.9, 88.9), (347, 65.2, 73.3), (367, 69.4, 77.1), (371, 70.2, 77.8)],
)
def test_wilson_gives_the_paper_table(resolved, lo, hi):
    interval = wilson(resolved, 500)
    assert (round(100 * interval.lo, 1), round(100 * interval.hi, 1)) == (lo, hi)


@pytest.mark.parametrize(("k", "n"), [(0, 5), (5, 5), (1, 300), (150, 300)])
def test_wilson_agrees_with_statsmodels(k, n):
    interval = wilson(k, n)
    assert (interval.lo, interval.hi) == pytest.approx(
        proportion_confint(k, n, method="wilson"), abs=1e-12
    )


@pytest.mark.parametrize(
    ("only_a", "only_b", "p"), [(53, 29, 0.011), (50, 26, 0.008), (38, 34, 0.724), (37, 33, 0.720)]
)
def test_mcnemar_gives_the_paper_table(only_a, only_b, p):
    a = np.r_[np.ones(only_a), np.zeros(only_b), np.ones(300)]
    b = np.r_[np.zeros(only_a), np.ones(only_b), np.ones(300)]
    assert round(mcnemar(a, b).p_value, 3) == p


@pytest.mark.parametrize(("only_a", "only_b"), [(3, 9), (40, 20), (12, 12), (13, 12)])
def test_mcnemar_agrees_with_statsmodels(only_a, only_b):
    a = np.r_[np.ones(only_a), np.zeros(only_b)]
    exact = only_a + only_b < 25
    reference = reference_mcnemar([[0, only_a], [only_b, 0]], exact=exact, correction=True)
    assert mcnemar(a, 1 - a).p_value == pytest.approx(reference.pvalue)
    assert mcnemar(a, 1 - a).exact is exact


def test_equal_outcomes_do_not_differ():
    assert mcnemar(np.ones(9), np.ones(9)).p_value == 1.0


def test_delta_method_agrees_with_the_bootstrap():
    rng = np.random.default_rng(2)
    cost = rng.lognormal(0, 1, (800, 2)) * [0.4, 1.0]
    ratio = ratio_interval(cost[:, 0], cost[:, 1])
    boot = paired_bootstrap(cost, lambda m: m[:, 0] / m[:, 1], rng=rng, resamples=4000)
    assert ratio.value == pytest.approx(boot.value)
    assert (ratio.lo, ratio.hi) == pytest.approx((boot.lo, boot.hi), abs=0.012)


def test_copies_of_a_query_in_one_cluster_add_no_certainty():
    rng = np.random.default_rng(3)
    values = rng.random(50)
    once = mean_interval(values)
    copied = mean_interval(np.repeat(values, 16), np.repeat(np.arange(50), 16))
    naive = mean_interval(np.repeat(values, 16))
    assert copied.hi - copied.lo == pytest.approx(once.hi - once.lo)
    assert naive.hi - naive.lo < 0.3 * (once.hi - once.lo)


def test_a_share_of_copies_is_that_of_the_clusters():
    holds = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    once = wilson(2, 7)
    assert same(clustered_wilson(holds, np.arange(7)), once)
    assert same(clustered_wilson(np.repeat(holds, 5), np.repeat(np.arange(7), 5)), once)
    assert same(rate_interval(np.ones(35), np.repeat(np.arange(7), 5)), wilson(7, 7))
    nothing = clustered_wilson(np.zeros(35), np.repeat(np.arange(7), 5))
    assert same(nothing, wilson(0, 7))


def test_one_success_does_not_show_how_alike_a_cluster_is():
    holds, clusters = np.zeros(160), np.repeat(np.arange(10), 16)
    holds[0] = 1.0
    assert clustered_wilson(holds, clusters).hi > clustered_wilson(0 * holds, clusters).hi


def test_a_share_near_one_over_clusters_has_an_interval():
    """What such queries are worth is no whole number."""
    holds = np.ones(36)
    holds[-1] = 0.0
    found = clustered_wilson(holds, np.repeat([0, 1], [33, 3]))
    assert found.value == pytest.approx(35 / 36)
    assert 0.0 < found.lo < found.value < found.hi <= 1.0


def same(found, wanted):
    return (found.value, found.lo, found.hi) == pytest.approx((wanted.value, wanted.lo, wanted.hi))


def test_one_query_says_nothing():
    interval = influence_interval(0.5, np.zeros(1))
    assert np.isnan([interval.lo, interval.hi]).all()
    assert interval.reason == "one independent query gives no interval"


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(4)
    hits = [
        (lambda i: i.lo <= 0.3 <= i.hi)(mean_interval((rng.random(120) < 0.3) * 1.0))
        for _ in range(1500)
    ]
    assert 0.93 <= np.mean(hits) <= 0.97


def test_holm_agrees_with_statsmodels():
    p = [0.01, 0.04, 0.03, 0.5, 0.01]
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    assert holm([]) == ()
    among = holm([0.04, float("nan"), 0.01])  # what was not tested is no test
    assert (among[0], among[2]) == holm([0.04, 0.01])
    assert np.isnan(among[1])


def test_detectable_effect_and_sample_size_are_inverse():
    effect = detectable_effect(0.5, 400)
    assert effect == pytest.approx(2.8016 * 0.5 / 20, rel=1e-4)
    assert sample_size(0.5, effect) in (400, 401)
    with pytest.raises(ValueError, match="effect of 0"):
        sample_size(0.5, 0.0)


def test_an_effect_of_the_detectable_size_is_found_about_four_times_in_five():
    rng = np.random.default_rng(6)
    effect = detectable_effect(1.0, 200)
    found = [mean_interval(rng.normal(effect, 1.0, 200)).lo > 0 for _ in range(800)]
    assert 0.75 <= np.mean(found) <= 0.85


@pytest.mark.parametrize("n", [7, 150, 300, 4074])
def test_a_rate_of_nothing_or_of_all_has_its_end_exactly(n):
    assert wilson(0, n).lo == 0.0
    assert wilson(n, n).hi == 1.0
