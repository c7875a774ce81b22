"""Population stability index with its interval, and shares outside the bands."""

import numpy as np
import pytest
from scipy import stats

from hydra_core.base.types import Band
from hydra_core.live.drift import Drift, band_shares, drift, psi
from tests.live.logs import decision, levels, traffic
from tests.routing.conftest import DIMENSIONS


def true_psi(shift):
    """PSI of a normal moved by `shift` against its own tenths."""
    edges = stats.norm.ppf(np.linspace(0, 1, 11))
    p = np.diff(stats.norm.cdf(edges - shift))
    return float(((p - 0.1) * np.log(p / 0.1)).sum())


@pytest.mark.parametrize(("shift", "within"), [(0.0, (0.93, 1.0)), (0.4, (0.90, 0.99))])
def test_the_interval_holds_the_truth_as_often_as_it_says(shift, within):
    rng, held = np.random.default_rng(0), 0
    for _ in range(100):
        found = psi(rng.normal(shift, 1, 600), rng.normal(0, 1, 3000))
        held += found.lo <= true_psi(shift) <= found.hi
    assert within[0] <= held / 100 <= within[1]


def test_dependent_decisions_widen_the_interval():
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(60), 10)
    here = rng.normal(0, 1, 60)[clusters]
    reference = rng.normal(0, 1, 3000)
    assert psi(here, reference, clusters).lo == 0.0
    assert psi(here, reference).lo > 0.0


def test_translations_in_the_eval_set_widen_the_interval():
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(60), 10)
    reference = rng.normal(0, 1, 60)[clusters]
    here = rng.normal(0, 1, 3000)
    assert psi(here, reference, None, clusters).lo == 0.0
    assert psi(here, reference).lo > 0.0


@pytest.mark.parametrize("most", [0.0, 1.0])
def test_a_value_that_most_of_the_set_has_is_told_from_others(most):
    """Hardly any query of a set needs tools, say, and then most requests do."""
    rng = np.random.default_rng(1)
    reference = np.where(rng.random(3000) < 0.95, most, rng.uniform(0, 0.9, 3000))
    others, same = rng.uniform(0.1, 0.9, 400), rng.choice(reference, 400)
    assert Drift("tool_use", psi(others, reference), 0, 0).verdict == "changed"
    assert Drift("tool_use", psi(same, reference), 0, 0).verdict == "steady"


def test_a_reference_without_spread_says_nothing():
    found = psi(np.ones(10), np.ones(10))
    assert np.isnan(found.value)
    assert np.isnan([found.lo, found.hi]).all()
    assert found.bounds() == "the reference has one value only"
    assert Drift("reasoning", found, 0.5, 0.5).verdict == "undecided"


def test_what_moved_is_told_from_what_did_not(tmp_path):
    rng = np.random.default_rng(2)
    rows = []
    for i, level in enumerate(levels(800)):
        rows.append(decision(i, requirements=(level, level, level**2, level)))
    some = traffic(tmp_path, rows)
    found = drift(some, np.tile(rng.uniform(0, 0.9, 5000)[:, None], 4), DIMENSIONS)
    assert [one.verdict for one in found] == ["steady", "steady", "changed", "steady"]
    assert found[2].mean < found[2].reference


def test_shares_outside_the_band_are_counted(tmp_path):
    some = traffic(tmp_path, [decision(i, i / 10) for i in range(10)])
    (first, *_) = band_shares(some, (Band(0.25, 0.75),) * 4, DIMENSIONS)
    assert (first.below.value, first.above.value) == (0.3, 0.2)
    assert first.below.lo < 0.3 < first.below.hi
