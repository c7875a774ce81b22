"""Folders that appear whole or not at all: write beside the target, then swap by rename."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

__all__ = ["replace_folder", "sha256_file"]

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def sha256_file(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes, read in pieces.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def replace_folder(target: Path, fill: Callable[[Path], None], *, replace: bool = True) -> None:
    """Create `target`, or replace it, with what `fill` writes into an empty folder.

    Readers see the old folder or the new one. If `fill` fails, nothing has changed.

    Args:
        target: The folder to create; its parents are made.
        fill: Writes the content into the folder it is given.
        replace: Whether a folder with something in it may be replaced.

    Raises:
        OSError: Disk full, no permission, `target` is taken; nothing was changed.
    """
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        fill(fresh)
        _sync(fresh)
        fresh.chmod(0o777 & ~_umask())
        _swap_in(fresh, target, replace)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # on success: what stood at `target` before


def _umask() -> int:
    """The process's umask (mkdtemp makes folders that only their owner can read)."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _sync(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _swap_in(fresh: Path, target: Path, replace: bool) -> None:
    """Put `fresh` at `target`; what was there before ends up at `fresh`."""
    if not replace or not target.exists():
        fresh.rename(target)  # fails on a folder with something in it
        return
    if _exchange(fresh, target):
        return
    # No atomic exchange on this system: two renames, undone if the second one fails.
    aside = fresh.with_name(f"{fresh.name}.old")
    target.rename(aside)
    try:
        fresh.rename(target)
    except OSError:
        aside.rename(target)
        raise
    aside.rename(fresh)


def _exchange(one: Path, other: Path) -> bool:
    """Linux renameat2(RENAME_EXCHANGE); False where kernel or file system has none."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    done = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return bool(done == 0)
