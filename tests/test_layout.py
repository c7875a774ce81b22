"""Where pages may lie: a .py directly under pages/ would run without app.py on a deep link."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_no_page_lies_directly_under_pages():
    assert not list((ROOT / "pages").glob("*.py"))


def test_every_page_is_in_the_navigation():
    text = (ROOT / "app.py").read_text(encoding="utf-8")
    for page in (ROOT / "pages").glob("*/*.py"):
        assert page.relative_to(ROOT).as_posix() in text
