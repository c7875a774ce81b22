"""The figures' palette and base layout; the hex values repeat `.streamlit/config.toml`."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_PART_END = re.compile("[-/_. :]")
#: Pixels of a letter at the size of the axes, on average.
CHAR_PX = 7
FONT = "'Source Sans', 'Source Sans 3', 'Source Sans Pro', sans-serif"


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of one theme as CSS hex values.

    Attributes:
        ink: Text and strong lines.
        muted: Axis text and secondary lines.
        grid: Grid lines, barely there.
        surface: The page behind the figure.
        accent: The router: its curve and its operating point.
        ghost: The pinned policy.
        oracle: The oracle star.
        warn: Small samples and missing data.
        models: Categorical colours for models.
        order: Every model known, in an order that no price changes: it gives each its colour.
    """

    name: str
    ink: str
    muted: str
    grid: str
    surface: str
    accent: str
    ghost: str
    oracle: str
    warn: str
    models: tuple[str, ...]
    order: tuple[str, ...] = ()


LIGHT = Palette(
    name="light",
    ink="#0C161D",
    muted="#5D6E7A",
    grid="#E9EEF0",
    surface="#FFFFFF",
    accent="#0E6B6B",
    ghost="#7B5EA7",
    oracle="#B8860B",
    warn="#C0701A",
    models=(
        "#3C78B4", "#D8922A", "#B9503B", "#7B5EA7", "#6E8B3D", "#C06A94",
        "#4B9FB5", "#8C6D46", "#5D6E7A", "#A3A33A", "#3F8F6B", "#96586B",
    ),
)  # fmt: skip

DARK = Palette(
    name="dark",
    ink="#E2EAEE",
    muted="#93A4AF",
    grid="#212D35",
    surface="#10171C",
    accent="#45B5AC",
    ghost="#AE94DA",
    oracle="#E8C25C",
    warn="#E5A35A",
    models=(
        "#6FA8DC", "#E8B25C", "#E0846D", "#AE94DA", "#A5C072", "#E09BBF",
        "#7CC6D8", "#C2A078", "#93A4AF", "#CFCF6E", "#74C39F", "#CB90A2",
    ),
)  # fmt: skip


def palette(kind: str | None) -> Palette:
    """The palette of a theme type, `"dark"` or anything else for light."""
    return DARK if kind == "dark" else LIGHT


def model_colors(models: Sequence[str], colors: Palette) -> dict[str, str]:
    """Model id -> colour, the same in every figure whatever order the models are drawn in.

    A model that `colors.order` does not know comes after those it does, by name. No two of
    `models` share a colour while there are enough.
    """
    place = {model: i for i, model in enumerate(colors.order)}
    unknown = sorted(set(models) - place.keys())
    place |= {model: len(colors.order) + i for i, model in enumerate(unknown)}
    count = len(colors.models)
    taken: dict[int, str] = {}
    for model in sorted(set(models), key=place.__getitem__):
        slots = [(place[model] + step) % count for step in range(count)]
        slot = next((one for one in slots if one not in taken), slots[0])
        taken[slot] = taken.get(slot, model)
        place[model] = slot
    return {model: colors.models[place[model]] for model in models}


def tint(color: str, opacity: float) -> str:
    """A hex colour made translucent, as CSS rgba."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def drawn(values: ArrayLike) -> NDArray[np.float32]:
    """Coordinates in half the bytes: seven digits are more than a pixel can show."""
    return np.asarray(values, dtype=np.float32)


def plain(text: str) -> str:
    """Text that plotly draws as it stands; its labels would read markup otherwise."""
    return html.escape(text, quote=False)


def base_layout(colors: Palette, *, height: int, x: str = "", y: str = "") -> dict[str, Any]:
    """Layout every figure starts from: no title, quiet axes, fixed margins.

    Margins that plotly works out itself cost another layout pass in the browser. A plain dict,
    because a figure made in one go is validated once.

    Args:
        x, y: Titles of the axes.
    """
    quiet = {"color": colors.muted, "size": 13}
    xaxis, yaxis = (
        {
            "gridcolor": colors.grid,
            "linecolor": colors.grid,
            "zeroline": False,
            "showline": False,
            "ticks": "",
            "tickfont": quiet,
            "title": {"font": quiet, "standoff": 10, "text": title},
            "fixedrange": True,
        }
        for title in (x, y)
    )
    return {
        "template": {},  # plotly's own costs 7 KB and twice the time to draw
        "height": height,
        "margin": {"l": 70, "r": 12, "t": 8, "b": 52},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "color": colors.ink, "size": 13},
        "xaxis": xaxis,
        "yaxis": yaxis,
        "hoverlabel": {
            "bgcolor": colors.surface,
            "bordercolor": colors.grid,
            "font": {"color": colors.ink, "size": 13, "family": FONT},
            "align": "left",
        },
        "hovermode": "closest",
        "dragmode": False,
        "showlegend": False,
    }


def legend(color: str, **place: object) -> dict[str, Any]:
    """A legend that no click changes, at a place as plotly names it."""
    font = {"size": 13, "color": color}
    return {"font": font, "itemclick": False, "itemdoubleclick": False, **place}


def legend_above(color: str) -> dict[str, Any]:
    """A legend in one row over the plot."""
    return legend(
        color, orientation="h", x=0, y=1.0, yanchor="bottom", xanchor="left",
        bgcolor="rgba(0,0,0,0)",
    )  # fmt: skip


def clickable(opacity: int, **marker: object) -> dict[str, Any]:
    """A trace's marker that looks the same whether it is clicked or another one is."""
    same = {"marker": {"opacity": opacity}}
    return {"marker": {**marker, "opacity": opacity}, "selected": same, "unselected": same}


