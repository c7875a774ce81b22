"""What the first visit would wait for is done before it: quietly, once, importing nothing idle."""

import subprocess
import sys
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from hydra_core.console import replays
from hydra_core.console.access import serve
from hydra_core.console.home import page as panels

ROOT = Path(__file__).resolve().parents[2]
#: Half a second each, and nothing that the first page shows needs them.
_SLOW = ("alembic", "scipy.stats", "scipy.sparse", "sklearn", "statsmodels")
#: As long as nothing is stored.
_SLOW_ON_HOME = ("sqlalchemy", "jinja2", "hydra_core.replay.report")


@pytest.mark.slow
def test_the_first_visit_finds_its_figures_made(open_page, caplog, monkeypatch):
    st.cache_resource.clear()
    serve.prepare_first_page().join(60)
    assert "'warming'" not in caplog.text

    def again(*_args: object) -> None:
        raise AssertionError("computed a second time")

    monkeypatch.setattr(replays, "evaluate", again)
    page: AppTest = open_page("pages/operate/home.py")
    assert not page.exception
    assert [box.value for box in page.title] == ["Home"]
    assert page.metric


def test_a_fault_is_left_to_the_visit(monkeypatch, capsys):
    def fails() -> None:
        raise RuntimeError("no disk")

    monkeypatch.setattr(panels, "prepare", fails)
    serve.prepare_first_page().join(60)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("module", ["hydra_core.console.home.page", "hydra_core.store.store"])
def test_the_first_page_imports_nothing_slow_that_it_does_not_need(module):
    # scipy.special is needed; before SciPy 1.17 it imported scipy.sparse itself
    code = f"import sys, scipy.special; own = {{*sys.modules}}; import {module}\n"
    told = subprocess.run(
        [sys.executable, "-c", f"{code}print(*sys.modules.keys() - own)"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert module in told
    assert not set(_SLOW) & set(told)
    if module.startswith("hydra_core.console"):
        assert not set(_SLOW_ON_HOME) & set(told)
