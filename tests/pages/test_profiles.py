"""The Profiles page: evidence to capabilities, and what moves routing."""

from __future__ import annotations

import pytest

from tests.pages.store_steps import shown

PAGE = "pages/configure/profiles.py"
HERE = {"set": "console_demo", "catalog": "paper_five"}
VIEW = "profiles.view"


@pytest.fixture(autouse=True)
def _ana(monkeypatch):
    monkeypatch.setenv("HYDRA_OPERATOR", "Ana")


def opened_at(open_page, view, **params):
    app = open_page(PAGE, **{**HERE, **params})
    app.session_state[VIEW] = view
    return app.run()


def test_evidence_shows_importance_weights_and_rates(open_page):
    app = open_page(PAGE, **HERE)
    assert not app.exception
    frame = app.data_editor[0].value
    assert {"importance", "w.reasoning", "s.gpt-5.4"} <= set(frame.columns)
    assert len(frame) == 9


def test_capabilities_by_hand_are_marked(open_page):
    app = opened_at(open_page, "Capabilities", set="paper_swebench", catalog="paper_five_published")
    assert not app.exception
    frame = app.data_editor[0].value
    assert (frame["hand"] != "").all()


def test_sensitivity_names_models_out_of_reach(open_page):
    app = opened_at(open_page, "Sensitivity")
    assert not app.exception
    assert "can never be chosen" in shown(app)
    assert len(app.dataframe) == 2
