"""The simultaneous band: against plain formulas and a bootstrap that multiplies every row."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from statsmodels.regression.linear_model import OLS

from hydra_core.base.types import Selection
from hydra_core.replay.band import MIN_MOVED, lift_band, simultaneous_band
from hydra_core.replay.fixed_mix import matched_cost_mix
from hydra_core.replay.frontier import choices
from hydra_core.replay.metrics import picked, single_models, upper_hull
from hydra_core.replay.significance import mean_interval
from hydra_core.replay.verdict import verdict
from hydra_core.routing.matcher import choose
from tests.replay.conftest import make_data


def rng(seed=0):
    return np.random.default_rng(seed)


def band_of(data, taus, **options):
    chosen = choices(data.shortfalls(), data.pool.cost, taus)
    band = lift_band(data.quality, data.cost_usd, chosen, taus, data.clusters, rng=rng(), **options)
    return band, chosen


@pytest.mark.parametrize("clustered", [False, True])
def test_one_position_is_the_pointwise_interval(clustered):
    values = rng(1).normal(0.1, 1, (90, 1))
    clusters = rng(2).integers(0, 30, 90) if clustered else None
    band = simultaneous_band(values, np.zeros(1), clusters, rng=rng(), draws=200_000)
    wanted = mean_interval(values[:, 0], clusters)
    found = band.interval(0)
    assert found.value == pytest.approx(wanted.value, abs=1e-12)
    assert (found.lo, found.hi) == pytest.approx((wanted.lo, wanted.hi), abs=0.004)


def test_independent_positions_need_sidaks_quantile():
    band = simultaneous_band(rng(3).normal(size=(20_000, 30)), np.arange(30), rng=rng())
    sidak = stats.norm.ppf(0.5 + 0.95 ** (1 / 30) / 2)
    assert band.critical == pytest.approx(sidak, abs=0.05)


def test_dependent_positions_need_less_and_copies_nothing():
    one = rng(4).normal(size=(500, 1))
    walk = np.cumsum(rng(5).normal(size=(500, 40)), axis=1)
    alone, copies, along = (
        simultaneous_band(v, np.arange(v.shape[1]), rng=rng(), draws=50_000).critical
        for v in (one, one * np.ones((1, 40)), walk)
    )
    assert copies == pytest.approx(alone, abs=0.03)
    assert alone < along < stats.norm.ppf(0.5 + 0.95 ** (1 / 40) / 2)


@pytest.mark.parametrize("clustered", [False, True])
def test_critical_value_is_that_of_a_bootstrap_that_multiplies_every_row(clustered):
    n, p = 160, 12
    values = np.cumsum(rng(6).exponential(size=(n, p)), axis=1)
    clusters = rng(7).integers(0, 40, n) if clustered else np.arange(n)
    band = simultaneous_band(values, np.arange(p), clusters, rng=rng(), draws=100_000)
    centred = values - values.mean(axis=0)
    units = np.unique(clusters)
    sums = np.array([centred[clusters == unit].sum(axis=0) for unit in units])
    error = np.sqrt(units.size / (units.size - 1) * (sums**2).sum(axis=0)) / n
    np.testing.assert_allclose(band.standard_error, error, rtol=1e-10)
    draw = rng(8).normal(size=(100_000, units.size))
    root = np.sqrt(rng(9).chisquare(units.size - 1, 100_000) / (units.size - 1))
    scale = np.sqrt((sums**2).sum(axis=0))
    largest = np.abs(draw @ sums / scale).max(axis=1) / root
    assert band.critical == pytest.approx(np.quantile(largest, 0.95), abs=0.02)


def test_standard_errors_are_statsmodels_clustered_ones():
    values = rng(10).normal(size=(200, 2))
    clusters = rng(11).integers(0, 50, 200)
    band = simultaneous_band(values, np.arange(2), clusters, rng=rng())
    for column in range(2):
        fit = OLS(values[:, column], np.ones(200)).fit(
            cov_type="cluster", cov_kwds={"groups": clusters}
        )
        assert band.standard_error[column] == pytest.approx(fit.bse[0], rel=1e-10)


def test_blocks_cut_no_cluster_and_order_does_not_matter():
    n = 9_000  # more than two blocks
    values = rng(12).normal(size=(n, 3))
    clusters = rng(13).integers(0, 700, n)
    shuffled = rng(14).permutation(n)
    seen = []
    a = simultaneous_band(
        values, np.arange(3), clusters, rng=rng(), progress=lambda done, of: seen.append((done, of))
    )
    b = simultaneous_band(values[shuffled], np.arange(3), clusters[shuffled], rng=rng())
    np.testing.assert_allclose(a.standard_error, b.standard_error, rtol=1e-10)
    assert a.critical == pytest.approx(b.critical, rel=1e-9)
    assert seen[-1] == (n, n)
    assert len(seen) > 1


@pytest.mark.parametrize("clustered", [False, True])
def test_lift_is_at_every_tau_what_the_verdict_says(clustered):
    clusters = np.repeat(np.arange(150), 2) if clustered else None
    data = make_data(300, 3, clusters=clusters)
    taus = np.linspace(0, 0.8, 15)
    band, chosen = band_of(data, taus)
    hull = upper_hull(single_models(data))
    for i, tau in enumerate(taus):
        choice = choose(data.shortfalls(), data.pool.cost, tau)
        np.testing.assert_array_equal(chosen[:, i], choice)
        quality, cost = picked(data.quality, choice), picked(data.cost_usd, choice)
        mix = matched_cost_mix(hull, cost.mean())
        assert band.estimate[i] == pytest.approx(quality.mean() - mix.quality, abs=1e-12)
        units = 150 if clustered else 300
        half = stats.t.ppf(0.975, units - 1) * band.standard_error[i]
        said = verdict(data, choice, Selection.FIXED).interval
        assert said.hi - said.lo == pytest.approx(2 * half, abs=1e-12)
        ends = (mix.cheap.index, mix.strong.index)
        away = min(
            units - sum(np.all(choice[rows] == end) for rows in np.split(np.arange(300), units))
            for end in ends
        )
        assert band.counted[i] == (away >= MIN_MOVED)


def test_a_curve_without_enough_evidence_has_nothing_to_say():
    data = make_data(15)
    band, _ = band_of(data, np.linspace(0, 0.8, 5))
    assert not band.counted.any()
    assert not (band.lo > 0)[band.counted].any()
    assert band.critical == pytest.approx(stats.t.ppf(0.975, 14), rel=0.05)


def test_a_real_lift_rises_above_the_band_and_its_seed_settles_it():
    data = make_data(2_000, 3)
    taus = np.linspace(0, 0.8, 60)
    band, _ = band_of(data, taus)
    again, _ = band_of(data, taus)
    assert (band.lo > 0)[band.counted].any()
    assert band.critical == again.critical


def test_one_independent_query_has_no_band_at_any_position():
    data = make_data(40, 3)
    data = replace(data, clusters=np.zeros(40, dtype=int))
    band, _ = band_of(data, np.linspace(0, 0.8, 60))
    assert not band.counted.any()
    assert np.isnan(band.critical)


def test_wrong_input_is_named():
    with pytest.raises(ValueError, match="one column for each of the 3 knob positions"):
        simultaneous_band(np.zeros((5, 2)), np.arange(3), rng=rng())
    with pytest.raises(ValueError, match="NaN"):
        simultaneous_band(np.full((5, 1), np.nan), np.arange(1), rng=rng())
    with pytest.raises(ValueError, match="at least 2 independent queries, got 1"):
        simultaneous_band(np.ones((5, 1)), np.arange(1), np.zeros(5, dtype=int), rng=rng())
    with pytest.raises(ValueError, match=r"\(queries, 4 positions\)"):
        lift_band(
            np.zeros((5, 2)), np.ones((5, 2)), np.zeros((5, 3), np.uint8), np.arange(4), rng=rng()
        )
