"""What a tuner may vary, and what it tries: weights, tau and, where wanted, profile cells.

A profile cell is the capability of one model on one dimension. A catalog asks of it only that it
lies in [0, 1]; so do the bounds here. Cells are off unless they are named: each is one more number
that can follow the chance of the queries it is chosen on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hydra_core.base.types import Band, Pool
from hydra_core.replay.replay import ReplayData

_DIGITS = (2, 3, 4)
#: Scores closer than this differ by the rounding of sums only.
_SAME_SCORE = 1e-9

#: Parameter name -> (low, high), both ends included.
Box = Mapping[str, tuple[float, float]]
#: Model id and dimension number.
Cell = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Space:
    """What may vary.

    Attributes:
        bands: One per dimension, for the compensated weights.
        factor: Each stored weight lies between 1/factor and factor before they are scaled.
        cells: (low, high) of the profile cells that may move.
    """

    bands: Sequence[Band]
    factor: float = 4.0
    cells: Mapping[Cell, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Setting:
    """A policy to try: stored weights (sum K), tau, and the profile cells that moved."""

    weights: tuple[float, ...]
    tau: float
    cells: Mapping[Cell, float] = field(default_factory=dict)


def cells_around(
    pool: Pool, cells: Sequence[Cell], reach: float
) -> dict[Cell, tuple[float, float]]:
    """Bounds of cells that may move by at most `reach` from where they are, within [0, 1].

    Raises:
        ValueError: A cell is not one of the pool's, or `reach` is not > 0.
    """
    if not reach > 0:
        raise ValueError(f"cells must be allowed to move by more than 0, got {reach}")
    bounds = {}
    for model, k in cells:
        at = float(pool.capabilities[_row(pool, model, k), k])
        bounds[(model, k)] = (max(at - reach, 0.0), min(at + reach, 1.0))
    return bounds


def checked(space: Space, pool: Pool) -> Space:
    """The space, whose bands and cells are those of a pool.

    Raises:
        ValueError: Not one band per dimension, or a cell that is not the pool's or whose bounds
            are not 0 <= low <= high <= 1.
    """
    if len(space.bands) != pool.capabilities.shape[1]:
        k = pool.capabilities.shape[1]
        raise ValueError(f"need one band per dimension, got {len(space.bands)} for {k}")
    for (model, k), (low, high) in space.cells.items():
        _row(pool, model, k)
        if not 0.0 <= low <= high <= 1.0:
            raise ValueError(
                f"cell {model!r}, dimension {k}: bounds must be 0 <= low <= high <= 1, got "
                f"{low} and {high}"
            )
    return space


def _row(pool: Pool, model: str, k: int) -> int:
    if model not in pool.ids or not 0 <= k < pool.capabilities.shape[1]:
        raise ValueError(
            f"there is no cell {model!r}, dimension {k}: the pool has {', '.join(pool.ids)} and "
            f"{pool.capabilities.shape[1]} dimensions"
        )
    return pool.ids.index(model)


def with_cells(data: ReplayData, cells: Mapping[Cell, float]) -> ReplayData:
    """The same queries with some profile cells replaced."""
    if not cells:
        return data
    capabilities = data.pool.capabilities.copy()
    for (model, k), value in cells.items():
        capabilities[data.pool.ids.index(model), k] = value
    return replace(data, pool=replace(data.pool, capabilities=capabilities))


def simplified(
    found: Mapping[str, float],
    box: Box,
    start: Mapping[str, float],
    names: Sequence[str],
    objective: Callable[[Mapping[str, float]], float],
) -> dict[str, float]:
    """The found parameters, with those in `names` moved no further than earns a score.

    One by one each goes back to where it started if the score is none the worse for it, else it
    is written in as few digits as keep the score. So a cell that did not matter stays as it was.
    """
    kept = dict(found)
    floor = objective(kept) - _SAME_SCORE if names else 0.0
    for name in names:
        low, high = box[name]
        shorter = (float(np.round(found[name], digits)) for digits in _DIGITS)
        for value in (start[name], *(v for v in shorter if low <= v <= high)):
            if objective({**kept, name: value}) >= floor:
                kept[name] = value
                break
    return kept
