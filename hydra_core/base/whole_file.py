"""Files written whole or not at all, and on the disk for good."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """A new file to write to, which becomes `target` in one step when all went well.

    A reader sees the old file or the new one, never a part; a failure leaves the old one. The name
    tells the process, `.<name>.<pid>.<token>.partial`, so that what a killed one left can be found.

    Raises:
        OSError: It cannot be written.
    """
    fresh = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.partial")
    try:
        fresh.touch(exist_ok=False)  # never through somebody else's link
        yield fresh
        synced(fresh)
        os.replace(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)


def synced(path: Path) -> None:
    """Return once a file, or the list of a folder's files, is on the disk, or raise OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
