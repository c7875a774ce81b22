"""Folders that appear whole or not at all: write beside the target, then swap by rename."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from hydra_core.base.errors import EvalSetError
from hydra_core.base.whole_file import synced
from hydra_core.evalsets.format import MANIFEST, QUERIES, parse_manifest, scored_by


@dataclass(frozen=True, slots=True)
class EvalSetInfo:
    """What a list shows of an eval set without loading it.

    Attributes:
        n: Number of queries; 0 when it cannot be read.
        scored: Fingerprints of the bundles whose scores lie in the folder.
        problem: Why it cannot be used, empty when it looks fine.
        texts: Whether the messages themselves are in it.
    """

    path: Path
    name: str
    n: int
    models: tuple[str, ...]
    synthetic: bool
    digest: str
    scored: tuple[str, ...]
    problem: str = ""
    texts: bool = True


def list_evalsets(root: Path) -> tuple[EvalSetInfo, ...]:
    """The eval sets directly under `root`, by name; broken ones carry their `problem`."""
    if not root.is_dir():
        return ()
    folders = (p for p in sorted(root.iterdir()) if not p.name.startswith("."))
    return tuple(_info(folder) for folder in folders if (folder / MANIFEST).is_file())


def _info(folder: Path) -> EvalSetInfo:
    scored = scored_by(folder)
    try:
        text = (folder / MANIFEST).read_bytes()
        manifest = parse_manifest(text, str(folder))
        part = pq.ParquetFile(folder / QUERIES)
    except (EvalSetError, OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        return EvalSetInfo(folder, folder.name, 0, (), False, "", scored, str(error))
    digest = hashlib.sha256(text).hexdigest()
    return EvalSetInfo(
        folder, manifest.name, part.metadata.num_rows, manifest.models, manifest.synthetic, digest,
        scored, texts="text" in part.schema_arrow.names,
    )  # fmt: skip


#: As `mkdtemp` names folders, and as they are put aside.
_TEMPORARY = re.compile(r"\..+\.[a-z0-9_]{8}(\.old)?")
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def replace_folder(target: Path, fill: Callable[[Path], None], *, replace: bool = True) -> None:
    """Create `target`, or replace it, with what `fill` writes into an empty folder.

    Readers see the old folder or the new one. If `fill` fails, nothing has changed.

    Args:
        replace: Whether a folder with something in it may be replaced.

    Raises:
        OSError: Disk full, no permission, `target` is taken; nothing was changed.
    """
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target.parent)
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    held = os.open(fresh, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)  # a killed process lets go, so `sweep` knows
    try:
        fill(fresh)
        for path in (*fresh.rglob("*"), fresh):
            synced(path)
        fresh.chmod(0o777 & ~_umask())
        _swap_in(fresh, target, replace)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # on success: what stood at `target` before
        os.close(held)


def sweep(parent: Path) -> None:
    """Remove what writers that were killed left under `parent`; running ones hold their folder."""
    for path in parent.glob(".*"):
        if not _TEMPORARY.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
            continue
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(handle)


def _umask() -> int:
    """The process's umask (mkdtemp makes folders that only their owner can read)."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


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


def folder_name(name: str) -> str:
    """A plain folder name for an eval set's name: lower-case letters, digits and underscores."""
    flat = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "_", flat).strip("_")[:60] or "eval_set"
