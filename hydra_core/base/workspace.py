"""The workspace: the folder that the command line and the console share, and what lies in it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

EVALSETS: Final = "evalsets"
#: One YAML file a catalog; the others hold a folder each.
CATALOGS: Final = "catalogs"
OUTCOME_MODELS: Final = "outcome_models"
LABELS: Final = "labels"
#: Decision logs of live traffic: the usual one, and folders of others.
LOG: Final = "log"
LOGS: Final = "logs"
#: Revisions, drafts, pins and the audit trail, where no other database is named.
DATABASE: Final = "hydra.sqlite3"


def workspace_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """HYDRA_WORKSPACE, or `workspace` in the current folder."""
    return Path(environ.get("HYDRA_WORKSPACE") or "workspace").absolute()
