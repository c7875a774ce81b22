"""An operator's own file, from a messy CSV to a tuned, published catalog, in a real Chromium."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.browser

MODELS = {
    "GPT 4o (May)": (0.9, 900),
    "Claude 3.5 Sonnet [new]": (0.85, 700),
    "Llama 3 8B": (0.6, 400),
}
IDS = ("gpt-4o-may", "claude-3.5-sonnet-new", "llama-3-8b")
TASKS = (
    "Fix the race condition in the reconnect code of case {}",
    "Translate the sentence number {} into French",
    "Why does the build fail with error {} after the upgrade?",
    "Write a function that merges {} sorted lists",
)
COLUMNS = {
    "Query id *": "Task #",
    "Message text *": "What was asked",
    "Model *": "System under test",
    "Quality *": "Success?",
    "Cost in USD": "Bill ($)",
}
#: Clicks and fields, prices apart, that an operator may need at most.
MOST_STEPS = 12


class Steps:
    """Counts what an operator clicks and fills in."""

    def __init__(self, page):
        self.page, self.count = page, 0

    def click(self, name, role="button"):
        self.count += 1
        self.page.get_by_role(role, name=name, exact=True).last.click()

    def upload(self, path):
        self.count += 1
        self.page.locator("input[type=file]").first.set_input_files(str(path))

    def choose(self, label, option):
        self.count += 1
        box = self.page.get_by_role("combobox", name=re.compile(f"{re.escape(label)}$"))
        box.click()
        box.fill(option)
        self.page.get_by_role("option", name=option, exact=True).click()


def messy_csv(path):
    rng = np.random.default_rng(5)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow([*COLUMNS.values(), "Prompt Tokens", "Completion Tokens"])
        for query in range(60):
            text = TASKS[query % len(TASKS)].format(query)
            for model, (share, written) in MODELS.items():
                bill = (300 * 2 + written * 8) / 1e6
                passed = int(rng.random() < share)
                writer.writerow([f"t {query}", text, model, passed, bill, 300, written])
    return path


def prices_file(path):
    lines = ["models:"]
    for name, (read, written) in zip(IDS, ((2.5, 10), (3, 15), (0.05, 0.08)), strict=True):
        lines.append(f"  {name}: {{input: {read}, output: {written}, date: 2024-08-06}}")
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def picture(page, name):
    """Light and dark, where HYDRA_SCREENSHOTS names a folder."""
    folder = os.environ.get("HYDRA_SCREENSHOTS")
    for scheme in ("light", "dark") if folder else ():
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(1200)
        page.screenshot(path=str(Path(folder) / f"{name}-{scheme}.png"))
    page.emulate_media(color_scheme="light")


def test_messy_file_to_a_tuned_published_catalog_in_few_steps(page, tmp_path):
    steps = Steps(page)
    page.goto("/eval_sets")
    steps.click("Import", role="radio")
    page.get_by_text("What do you have?").wait_for()
    steps.upload(messy_csv(tmp_path / "my results.csv"))
    page.get_by_text("What the columns mean").wait_for()
    for label, column in COLUMNS.items():
        steps.choose(label, column)
    page.get_by_text("3 of 3 names cannot be ids").wait_for()
    for proposed in IDS:
        page.locator(f"input[value='{proposed}']").wait_for()
    picture(page, "1-import")
    steps.click("Import")
    page.get_by_text("Nothing was left out").wait_for()
    picture(page, "2-imported")
    steps.click("Make a catalog")
    page.get_by_text("Prices of 3 of 3 models are missing").wait_for()
    picture(page, "3-prices-missing")
    page.locator("input[type=file]").first.set_input_files(str(prices_file(tmp_path / "p.yaml")))
    page.get_by_text("Profiles and").wait_for()
    picture(page, "4-proposed")
    steps.click("Publish and open Tune")
    page.get_by_text("Threshold τ").first.wait_for()
    page.locator("[data-testid=stPlotlyChart] .js-plotly-plot").first.wait_for()
    picture(page, "5-tune")
    assert "my_results" in page.url
    assert page.get_by_text("price edits do not change this set's costs").count() == 0
    assert steps.count <= MOST_STEPS, steps.count
