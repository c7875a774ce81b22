"""What each benchmark adds to each model's raw capability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from hydra_core.base.types import FloatArray
from hydra_core.console.figures.theme import Palette, base_layout, plain, row_a_model


@dataclass(frozen=True, slots=True)
class ContributionsView:
    """Terms of one dimension's raw capability: `values` (m, B), NaN where there is no rate."""

    models: tuple[str, ...]
    benchmarks: tuple[str, ...]
    values: FloatArray


def contributions_figure(view: ContributionsView, colors: Palette) -> go.Figure:
    """One stacked bar per model, one part per benchmark, their sum at the end."""
    layout = base_layout(colors, height=36 * len(view.models) + 70)
    row_a_model(layout, view.models, right=170, below=50)
    layout["xaxis"]["title"] = {**layout["xaxis"]["title"], "text": "Raw capability"}
    layout |= {
        "barmode": "stack",
        "bargap": 0.35,
        "showlegend": True,
        "legend": {
            "x": 1.12, "y": 1, "traceorder": "normal", "itemclick": False,
            "itemdoubleclick": False, "font": {"size": 13, "color": colors.ink},
        },
    }  # fmt: skip
    totals = np.nansum(view.values, axis=1)
    layout["annotations"] = [
        {
            "x": total, "y": i, "xanchor": "left", "xshift": 6, "showarrow": False,
            "text": "no rates" if np.isnan(view.values[i]).all() else f"{total:.3f}",
            "font": {"color": colors.ink, "size": 13},
        }
        for i, total in enumerate(totals)
    ]  # fmt: skip
    traces = [
        {
            "type": "bar", "orientation": "h", "name": plain(benchmark),
            "x": np.nan_to_num(view.values[:, b]), "y": list(range(len(view.models))),
            "marker": {"color": colors.models[b % len(colors.models)]},
            "hovertemplate": f"<b>{plain(benchmark)}</b> %{{x:.4f}}<extra></extra>",
        }
        for b, benchmark in enumerate(view.benchmarks)
    ]  # fmt: skip
    return go.Figure({"data": traces, "layout": layout})
