"""What recent requests ask for beside what was asked before, for /metrics."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from hydra_core.base.types import FloatArray

#: Lengths of windows in seconds, as labels.
WINDOWS: Final = {"15m": 900, "1h": 3600, "1d": 86_400}
_KEPT_S: Final = 7 * 86_400
_MOST: Final = 50_000
_LEAST, _LEAST_BEFORE = 30, 100
_AGAIN_S: Final = 60.0
_CHANCE: Final = 0.001  # looked at every minute


class RecentKinds:
    """Requirements of the last seven days' decisions of one process, 50,000 at most.

    Args:
        clock: Seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._rows: deque[tuple[float, tuple[float, ...]]] = deque(maxlen=_MOST)
        self._found: dict[str, tuple[float, bool]] = {}
        self._looked = -_AGAIN_S

    def add(self, requirements: FloatArray) -> None:
        """Keep one scored decision."""
        with self._lock:
            self._rows.append((self._clock(), tuple(requirements.tolist())))

    def shifts(self) -> dict[str, tuple[float, bool]]:
        """By window: the largest PSI of a dimension against all before, and if it is no chance.

        A window with too few decisions, or too few before it, is left out. Computed once a minute.
        """
        now = self._clock()
        if now - self._looked >= _AGAIN_S:
            with self._lock:
                rows = [row for row in self._rows if now - row[0] < _KEPT_S]
            self._found, self._looked = _shifts(rows, now), now
        return self._found


def _shifts(
    rows: Sequence[tuple[float, tuple[float, ...]]], now: float
) -> dict[str, tuple[float, bool]]:
    from hydra_core.live.bursts import compared  # scipy, which a start need not wait for

    at = np.array([moment for moment, _ in rows])
    widths = {len(values) for _, values in rows}
    if len(widths) != 1:  # none, or the catalog's dimensions changed
        return {}
    values = np.array([values for _, values in rows])
    found = {}
    for name, width in WINDOWS.items():
        inside = at >= now - width
        if inside.sum() >= _LEAST and (~inside).sum() >= _LEAST_BEFORE:
            psi, chance = compared(values, inside)
            k = int(psi.argmax())
            found[name] = float(psi[k]), bool(chance[k] < _CHANCE)
    return found
