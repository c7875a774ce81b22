"""One point of one set: every page that shows it prints the same figures."""

from __future__ import annotations

import pytest

from hydra_core.base.spelling import usd
from hydra_core.console import cache
from hydra_core.replay.evaluation import evaluate
from tests.pages import live
from tests.pages.store_steps import shown

PAGES = (
    "pages/operate/home.py",
    "pages/decide/tune.py?part=by-hand",
    "pages/decide/compare.py",
    "pages/configure/catalog.py?part=models",
    "pages/configure/catalog.py?part=what-if",
    "pages/decide/releases.py?part=publish",
)
LINKS = [
    {"set": "paper_swebench", "catalog": "paper_five_published"},
    {"set": "console_demo", "catalog": "paper_five"},
]


def everything(app):
    """All figures of a page as text."""
    metrics = [f"{one.label} {one.value} {one.delta}" for one in app.metric]
    tiles = [str(live.shown(app))] if live.knobs(app) else []
    frames = [one.value.to_string() for one in app.dataframe]
    return "\n".join([shown(app), *metrics, *tiles, *frames]).replace("\\", "")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("link", LINKS, ids=lambda link: link["set"])
def test_quality_and_cost_of_the_published_point_are_the_same_on_every_page(open_page, page, link):
    app = open_page(page, **link)
    assert not app.exception
    entry = next(one for one in cache.evalsets() if one.key == link["set"])
    catalog = next(one.catalog for one in cache.catalogs() if one.key == link["catalog"])
    sweep = cache.sweep(entry, catalog, catalog.policy.weights)
    point = evaluate(sweep, catalog.policy.tau).router
    text = everything(app)
    assert usd(point.mean_cost_usd.value) in text
    quality, retention = (f"{100 * one.value:.1f} %" for one in (point.quality, point.qr))
    assert quality in text or retention in text
