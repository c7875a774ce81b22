"""Where the files that come with HyDRA lie, in a checkout and in an installed wheel.

A checkout has them at its top; a wheel carries them in `hydra_core/files/`. They are never
written to: what an operator makes goes to the workspace (`base/workspace.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

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
