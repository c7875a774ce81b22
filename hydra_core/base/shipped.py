"""What is shipped: the version, the commit it was built from, and where its files lie.

A checkout has them at its top; a wheel carries them in `hydra_core/files/`. They are never
written to: what an operator makes goes to the workspace (`base/workspace.py`).
"""

import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Final

#: By semantic versioning; docs/stable.md lists what it covers.
VERSION: Final = "1.2.0"
#: What a commit is called that nobody recorded.
UNKNOWN: Final = "unknown"
_PACKAGE: Final = Path(__file__).resolve().parents[1]
_IN_WHEEL: Final = _PACKAGE / "files"
_TOP: Final = _IN_WHEEL if _IN_WHEEL.is_dir() else _PACKAGE.parent

#: The script that Streamlit runs; its pages and its theme (`.streamlit/`) lie beside it.
APP: Final = _TOP / "app.py"
#: Catalogs to start from, one YAML file each.
CATALOGS: Final = _TOP / "catalog"
#: Eval sets (a folder each), messages and conversations to try.
SAMPLE_DATA: Final = _TOP / "sample_data"
LOGO: Final = _PACKAGE / "console" / "assets" / "logo.svg"
MARK: Final = _PACKAGE / "console" / "assets" / "mark.svg"


@lru_cache(maxsize=1)
def commit() -> str:
    """The commit in 12 digits: the wheel's own record, else what git says of the checkout."""
    recorded = _IN_WHEEL / "commit.txt"
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
