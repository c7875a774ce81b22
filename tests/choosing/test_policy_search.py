"""The policy search: chosen on one part, told on the other, stopped and resumed without a trace."""

import threading

import numpy as np
import pytest

from hydra_core.base.errors import CancelledError, StoreError
from hydra_core.base.types import Band
from hydra_core.choosing.policy_search import Space, TrialStore, search, search_policy
from hydra_core.replay.metrics import oracle_quality
from hydra_core.replay.operating_point import Aim, AimKind, InfeasibleError, aim_at, hypervolume
from hydra_core.replay.replay import data_frontier, replay
from tests.replay.conftest import make_data

SPACE = Space((Band(0.0, 1.0),) * 4)
QR90 = Aim(AimKind.CHEAPEST_WITH_QR, 0.9)


@pytest.fixture(scope="module")
def tuned():
    data = make_data(n=600, seed=4)
    return data, search_policy(data, SPACE, QR90, trials=60, seed=1)


def test_what_was_promised_and_what_was_kept_are_both_given(tuned):
    data, found = tuned
    assert found.trials == 60
    assert all(half.promised.met and half.promised.qr >= 0.9 - 1e-9 for half in found.halves)
    assert sum(half.queries for half in found.halves) == found.metrics.n == 600
    promised = np.mean([half.promised.qr for half in found.halves])
    assert found.optimism_qr == pytest.approx(promised - found.metrics.qr.value, abs=1e-3)
    assert "Picked on one half of the queries and measured on the other" in found.text


def test_the_setting_keeps_its_promise_on_what_it_was_searched_on(tuned):
    data, found = tuned
    choice = replay(data, found.setting.tau, np.asarray(found.setting.weights))
    quality = data.quality[np.arange(600), choice].mean()
    assert quality / oracle_quality(data) == pytest.approx(found.promised.qr)
    assert sum(found.setting.weights) == pytest.approx(4)


def test_weights_that_matter_are_found():
    data = make_data(n=1500, seed=5)
    data.requirements[:, 1:] = np.random.default_rng(0).random((1500, 3))
    hard = data.requirements[:, 0]
    levels = data.pool.capabilities.mean(axis=1)
    data.quality[:] = levels[None, :] + 0.05 >= hard[:, None]
    found = search_policy(data, SPACE, QR90, trials=120, seed=0)
    assert found.setting.weights[0] == max(found.setting.weights)
    assert found.metrics.mean_cost_usd.value < found.tau_only.mean_cost_usd.value
    assert found.over_tau_only.gains


def test_same_seed_same_result_and_another_seed_another(tuned):
    data, found = tuned
    again = search_policy(data, SPACE, QR90, trials=60, seed=1)
    assert (again.setting, again.halves) == (found.setting, found.halves)
    assert search_policy(data, SPACE, QR90, trials=60, seed=2).setting != found.setting


def test_stopped_and_resumed_equals_never_stopped(tuned, tmp_path):
    data, found = tuned
    cancel, seen = threading.Event(), []

    def progress(done, trials):
        seen.append((done, trials))
        if done == 33:
            cancel.set()

    options = {"trials": 60, "seed": 1, "storage": tmp_path / "trials.sqlite"}
    with pytest.raises(CancelledError, match="stopped after"):
        search_policy(data, SPACE, QR90, progress=progress, cancel=cancel, **options)
    assert seen[-1] == (33, 60)
    calls = []
    again = search_policy(data, SPACE, QR90, progress=lambda *a: calls.append(a), **options)
    assert (again.setting, again.halves) == (found.setting, found.halves)


def test_trials_of_other_data_are_never_used(tmp_path):
    store, path = [], tmp_path / "trials.sqlite"
    for seed in (1, 2):
        data = make_data(n=100, seed=seed)
        store.append(search_policy(data, SPACE, QR90, trials=9, seed=0, storage=path))
        fresh = search_policy(data, SPACE, QR90, trials=9, seed=0)
        assert store[-1].setting == fresh.setting


def test_a_file_that_is_no_trial_store_says_so(tmp_path):
    path = tmp_path / "trials.sqlite"
    path.write_text("not a database, only text that is long enough to be looked at")
    with pytest.raises(StoreError, match="cannot be written there"):
        search_policy(make_data(n=50), SPACE, QR90, trials=3, storage=path)


def test_an_aim_out_of_reach_is_an_error_that_says_what_can_be_reached():
    data = make_data(n=100)
    data.quality[:, 1:] = 0
    data.quality[:50, 0] = 0
    data.quality[:50, 1] = 1
    with pytest.raises(InfeasibleError, match="the most is"):
        search_policy(data, SPACE, Aim(AimKind.CHEAPEST_WITH_QR, 0.999), trials=9)


def test_aims_on_one_frontier():
    data = make_data(n=300)
    curve, base = data_frontier(data), oracle_quality(data)
    middle = float(np.median(curve.mean_cost_usd))
    best = aim_at(curve, Aim(AimKind.BEST_WITH_COST, middle), base, data)
    assert best.met
    assert best.mean_cost_usd <= middle
    out = aim_at(curve, Aim(AimKind.BEST_WITH_COST, 1e-9), base, data)
    assert not out.met
    assert out.score < best.score
    assert out.mean_cost_usd == curve.mean_cost_usd.min()
    area = aim_at(curve, Aim(AimKind.HYPERVOLUME), base, data)
    assert 0 < area.score == hypervolume(curve, data) < 1


def test_a_better_curve_has_the_larger_area():
    data = make_data(n=2000, seed=1)
    informed = hypervolume(data_frontier(data), data)
    data.requirements[:] = np.random.default_rng(0).permutation(data.requirements)
    assert informed > hypervolume(data_frontier(data), data)


def test_search_climbs_and_refuses_no_trials(tmp_path):
    best = search(lambda p: -((p["x"] - 1) ** 2), {"x": (-3.0, 3.0)}, trials=80, seed=0)
    assert best.parameters["x"] == pytest.approx(1, abs=0.15)
    with pytest.raises(ValueError, match="at least one trial"):
        search(lambda p: 0.0, {"x": (0.0, 1.0)}, trials=0, seed=0)
    assert TrialStore(tmp_path / "new.sqlite").load("unknown") == []
