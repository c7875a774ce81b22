"""Traffic by model over tau, quality by language with its funnel, and an eval set's models."""

from __future__ import annotations

from dataclasses import dataclass

import plotly.graph_objects as go

from hydra_core.figures.theme import Palette, base_layout, model_colors, plain
from hydra_core.types import FloatArray

__all__ = ["SharesView", "shares_figure"]


@dataclass(frozen=True, slots=True)
class SharesView:
    """Traffic shares: `tau` (t,) ascending, `shares` (t, m) with rows that sum to 1.

    Attributes:
        models: (m,) ids in the pool's cost order, cheapest first.
        selected: The current tau.
    """

    models: tuple[str, ...]
    tau: FloatArray
    shares: FloatArray
    selected: float


def shares_figure(view: SharesView, colors: Palette, *, height: int = 330) -> go.Figure:
    """Stacked areas of traffic by model as a function of tau, with a line at the current tau."""
    figure = go.Figure(layout=base_layout(colors, height=height))
    by_model = model_colors(view.models, colors)
    for i, model in enumerate(view.models):
        figure.add_scatter(
            x=view.tau,
            y=view.shares[:, i] * 100,
            name=plain(model),
            mode="lines",
            stackgroup="traffic",
            line={"width": 0.5, "color": colors.surface, "shape": "hv"},
            fillcolor=by_model[model],
            opacity=0.9,
            hovertemplate="%{y:.1f} %",
        )
    figure.add_vline(x=view.selected, line={"color": colors.ink, "width": 2})
    figure.add_annotation(
        x=view.selected, y=1, yref="paper", yanchor="bottom", showarrow=False,
        text=f"<b>τ {view.selected:.4g}</b>", font={"color": colors.ink, "size": 13},
    )  # fmt: skip
    figure.update_layout(
        hovermode="x unified",
        margin_t=26,
        showlegend=True,
        legend={
            "orientation": "v", "x": 1.01, "y": 1, "traceorder": "reversed",
            "font": {"color": colors.ink, "size": 13}, "itemclick": False,
            "itemdoubleclick": False,
        },
    )  # fmt: skip
    figure.update_xaxes(title_text="τ, largest acceptable shortfall", range=[0, view.tau[-1]])
    figure.update_yaxes(title_text="Traffic", range=[0, 100], ticksuffix=" %")
    return figure
