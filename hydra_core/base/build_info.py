"""Which version runs, and from which commit it was built."""

from __future__ import annotations

import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Final

#: By semantic versioning; docs/stable.md lists what it covers.
VERSION: Final = "1.0.0"
#: What a commit is called that nobody recorded.
UNKNOWN: Final = "unknown"
_PACKAGE: Final = Path(__file__).resolve().parents[1]


@lru_cache(maxsize=1)
def commit() -> str:
    """The commit in 12 digits: the wheel's own record, else what git says of the checkout."""
    recorded = _PACKAGE / "files" / "commit.txt"
    if recorded.is_file():
        return recorded.read_text(encoding="ascii").strip() or UNKNOWN
    if not (_PACKAGE.parent / ".git").exists():
        return UNKNOWN
    asked = ["git", "-C", str(_PACKAGE.parent), "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return UNKNOWN
    return done.stdout.strip() or UNKNOWN
