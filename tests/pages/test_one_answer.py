"""One point of one set: every page that shows it prints the same figures."""

import re
import shutil

import pytest

from hydra_core.base.spelling import usd
from hydra_core.console import cache, replays
from hydra_core.replay.evaluation import evaluate
from tests.console.valued import LINK, valued
from tests.made_once import made_once
from tests.pages import live
from tests.pages.moving import to
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
    LINK,  # a point of the value rule, on the queries that were learned on
]
MEASURED = (
    *PAGES[:3],
    "pages/decide/releases.py?part=publish",
    "pages/configure/eval_sets.py?part=routing-help",
    "pages/decide/tune.py?part=learned",
)
_NUMBER = r"([+−-]?\$?[\d.]+)"
_BETWEEN = rf"{_NUMBER} ?%? ?(?:–|to|,) ?{_NUMBER}"
#: A figure and its interval in one text; a figure in a tile has its interval below.
INTERVALS = re.compile(rf"{_NUMBER} ?(?:%|pp|points)? [(\[]{_BETWEEN}")
BELOW = re.compile(rf"{_BETWEEN} ?(?:%|pp)?")


@pytest.fixture
def open_point(open_page, workspace):
    """Opens a page on a set and catalog."""

    def go(page, link):
        if link is LINK:
            learned = made_once("valued", lambda folder: valued(folder, 200))
            shutil.copytree(learned, workspace, dirs_exist_ok=True)
        app = open_page(page, **link)
        assert not app.exception
        return app

    return go


def plain(text):
    return text.replace("\\", "")


def number(text):
    return float(text.replace("−", "-").replace("$", ""))


def everything(app):
    """All figures of a page as text."""
    metrics = [f"{one.label} {one.value} {one.delta}" for one in app.metric]
    tiles = [str(live.shown(app))] if live.knobs(app) else []
    frames = [one.value.to_string() for one in app.dataframe]
    return plain("\n".join([shown(app), *metrics, *tiles, *frames]))


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("link", LINKS, ids=lambda link: link["set"])
def test_figures_of_the_published_point_are_the_same_on_every_page(open_point, page, link):
    app = open_point(page, link)
    entry = next(one for one in cache.evalsets() if one.key == link["set"])
    catalog = next(one.catalog for one in cache.catalogs() if one.key == link["catalog"])
    policy = catalog.policy
    sweep = replays.ruled_sweep(entry, catalog, policy.rule, policy.weights)
    found = evaluate(sweep, policy.knob)
    point, text = found.router, everything(app)
    assert usd(point.mean_cost_usd.value) in text
    quality, retention = (f"{100 * one.value:.1f} %" for one in (point.quality, point.qr))
    assert quality in text or retention in text
    ends = point.quality.scaled(100.0).bounds("{:.1f}".format, " – ")
    shown = re.search(r"Resolved\D+[\d.]+ %\D+([\d.]+ – [\d.]+) %", text)
    assert shown is None or shown[1] == ends
    difference = found.verdict.judged_by.scaled(100.0)
    against_mix = [] if "compare" in page else re.findall(r"95 % interval (\S+) to (\S+?)\)", text)
    for low, high in against_mix:
        assert (number(low), number(high)) == (round(difference.lo, 1), round(difference.hi, 1))
    if page.endswith(("by-hand", "publish")):
        assert found.served_note in text


@pytest.mark.parametrize("page", MEASURED)
def test_every_interval_contains_its_figure(open_point, page):
    app = open_point(page, LINK)
    shown = [tuple(map(number, one)) for one in INTERVALS.findall(everything(app))]
    tiles = [(plain(one.value), plain(one.delta or "")) for one in app.metric]
    tiles += [(tile["value"], tile["interval"]) for tile in live.tiles(app)]
    for value, below in tiles:
        ends = BELOW.fullmatch(below)
        if ends and ("pp" in below) == ("pp" in value):  # not the change of a figure
            shown.append((number(value.split()[0]), number(ends[1]), number(ends[2])))
    assert shown
    assert all(low <= value <= high for value, low, high in shown), shown


def test_parts_of_tune_keep_set_catalog_and_knob(open_page):
    by_hand = "pages/decide/tune.py?part=by-hand"
    link = {"set": "console_demo", "catalog": "paper_five"}
    app = open_page(by_hand, **link)
    app.number_input(key="tune.tau").set_value(0.31).run()
    for part in ("search", "learned"):
        to(app, f"pages/decide/tune.py?part={part}").run()
        assert not app.exception
        assert app.selectbox(key="data.evalset").value == link["set"]
        assert app.selectbox(key="data.catalog").value == link["catalog"]
    to(app, by_hand).run()
    assert app.number_input(key="tune.tau").value == 0.31
    assert app.selectbox(key="data.evalset").value == link["set"]
