"""Cached labelling runs: a ledger is read on from where the last look ended."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from hydra_core.labeling.run_folder import LEDGER, Followed, list_runs
from hydra_core.ui.demo import session

__all__ = ["root", "run", "runs"]


def root() -> Path:
    """Where runs are looked for."""
    return session.folder() / "labels"


def runs() -> dict[str, Path]:
    """Folders of the workspace's labelling runs by name."""
    return {folder.name: folder for folder in list_runs(root())}


def run(folder: Path) -> Followed:
    """A run that is followed; another ledger under its name begins anew."""
    return _followed(folder, (folder / LEDGER).stat().st_ino)


@st.cache_resource(max_entries=8)
def _followed(folder: Path, inode: int) -> Followed:
    del inode
    return Followed(folder)
