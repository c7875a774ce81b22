"""Numbers on coloured cells can be read, whatever the cell's colour."""

import numpy as np
import pytest
from plotly.colors import hex_to_rgb, label_rgb, sample_colorscale, unlabel_rgb

from hydra_core.console.figures.heat import HeatView, heat_figure
from hydra_core.console.figures.theme import DARK, LIGHT


def luminance(rgb):
    parts = np.asarray(rgb) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize("colors", [LIGHT, DARK])
@pytest.mark.parametrize("low", [0.0, -1.0])
def test_every_number_stands_out_from_its_cell_as_wcag_asks(colors, low):
    values = np.linspace(low, 1, 41)
    texts = tuple(f"{value:.2f}" for value in values)
    names = tuple(map(str, range(41)))
    view = HeatView(("row",), names, values[None], (texts,), (texts,), (low, 1.0))
    figure = heat_figure(view, colors)
    places = (values - low) / (1 - low)
    scale = [[at, label_rgb(hex_to_rgb(color))] for at, color in figure.data[0].colorscale]
    cells = sample_colorscale(scale, list(places))
    for cell, note in zip(cells, figure.layout.annotations, strict=True):
        font = [int(note.font.color[i : i + 2], 16) for i in (1, 3, 5)]
        dark, light = sorted([luminance(unlabel_rgb(cell)), luminance(font)])
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def columns(*names):
    values, texts = np.zeros((1, len(names))), (("0",) * len(names),)
    figure = heat_figure(HeatView(("row",), names, values, texts, texts, (0.0, 1.0)), LIGHT)
    return figure.layout.xaxis, figure.layout.margin.t


def test_long_names_of_columns_are_broken_or_turned_and_have_their_room():
    short, low = columns("reasoning", "code generation")
    assert short.ticktext == ("reasoning", "code generation")
    broken, higher = columns("gpt-5.4", "claude-3-5-sonnet-20240620")
    assert broken.ticktext == ("gpt-5.4", "claude-3-5-<br>sonnet-<br>20240620")
    assert broken.tickangle == 0
    ids = [f"acme-gateway/anthropic/claude-{x}-thinking-{y}" for x in "ab" for y in ("low", "high")]
    lines = [text.split("<br>") for text in columns(*ids)[0].ticktext]
    assert max(map(len, lines)) <= 4
    assert len(set(map(tuple, lines))) == 4
    many, highest = columns(*["claude-3-5-sonnet-20240620"] * 8)
    assert (many.tickangle, many.ticktext[0]) == (-90, "claude-3-5-sonnet-20240620")
    assert low < higher < highest


def test_three_names_that_would_touch_in_a_narrow_card_are_broken_or_turned():
    names = ("llama-3-70b", "gpt-5.4-mini", "claude-haiku")
    values, texts = np.zeros((1, 3)), (("0",) * 3,)
    view = HeatView(("claude-3-5-sonnet-20240620",), names, values, texts, texts, (0.0, 1.0))
    wide, narrow = (heat_figure(view, LIGHT, width=width).layout.xaxis for width in (880, 450))
    assert wide.ticktext == names
    assert narrow.tickangle in (0, -90)
    room = (450 - 220 - 12) / 3
    longest = max(len(line) for text in narrow.ticktext for line in text.split("<br>"))
    assert narrow.tickangle == -90 or 7 * longest <= room
