"""The workspace: the one folder that the command line and the console share.

evalsets/NAME           an eval set
catalogs/NAME.yaml      a catalog
outcome_models/NAME     an outcome model
labels/NAME             a labelling run
log/, logs/NAME         decision logs of live traffic
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

EVALSETS: Final = "evalsets"
CATALOGS: Final = "catalogs"
OUTCOME_MODELS: Final = "outcome_models"
LABELS: Final = "labels"
LOG: Final = "log"
LOGS: Final = "logs"
#: Revisions, drafts, pins and the audit trail, where no other database is named.
DATABASE: Final = "hydra.sqlite3"


def workspace_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """HYDRA_WORKSPACE, or `workspace` in the current folder."""
    return Path(environ.get("HYDRA_WORKSPACE") or "workspace").absolute()
