"""Flights that the console keeps: a folder each, with settings and table."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hydra_core.base.errors import FlightError, Problem, StoreError
from hydra_core.live.flight.files import Flight, Rows, load_flight, parse_flight, read_rows
from hydra_core.store.roles import Action, Actor, require

if TYPE_CHECKING:
    from hydra_core.store.store import Store

SETTINGS: Final = "flight.yaml"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")


@dataclass(frozen=True, slots=True)
class FlightFolder:
    """A kept flight; `digest` changes whenever one of its files does."""

    path: Path
    name: str
    digest: str


def list_flights(*roots: Path) -> tuple[FlightFolder, ...]:
    """Every folder with a ``flight.yaml`` under the roots, by folder name."""
    found = []
    for root in roots:
        for settings in sorted(root.glob(f"*/{SETTINGS}")):
            files = sorted(path for path in settings.parent.iterdir() if path.is_file())
            stamps = [f"{path.name}|{path.stat().st_mtime_ns}|{path.stat().st_size}"
                      for path in files]  # fmt: skip
            digest = hashlib.sha256("\n".join([str(settings), *stamps]).encode()).hexdigest()
            found.append(FlightFolder(settings.parent, settings.parent.name, digest))
    return tuple(found)


def load(folder: FlightFolder) -> tuple[Flight, Rows]:
    """A kept flight's settings and table.

    Raises:
        FlightError: One of them is not valid.
        OSError: One of them cannot be read.
    """
    flight = load_flight(folder.path / SETTINGS)
    return flight, read_rows(folder.path / Path(flight.table).name, flight)


def save_flight(
    root: Path,
    name: str,
    settings: str,
    table: bytes,
    table_name: str,
    *,
    actor: Actor,
    store: Store,
) -> Path:
    """Keep a flight under ``root/name``, whole, checked and recorded, or not at all.

    Args:
        store: Whose audit trail keeps it.

    Raises:
        AccessError: The actor may not.
        FlightError: The name is taken or not usable, or settings or table are not valid.
        StoreError: The audit trail could not keep it.
    """
    require(actor, Action.KEEP_FLIGHT)
    if not _NAME.fullmatch(name):
        remedy = "small letters, digits, - and _, at most 60"
        raise FlightError("name", [Problem("", f"{name!r} cannot be a folder's name", remedy)])
    if (root / name).exists():
        raise FlightError("name", [Problem("", f"{name!r} exists already", "choose another name")])
    root.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=root, prefix=".new-"))
    try:
        kept = scratch / ("table" + "".join(Path(table_name).suffixes[-2:]).lower())
        kept.write_bytes(table)
        flight = parse_flight(settings)
        read_rows(kept, replace(flight, table=kept.name))
        lines = [line for line in settings.splitlines() if not line.startswith("table:")]
        text = "\n".join([*lines, f"table: {kept.name}", ""])
        (scratch / SETTINGS).write_text(text, encoding="utf-8")
        scratch.rename(root / name)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    digest = hashlib.sha256(settings.encode() + table).hexdigest()
    try:
        store.record_event(actor, Action.KEEP_FLIGHT, f"flight {name}", after=digest)
    except StoreError:
        shutil.rmtree(root / name, ignore_errors=True)
        raise
    return root / name
