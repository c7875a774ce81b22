"""Catalog hot reload: a valid edit is picked up within a second, a broken one changes nothing."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog
from hydra_core.catalog import load_catalog

_Stamp = tuple[int, int, int]


class CatalogFile:
    """The newest valid catalog of a YAML file, to be given to `Router` as its source.

    Args:
        check: Called with each newly read catalog; raises HydraError to refuse it (a catalog
            bound to another predictor bundle, say).
        every_s: Least time between two looks at the file.

    Raises:
        CatalogError: The file is not valid when first read.
    """

    def __init__(
        self,
        path: Path,
        *,
        check: Callable[[Catalog], None] = lambda catalog: None,
        every_s: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path, self._check = path, check
        self._every_s, self._clock = every_s, clock
        self._lock = threading.Lock()
        self._stamp = file_stamp(path)
        self._next_look = clock() + every_s
        self._catalog = self._read()
        #: Why the file as it is now is not in use, '' when it is.
        self.problem = ""

    def __call__(self) -> Catalog:
        """The newest valid catalog; the last good one while the file is broken or gone."""
        if self._clock() < self._next_look or not self._lock.acquire(blocking=False):
            return self._catalog  # another thread is looking: no request waits for the disk
        try:
            self._look()
        finally:
            self._lock.release()
        return self._catalog

    def _look(self) -> None:
        self._next_look = self._clock() + self._every_s
        try:
            stamp = file_stamp(self._path)
            if stamp == self._stamp:
                return
            self._catalog = self._read()
            self.problem = ""
            self._stamp = stamp
        except OSError as error:
            self.problem = f"{self._path.name}: cannot be read ({error.strerror}); last good kept"
        except HydraError as error:
            self._stamp = stamp
            self.problem = f"edit not taken, the last good catalog stays in use. {error}"

    def _read(self) -> Catalog:
        catalog = load_catalog(self._path)
        self._check(catalog)
        return catalog


def file_stamp(path: Path) -> _Stamp:
    """What changes when the file does: its time, size and number."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino
