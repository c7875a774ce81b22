"""The strip of a decision: which model is chosen for every tau or V, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from hydra_core.base.spelling import short_number
from hydra_core.base.types import FloatArray
from hydra_core.console.figures.theme import (
    Palette,
    base_layout,
    clickable,
    model_colors,
    note,
    plain,
    straight,
)

#: Positions along a strip that can be clicked.
_TARGETS = 240
#: Width that labels are laid out for, in pixels, and of one letter.
_WIDTH, _LETTER = 820.0, 7.2
#: Room right of the axis, in pixels.
MARGIN = 12


@dataclass(frozen=True, slots=True)
class Part:
    """A model's stretch of the knob, from start to end; the last one has no end."""

    model: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Strip:
    """The parts of one message, ascending in the knob; `label` is empty where there is only one."""

    label: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """How the knob is drawn: tau as it is, V by its logarithm.

    Attributes:
        symbol: τ or V.
        least: Where a logarithmic axis begins; 0 for a linear one.
    """

    symbol: str
    title: str
    least: float = 0.0

    def place(self, knob: float) -> float:
        """Where a setting lies on the axis, from 0."""
        if not self.least:
            return knob
        return max(float(np.log10(knob / self.least)), 0.0) if knob > 0 else 0.0

    def back(self, places: FloatArray) -> FloatArray:
        """The settings at places on the axis."""
        return self.least * 10.0**places if self.least else places

    def text(self, knob: float, digits: int = 3) -> str:
        """A setting for people."""
        if not self.least:
            return f"{knob:.{digits}f}"
        shown = np.format_float_positional(knob, precision=3, fractional=False, trim="-")
        return f"${shown}"


TAU = Scale("τ", "τ, largest acceptable shortfall")


def strip_figure(
    strips: Sequence[Strip],
    models: tuple[str, ...],
    knob: float,
    colors: Palette,
    scale: Scale = TAU,
) -> go.Figure:
    """One band per message, a line at the current setting; targets carry it as `customdata`."""
    named = f"τ {short_number(knob)}" if scale is TAU else f"{scale.symbol} {scale.text(knob)}"
    top = strip_end(strips, scale, knob)
    strips = _placed(strips, scale)
    tau = scale.place(knob)
    tints = model_colors(models, colors)
    ticks = _ticks(strips, top)
    layout = base_layout(colors, height=82 + 44 * len(strips), x=scale.title)
    layout["xaxis"] |= {
        "range": [0, top],
        "tickvals": ticks,
        "ticktext": [_text(scale, tick) for tick in ticks],
        "ticklabeloverflow": "allow",
        "showgrid": False,
    }
    layout["yaxis"] |= {
        "range": [len(strips) - 0.5, -0.5],
        "tickvals": list(range(len(strips))),
        "ticktext": [plain(strip.label) for strip in strips],
        "showgrid": False,
    }
    layout |= {
        "margin": {"l": strip_left(strips), "r": MARGIN, "t": 26, "b": 46},
        "barmode": "overlay",
        "clickmode": "event+select",
        "shapes": [straight((tau, tau), (-0.02, 1.02), colors.ink, 2.5, yref="paper")],
        "annotations": [*_labels(strips, top, tau, colors), _flag(tau, named, top, colors)],
    }
    bars = [_bar(row, part, top, tints, scale) for row, s in enumerate(strips) for part in s.parts]
    return go.Figure({"data": [*bars, _targets(strips, top, colors, scale)], "layout": layout})


def strip_left(strips: Sequence[Strip]) -> int:
    """Room left of the axis, in pixels; more where the strips have names."""
    return 34 if any(strip.label for strip in strips) else 20


def strip_end(strips: Sequence[Strip], scale: Scale, knob: float) -> float:
    """Where the axis ends: beyond the last boundary, so that the open part is seen.

    A knob within that does not move the axis: it would slip from under the hand.
    """
    last = max(strip.parts[-1].start for strip in _placed(strips, scale))
    return max(1.25 * last, 1.02 * scale.place(knob), 0.02)


