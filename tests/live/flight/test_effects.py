"""Effects against tea-tasting and statsmodels, and what always-valid intervals promise."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.power import NormalIndPower
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from hydra_core.live.flight.analysis import Alarm, plan, power, sample_ratio
from hydra_core.live.flight.effects import (
    Reading,
    always_valid_multiplier,
    always_valid_p,
    compare,
    moments,
)


@pytest.fixture(scope="module")
def users():
    """700 users in two unequal arms: turns, cost, a covariate known before, and a stratum."""
    rng = np.random.default_rng(5)
    arm = (rng.random(700) < 0.4).astype(int)
    covariate = rng.gamma(2.0, 1.0, 700)
    turns = rng.poisson(4 + 2 * covariate).astype(float) + 1
    cost = turns * rng.gamma(3.0, 0.01, 700) * (1 - 0.1 * arm)
    stratum = rng.integers(0, 3, 700)
    return pd.DataFrame(
        {"variant": arm, "turns": turns, "cost": cost, "z": covariate, "stratum": stratum}
    )


def both(users, y, x=None, *, strata=False, **options):
    """Our comparison of one metric."""
    top = users[y].to_numpy()
    below = np.ones(len(users)) if x is None else users[x].to_numpy()
    z = users["z"].to_numpy()
    origin = np.array([top.mean(), below.mean(), z.mean()])
    arms = []
    for arm in (0, 1):
        mine = (users["variant"] == arm).to_numpy()
        cells = users["stratum"].to_numpy()[mine] if strata else np.zeros(mine.sum(), dtype=int)
        shape = (3,) if strata else (1,)
        arms.append(moments(top[mine], below[mine], z[mine], cells, shape, origin))
    return compare(*arms, **options)


@pytest.fixture(scope="module")
def tt():
    """tea-tasting, which takes a second to import."""
    import tea_tasting

    return tea_tasting


@pytest.mark.parametrize(
    ("y", "x", "adjust"),
    [("turns", None, False), ("turns", None, True), ("cost", "turns", False)],
)
def test_a_fixed_reading_is_tea_tastings(tt, users, y, x, adjust):
    z = "z" if adjust else None
    metric = tt.Mean(y, z) if x is None else tt.RatioOfMeans(y, x)
    oracle = tt.Experiment(m=metric).analyze(users)["m"]
    ours = both(users, y, x, adjust=adjust, reading=Reading.FIXED)
    assert ours.control == pytest.approx(oracle.control, rel=1e-9)
    assert ours.treatment == pytest.approx(oracle.treatment, rel=1e-9)
    assert ours.lo == pytest.approx(oracle.effect_size_ci_lower, rel=1e-7)
    assert ours.hi == pytest.approx(oracle.effect_size_ci_upper, rel=1e-7)
    assert ours.relative == pytest.approx(oracle.rel_effect_size, rel=1e-7)
    assert ours.relative_lo == pytest.approx(oracle.rel_effect_size_ci_lower, rel=1e-7)
    assert ours.relative_hi == pytest.approx(oracle.rel_effect_size_ci_upper, rel=1e-7)
    assert ours.p_value == pytest.approx(oracle.pvalue, rel=1e-6)


def test_a_ratio_with_a_covariate_is_tea_tastings(tt, users):
    oracle = tt.Experiment(m=tt.RatioOfMeans("cost", "turns", "z")).analyze(users)["m"]
    ours = both(users, "cost", "turns", adjust=True, reading=Reading.FIXED)
    assert ours.difference == pytest.approx(oracle.effect_size, rel=1e-7)
    assert ours.lo == pytest.approx(oracle.effect_size_ci_lower, rel=1e-6)
    assert ours.p_value == pytest.approx(oracle.pvalue, rel=1e-6)


def test_welch_is_statsmodels(users):
    arms = [users.loc[users["variant"] == arm, "turns"] for arm in (1, 0)]
    oracle = CompareMeans(*(DescrStatsW(values) for values in arms))
    ours = both(users, "turns", reading=Reading.FIXED)
    assert ours.p_value == pytest.approx(oracle.ttest_ind(usevar="unequal")[1], rel=1e-9)
    assert (ours.lo, ours.hi) == pytest.approx(oracle.tconfint_diff(usevar="unequal"), rel=1e-9)


def test_strata_are_weighted_by_their_units(users):
    ours = both(users, "turns", strata=True, reading=Reading.FIXED)
    shares = users["stratum"].value_counts(normalize=True)
    means = users.groupby(["variant", "stratum"])["turns"].mean()
    expected = sum(shares[s] * (means[1, s] - means[0, s]) for s in range(3))
    assert ours.difference == pytest.approx(expected)


def test_cuped_narrows_an_interval_that_the_covariate_explains(users):
    plain, adjusted = (both(users, "turns", adjust=adjust) for adjust in (False, True))
    assert adjusted.hi - adjusted.lo < 0.8 * (plain.hi - plain.lo)


def test_an_always_valid_interval_is_wider_and_agrees_with_its_p_value(users):
    always, fixed = (both(users, "turns", reading=reading) for reading in Reading)
    assert always.hi - always.lo > fixed.hi - fixed.lo
    units = np.array([100.0, 5_000.0, 1e6])
    edge = always_valid_multiplier(units)
    assert always_valid_p(edge, units) == pytest.approx(0.05)
    assert always_valid_multiplier(units).argmin() == 1


def test_the_always_valid_half_width_is_the_published_formula():
    n, alpha = 2_500.0, 0.05
    rho2 = (-2 * np.log(alpha) + np.log(-2 * np.log(alpha) + 1)) / 5_000
    half = np.sqrt(2 * (n * rho2 + 1) / (n**2 * rho2) * np.log(np.sqrt(n * rho2 + 1) / alpha))
    assert always_valid_multiplier(np.array(n)) / np.sqrt(n) == pytest.approx(half)
    assert always_valid_multiplier(np.array(n)) / 1.96 == pytest.approx(1.57, abs=0.01)


def test_a_fixed_plan_is_statsmodels():
    oracle = NormalIndPower().solve_power(effect_size=0.1, power=0.8, alpha=0.05, ratio=1.0)
    found = plan(0.1, 1.0, units_per_day=100, reading=Reading.FIXED)
    assert found.units == pytest.approx(2 * oracle, abs=2)
    assert found.days == int(np.ceil(found.units / 100))
    expected = NormalIndPower().power(0.05, nobs1=900, alpha=0.05, ratio=1.0)
    assert power(0.05, 1.0, 1800, reading=Reading.FIXED) == pytest.approx(expected)


def test_reading_at_any_time_costs_units():
    plans = [plan(0.1, 1.0, units_per_day=100, reading=reading) for reading in Reading]
    assert plans[0].units > plans[1].units
    assert plan(0.0, 1.0, units_per_day=1).units is None


@pytest.mark.parametrize(
    ("found", "alarm"),
    [((500, 510), Alarm.NONE), ((460, 550), Alarm.YELLOW), ((400, 600), Alarm.RED)],
)
def test_a_sample_ratio_that_is_off_raises_an_alarm(found, alarm):
    ratio = sample_ratio(found, (0.5, 0.5))
    assert ratio.p_value == pytest.approx(stats.chisquare(found).pvalue)
    assert ratio.alarm is alarm
