"""The policy search: chosen on one part, reported on the other, stopped and resumed; with cells."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from hydra_core.base.errors import CancelledError, StoreError
from hydra_core.base.types import Band, Pool
from hydra_core.choosing.policy_search import (
    Space,
    TrialStore,
    _fingerprint,
    cells_around,
    search,
    search_policy,
    simplified,
    with_cells,
)
from hydra_core.replay.metrics import oracle_quality
from hydra_core.replay.operating_point import Aim, AimKind, InfeasibleError, aim_at, hypervolume
from hydra_core.replay.replay import ReplayData, data_frontier, replay
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


def test_trials_before_a_gate_are_not_used_after_it():
    data = make_data(n=100, seed=1)
    closed = np.zeros(data.quality.shape, dtype=bool)
    closed[3, 0] = True
    keys = [_fingerprint(one, SPACE, QR90) for one in (data, replace(data, closed=closed))]
    assert keys[0] != keys[1]


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


QR95 = Aim(AimKind.CHEAPEST_WITH_QR, 0.95)
BANDS = (Band(0.0, 1.0),) * 4


def understated(n=600, seed=0):
    """One dimension, so no weight matters; the catalog says 0.25 of a model that resolves 0.6.

    No tau helps either: what lets the middle model serve up to 0.6 lets the cheapest do so too.
    """
    requirements = np.random.default_rng(seed).random((n, 1))
    ability, stated = np.array([0.2, 0.6, 1.0]), np.array([[0.2], [0.25], [1.0]])
    return ReplayData(
        query_ids=tuple(map(str, range(n))),
        languages=("en",) * n,
        requirements=requirements,
        quality=(requirements <= ability).astype(float),
        cost_usd=np.tile([0.001, 0.01, 0.1], (n, 1)),
        pool=Pool(("small", "middle", "large"), stated, np.array([1.0, 2.0, 3.0]), np.ones(1)),
        rows=np.arange(n),
    )


def space(data, cells, reach=0.5):
    bands = (Band(0.0, 1.0),) * data.pool.capabilities.shape[1]
    return Space(bands, cells=cells_around(data.pool, cells, reach))


@pytest.fixture(scope="module")
def found():
    data = understated()
    return data, search_policy(data, space(data, [("middle", 0)]), QR95, trials=90, seed=3)


def test_a_cell_that_alone_helps_is_found_on_the_held_part(found):
    data, tuned = found
    without = search_policy(data, Space(BANDS[:1]), QR95, trials=9, seed=3)
    assert without.over_tau_only.quality.value == pytest.approx(0)
    assert (without.setting.cells, "cells" in without.text) == ({}, False)
    assert tuned.over_tau_only.gains
    assert tuned.metrics.qr.lo > 0.9
    for setting in (tuned.setting, *(half.setting for half in tuned.halves)):
        assert 0.5 < setting.cells["middle", 0] + setting.tau < 0.7
    assert "Profile cells moved: 1." in tuned.text


def test_the_setting_keeps_its_promise_with_its_cells(found):
    data, tuned = found
    choice = replay(with_cells(data, tuned.setting.cells), tuned.setting.tau, np.ones(1))
    reached = data.quality[np.arange(600), choice].mean() / oracle_quality(data)
    assert reached == pytest.approx(tuned.promised.qr)


def test_same_seed_same_result_also_over_a_resume(found, tmp_path):
    data, tuned = found
    options = {"trials": 90, "seed": 3, "storage": tmp_path / "trials.sqlite"}
    for _ in range(2):
        again = search_policy(data, space(data, [("middle", 0)]), QR95, **options)
        assert (again.setting, again.halves) == (tuned.setting, tuned.halves)


def test_cells_stay_within_their_bounds_and_within_0_and_1():
    data = make_data(n=300, seed=6)
    cells = [(model, k) for model in data.pool.ids for k in range(2)]
    bounds = cells_around(data.pool, cells, 0.3)
    assert bounds["m0", 0] == (0.0, 0.5)
    assert bounds["m2", 1] == (0.5, 1.0)
    tuned = search_policy(
        data, Space(BANDS, cells=bounds), Aim(AimKind.HYPERVOLUME), trials=60, seed=0
    )
    settings = [tuned.setting, *(half.setting for half in tuned.halves)]
    assert any(setting.cells for setting in settings)
    for setting in settings:
        assert all(bounds[c][0] <= v <= bounds[c][1] for c, v in setting.cells.items())


def test_a_cell_that_earns_nothing_stays_as_it_was():
    data = make_data(n=300, seed=6)
    data.requirements[:, 3] = 0  # nobody asks for it, so no cell of it can matter
    cells = [("m1", 0), ("m0", 3), ("m1", 3)]
    tuned = search_policy(data, space(data, cells), Aim(AimKind.HYPERVOLUME), trials=30, seed=0)
    assert set(tuned.setting.cells) <= {("m1", 0)}


def test_what_moved_is_written_in_few_digits():
    parameters = {"w": 0.123456, "a": 0.537123, "b": 0.412345}
    box = {"w": (-1.0, 1.0), "a": (0.0, 1.0), "b": (0.0, 1.0)}
    start = {"w": 0.0, "a": 0.2, "b": 0.2}
    kept = simplified(parameters, box, start, ["a", "b"], lambda p: float(p["a"] > 0.5))
    assert kept == {"w": 0.123456, "a": 0.54, "b": 0.2}
    narrow = {**box, "a": (0.5371, 0.5372)}
    assert (
        simplified(parameters, narrow, start, ["a"], lambda p: float(p["a"] > 0.5))["a"] == 0.5371
    )
    assert simplified(parameters, box, start, [], lambda p: 1 / 0) == parameters


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ({("m9", 0): (0.0, 1.0)}, "there is no cell 'm9', dimension 0: the pool has m0, m1, m2"),
        ({("m0", 4): (0.0, 1.0)}, "and 4 dimensions"),
        ({("m0", 0): (-0.1, 1.0)}, "0 <= low <= high <= 1, got -0.1 and 1.0"),
        ({("m0", 0): (0.6, 0.4)}, "0 <= low <= high <= 1, got 0.6 and 0.4"),
    ],
)
def test_cells_that_are_no_cells_are_refused(cells, says):
    with pytest.raises(ValueError, match=says):
        search_policy(make_data(n=50), Space(BANDS, cells=cells), QR95, trials=3)


def test_cells_move_by_more_than_nothing():
    data = make_data(n=50)
    assert with_cells(data, {}) is data
    with pytest.raises(ValueError, match="by more than 0, got 0"):
        cells_around(data.pool, [("m0", 0)], 0.0)
