"""The console as a test drives it: from app.py, with an empty workspace of its own.

Caches stay between tests, as they do between the sessions of a console: their keys name the
workspace or what lies in it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HYDRA_WORKSPACE", str(tmp_path))
    monkeypatch.chdir(ROOT)
    return tmp_path


@pytest.fixture
def open_page(workspace: Path) -> Callable[..., AppTest]:
    """Open a page, as a link with these query parameters would."""

    def opened(page: str, **params: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.switch_page(page)
        for name, value in params.items():
            app.query_params[name] = value
        return app.run()

    return opened
