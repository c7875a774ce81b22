"""Profile cells: off unless named, within their bounds, back where moving them earned nothing."""

import numpy as np
import pytest

from hydra_core.base.types import Band, Pool
from hydra_core.choosing.policy_search import (
    Space,
    cells_around,
    search_policy,
    simplified,
    with_cells,
)
from hydra_core.replay.metrics import oracle_quality
from hydra_core.replay.operating_point import Aim, AimKind
from hydra_core.replay.replay import ReplayData, replay
from tests.replay.conftest import make_data

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
