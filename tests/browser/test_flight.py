"""One whole flight in a real Chromium: load it, read it daily, see every day, plan the next."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from sample_data.paper_flight import users
from tests.browser.conftest import upload

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.browser


@pytest.fixture
def files(tmp_path):
    """A flight of one's own: settings and a CSV."""
    import numpy as np

    users(np.random.default_rng(3)).head(6000).to_csv(tmp_path / "users.csv", index=False)
    settings = (ROOT / "sample_data/paper_flight/flight.yaml").read_text()
    settings = settings.replace("Paper's A/B flight, synthetic", "Mine")
    (tmp_path / "flight.yaml").write_text(settings.replace("synthetic: true\n", ""))
    return tmp_path


def test_a_flight_is_loaded_read_and_planned(page, files):
    page.goto("/flight")
    expect(page.get_by_text("hydra improves on control")).to_be_visible()
    expect(page.get_by_text("Synthetic data").first).to_be_visible()
    page.get_by_role("button", name="Load an experiment").click()
    upload(page, files / "flight.yaml")
    upload(page, files / "users.csv", at=1)
    page.get_by_role("button", name="Check and load").click()
    expect(page.get_by_text("6,000").first).to_be_visible()
    expect(page.get_by_text("Synthetic data")).to_have_count(0)
    page.get_by_text("Over time", exact=True).click()
    expect(page.get_by_text("You can stop on any day")).to_be_visible()
    page.get_by_text("Once, at the end", exact=True).click()
    expect(page.get_by_text("If you stop on the first day that excludes 0")).to_be_visible()
    page.get_by_text("Plan", exact=True).click()
    expect(page.get_by_text("New users a day, all arms")).to_be_visible()


def test_a_bad_table_is_refused_with_its_place(page, files):
    frame = json.dumps({"user": "a", "arm": "nobody"})
    (files / "bad.jsonl").write_text(frame + "\n")
    page.goto("/flight")
    page.get_by_role("button", name="Load an experiment").click()
    upload(page, files / "flight.yaml")
    upload(page, files / "bad.jsonl", at=1)
    page.get_by_role("textbox", name="Name").fill("another-flight")
    page.get_by_role("textbox", name="Name").press("Tab")
    page.get_by_role("button", name="Check and load").click()
    expect(page.get_by_text("is missing").first).to_be_visible()
