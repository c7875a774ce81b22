"""Figures show what they are given: the operating point, click targets with tau, plain names."""

import numpy as np
import pytest

from hydra_core.console.figures.frontier import (
    AxisSpec,
    CurveLine,
    FrontierView,
    Spot,
    frontier_figure,
)
from hydra_core.console.figures.shares import SharesView, shares_figure
from hydra_core.console.figures.theme import DARK, LIGHT, palette, with_room


def view(**changes):
    tau = np.linspace(0, 1, 400)
    curve = CurveLine(0.5 - 0.4 * tau, 90 - 20 * tau, tau)
    models = (Spot("<b>small</b>", 0.1, 70.0), Spot("large", 0.5, 91.0))
    fields = {
        "x_axis": AxisSpec("Cost", ".3~r", prefix="$"),
        "y_axis": AxisSpec("QR", ".1f", suffix=" %"),
        "curve": curve,
        "selected": Spot("τ 0.5", 0.3, 80.0),
        "models": models,
        "hull": np.array([[0.1, 70.0], [0.5, 91.0]]),
        "oracle": Spot("oracle", 0.2, 100.0),
    }
    return FrontierView(**(fields | changes))


@pytest.mark.parametrize("colors", [LIGHT, DARK])
def test_points_of_the_curve_carry_tau(colors):
    figure = frontier_figure(view(), colors)
    targets = [trace for trace in figure.data if trace.customdata is not None]
    assert len(targets) == 1
    assert targets[0].customdata[0] == 0.0
    assert 100 <= len(targets[0].customdata) <= 400


def test_markup_in_a_model_name_is_shown_as_text():
    notes = [note.text for note in frontier_figure(view(), LIGHT).layout.annotations]
    assert "&lt;b&gt;small&lt;/b&gt;" in notes


@pytest.mark.parametrize("curve", ["beside", "pinned_curve"])
def test_a_name_stands_beside_every_curve(curve):
    level = CurveLine(np.linspace(0.1, 0.5, 300), np.full(300, 72.0), np.linspace(0, 1, 300))
    spots = (*view().models, Spot("third", 0.4, 72.0))
    shifts = []
    for drawn in (None, level):
        notes = frontier_figure(view(models=spots, **{curve: drawn}), LIGHT).layout.annotations
        shifts += [note.yshift for note in notes if note.text == "third"]
    assert shifts[0] == 0
    assert abs(shifts[1]) > 8


def test_axes_do_not_move_with_the_operating_point():
    one = frontier_figure(view(), LIGHT).layout
    other = frontier_figure(view(selected=Spot("τ 0.9", 0.14, 72.0)), LIGHT).layout
    assert one.xaxis.range == other.xaxis.range
    assert one.yaxis.range == other.yaxis.range


def test_one_value_alone_has_an_axis_from_0():
    for value, axis in ((100.0, (0, 100)), (0.0, (0, 1)), (-40.0, (-40, 0)), (0.02, (0, 0.02))):
        low, high = with_room([value, np.nan], 0.1)
        room = 0.1 * (axis[1] - axis[0])
        assert (low, high) == pytest.approx((axis[0] - room, axis[1] + room))


def test_pinned_policy_has_its_own_marker_and_curve():
    tau = np.linspace(0, 1, 10)
    ghost = CurveLine(0.5 - 0.4 * tau, 88 - 20 * tau, tau)
    figure = frontier_figure(view(pinned=Spot("pinned", 0.4, 85.0), pinned_curve=ghost), LIGHT)
    assert "Pinned policy" in [trace.name for trace in figure.data]


def test_an_imported_policy_is_a_named_point_that_widens_the_axes():
    figure = frontier_figure(view(imported=(Spot("their <router>", 0.9, 60.0),)), LIGHT)
    (square,) = [trace for trace in figure.data if trace.marker.symbol == "square"]
    assert (square.x[0], square.y[0], square.text[0]) == (0.9, 60.0, "their &lt;router&gt;")
    assert "%{text}" in square.hovertemplate
    assert "their &lt;router&gt;" in [note.text for note in figure.layout.annotations]
    assert figure.layout.xaxis.range[1] > 0.9


def test_shares_stack_and_mark_tau():
    shares = np.array([[0.2, 0.8], [1.0, 0.0]])
    figure = shares_figure(SharesView(("a", "b"), np.array([0.0, 1.0]), shares, 0.25), LIGHT)
    assert [trace.stackgroup for trace in figure.data] == ["traffic", "traffic"]
    assert figure.layout.shapes[0].x0 == 0.25


def test_a_long_name_leaves_room_for_the_traffic_and_is_whole_in_its_file():
    long = "large-model-name-2026-10-31-preview-experimental"
    shares = np.full((2, 2), 0.5)
    figure = shares_figure(SharesView(("a", long), np.array([0.0, 1.0]), shares, 0.25), LIGHT)
    assert [trace.meta for trace in figure.data] == ["a", long]
    assert figure.data[0].name == "a"
    assert len(figure.data[1].name) < 30
    assert "…" in figure.data[1].name


def test_effort_levels_stand_together_in_the_legend():
    view = SharesView(
        ("a", "b", "b-high"), np.array([0.0, 1.0]), np.full((2, 3), 1 / 3), 0.25,
        bases=("a", "b", "b"),
    )  # fmt: skip
    found = shares_figure(view, LIGHT).data
    assert [trace.legendgroup for trace in found] == [None, "b", "b"]
    assert found[1].legendgrouptitle.text == "b, by effort"
    assert [trace.legendrank for trace in found] == [1000, 999, 998]


def test_palette_follows_the_theme():
    assert palette("dark") is DARK
    assert palette(None) is LIGHT
