"""QR, CS, misroute and the cost of a resolved query, of all queries and by language."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.types import Pool, Selection
from hydra_core.live.traffic import Traffic, cost_per_resolved
from hydra_core.replay.compare import compare, policy_run
from hydra_core.replay.evaluation import _metrics
from hydra_core.replay.fixed_mix import matched_cost_mix
from hydra_core.replay.metrics import (
    ConstantPolicy,
    by_group,
    by_language,
    costliest,
    evaluate_choice,
    single_models,
    spread,
    upper_hull,
)
from hydra_core.replay.operating_point import (
    InfeasibleError,
    best_with_cost,
    cheapest_with_quality,
    cross_fit,
    knee,
)
from hydra_core.replay.replay import ReplayData, data_frontier, replay
from hydra_core.replay.significance import per_resolved
from hydra_core.replay.verdict import VerdictLabel, verdict
from tests.replay.conftest import make_data


@pytest.fixture
def tiny():
    """Four queries, cheap and strong: solved by both, strong only, nobody, cheap only."""
    return ReplayData(
        query_ids=("a", "b", "c", "d"),
        languages=("en",) * 4,
        requirements=np.zeros((4, 1)),
        quality=np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]),
        cost_usd=np.array([[1.0, 5.0], [1.0, 5.0], [1.0, 5.0], [1.0, 5.0]]),
        pool=Pool(("cheap", "strong"), np.zeros((2, 1)), np.array([1.0, 5.0]), np.ones(1)),
        rows=np.arange(4),
    )


def test_algorithm_3_by_hand(tiny):
    metrics = evaluate_choice(tiny, np.array([1, 1, 1, 1]))
    assert metrics.resolved == 2
    assert metrics.quality.value == 0.5
    assert metrics.qr.value == pytest.approx(2 / 3)
    assert metrics.cs.value == 0.0
    assert metrics.misroute.value == 0.5  # a and d: the cheap model resolved them too
    assert metrics.baseline == costliest(tiny) == "strong"
    assert metrics.shares == {"cheap": 0.0, "strong": 1.0}


def test_the_oracle_takes_the_cheapest_that_resolves_and_the_cheapest_of_all_otherwise(tiny):
    assert tiny.oracle.tolist() == [0, 1, 0, 0]


def test_an_unknown_baseline_is_named(tiny):
    with pytest.raises(ValueError, match="'gpt-9' is not among"):
        evaluate_choice(tiny, np.zeros(4, dtype=int), baseline="gpt-9")


def test_hull_leaves_out_what_a_mixture_beats():
    a, b, c, d = (
        ConstantPolicy(name, i, 0, quality, cost)
        for i, (name, quality, cost) in enumerate(
            [("a", 0.2, 1.0), ("b", 0.3, 2.0), ("c", 0.8, 3.0), ("d", 0.7, 4.0)]
        )
    )
    assert upper_hull([d, c, b, a]) == (a, c)
    mix = matched_cost_mix((a, c), 2.0)
    assert (mix.quality, mix.strong_share) == pytest.approx((0.5, 0.5))
    assert matched_cost_mix((a, c), 9.0).quality == 0.8
    assert matched_cost_mix((a, c), 0.1).quality == 0.2


def test_no_mixture_of_constants_lies_above_the_hull(data):
    rng = np.random.default_rng(0)
    singles = single_models(data)
    hull = upper_hull(singles)
    for share in rng.dirichlet(np.ones(len(singles)), size=200):
        cost = sum(p.mean_cost_usd * w for p, w in zip(singles, share, strict=True))
        quality = sum(p.quality * w for p, w in zip(singles, share, strict=True))
        assert quality <= matched_cost_mix(hull, cost).quality + 1e-12


def test_a_router_that_reads_difficulty_beats_the_constant():
    data = make_data(n=3000, seed=1)
    found = verdict(data, replay(data, 0.3), Selection.FIXED)
    assert found.label is VerdictLabel.BETTER
    assert found.interval.lo > 0
    assert found.title == "The router does better here"


def test_a_router_that_is_a_constant_says_so(data):
    found = verdict(data, np.zeros(len(data.query_ids), dtype=int), Selection.FIXED)
    assert (found.label, found.delta) == (VerdictLabel.SAME, 0.0)
    assert found.title == "The router is a fixed mix here"
    assert "always using m0" in found.text


def test_a_pool_of_one_model_is_told_to_have_a_second(tiny):
    pool = Pool(("only",), np.zeros((1, 1)), np.ones(1), np.ones(1))
    alone = replace(tiny, quality=tiny.quality[:, :1], cost_usd=tiny.cost_usd[:, :1], pool=pool)
    found = verdict(alone, np.zeros(4, dtype=int), Selection.FIXED)
    assert found.title == "One model leaves no choice"
    assert found.next == "Add or enable a second model in the catalog."


def test_a_router_worse_than_the_constant_is_told_so():
    data = make_data(n=3000, seed=2)
    backwards = np.where(data.requirements.mean(axis=1) > 0.5, 0, 2)
    assert verdict(data, backwards, Selection.FIXED).label is VerdictLabel.WORSE


def test_random_routing_is_seldom_said_to_beat():
    rng = np.random.default_rng(7)
    wins = 0
    for seed in range(200):
        data = make_data(n=300, seed=seed)
        wins += verdict(data, rng.integers(0, 3, 300), Selection.FIXED).label is VerdictLabel.BETTER
    assert wins <= 8


def test_translations_of_one_task_do_not_make_the_verdict_surer():
    once = make_data(n=60, seed=3)
    many = once.take(np.repeat(np.arange(60), 16))
    clustered = replace(many, clusters=np.repeat(np.arange(60), 16))
    a, b = (verdict(d, replay(d, 0.3), Selection.FIXED).interval for d in (once, clustered))
    assert (a.lo, a.hi) == pytest.approx((b.lo, b.hi))


def test_operating_points_meet_their_constraint(data):
    curve = data_frontier(data)
    wanted = float(np.quantile(curve.quality, 0.6))
    point = cheapest_with_quality(curve, wanted)
    assert point.quality >= wanted
    assert not ((curve.quality >= wanted) & (curve.mean_cost_usd < point.mean_cost_usd)).any()
    within = float(np.median(curve.mean_cost_usd))
    point = best_with_cost(curve, within)
    assert point.mean_cost_usd <= within
    assert not ((curve.mean_cost_usd <= within) & (curve.quality > point.quality)).any()
    assert curve.mean_cost_usd.min() <= knee(curve).mean_cost_usd <= curve.mean_cost_usd.max()


def test_a_constraint_nobody_can_meet_says_what_is_possible(data):
    curve = data_frontier(data)
    with pytest.raises(InfeasibleError, match=r"the most is \d"):
        cheapest_with_quality(curve, 1.5)
    with pytest.raises(InfeasibleError, match="the cheapest costs"):
        best_with_cost(curve, 0.0)


def test_cross_fit_measures_where_it_did_not_choose():
    data = make_data(n=400, seed=5, signal=0.0)
    fits = [
        cross_fit(
            data,
            lambda half, curve: float(curve.knob[curve.quality.argmax()]),
            rng=np.random.default_rng(seed),
        )
        for seed in range(20)
    ]
    assert all(len(fit.knobs) == 2 for fit in fits)
    assert np.mean([fit.optimism for fit in fits]) > 0  # picking the peak always flatters
    for fit in fits:
        assert fit.optimism == pytest.approx(fit.in_sample_quality - fit.metrics.quality.value)


def with_languages(data, languages, clusters=None):
    return replace(data, languages=tuple(languages), clusters=clusters)


def test_a_slice_is_the_policy_on_its_queries():
    data = make_data(n=300)
    choice = replay(data, 0.3)
    german = next(found for found in by_language(data, choice) if found.name == "de")
    rows = np.flatnonzero(np.asarray(data.languages) == "de")
    alone = evaluate_choice(data.take(rows), choice[rows], baseline="m2")
    assert german.n == 150
    assert (german.qr, german.cs, german.mean_cost_usd) == (
        alone.qr,
        alone.cs,
        alone.mean_cost_usd,
    )
    assert german.strong.value == pytest.approx(alone.shares["m2"])


def test_languages_that_are_alike_seldom_differ():
    alarms = 0
    for seed in range(60):
        data = make_data(n=200, seed=seed)
        alarms += any(found.p_value < 0.05 for found in by_language(data, replay(data, 0.3)))
    assert alarms <= 9


def test_a_language_that_fares_worse_is_found():
    data = make_data(n=600, seed=2)
    worse = np.asarray(data.languages) == "de"
    choice = np.where(worse, 0, 2)
    german = next(found for found in by_language(data, choice) if found.name == "de")
    assert german.difference.hi < 0
    assert german.p_value < 0.001
    (against,) = spread(data, choice)
    assert (against.group, against.reference) == ("european", "english")
    assert against.qr.value == pytest.approx(german.difference.value)
    assert against.cs.lo > 0
    assert against.strong.value == -1.0


def test_too_few_queries_to_say_how_they_vary_have_no_interval_and_no_p():
    data = with_languages(make_data(n=200, seed=2), ["fi"] + ["sw"] * 3 + ["en"] * 196)
    data.quality[:4] = [0.0, 0.0, 1.0]
    found = {one.name: one for one in by_language(data, np.zeros(200, dtype=int))}
    for name in ("fi", "sw"):  # nobody of one, or of three, is no p of 1e-80
        assert found[name].difference.value < 0
        assert not found[name].difference.known
        assert math.isnan(found[name].p_value)
        assert (found[name].qr.value, found[name].qr.known) == (0.0, False)
    assert found["en"].n == 196
    assert not spread(data, np.zeros(200, dtype=int))[0].qr.known


def test_a_slice_of_models_without_outcomes_is_open_upwards_and_not_tested():
    data = make_data(n=200, seed=2)
    data.quality[:, 1] = 0.0
    data = replace(data, unmeasured=("m1",))
    choice = np.tile([0, 0, 1, 1], 50)
    for one in (*by_language(data, choice), *by_group(data, choice)):
        assert one.unknown == 0.5
        assert one.qr.hi > one.qr.value + 0.4
        assert math.isnan(one.p_value)
        assert one.difference.hi - one.difference.lo > 0.8
    assert spread(data, choice)[0].qr.hi > 0.4


@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_overpaid_queries_are_at_least_what_is_known_and_at_most_all_that_may_be(chosen):
    """A cheaper model without outcomes may have resolved none of the queries, or all."""
    data, choice = make_data(n=200, seed=2), np.full(200, chosen)
    cheapest = int(data.pool.cost.argmin())
    data.quality[:, cheapest] = 0.0
    least = evaluate_choice(data, choice).misroute
    open_ = evaluate_choice(replace(data, unmeasured=(data.pool.ids[cheapest],)), choice)
    data.quality[:, cheapest] = 1.0
    most = evaluate_choice(replace(data), choice).misroute
    assert (open_.misroute.value, open_.misroute_most) == (least.value, most.value)
    assert (open_.misroute.lo, open_.misroute.hi) == (least.lo, most.hi)


def test_a_change_of_overpaid_queries_holds_what_a_model_without_outcomes_may_do():
    data = make_data(n=200, seed=2)
    cheapest, _, dearest = np.argsort(data.pool.cost)
    data.quality[:, cheapest] = 0.0
    data = replace(data, unmeasured=(data.pool.ids[cheapest],))
    dear, cheap = (policy_run("", data, np.full(200, one)) for one in (dearest, cheapest))
    change = compare(dear, cheap).misroute
    assert change.value == -evaluate_choice(data, dear.choice).misroute.value
    assert change.lo == pytest.approx(-1.0, abs=0.01)
    same = compare(dear, dear).misroute
    assert same.lo == same.hi == 0.0


def test_groups_gather_languages():
    data = make_data(n=80)
    codes = [("en", "fr", "zh", "ar")[i % 4] for i in range(80)]
    found = by_group(with_languages(data, codes), np.zeros(80, dtype=int))
    assert {s.name: s.n for s in found} == {"english": 20, "european": 20, "cjk": 20, "other": 20}
    assert all(s.small for s in found)


def test_translations_are_compared_task_by_task():
    base = make_data(n=100, seed=3)
    both = base.take(np.repeat(np.arange(100), 2))
    codes = ["en", "fr"] * 100
    paired = with_languages(both, codes, clusters=np.repeat(np.arange(100), 2))
    choice = np.zeros(200, dtype=int)
    (same,) = spread(paired, choice)
    assert same.qr.value == pytest.approx(0, abs=1e-12)
    assert same.qr.hi - same.qr.lo < 1e-9  # equal outcomes: pairing leaves no doubt
    (loose,) = spread(with_languages(both, codes), choice)
    assert loose.qr.hi - loose.qr.lo > 0.1


def test_a_set_without_english_has_no_spread_against_it():
    data = make_data(n=40)
    assert spread(with_languages(data, ["fr", "zh"] * 20), np.zeros(40, dtype=int)) == ()


def test_it_is_cost_over_quality_with_the_interval_of_a_ratio():
    cost, quality = np.array([1.0, 3.0, 2.0, 2.0]), np.array([1.0, 0.0, 1.0, 0.0])
    found = per_resolved(cost, quality)
    assert found.value == pytest.approx(4.0)
    assert 0 <= found.lo < 4.0 < found.hi


def test_without_a_resolved_query_there_is_no_such_cost():
    found = per_resolved(np.ones(3), np.zeros(3))
    assert math.isnan(found.value)
    assert found.reason == "no query is resolved"


def test_nineteen_of_twenty_intervals_hold_the_truth():
    rng, held = np.random.default_rng(1), 0
    for _ in range(300):
        quality = (rng.random(400) < 0.4).astype(float)
        cost = rng.exponential(0.01 + 0.02 * quality)
        found = per_resolved(cost, quality)
        held += found.lo <= 0.018 / 0.4 <= found.hi
    assert 0.91 <= held / 300 <= 0.98


def test_metrics_and_report_say_the_same():
    data = make_data()
    found = evaluate_choice(data, np.zeros(len(data.rows), dtype=int))
    expected = data.cost_usd[:, 0].sum() / data.quality[:, 0].sum()
    assert found.per_resolved_usd.value == pytest.approx(expected)
    assert _metrics(found)["per_resolved_usd"] == found.per_resolved_usd.value


def test_live_counts_rated_answers_whose_cost_is_known():
    rows = pd.DataFrame(
        {
            "quality": [1.0, 0.0, None, 1.0],
            "cost_usd": [0.02, 0.04, 0.5, None],
            "decision_id": list("abcd"),
            "conversation_id": None,
        }
    )
    found = cost_per_resolved(Traffic(rows, np.arange(4), 0, 0))
    assert found is not None
    assert (found[0].value, found[1]) == (pytest.approx(0.06), 2)
