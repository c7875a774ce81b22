"""Where to put the labels of a few points so that none covers another, a point or a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

#: Directions of a label from its point, the preferred first; y points up.
_SIDES = ((1, 0), (0, 1), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))
#: Gaps between point and label in pixels; all but the nearest get a leader line.
_GAPS = (11.0, 28.0, 46.0)
#: Further ones for labels that would cover another one at all of these.
_FAR_GAPS = (70.0, 100.0, 140.0, 190.0)
_NEAR = _GAPS[0]
#: The price of a label that covers another one.
_COVERS = 100.0
_CHAR_PX = 6.7
_LINE_PX = 17.0

#: So many points have room for long names.
_FEW = 8

#: Where a leader line is looked at, as shares of its length.
_ALONG = np.linspace(0.2, 0.9, 8)[:, None]

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Label:
    """A label at a point; x and y in pixels of the plot area from its lower left corner."""

    text: str
    x: float
    y: float
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Placement:
    """Offset of a label's centre from its point in pixels, y up; `far` wants a leader line."""

    dx: float
    dy: float
    far: bool


def longest(count: int) -> float:
    """How wide one of so many names may be, in pixels: more of them leave less room for each."""
    return 220.0 if count <= _FEW else 150.0


def place(
    labels: Sequence[Label],
    obstacles: npt.NDArray[np.float64],
    width: float,
    height: float,
) -> list[Placement]:
    """A placement for every label, greedily: the largest first, then the most crowded point.

    Args:
        obstacles: (p, 2) pixels that should stay uncovered, such as points of a line.
        width, height: Of the plot area in pixels.
    """
    points = np.asarray([[label.x, label.y] for label in labels]).reshape(-1, 2)
    apart = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    taken: list[Box] = []
    chosen: dict[int, Placement] = {}
    nearest = np.sort(apart, axis=1)[:, 1:2].sum(axis=1)
    for i in np.lexsort((nearest, [-label.scale for label in labels])):
        own = points[i]
        others = np.concatenate([np.delete(points, i, axis=0), obstacles.reshape(-1, 2)])
        near_own = np.hypot(*(others - own).T) < _NEAR - 2
        options: list[Placement] = []
        costs: list[float] = []
        for gaps in (_GAPS, _FAR_GAPS):
            options += _options(labels[i], gaps)
            costs += [
                _cost(_box(labels[i], option), others[~near_own], taken, width, height)
                + _crossings(labels[i], option, taken)
                + rank * 0.02
                for rank, option in enumerate(options[len(costs) :], len(costs))
            ]
            if min(costs) < _COVERS:
                break
        best = options[int(np.argmin(costs))]
        chosen[int(i)] = best
        taken.append(_box(labels[i], best))
    return [chosen[i] for i in range(len(labels))]


def label_notes(
    labels: Sequence[Label],
    placements: Sequence[Placement],
    at: Sequence[tuple[float, float]],
    style: Sequence[dict[str, Any]],
    line: str,
) -> list[dict[str, Any]]:
    """Plotly annotations for placed labels.

    Args:
        at: Data coordinates of every point.
        style: Plotly font of every label.
        line: Colour of leader lines.
    """
    result = []
    for label, spot, (x, y), font in zip(labels, placements, at, style, strict=True):
        note: dict[str, Any] = {"x": x, "y": y, "text": label.text, "font": font}
        if spot.far:
            note |= {
                "showarrow": True, "arrowhead": 0, "arrowwidth": 1, "arrowcolor": line,
                "ax": spot.dx, "ay": -spot.dy, "standoff": 8, "borderpad": 1,
            }  # fmt: skip
        else:
            note |= {"showarrow": False, "xshift": spot.dx, "yshift": spot.dy}
        result.append(note)
    return result


def _options(label: Label, gaps: Sequence[float]) -> list[Placement]:
    wide, tall = _size(label)
    return [
        Placement(
            sx * (wide / 2 + (gap if not sy else gap * 0.5)),
            sy * (tall / 2 + (gap - 2 if not sx else gap * 0.55)),
            gap > _NEAR,
        )
        for gap in gaps
        for sx, sy in _SIDES
    ]


def _size(label: Label) -> tuple[float, float]:
    return len(label.text) * _CHAR_PX * label.scale, _LINE_PX * label.scale


def _box(label: Label, spot: Placement) -> Box:
    """(left, right, bottom, top) of a placed label."""
    wide, tall = _size(label)
    x, y = label.x + spot.dx, label.y + spot.dy
    return x - wide / 2, x + wide / 2, y - tall / 2, y + tall / 2


def _crossings(label: Label, spot: Placement, taken: Sequence[Box]) -> float:
    """The price of a leader line that runs through labels placed before."""
    left, right, bottom, top = np.asarray(taken).reshape(-1, 4).T
    x, y = (_ALONG * spot.dx + label.x), (_ALONG * spot.dy + label.y)
    hit = (x > left) & (x < right) & (y > bottom) & (y < top)
    return 50.0 * float(hit.any(axis=0).sum())


def _cost(
    box: Box,
    points: npt.NDArray[np.float64],
    taken: Sequence[Box],
    width: float,
    height: float,
) -> float:
    left, right, bottom, top = box
    inside = (
        (points[:, 0] > left - 4)
        & (points[:, 0] < right + 4)
        & (points[:, 1] > bottom - 2)
        & (points[:, 1] < top + 2)
    )
    cost = float(min(inside.sum(), 20))
    for other in taken:
        if left < other[1] and other[0] < right and bottom < other[3] and other[2] < top:
            cost += _COVERS
    outside = max(0.0, -left, right - width, -bottom, top - height)
    return cost + 10.0 * outside
