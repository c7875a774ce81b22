"""What a message requires, dimension by dimension, on the predictor's score bands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from hydra_core.base.types import Band, FloatArray
from hydra_core.console.figures.theme import Palette, base_layout, model_colors, plain

_LEGEND_COLUMNS = 2
#: Pixels of an entry; the figure is drawn about 560 wide.
_LEGEND_WIDTH = 140


@dataclass(frozen=True, slots=True)
class Need:
    """One message's requirements (K,), with its label."""

    label: str
    values: FloatArray


@dataclass(frozen=True, slots=True)
class RequirementsView:
    """Requirements of one or two messages beside what the models offer.

    Attributes:
        dimensions: (K,) names.
        bands: (K,) the predictor's score bands.
        needs: One or two.
        models: (m,) ids in cost order.
        capabilities: (m, K).
        chosen: The chosen model of the first message.
    """

    dimensions: tuple[str, ...]
    bands: tuple[Band, ...]
    needs: tuple[Need, ...]
    models: tuple[str, ...]
    capabilities: FloatArray
    chosen: str


def requirements_figure(view: RequirementsView, colors: Palette) -> go.Figure:
    """A row per dimension: band, requirement bar, and a tick for every model's capability."""
    names = [plain(name.replace("_", " ").capitalize()) for name in view.dimensions]
    rows = np.arange(len(names), dtype=np.float64)
    top = _top(view)
    entries = 1 + len(view.needs) + len(view.models)
    legend = 22 * -(-entries // _LEGEND_COLUMNS)
    rows_height = (52 + 12 * (len(view.needs) - 1)) * len(names)
    layout = base_layout(colors, height=36 + legend + rows_height)
    layout["xaxis"] |= {
        "range": [0, top],
        "nticks": 6,
        "tickformat": ".2~f",
        "ticklabeloverflow": "allow",
    }
    layout["yaxis"] |= {
        "range": [len(names) - 0.45, -0.62],
        "tickvals": rows,
        "ticktext": names,
        "showgrid": False,
        "ticklabelstandoff": 8,
        "tickfont": {"color": colors.ink, "size": 13},
    }
    layout |= {
        "margin": {"l": 122, "r": 56, "t": legend + 8, "b": 28},
        "barmode": "overlay",
        "showlegend": True,
        "legend": {
            "orientation": "h", "xref": "container", "x": 0, "yref": "container", "y": 1,
            "yanchor": "top", "entrywidth": _LEGEND_WIDTH,
            "itemclick": False, "itemdoubleclick": False,
            "font": {"size": 12, "color": colors.muted},
        },
        "annotations": _values(view, rows, colors),
    }  # fmt: skip
    traces = [_bands(view, rows, colors), *_bars(view, rows, colors)]
    return go.Figure({"data": [*traces, *_models(view, rows, colors)], "layout": layout})


def _top(view: RequirementsView) -> float:
    """Where the axis ends: all needs, bands and capabilities with a little room."""
    highest = [view.capabilities.max(initial=0.05), *(band.hi for band in view.bands)]
    return min(
        1.0, 1.06 * max(*map(float, highest), *(float(need.values.max()) for need in view.needs))
    )


def _bands(view: RequirementsView, rows: FloatArray, colors: Palette) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "y": rows,
        "base": [band.lo for band in view.bands],
        "x": [band.width for band in view.bands],
        "width": 0.62,
        "marker": {"color": colors.grid, "cornerradius": 4},
        "name": "score band",
        "customdata": [[band.lo, band.hi] for band in view.bands],
        "hovertemplate": "Band %{customdata[0]:.2f} to %{customdata[1]:.2f}<extra></extra>",
    }


def _bars(view: RequirementsView, rows: FloatArray, colors: Palette) -> list[dict[str, Any]]:
    tints = (colors.accent, colors.ghost)
    width = 0.34 / len(view.needs)
    return [
        {
            "type": "bar",
            "orientation": "h",
            "y": rows + _offset(i, len(view.needs)),
            "x": need.values,
            "width": width,
            "marker": {"color": tints[i % 2], "cornerradius": 3},
            "name": plain(need.label),
            "hovertemplate": f"{plain(need.label)}: %{{x:.3f}}<extra></extra>",
        }
        for i, need in enumerate(view.needs)
    ]


def _offset(i: int, count: int) -> float:
    return 0.0 if count == 1 else (-0.1, 0.1)[i]


def _models(view: RequirementsView, rows: FloatArray, colors: Palette) -> list[dict[str, Any]]:
    """A tick per model and dimension; the chosen model's is a diamond."""
    tints = model_colors(view.models, colors)
    traces = []
    for i, model in enumerate(view.models):
        chosen = model == view.chosen
        marker = {"color": tints[model], "line": {"color": tints[model], "width": 2.5}}
        form = {"symbol": "diamond", "size": 11} if chosen else {"symbol": "line-ns", "size": 22}
        outline = {"line": {"color": colors.surface, "width": 1.5}} if chosen else {}
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": view.capabilities[i],
                "y": rows,
                "marker": {**marker, **form, **outline},
                "name": f"{plain(model)} (chosen)" if chosen else plain(model),
                "cliponaxis": False,
                "hovertemplate": f"<b>{plain(model)}</b> offers %{{x:.3f}}<extra></extra>",
            }
        )
    return traces


def _values(view: RequirementsView, rows: FloatArray, colors: Palette) -> list[dict[str, Any]]:
    """The numbers at the right edge."""
    tints = (colors.accent, colors.ghost)
    notes = []
    for i, need in enumerate(view.needs):
        for row, value in zip(rows, need.values, strict=True):
            notes.append(
                {
                    "x": 1.0, "xref": "paper", "xanchor": "left", "xshift": 8,
                    "y": row + 2.2 * _offset(i, len(view.needs)), "showarrow": False,
                    "text": f"<b>{value:.2f}</b>",
                    "font": {"color": tints[i % 2], "size": 14},
                }
            )  # fmt: skip
    return notes
