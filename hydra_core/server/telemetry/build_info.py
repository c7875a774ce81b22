"""Which version runs."""

from __future__ import annotations

from functools import lru_cache
from importlib import metadata


@lru_cache(maxsize=1)
def version() -> str:
    """The installed package's version, `source` where the code runs as it lies."""
    try:
        return metadata.version("hydra-console")
    except metadata.PackageNotFoundError:
        return "source"
