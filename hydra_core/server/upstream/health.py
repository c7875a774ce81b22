"""How healthy each model is, seen from its answers: what Algorithm 4's veto looks at.

A failure moves health in [0, 1] towards 0, an answer towards 1, by the same share; in between it
decays towards 1, so that a vetoed model is tried again now and then. It is 0 while its upstream
asks to be left alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

_SHARE: Final = 0.6
#: After it half of what is missing to health 1 has come back.
_HALF_LIFE_S: Final = 15.0
#: A model is well while less than this is missing to health 1.
_WELL: Final = 0.05
#: So many failed attempts in a row are an outage.
DOWN_AFTER: Final = 5


class Health:
    """Health of the models one process talks to. Safe to share between threads.

    With a floor of 0.10, three failures in a row veto a model; about two seconds later it may be
    tried again, and each further failure vetoes it at once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[float, float]] = {}  # missing to 1, when
        self._failures: dict[str, int] = {}  # in a row
        self._until: dict[str, float] = {}  # end of the wait that its upstream asks for

    def failed(self, model: str, wait_s: float = 0.0) -> bool:
        """The model did not answer; whether it was well before. It is left alone for `wait_s`."""
        with self._lock:
            self._failures[model] = self._failures.get(model, 0) + 1
            missing = self._missing(model)
            self._seen[model] = (missing + _SHARE * (1.0 - missing), self._clock())
            if wait_s > 0:
                until = self._clock() + wait_s
                self._until[model] = max(until, self._until.get(model, 0.0))
            return missing < _WELL

    def wait_s(self, model: str) -> float:
        """Seconds for which the model is not to be asked."""
        return max(0.0, self._until.get(model, 0.0) - self._clock()) if self._until else 0.0

    def down(self) -> frozenset[str]:
        """The models that did not answer for many attempts in a row."""
        if not self._failures:
            return frozenset()
        with self._lock:
            return frozenset(m for m, count in self._failures.items() if count >= DOWN_AFTER)

    def answered(self, model: str) -> None:
        """The model answered."""
        if self._failures:
            self._failures.pop(model, None)
        if model not in self._seen:
            return
        with self._lock:
            missing = self._missing(model) * (1.0 - _SHARE)
            if missing < 1e-3:
                self._seen.pop(model, None)
            else:
                self._seen[model] = (missing, self._clock())

    def now(self) -> Mapping[str, float]:
        """Model -> health; a model that is not in it is healthy."""
        if not self._seen:
            return {}
        with self._lock:
            return {
                model: 0.0 if self.wait_s(model) else 1.0 - self._missing(model)
                for model in self._seen
            }

    def _missing(self, model: str) -> float:
        missing, at = self._seen.get(model, (0.0, 0.0))
        return float(missing * 0.5 ** ((self._clock() - at) / _HALF_LIFE_S))
