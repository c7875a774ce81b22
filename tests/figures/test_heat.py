"""Numbers on coloured cells can be read, whatever the cell's colour."""

import numpy as np
import pytest
from plotly.colors import hex_to_rgb, label_rgb, sample_colorscale, unlabel_rgb

from hydra_core.figures.heat import HeatView, heat_figure
from hydra_core.figures.theme import DARK, LIGHT


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
