"""The figures of Compare and Explore draw what they were given, in both themes."""

import numpy as np
import pandas as pd
import pytest

from hydra_core.console.compare.figure_deltas import deltas_figure
from hydra_core.console.eval_sets.figures import (
    UpsetView,
    spread_figure,
    upset_figure,
)
from hydra_core.console.figures.intervals import IntervalsView, Series, intervals_figure
from hydra_core.console.figures.theme import DARK, LIGHT

ROWS = np.array([1.0, -2.0])


def deltas(**changes):
    values = {
        "name": ("<b>fr</b>", "de"), "n": np.array([40.0, 3.0]), "small": (False, True),
        "quality": ROWS, "quality_lo": ROWS - 0.5, "quality_hi": ROWS + 0.5,
        "savings": ROWS, "savings_lo": ROWS - 5, "savings_hi": ROWS + 5,
    }  # fmt: skip
    return pd.DataFrame({**values, **changes})


@pytest.mark.parametrize("colors", [LIGHT, DARK])
def test_a_difference_that_is_sure_of_its_sign_is_coloured(colors):
    figure = deltas_figure(deltas(), colors)
    quality, savings = (trace for trace in figure.data if trace.mode == "markers")
    assert list(quality.marker.color) == [colors.accent, colors.warn]
    assert list(savings.marker.color) == [colors.muted, colors.muted]
    assert list(quality.marker.symbol) == ["circle", "circle-open"]


def test_names_are_never_markup():
    figure = deltas_figure(deltas(), LIGHT)
    assert figure.layout.yaxis.ticktext[0].startswith("&lt;b&gt;")


def test_intervals_without_an_end_do_not_stretch_the_axis():
    figure = deltas_figure(deltas(quality_hi=np.array([np.inf, -1.5])), LIGHT)
    assert np.isfinite(figure.layout.xaxis.range).all()


def test_a_series_without_bounds_is_drawn_as_stars():
    view = IntervalsView(
        ("a", "b"), (Series("mean", ROWS, ROWS - 1, ROWS + 1), Series("best", ROWS)), "Quality"
    )
    mean, best = intervals_figure(view, LIGHT).data
    assert mean.error_x.array is not None
    assert best.marker.symbol == "star"


def test_the_upset_plot_tells_each_pattern():
    members = np.array([[True, True], [True, False], [False, False]])
    view = UpsetView(("a", "b"), np.array([60.0, 50.0]), members, np.array([5, 3, 2]), 10)
    bars = upset_figure(view, LIGHT).data[0]
    assert [row[0] for row in bars.customdata] == ["every model", "only a", "no model"]
    assert list(bars.y) == [5, 3, 2]


def test_costs_that_span_decades_are_drawn_on_a_logarithmic_axis():
    ends = {"narrow": (1, 2), "wide": (1, 100), "free": (0, 100)}
    kinds = {
        name: spread_figure(spread(least, most), LIGHT).layout.xaxis.type
        for name, (least, most) in ends.items()
    }
    assert kinds == {"narrow": "linear", "wide": "log", "free": "linear"}


@pytest.mark.parametrize(("least", "most"), [(0.0000001, 2000.0), (0.00001, 0.1), (1.0, 100.0)])
def test_a_logarithmic_axis_of_costs_has_room_for_its_labels(least, most):
    axis = spread_figure(spread(least, most), LIGHT).layout.xaxis
    assert 4 <= len(axis.ticktext) <= 10
    assert axis.tickvals[0] <= least
    assert not any("e" in text for text in axis.ticktext)


def spread(least, most):
    row = {"p05": least, "q1": 1.0, "median": 1.0, "q3": 1.0, "p95": most, "mean": 1.0}
    return pd.DataFrame([row, row], index=["a", "b"])
