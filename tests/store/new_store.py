"""An SQLite store that nobody has used: Alembic makes it once, not for each test."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from hydra_core.store import open_store

NAME = "hydra.sqlite3"


@functools.cache
def _made() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        open_store(Path(folder)).close()
        return (Path(folder) / NAME).read_bytes()


def new_store(workspace: Path) -> Path:
    """Put one into a workspace, and give the workspace back."""
    (workspace / NAME).write_bytes(_made())
    return workspace
