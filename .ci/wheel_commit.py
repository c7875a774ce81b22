"""Write the commit that a wheel is built from into the wheel (`hydra-router version` says it)."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds `hydra_core/files/commit.txt`: HYDRA_COMMIT, else what git says of the folder."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called once before a wheel is built."""
        asked = ["git", "-C", self.root, "rev-parse", "--short=12", "HEAD"]
        try:
            told = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
        except OSError:
            told = ""
        if commit := os.environ.get("HYDRA_COMMIT") or told:
            file = Path(tempfile.mkdtemp()) / "commit.txt"
            file.write_text(commit + "\n", encoding="ascii")
            build_data["force_include"][str(file)] = "hydra_core/files/commit.txt"
