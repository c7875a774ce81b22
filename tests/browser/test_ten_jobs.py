"""An operator's jobs, each from Home in the clicks that it may take at most; typing is none."""

import csv
import re
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from hydra_core.base.shipped import CATALOGS
from hydra_core.catalog.schema import load_catalog
from tests.browser.conftest import upload
from tests.browser.grid import INPUT_PRICE, open_cell, wait_until_drawn
from tests.console import consoles
from tests.live.logs import decision, traffic

MODELS = [model.id for model in load_catalog(CATALOGS / "paper_five.yaml").models]

pytestmark = pytest.mark.browser


@pytest.fixture
def console(tmp_path_factory):
    """A new one for each job, with a log: what one job publishes is not there for the next."""
    folder = tmp_path_factory.mktemp("workspace")
    log_of_forty_rated_answers(folder / "log")
    with consoles.console(folder) as (_, port):
        yield f"http://127.0.0.1:{port}"


def log_of_forty_rated_answers(folder):
    catalog = load_catalog(CATALOGS / "paper_five.yaml")
    now, first = datetime.now(UTC), (1.0,) + (0.0,) * (len(MODELS) - 1)
    rows = [
        decision(
            i, requirements=(0.1, 0.1, 0.1, 0.1), at=now - timedelta(seconds=60 - i),
            catalog=catalog.name, catalog_digest=catalog.digest, arm="main",
            candidates=tuple(MODELS), predictor=catalog.predictor_fingerprint,
            chosen=MODELS[i % 2], served=MODELS[i % 2], propensities=first,
            shortfalls=(0.0,) * len(MODELS), text=f"Rename the variable number {i} in this file",
        )
        for i in range(40)
    ]  # fmt: skip
    traffic(folder, rows, {f"d{i}": float(i % 2) for i in range(40)})


class Clicks:
    """Counts them; what is typed is not a click."""

    def __init__(self, page):
        self.page, self.count = page, 0
        page.goto("/")
        page.get_by_text("What to do next").wait_for()

    def __call__(self, role, name):
        self.count += 1
        exact = isinstance(name, str)
        self.page.get_by_role(role, name=name, exact=exact).first.click()


def test_why_was_this_message_routed_so_takes_two_clicks(page):
    click = Clicks(page)
    click("link", "Inspect")
    page.get_by_role("textbox", name="Message").fill("Prove that 17 is prime.")
    click("button", "Route")
    page.get_by_text("What would change it").wait_for()
    page.get_by_text("Every model, cheapest first").wait_for()
    assert click.count == 2


def test_what_another_knob_would_cost_takes_two_clicks(page):
    """The sample routes by the value rule, so its knob is V."""
    click = Clicks(page)
    click("link", "Tune")
    click("spinbutton", "V: one more resolved query is worth, USD")
    page.keyboard.press("Control+A")
    page.keyboard.type("0.1")
    page.keyboard.press("Enter")
    page.wait_for_url("**v=0.1*")
    page.get_by_text("Cost per query").first.wait_for()
    assert click.count == 2


def test_a_file_is_answered_made_a_catalog_and_learned_in_four_clicks_each(page, tmp_path):
    rng = np.random.default_rng(3)
    file = tmp_path / "mine.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["query_id", "text", "model", "quality", "cost_usd"])
        for query in range(60):
            for at, model in enumerate(MODELS):
                passed, cost = int(rng.random() < 0.5 + 0.1 * at), 0.001 * 3**at
                writer.writerow([f"q{query}", f"Question {query}", model, passed, cost])
    click = Clicks(page)
    click("button", "Import a file")
    page.get_by_text("What do you have?").wait_for()
    upload(page, file)
    click.count += 1  # the file itself
    page.get_by_text("First rows, as they will be read").wait_for()
    click("button", "Import")
    page.get_by_text("Nothing was left out").wait_for()
    click("button", "Can routing help?")
    page.get_by_text("Possible gain").wait_for()
    assert "60 queries" in page.get_by_label("The router sends them to").input_value()
    assert click.count == 4

    click = Clicks(page)
    click("link", "Make a catalog")
    click("button", "Make a catalog")
    page.get_by_text("Prices of 5 of 5 models are missing").wait_for()
    prices = tmp_path / "prices.yaml"
    lines = (f"  {model}: {{input: 1, output: {4 + at}}}" for at, model in enumerate(MODELS))
    prices.write_text("\n".join(["models:", *lines]), encoding="utf-8")
    upload(page, prices)
    click.count += 1
    page.get_by_text("Profiles and").wait_for()
    click("button", "Publish and open Tune")
    page.get_by_text("Threshold τ").first.wait_for()
    assert click.count == 4

    click = Clicks(page)
    click("link", "Tune")
    click("radio", "Learned")
    click("button", "Learn")
    click("button", "Take it")
    page.get_by_text("in your draft").wait_for()
    assert click.count == 4


def test_a_log_becomes_an_eval_set_in_three_clicks(page):
    click = Clicks(page)
    click("link", "Live")
    click("radio", "Log")
    click("button", re.compile("Make an eval set of 40 requests"))
    page.get_by_role("heading", name="Eval sets", exact=True).wait_for()
    assert click.count == 3


def test_a_price_is_published_in_four_clicks_and_taken_back_in_three(page):
    click = Clicks(page)
    click("link", "Catalog")
    wait_until_drawn(page)
    for price, revision in (("31", 1), ("32", 2)):
        open_cell(page, INPUT_PRICE[0], 0, INPUT_PRICE[1], price)
        click.count += 1
        page.keyboard.press("Enter")
        page.get_by_text("Draft: 1 change").wait_for()
        click("link", "Releases")
        click("button", f"Publish revision {revision}")
        page.get_by_text(f"Revision {revision} is published").wait_for()
        assert click.count == 4
        if revision == 1:
            click("link", "Catalog")
            wait_until_drawn(page)
            click.count = 1
    click.count = 0
    click("radio", "History")
    page.wait_for_timeout(1500)
    box = page.get_by_test_id("stDataFrame").first.bounding_box()
    page.mouse.click(box["x"] + 18, box["y"] + 35 + 35 * 1.5)
    click.count += 1
    click("button", "Publish it again as revision 3")
    page.get_by_text("Revision 3 is published").wait_for()
    assert click.count == 3
