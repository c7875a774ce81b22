"""Tidy taus route exactly as the breakpoints they stand for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hydra_core.replay.frontier import frontier
from hydra_core.replay.sweep import turning_points


def curve_of(shortfalls):
    m = shortfalls.shape[1]
    quality = (shortfalls < 0.4).astype(float)
    cost_usd = np.tile(np.arange(1.0, m + 1), (len(shortfalls), 1))
    return frontier(shortfalls, np.arange(1.0, m + 1), quality, cost_usd)


@given(arrays(np.float64, (7, 3), elements=st.floats(0.0, 1.0)), st.floats(0.0, 2.0))
def test_a_tidy_setting_stays_on_its_row(shortfalls, tau):
    curve = curve_of(shortfalls)
    assert curve.row(curve.tidy(tau)) == curve.row(tau)


def test_a_tidy_setting_is_short():
    curve = curve_of(np.array([[0.1234567, 0.0], [0.3456789, 0.0]]))
    assert curve.tidy(0.2) == 0.13
    assert curve.tidy(0.1234567) == 0.13
    assert f"{curve.tidy(0.0):g}" == "0"
    assert curve.tidy(0.0) == 0.0


def test_slider_stops_span_the_whole_curve():
    shortfalls = np.random.default_rng(0).random((500, 4))
    curve = curve_of(shortfalls)
    stops = turning_points(curve, 50)
    assert stops[0] == 0.0
    assert curve.row(stops[-1]) == curve.knob.size - 1
    assert list(stops) == sorted(set(stops))
