"""A promise about quality is kept as often as it says, and says what it saves."""

import numpy as np
import pytest

from hydra_core.base.errors import MismatchError
from hydra_core.base.types import Rule
from hydra_core.choosing.sources.profiles import fit_success_profiles
from hydra_core.choosing.sources.promise import betting_p_values, forecast, promise, walk
from hydra_core.routing.matcher import cost_order, returns_on_upgrading
from tests.choosing.sets import outcomes

#: Share of the queries that do not go to the baseline.
MOVED = np.array([0.5])


def routed(n=2_000, seed=0):
    data = outcomes(n, seed=seed)
    predicted = fit_success_profiles(outcomes(2_000, seed=99)).predict(data.requirements)
    returns = returns_on_upgrading(predicted.success, predicted.cost_usd)
    return data, *walk(returns, cost_order(returns, predicted.cost_usd))


def promised(data, taus, choice, **options):
    options.setdefault("rng", np.random.default_rng(0))
    return promise(data.models, data.quality, data.cost_usd, taus, choice, **options)


def test_p_values_are_valid_where_the_promise_is_just_broken():
    """The mean difference is exactly -within: at most 5 % may come out below 0.05."""
    rng = np.random.default_rng(0)
    low = 0
    for _ in range(400):
        differences = rng.choice([-1.0, 0.0, 1.0], (500, 1), p=[0.07, 0.88, 0.05])
        low += betting_p_values(differences, 0.02, moved=MOVED, rng=rng)[0] <= 0.05
    assert low <= 0.05 * 400


def test_equal_quality_is_soon_clear():
    assert (
        betting_p_values(np.zeros((500, 1)), 0.02, moved=MOVED, rng=np.random.default_rng(0))[0]
        < 0.05
    )


def test_a_cluster_bets_once():
    differences = np.zeros((500, 1))
    clusters = np.repeat(np.arange(50), 10)
    rng = np.random.default_rng(0)
    few = betting_p_values(differences[:50], 0.02, moved=MOVED, rng=rng)
    assert betting_p_values(differences, 0.02, clusters, moved=MOVED, rng=rng) == pytest.approx(few)


def test_large_clusters_count_as_many_queries_as_they_have():
    """The mean over queries is 0.05 lower, although most clusters are better."""
    rng, promised_falsely = np.random.default_rng(0), 0
    for _ in range(100):
        sizes = rng.choice([1, 1, 1, 12], 300)
        lost = -(rng.random(300) < 0.1).astype(float)
        won = (rng.random(300) < 0.15).astype(float)
        clusters = np.repeat(np.arange(300), sizes)
        differences = np.where(sizes > 1, lost, won)[clusters, None]
        p_value = betting_p_values(differences, 0.05, clusters, moved=MOVED, rng=rng)[0]
        promised_falsely += p_value <= 0.05
    assert promised_falsely <= 8


def test_more_may_be_saved_the_more_is_allowed_to_be_lost():
    data, taus, choice = routed()
    savings = [promised(data, taus, choice, within=within).saving for within in (0.02, 0.05, 0.1)]
    assert 0 < savings[0] <= savings[1] <= savings[2]


def test_the_walk_is_from_dear_to_cheap():
    data, taus, choice = routed()
    cost = np.take_along_axis(data.cost_usd, choice.astype(int), axis=1).mean(axis=0)
    assert (np.diff(taus) > 0).all()
    assert cost[0] > 2 * cost[-1]


def test_nothing_is_promised_from_a_handful_of_queries():
    data, taus, choice = routed(50)
    made = promised(data, taus, choice)
    assert not made.kept
    assert made.numbers(Rule.VALUE)["knob"] == {"rule": "value", "value": None}
    assert made.saving == 0


def test_the_answer_names_knob_baseline_and_method():
    data, taus, choice = routed()
    made = promised(data, taus, choice, within=0.05)
    found = made.numbers(Rule.VALUE)
    assert found["kept"]
    assert found["baseline"] == "strong"
    assert found["knob"]["value"] == pytest.approx(1 / made.tau, rel=1e-5)
    assert found["knob"]["value"] >= 1 / made.tau  # rounded to the dear side
    wanted = {"within", "confidence", "saving", "n", "method", "calibrated_on"}
    assert wanted <= set(found)


def test_more_queries_are_expected_to_allow_more():
    data, taus, choice = routed(1_000)
    made = promised(data, taus, choice)
    rng = np.random.default_rng(0)
    grown = forecast(
        made, data.models, data.quality, data.cost_usd, choice, [500, 4_000], rng=rng,
        draws=10,
    )  # fmt: skip
    small, large = grown.forecast
    assert large.saving > small.saving
    assert large.kept >= small.kept


def test_a_forecast_counts_dependent_queries_once():
    data, taus, choice = routed(500)
    made = promised(data, taus, choice)
    once = forecast(
        made, data.models, data.quality, data.cost_usd, choice, [2_000],
        rng=np.random.default_rng(0), draws=10,
    )  # fmt: skip
    quality, cost_usd, routes = (
        np.concatenate([values] * 2) for values in (data.quality, data.cost_usd, choice)
    )
    twice = forecast(
        made, data.models, quality, cost_usd, routes, [2_000], clusters=np.arange(1_000) % 500,
        rng=np.random.default_rng(0), draws=10,
    )  # fmt: skip
    (one,), (two,) = once.forecast, twice.forecast
    assert (two.saving, two.kept) == (pytest.approx(one.saving), one.kept)


@pytest.mark.slow
def test_a_promise_is_broken_in_at_most_5_percent():
    population, taus, choice = routed(20_000, seed=5)
    rows = np.arange(population.n)[:, None]
    quality = population.quality[rows, choice.astype(int)]
    truth = (quality - population.quality[:, [2]]).mean(axis=0)
    rng = np.random.default_rng(0)
    broken = 0
    for _ in range(300):
        drawn = rng.integers(0, population.n, 1_000)
        made = promised(population.take(drawn), taus, choice[drawn], baseline=2, rng=rng)
        broken += made.kept and truth[made.position] < -0.02
    assert broken <= 0.05 * 300


def test_values_out_of_range_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="margin"):
        betting_p_values(np.zeros((2, 1)), 0.0, moved=MOVED, rng=rng)
    with pytest.raises(ValueError, match="differences"):
        betting_p_values(np.full((2, 1), np.nan), 0.1, moved=MOVED, rng=rng)
    data, taus, choice = routed(50)
    with pytest.raises(ValueError, match="confidence"):
        promised(data, taus, choice, confidence=95.0)
    with pytest.raises(ValueError, match="settings"):
        promised(data, taus[:-1], choice)


def test_nothing_can_be_saved_where_the_best_model_is_free():
    quality, cost = np.ones((50, 2)), np.zeros((50, 2))
    quality[:, 1], cost[:, 1] = 0.0, 1.0
    choice = np.zeros((50, 1), dtype=int)
    with pytest.raises(MismatchError, match="free, the best single model, costs nothing"):
        promise(("free", "paid"), quality, cost, np.zeros(1), choice, rng=np.random.default_rng(0))
