"""Quality retention by language against the number of queries: a funnel that flags small n."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from hydra_core.base.types import FloatArray
from hydra_core.console.figures.theme import Palette, base_layout, plain


@dataclass(frozen=True, slots=True)
class LanguagesView:
    """Rows in drawing order, all (l,): QR in percent with its 95 % bounds, and queries.

    Attributes:
        overall: QR of all queries in percent.
        small: (l,) True where n is too small to say much.
    """

    names: tuple[str, ...]
    n: FloatArray
    qr: FloatArray
    low: FloatArray
    high: FloatArray
    overall: float
    small: FloatArray


def languages_figure(view: LanguagesView, colors: Palette) -> go.Figure:
    """One row per language: QR with its interval, the overall QR as a line."""
    height = 84 + 26 * len(view.names)
    figure = go.Figure(layout=base_layout(colors, height=height))
    figure.update_layout(margin={"l": 190, "t": 28})
    tint = np.where(np.asarray(view.small, dtype=bool), colors.warn, colors.accent)
    names = [f"{plain(name)}  <i>n {n:.0f}</i>" for name, n in zip(view.names, view.n, strict=True)]
    for i, name in enumerate(names):
        figure.add_scatter(
            x=[view.low[i], view.high[i]], y=[name, name], mode="lines", hoverinfo="skip",
            line={"color": tint[i], "width": 5}, opacity=0.35,
        )  # fmt: skip
    figure.add_scatter(
        x=view.qr,
        y=names,
        mode="markers",
        marker={"size": 10, "color": tint.tolist()},
        customdata=np.stack([view.low, view.high], axis=1),
        hovertemplate="<b>%{y}</b><br>QR %{x:.1f} % [%{customdata[0]:.1f}, "
        "%{customdata[1]:.1f}]<extra></extra>",
    )
    figure.add_vline(x=view.overall, line={"color": colors.muted, "width": 1.5, "dash": "dash"})
    figure.add_annotation(
        x=view.overall, y=1, yref="paper", yanchor="bottom", showarrow=False,
        text=f"all {view.overall:.1f} %", font={"color": colors.muted, "size": 13},
    )  # fmt: skip
    figure.update_yaxes(autorange="reversed", showgrid=False, tickfont_color=colors.ink)
    low, high = float(view.low.min()), float(view.high.max())
    room = 0.04 * ((high - low) or 1.0)
    figure.update_xaxes(
        title_text="Quality retention (QR), 95 % interval",
        ticksuffix=" %",
        range=[low - room, high + room],
    )
    return figure
