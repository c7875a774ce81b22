"""Where to put the labels of a few points so that none covers another or a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Label", "place"]

#: Offsets (dx, dy) of a label's centre from its point in label widths and heights; y points up.
_SIDES: tuple[tuple[str, float, float], ...] = (
    ("middle right", 0.5, 0.0),
    ("top center", 0.0, 0.5),
    ("bottom center", 0.0, -0.5),
    ("middle left", -0.5, 0.0),
    ("top right", 0.5, 0.5),
    ("bottom right", 0.5, -0.5),
    ("top left", -0.5, 0.5),
    ("bottom left", -0.5, -0.5),
)
_CHAR_PX = 7.0
_LINE_PX = 17.0
_GAP_PX = 9.0
_OUTSIDE = 1e4


@dataclass(frozen=True, slots=True)
class Label:
    """A label at a point; x and y in pixels of the plot area from its lower left corner."""

    text: str
    x: float
    y: float


def place(
    labels: Sequence[Label],
    obstacles: npt.NDArray[np.float64],
    width: float,
    height: float,
) -> list[str]:
    """A plotly `textposition` for every label, greedily, the most crowded label first.

    Args:
        labels: Points with their texts.
        obstacles: (p, 2) pixels that should stay uncovered, such as points of a line.
        width: Of the plot area in pixels.
        height: Of the plot area in pixels.

    Returns:
        One textposition per label, in the order given.
    """
    points = np.asarray([[label.x, label.y] for label in labels]).reshape(-1, 2)
    crowd = np.asarray([np.hypot(*(points - point).T).sum() for point in points])
    taken: list[tuple[float, float, float, float]] = []
    chosen = ["middle right"] * len(labels)
    for i in np.argsort(crowd, kind="stable"):
        others = np.concatenate([np.delete(points, i, axis=0), obstacles.reshape(-1, 2)])
        costs = [
            _cost(_box(labels[i], dx, dy), others, taken, width, height) + rank * 0.01
            for rank, (_, dx, dy) in enumerate(_SIDES)
        ]
        best = int(np.argmin(costs))
        name, dx, dy = _SIDES[best]
        chosen[i] = name
        taken.append(_box(labels[i], dx, dy))
    return chosen


def _box(label: Label, dx: float, dy: float) -> tuple[float, float, float, float]:
    """(left, right, bottom, top) of the label on one side of its point."""
    wide = len(label.text) * _CHAR_PX
    x = label.x + dx * wide + np.sign(dx) * _GAP_PX
    y = label.y + dy * _LINE_PX + np.sign(dy) * _GAP_PX
    return x - wide / 2, x + wide / 2, y - _LINE_PX / 2, y + _LINE_PX / 2


def _cost(
    box: tuple[float, float, float, float],
    points: npt.NDArray[np.float64],
    taken: list[tuple[float, float, float, float]],
    width: float,
    height: float,
) -> float:
    left, right, bottom, top = box
    inside = (
        (points[:, 0] > left - 3)
        & (points[:, 0] < right + 3)
        & (points[:, 1] > bottom - 2)
        & (points[:, 1] < top + 2)
    )
    cost = float(inside.sum())
    for other in taken:
        if left < other[1] and other[0] < right and bottom < other[3] and other[2] < top:
            cost += 100.0
    if left < 0 or right > width or bottom < 0 or top > height:
        cost += _OUTSIDE
    return cost
