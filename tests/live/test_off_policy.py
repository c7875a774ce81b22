"""What another policy would have been worth, on a log and on a set of logged queries."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.errors import MismatchError
from hydra_core.base.list_price import LongPromptPrice
from hydra_core.evalsets.evalset import load_evalset, save_evalset
from hydra_core.live.off_policy import (
    LoggedOutcomes,
    NoOverlapError,
    cross_fitted_quality,
    effective_size,
    evaluate_logged,
    is_log,
    policy_value,
)
from tests.routing.conftest import make_catalog, spec

MODELS = 4


def world(rng, n):
    """Features and the true success of each model: (n, 3), (n, m)."""
    features = rng.normal(size=(n, 3))
    slopes = np.array([[0.8, 0.5, 0.0], [0.6, 0.2, 0.3], [0.3, 0.1, 0.1], [0.1, 0.0, 0.2]])
    levels = np.array([-0.5, 0.0, 0.6, 1.2])
    return features, 1 / (1 + np.exp(-(features @ slopes.T + levels)))


def choices(features, knob):
    """A deterministic policy: the dearer the model, the harder the message."""
    return np.digitize(features[:, 0], np.array([-0.5, 0.3, 1.0]) + knob)


def one_hot(choice):
    return np.eye(MODELS)[choice]


def logged(rng, n, share=0.3):
    features, success = world(rng, n)
    chances = (1 - share) * one_hot(choices(features, 0.0)) + share / MODELS
    served = (rng.random(n)[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    quality = (rng.random(n) < success[np.arange(n), served]).astype(float)
    return features, success, LoggedOutcomes(served, chances, quality)


@pytest.mark.parametrize("knob", [0.3, -0.8])
def test_the_truth_is_inside_the_interval_as_often_as_said(knob):
    rng = np.random.default_rng(11)
    features, success = world(rng, 400_000)
    truth = (one_hot(choices(features, knob)) * success).sum(axis=1).mean()
    inside = {"ips": 0, "snips": 0, "dr": 0}
    for _ in range(500):
        features, _, log = logged(rng, 2_000)
        predicted = cross_fitted_quality(features, log)
        value = policy_value(log, one_hot(choices(features, knob)), predicted)
        for name in inside:
            interval = getattr(value, name)
            inside[name] += interval.lo <= truth <= interval.hi
    assert all(465 <= count <= 485 for count in inside.values()), inside


def test_the_logging_policy_itself_is_worth_what_was_measured():
    _, _, log = logged(np.random.default_rng(1), 3_000)
    value = policy_value(log, log.propensities)
    assert value.ips.value == pytest.approx(log.quality.mean())
    assert value.snips.value == pytest.approx(log.quality.mean())
    assert value.effective == pytest.approx(3_000)


def test_doubly_robust_is_narrower_than_weighting_alone():
    features, _, log = logged(np.random.default_rng(2), 4_000)
    target = one_hot(choices(features, 0.5))
    value = policy_value(log, target, cross_fitted_quality(features, log))
    assert value.dr.hi - value.dr.lo < value.ips.hi - value.ips.lo


def test_dependent_decisions_widen_the_interval():
    features, _, log = logged(np.random.default_rng(3), 2_000)
    log = LoggedOutcomes(log.served, log.propensities, log.quality)
    twice = LoggedOutcomes(
        np.tile(log.served, 2),
        np.tile(log.propensities, (2, 1)),
        np.tile(log.quality, 2),
        np.tile(np.arange(2_000), 2),
    )
    target = one_hot(choices(features, 0.2))
    alone, doubled = policy_value(log, target), policy_value(twice, np.tile(target, (2, 1)))
    assert doubled.ips.hi - doubled.ips.lo == pytest.approx(alone.ips.hi - alone.ips.lo, rel=0.01)


def test_without_exploration_another_policy_lies_between_bounds():
    features, success, _ = logged(np.random.default_rng(4), 500)
    chosen, other = choices(features, 0.0), choices(features, 0.5)
    quality = success[np.arange(500), chosen]
    log = LoggedOutcomes(chosen, one_hot(chosen), quality)
    value = policy_value(log, one_hot(other))
    same = chosen == other
    assert (value.dr, value.snips, value.ips) == (None, None, None)
    assert value.unsupported == pytest.approx(1 - same.mean())
    least = (quality * same).mean()
    assert value.bounds.lo < least < least + value.unsupported < value.bounds.hi
    truth = success[np.arange(500), other].mean()
    assert value.bounds.lo <= truth <= value.bounds.hi


def test_a_value_that_hangs_on_a_few_decisions_is_refused():
    features, _, log = logged(np.random.default_rng(5), 2_000, share=0.01)
    rarely = one_hot(3 - choices(features, 0.0))
    with pytest.raises(NoOverlapError, match="at least 100"):
        policy_value(log, rarely)


def test_the_effective_size_counts_what_the_propensities_promise():
    same = np.full((50, 2), 0.5)
    assert effective_size(same, same) == pytest.approx(50)
    always = np.tile([1.0, 0.0], (50, 1))
    assert effective_size(always, same) == pytest.approx(25)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "share"), [(600, 0.3), (600, 0.6), (2_000, 0.1), (3_000, 0.05)])
@pytest.mark.parametrize("knob", [0.1, 0.3, -0.8])
def test_a_value_from_few_decisions_covers_the_truth_or_is_not_given(n, share, knob):
    """Whether a value is given depends on the propensities alone, not on what was drawn."""
    rng = np.random.default_rng(12)
    features, success = world(rng, 400_000)
    truth = (one_hot(choices(features, knob)) * success).sum(axis=1).mean()
    inside = dict.fromkeys(["ips", "snips", "dr"], 0)
    known = dict.fromkeys(inside, 0)
    for _ in range(300):
        features, _, log = logged(rng, n, share)
        try:
            target = one_hot(choices(features, knob))
            value = policy_value(log, target, cross_fitted_quality(features, log))
        except NoOverlapError:
            continue
        for name in inside:
            interval = getattr(value, name)
            if interval is None:
                continue
            known[name] += 1
            inside[name] += interval.lo <= truth <= interval.hi
    assert all(inside[name] >= 0.91 * known[name] for name in inside), (inside, known)


def test_a_log_that_contradicts_itself_is_refused():
    chances = np.array([[1.0, 0.0]])
    with pytest.raises(ValueError, match="propensity 0"):
        LoggedOutcomes(np.array([1]), chances, np.ones(1))
    with pytest.raises(ValueError, match="sum to 1"):
        LoggedOutcomes(np.array([0]), np.array([[0.5, 0.1]]), np.ones(1))


IDS = ("cheap", "mid", "strong")
SUCCESS = np.array([0.4, 0.6, 0.8])


def logged_set(folder, n=3000, *, explore=0.3, propensity=True, seed=0):
    """A log whose rule sends easy queries to `cheap` and hard ones to `mid`."""
    rng = np.random.default_rng(seed)
    need = rng.random((n, 4))
    rule = np.eye(3)[(need[:, 0] > 0.5).astype(int)]
    chances = (1 - explore) * rule + explore / 3
    served = (rng.random(n)[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    kept = np.eye(3, dtype=bool)[served]
    quality = np.where(kept, (rng.random((n, 3)) < SUCCESS).astype(float), np.nan)
    cost = np.where(kept, [0.002, 0.006, 0.018], np.nan)
    tokens = np.where(kept, 1000.0, np.nan)
    extras = {"input_tokens": tokens, "output_tokens": tokens}
    if propensity:
        extras["propensity"] = chances
    queries = pd.DataFrame({"query_id": [f"q{i}" for i in range(n)], "language": "en"})
    saved = save_evalset(
        folder, name="log", queries=queries, models=IDS, quality=quality, cost_usd=cost,
        extras=extras,
    )  # fmt: skip
    return saved, need


def test_another_policy_has_its_mix_its_cost_and_its_quality(tmp_path):
    evalset, need = logged_set(tmp_path / "set")
    assert is_log(evalset, IDS)
    choice = np.full(3000, 2)
    found = evaluate_logged(load_evalset(tmp_path / "set"), make_catalog(), IDS, choice, need)
    assert found.n == 3000
    assert found.chosen == {"strong": 1.0}
    assert found.agreement.value == pytest.approx(found.served["strong"])
    assert found.value.dr.lo < SUCCESS[2] < found.value.dr.hi
    catalog = make_catalog()
    per = [m.input_usd_per_mtok + m.output_usd_per_mtok for m in catalog.models]
    served = sum(found.served[name] * per[i] for i, name in enumerate(IDS))
    assert found.cost_change.value == pytest.approx(per[2] / served - 1)


def test_dependent_queries_count_as_one_in_every_interval(tmp_path):
    evalset, need = logged_set(tmp_path / "set", 200)
    twice = {name: np.concatenate([values] * 2) for name, values in evalset.extras.items()}
    queries = pd.concat([evalset.queries.assign(cluster=np.arange(200))] * 2, ignore_index=True)
    queries["query_id"] = [f"q{i}" for i in range(400)]
    doubled = replace(
        evalset,
        queries=queries,
        quality=np.concatenate([evalset.quality] * 2),
        cost_usd=np.concatenate([evalset.cost_usd] * 2),
        extras=twice,
    )
    args = make_catalog(), IDS
    one = evaluate_logged(evalset, *args, np.full(200, 2), need)
    both = evaluate_logged(doubled, *args, np.full(400, 2), np.concatenate([need] * 2))
    for name in ("billed_usd", "cost_change", "live"):
        narrow, wide = getattr(one, name), getattr(both, name)
        assert wide.value == pytest.approx(narrow.value)
        assert wide.hi - wide.lo == pytest.approx(narrow.hi - narrow.lo, rel=0.02), name


def test_the_cost_of_a_policy_is_at_the_whole_price_list(tmp_path):
    """Cached input and long prompts have prices of their own."""
    evalset, need = logged_set(tmp_path / "set", 200)
    evalset = replace(
        evalset,
        extras={**evalset.extras, "cached_input_tokens": 0.8 * evalset.extras["input_tokens"]},
    )
    long = (LongPromptPrice(999, 8.0, 8.0),)
    catalog = make_catalog(
        spec("cheap", 1, 0.2),
        spec("mid", 3, 0.5, cached_input_usd_per_mtok=0.3),
        spec("strong", 9, 0.9, long_prompts=long),
    )
    found = evaluate_logged(evalset, catalog, IDS, np.full(200, 2), need)
    per = {"cheap": 2.0, "mid": 0.2 * 3 + 0.8 * 0.3 + 3, "strong": 16.0}
    served = sum(share * per[name] for name, share in found.served.items())
    assert found.cost_change.value == pytest.approx(per["strong"] / served - 1)


def test_queries_that_several_models_answered_were_served_by_none(tmp_path):
    evalset, need = logged_set(tmp_path / "set", 200)
    both = replace(evalset, quality=np.where(np.arange(200)[:, None] < 10, 1.0, evalset.quality))
    found = evaluate_logged(both, make_catalog(), IDS, np.full(200, 2), need)
    assert found.n == 190
    alone = np.isfinite(evalset.quality[10:]).mean(axis=0)
    assert found.served == pytest.approx(dict(zip(evalset.models, alone, strict=True)))


def test_queries_that_no_model_may_serve_are_left_out(tmp_path):
    evalset, need = logged_set(tmp_path / "set", 200)
    choice = np.where(np.arange(200) % 4, 2, -1)
    found = evaluate_logged(evalset, make_catalog(), IDS, choice, need)
    assert (found.n, found.chosen) == (150, {"strong": 1.0})
    with pytest.raises(MismatchError, match="may serve any query"):
        evaluate_logged(evalset, make_catalog(), IDS, np.full(200, -1), need)


def test_without_exploration_or_propensities_no_quality_is_printed(tmp_path):
    for number, change in enumerate(({"propensity": False}, {"explore": 0.0})):
        evalset, need = logged_set(tmp_path / f"set{number}", 200, **change)
        found = evaluate_logged(evalset, make_catalog(), IDS, np.full(200, 2), need)
        assert found.value is None
        assert "--explore-all" in found.why


def test_where_part_has_no_support_quality_is_bounded(tmp_path):
    evalset, need = logged_set(tmp_path / "set")
    chances = evalset.extras["propensity"].copy()
    never = (need[:, 1] < 0.2) & ~np.isfinite(evalset.quality[:, 2])
    chances[never, 0] += chances[never, 2]
    chances[never, 2] = 0.0
    evalset = replace(evalset, extras={**evalset.extras, "propensity": chances})
    found = evaluate_logged(evalset, make_catalog(), IDS, np.full(3000, 2), need)
    assert found.value.unsupported == pytest.approx(never.mean())
    assert found.value.bounds.lo < SUCCESS[2] < found.value.bounds.hi


def test_a_set_that_every_model_answered_is_replayed(tmp_path):
    evalset, _ = logged_set(tmp_path / "set", 50)
    whole = replace(evalset, quality=np.ones((50, 3)))
    assert not is_log(whole, IDS)
