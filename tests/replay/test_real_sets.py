"""The table of real sets: honest where there is nothing, and profiles from the other half alone."""

import numpy as np
import pytest

from benchmarks.quality.real_policies import at_every_cost, hydra_runs, learned, rebuilder
from benchmarks.quality.real_sets import all_policies, over_all_costs
from benchmarks.quality.real_table import document
from hydra_core.base.types import Band
from hydra_core.choosing.pools import choose_pool
from hydra_core.replay.baselines import run_baselines
from hydra_core.replay.metrics import single_models, upper_hull
from tests.replay.conftest import make_data

BANDS = (Band(0.0, 1.0),) * 4


def hull_and_costs(data):
    hull = upper_hull(single_models(data))
    low, high = hull[0].mean_cost_usd, hull[-1].mean_cost_usd
    return hull, [low + step * (high - low) for step in (0.25, 0.5, 0.75)]


def test_profiles_rank_models_by_what_they_achieved_on_the_given_rows():
    data = make_data(n=400, m=3)
    pool = learned(data, np.arange(200), BANDS)
    np.testing.assert_array_equal(pool.capabilities[0], 0.0)
    np.testing.assert_array_equal(pool.capabilities[-1], 1.0)
    data.quality[200:] = 0.0
    again = learned(data, np.arange(200), BANDS)
    np.testing.assert_array_equal(pool.capabilities, again.capabilities)


def test_costs_climb_with_the_knob():
    data = make_data(n=300)
    spent = [data.cost_usd[np.arange(300), row].mean() for row in at_every_cost(data)]
    assert np.all(np.diff(spent) >= -1e-9)


@pytest.mark.parametrize(
    ("reads", "wanted"), [(True, {"better"}), (False, {"no difference", "worse"})]
)
def test_a_router_that_reads_difficulty_beats_the_hull_and_noise_does_not(reads, wanted):
    data = make_data(n=600, m=2, seed=3)
    hard = data.requirements.mean(axis=1) > 0.5
    data.quality[:, 0] = ~(hard if reads else np.random.default_rng(0).permutation(hard))
    data.quality[:, 1] = 1.0
    runs = hydra_runs(data, BANDS, derive=True, seed=0, trials=6)
    runs = [*runs, *run_baselines(data, ["same"] * 600, names=["random mixture"])]
    rows = all_policies(data, runs, *hull_and_costs(data), np.random.default_rng(0))
    assert rows["HyDRA"]["result"] in wanted
    assert rows["random mixture"]["result"] == "control"


def test_a_model_that_makes_routing_worse_is_left_out():
    data = make_data(n=800, m=3, seed=1)
    data.quality[:, 0] = 0.0
    data.cost_usd[:, 0] = 0.9 * data.cost_usd[:, 1]
    everything = np.arange(800)
    found = choose_pool(data, rebuilder(data, everything, BANDS, derive=True))
    assert found.left_out[0][0] == "m0"
    assert "m0" not in found.kept
    assert found.area > found.area_before


def test_the_bootstrap_interval_covers_a_mixture_of_constants():
    data = make_data(n=500, m=2, seed=5)
    hull, costs = hull_and_costs(data)
    rng = np.random.default_rng(0)
    counts = rng.multinomial(500, np.full(500, 1 / 500), size=500).astype(float)
    inside = []
    for _ in range(40):
        choices = [(rng.random(500) < share).astype(int) for share in (0.2, 0.5, 0.8)]
        low, high = over_all_costs(data, hull, choices, counts)["delta"][1:]
        inside.append(low <= 0 <= high)
    assert np.mean(inside) >= 0.85
    assert len(costs) == 3


def test_the_document_names_the_bundle():
    bundle = type("Bundle", (), {"name": "b", "version": "1", "fingerprint": "f" * 64})
    assert "b 1 (ffffffffffff)" in document([], bundle)
