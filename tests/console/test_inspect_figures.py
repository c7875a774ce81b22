"""The figures of Inspect and Conversation: exact where they are exact, and no markup in names."""

import numpy as np

from hydra_core.base.types import Band
from hydra_core.console.figures.strip import Part, Strip, strip_figure
from hydra_core.console.figures.theme import LIGHT
from hydra_core.console.inspect.figures import (
    Lane,
    RequirementsView,
    Stop,
    lanes_figure,
    requirements_figure,
)
from hydra_core.console.inspect.state import Inspecting

NASTY = "<b>m</b>"


def texts(figure):
    """Everything that plotly would draw as text."""
    told = [note.text for note in figure.layout.annotations]
    told += [str(trace.name or "") + str(trace.hovertemplate or "") for trace in figure.data]
    return " ".join(told)


def strip(tau, *parts):
    return strip_figure([Strip("", tuple(Part(*part) for part in parts))], ("a", "b"), tau, LIGHT)


def test_the_strip_draws_each_part_from_its_start_and_the_last_to_the_edge():
    figure = strip(0.1, ("b", 0.0, 0.3), ("a", 0.3, np.inf))
    bars = figure.data[:2]
    assert [bar.base[0] for bar in bars] == [0.0, 0.3]
    assert np.isclose(bars[0].x[0], 0.3)
    assert np.isclose(0.3 + bars[1].x[0], figure.layout.xaxis.range[1])
    assert list(figure.layout.xaxis.tickvals) == [0.0, 0.3]


def test_tau_is_always_on_the_strip():
    for tau in (0.0, 0.1, 5.0):
        figure = strip(tau, ("a", 0.0, np.inf))
        assert figure.layout.xaxis.range[0] <= tau < figure.layout.xaxis.range[1]


def test_a_click_target_names_the_model_at_its_tau():
    targets = strip(0.1, ("b", 0.0, 0.3), ("a", 0.3, np.inf)).data[-1]
    named = dict(zip(targets.customdata, targets.text, strict=True))
    assert all((name == "b") == (tau < 0.3) for tau, name in named.items())


def test_names_on_the_strip_and_the_lanes_are_no_markup():
    figure = strip_figure([Strip(NASTY, (Part(NASTY, 0.0, np.inf),))], (NASTY,), 0.1, LIGHT)
    assert NASTY not in texts(figure)
    stops = (Stop(NASTY, NASTY, False), Stop("", "refused", False))
    figure = lanes_figure([Lane(NASTY, stops, True)], (NASTY,), LIGHT, marks=(NASTY, ""))
    assert NASTY not in texts(figure)
    assert NASTY not in " ".join(figure.layout.yaxis.ticktext).removeprefix("<b>")


def test_requirements_bands_and_capabilities_are_drawn_as_they_are():
    view = RequirementsView(
        dimensions=("reasoning", NASTY),
        bands=(Band(0.1, 0.5), Band(0.0, 0.4)),
        needs={"A": np.array([0.3, 0.9]), "B": np.array([0.2, 0.1])},
        models=("a", NASTY),
        capabilities=np.array([[0.1, 0.2], [0.5, 0.4]]),
        chosen="a",
    )
    figure = requirements_figure(view, LIGHT)
    assert list(figure.data[0].base) == [0.1, 0.0]
    assert list(figure.data[1].x) == [0.3, 0.9]
    assert list(figure.data[3].x) == [0.1, 0.2]
    assert figure.layout.xaxis.range[1] >= 0.9
    assert NASTY not in texts(figure)


def test_earlier_context_stands_beside_the_messages_own_tokens():
    """As the service counts a request: window and long prices see both."""
    asked = Inspecting(context_tokens=100_000).query("x" * 400)
    assert asked.context_tokens == asked.input_tokens == 100_100
    assert Inspecting().query("x" * 400).input_tokens == 100
