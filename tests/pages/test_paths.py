"""From the hand to its effect: what a setting changes on the page, and an edit in the store.

An edited cell needs a real table: `tests/browser/test_catalog.py`.
"""

import json

import pytest

from hydra_core.base.spelling import usd
from hydra_core.catalog import parse_catalog
from hydra_core.console import cache
from hydra_core.replay.evaluation import evaluate
from tests.pages import live
from tests.pages.store_steps import ANA, NAME, opened, shown

TUNE = "pages/decide/tune.py?part=by-hand"
POLICY = "pages/configure/catalog.py?part=policy"
HERE = {"set": "paper_swebench", "catalog": NAME}
TAU = 0.1234567


@pytest.fixture
def expected(workspace):
    """The evaluation at the setting, computed without a page."""
    entry = next(one for one in cache.evalsets() if one.key == HERE["set"])
    catalog = next(one.catalog for one in cache.catalogs() if one.key == NAME)
    return evaluate(cache.sweep(entry, catalog, catalog.policy.weights), TAU)


def test_tau_moves_the_point_the_tiles_and_the_result(open_page, expected):
    app = open_page(TUNE, **HERE)
    app.number_input(key="tune.tau").set_value(TAU).run()
    assert not app.exception
    tiles = {one["label"]: one["value"] for one in live.knob(app)["tiles"]}
    assert tiles["Cost per query"] == usd(expected.router.mean_cost_usd.value)
    assert tiles["Quality retention"] == f"{100 * expected.router.qr.value:.1f} %"
    (chart,) = (json.loads(one.proto.spec) for one in app.get("plotly_chart")[:1])
    (point,) = (one for one in chart["data"] if one.get("name") == "operating point")
    assert point["x"] == pytest.approx([expected.router.mean_cost_usd.value])
    assert point["y"] == pytest.approx([100 * expected.router.qr.value])
    assert f"{100 * expected.verdict.quality:.1f} %" in shown(app)


def test_an_edit_stands_in_the_stored_draft(open_page, workspace, monkeypatch):
    monkeypatch.setenv("HYDRA_OPERATOR", ANA.name)
    app = open_page(POLICY, **HERE)
    field = next(one for one in app.number_input if one.label == "Threshold τ")
    field.set_value(0.1234).run()
    saved = opened(workspace).drafts.find(NAME, ANA)
    assert parse_catalog(saved.text).policy.tau == 0.1234
    assert "Draft: 1 change" in shown(app)


@pytest.mark.parametrize(
    "page",
    [
        "pages/decide/tune.py?part=by-hand",
        "pages/operate/inspect.py?part=message",
        "pages/decide/compare.py",
    ],
)
def test_an_emptied_threshold_is_the_catalogs_own(open_page, page):
    app = open_page(page, set="console_demo", catalog="paper_five")
    for typed, found in ((0.3, 0.3), (None, 0.24)):
        next(one for one in app.number_input if one.label == "Threshold τ").set_value(typed).run()
        assert not app.exception
        field = next(one for one in app.number_input if one.label == "Threshold τ")
        assert field.value == found
