"""Watches beside the service whether the catalog's promise still covers its traffic."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from hydra_core.base.errors import HydraError
from hydra_core.decision_log.reading import read_log
from hydra_core.live.promise_watch import COLUMNS, promise_status
from hydra_core.live.traffic import traffic_of
from hydra_core.server.live import LiveCatalog

_LOG = logging.getLogger(__name__)
_WINDOW: Final = timedelta(days=7)
#: Time between two looks, in multiples of what a look takes: it may use 5 % of a core.
_REST: Final = 20.0


class PromiseWatch:
    """Looks at the log's feedback of the last seven days, now and then.

    Args:
        live: The catalog in use.
        folder: The decision log.
        every_s: Least time between two looks.
        clock: The current moment, with a time zone.
    """

    def __init__(
        self,
        live: LiveCatalog,
        folder: Path,
        every_s: float = 5.0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._live, self._folder, self._every_s, self._clock = live, folder, every_s, clock
        self._ended: tuple[str, str] = ("", "")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="promise", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()

    @property
    def ended(self) -> str:
        """Why the promise in use is no longer covered; '' while it is, or there is none."""
        digest, why = self._ended
        return why if digest == self._live.now.catalog.digest else ""

    def look(self) -> None:
        """Read the feedback; once contradicted, a promise stays so until another catalog is taken.

        Raises:
            LogError: The log cannot be read.
        """
        catalog = self._live.now.catalog
        if catalog.policy.promise is None or self.ended:
            return
        log = read_log(self._folder, since=self._clock() - _WINDOW, columns=COLUMNS)
        status = promise_status(catalog, traffic_of(log))
        if status is not None and status.ended:
            _LOG.warning("%s", status.sentence, extra={"event": "promise_ended"})
            self._ended = (catalog.digest, status.sentence)

    def _watch(self) -> None:
        pause = 0.0
        while not self._stop.wait(pause):
            start = time.monotonic()
            try:
                self.look()
            except (HydraError, OSError) as error:
                _LOG.error("the promise cannot be watched: %s", error)
            except Exception:  # whatever it was, the next look may work
                _LOG.exception("the promise was not looked at")
            pause = max(self._every_s, _REST * (time.monotonic() - start))
