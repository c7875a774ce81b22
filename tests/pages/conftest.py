"""The console as a test drives it: from app.py, with an empty workspace of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HYDRA_WORKSPACE", str(tmp_path))
    monkeypatch.chdir(ROOT)
    st.cache_resource.clear()
    st.cache_data.clear()
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
