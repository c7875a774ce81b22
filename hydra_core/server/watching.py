"""Looking at something again and again beside the requests, in a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod

from hydra_core.base.errors import HydraError

_LOG = logging.getLogger(__name__)


class Watch(ABC):
    """Looks until it is closed; what goes wrong is logged, and it looks again.

    Args:
        name: Of the thread.
        trouble: What a failure means, in words.
        every_s: Least time between two looks.
        rest: The same in multiples of what a look takes.
    """

    def __init__(self, name: str, trouble: str, every_s: float, rest: float = 0.0) -> None:
        self._trouble, self._every_s, self._rest = trouble, every_s, rest
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=name, daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()

    @abstractmethod
    def look(self) -> None:
        """Look once."""

    def _failed(self, error: Exception) -> None:
        if isinstance(error, HydraError | OSError):
            _LOG.error("%s: %s", self._trouble, error)
        else:
            _LOG.error("%s", self._trouble, exc_info=error)

    def _turn(self) -> None:
        self.look()

    def _watch(self) -> None:
        pause_s = 0.0
        while not self._stop.wait(pause_s):
            start = time.monotonic()
            try:
                self._turn()
            except Exception as error:  # whatever it was, the next look may work
                self._failed(error)
            pause_s = max(self._every_s, self._rest * (time.monotonic() - start))