def _placed(strips: Sequence[Strip], scale: Scale) -> list[Strip]:
    """The strips in places of the axis."""
    return [
        Strip(
            one.label, tuple(Part(p.model, *map(scale.place, (p.start, p.end))) for p in one.parts)
        )
        for one in strips
    ]


def _ticks(strips: Sequence[Strip], top: float) -> list[float]:
    """0 and the boundaries, those that would overlap left out."""
    kept = [0.0]
    for edge in sorted({part.start for strip in strips for part in strip.parts}):
        if edge - kept[-1] > 0.06 * top:
            kept.append(edge)
    return kept


def _text(scale: Scale, place: float, digits: int = 3) -> str:
    """The setting at a place of the axis; a logarithmic one begins with everything from 0."""
    if scale.least and not place:
        return "$0"
    return scale.text(float(scale.back(np.asarray(place))), digits)


def _bar(row: int, part: Part, top: float, tints: dict[str, str], scale: Scale) -> dict[str, Any]:
    end = min(part.end, top)
    until = f"up to {_text(scale, part.end, 4)}" if np.isfinite(part.end) else "and above"
    begin = f"{scale.symbol} {_text(scale, part.start, 4)}"
    return {
        "type": "bar",
        "orientation": "h",
        "name": plain(part.model),
        "y": [row],
        "base": [part.start],
        "x": [end - part.start],
        "width": 0.72,
        **clickable(1, color=tints[part.model], line={"width": 0}),
        "hovertemplate": f"<b>{plain(part.model)}</b><br>{begin} {until}<extra></extra>",
    }


def _targets(strips: Sequence[Strip], top: float, colors: Palette, scale: Scale) -> dict[str, Any]:
    """Invisible points to click, so that any setting can be taken, not only a part."""
    taus = np.linspace(0.0, top, _TARGETS)
    names = [[_at(strip, tau) for tau in taus] for strip in strips]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "knob",
        "x": np.tile(taus, len(strips)),
        "y": np.repeat(np.arange(len(strips)), len(taus)),
        "customdata": np.tile(scale.back(taus), len(strips)),
        "text": [plain(name) for row in names for name in row],
        **clickable(0, size=26, symbol="square", color=colors.accent),
        "hovertemplate": f"<b>%{{text}}</b> at {scale.symbol} %{{customdata:.3~g}}<br>"
        "<i>click to set</i><extra></extra>",
    }


def _at(strip: Strip, tau: float) -> str:
    return next((p.model for p in reversed(strip.parts) if p.start <= tau), strip.parts[0].model)


def _flag(tau: float, named: str, top: float, colors: Palette) -> dict[str, Any]:
    anchor = "left" if tau < 0.06 * top else "right" if tau > 0.94 * top else "center"
    place = {"yref": "paper", "yanchor": "bottom", "xanchor": anchor}
    return note(tau, 1.02, f"<b>{named}</b>", colors.ink, **place)


def _labels(
    strips: Sequence[Strip], top: float, tau: float, colors: Palette
) -> list[dict[str, Any]]:
    """Model names inside the parts that are wide enough, clear of the line at tau."""
    notes = []
    for row, strip in enumerate(strips):
        for part in strip.parts:
            start, end = _clear(part.start, min(part.end, top), tau, len(part.model), top)
            if (end - start) / top * _WIDTH > len(part.model) * _LETTER + 10:
                text = f"<b>{plain(part.model)}</b>"
                notes.append(note((start + end) / 2, row, text, colors.surface))
    return notes


def _clear(start: float, end: float, tau: float, letters: int, top: float) -> tuple[float, float]:
    """The stretch to centre a name in: the whole part, or the larger side of the line at tau."""
    half = (letters * _LETTER / 2 + 8) / _WIDTH * top
    if not start < tau < end or abs((start + end) / 2 - tau) > half:
        return start, end
    return (start, tau) if tau - start > end - tau else (tau, end)