def note(x: float, y: float, text: str, color: str, **place: object) -> dict[str, Any]:
    """A text in the plot, without an arrow."""
    font = {"color": color, "size": 13}
    return {"x": x, "y": y, "text": text, "showarrow": False, "font": font, **place}


def straight(
    x: tuple[float, float], y: tuple[float, float], color: str, width: float, **place: object
) -> dict[str, Any]:
    """A straight line in the plot, from the first x and y to the second."""
    ends = {"x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1]}
    return {"type": "line", **ends, "line": {"color": color, "width": width}, **place}


def dashed(
    x: tuple[float, float], y: tuple[float, float], colors: Palette, **place: object
) -> dict[str, Any]:
    """A quiet line to compare with."""
    shape = straight(x, y, colors.muted, 1.5, **place)
    shape["line"]["dash"] = "dash"
    return shape


def with_room(values: ArrayLike, room: float) -> list[float]:
    """An axis from the least to the largest finite value, and this share of it on either side.

    One value alone has an axis from 0, so that no share is marked above 100 %, no cost below $0.
    """
    known = np.ravel(np.asarray(values, dtype=np.float64))
    known = known[np.isfinite(known)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    if low == high:
        low, high = min(low, 0.0), max(high, 0.0 if low else 1.0)
    pad = room * (high - low)
    return [low - pad, high + pad]


def cut(name: str, most: int) -> str:
    """A name of at most `most` characters: of a longer one, how it begins and ends."""
    if len(name) <= most:
        return name
    end = (most - 1) // 2
    return f"{name[: most - 1 - end]}…{name[-end:]}"


def apart(names: Iterable[str], most: int) -> dict[str, str]:
    """Names of at most `most` characters: long ones without what all of them begin with, and those
    that would still read alike from where they part."""
    whole = {name: name for name in names}
    return whole | _parted([name for name in whole if len(name) > most], most, 0)


def _parted(names: list[str], most: int, skip: int) -> dict[str, str]:
    """These long names without their first `skip` characters, or without more of them.

    Of names with one head and one last word, as `…claude-…-high`, the difference lies in between.
    """
    shared = commonprefix(names) if len(names) > 1 else ""
    words = max((found.end() for found in _PART_END.finditer(shared)), default=0)
    begin = max(words if words > skip else len(shared), skip)
    shown, alike = dict[str, str](), defaultdict[tuple[str, str], list[str]](list)
    for name in names:
        room = _PART_END.search(name, len(name) - most, begin)  # for more of its last words
        start = room.end() if room else begin
        shown[name] = cut(name if start <= 3 else f"…{name[start:]}", most)
        alike[shown[name][: most // 2], _PART_END.split(name)[-1]].append(name)
    for group in alike.values():
        if len(group) > 1 and (begin > skip or len(group) < len(names)):
            shown |= _parted(group, most, begin)
    return shown


def fitting(names: Iterable[str], pixels: float, among: Sequence[str] = ()) -> list[str]:
    """Names as plotly draws them, told apart `among` others too, in at most so many pixels."""
    names = list(names)
    shown = apart([*names, *among], max(int(pixels / CHAR_PX), 5))
    return [plain(shown[name]) for name in names]


def room(names: Sequence[str], most: int) -> int:
    """Pixels for the longest of these names, and no more than this."""
    return min(CHAR_PX * max(map(len, names), default=0), most)


def named_rows(names: Sequence[str], colors: Palette) -> dict[str, Any]:
    """A vertical axis of rows, the first on top, with their names as plotly reads them."""
    return {
        "range": [len(names) - 0.5, -0.5],
        "tickvals": list(range(len(names))),
        "ticktext": names,
        "tickfont": {"color": colors.ink, "size": 13},
        "showgrid": False,
    }


def line_in_band(
    x: ArrayLike, value: ArrayLike, low: ArrayLike, high: ArrayLike, color: str, **line: object
) -> list[dict[str, Any]]:
    """A line over the band between its bounds; `line` as plotly names it."""
    common = {"type": "scatter", "mode": "lines", "x": x}
    edge = {**common, "line": {"width": 0}, "hoverinfo": "skip"}
    band = {**edge, "y": low, "fill": "tonexty", "fillcolor": tint(color, 0.16)}
    drawn = {**common, "y": value, "line": {"color": color, "width": 2.5}, **line}
    return [{**edge, "y": high}, band, drawn]


def row_a_model(layout: dict[str, Any], models: Sequence[str], *, right: int, below: int) -> None:
    """Make the vertical axis one row per model, the first on top; margins are in pixels."""
    wide = room(models, 190)
    layout["margin"] = {"l": wide + 20, "r": right, "t": 8, "b": below}
    layout["yaxis"] |= {
        "autorange": "reversed", "tickvals": list(range(len(models))), "showgrid": False,
        "ticktext": fitting(models, wide),
        "ticklabelstandoff": 7,  # a dot at 0 would lie on the end of a name
    }  # fmt: skip
