"""Off-policy values against simulated truth, and the cases in which nothing may be said."""

import numpy as np
import pytest

from hydra_core.live.off_policy import (
    LoggedOutcomes,
    NoOverlapError,
    cross_fitted_quality,
    effective_size,
    policy_value,
)

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
