"""A pool from an operator's own messy file, published and served, in a real Chromium."""

import csv
import json
import os
import re
import subprocess
import sys
from collections import Counter
from contextlib import closing
from datetime import date
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest

from hydra_core.catalog.schema import parse_catalog
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.replay.replay import catalog_scores
from hydra_core.replay.sweep import sweep_catalog
from hydra_core.store import open_store
from tests.browser.conftest import at_rest, upload
from tests.browser.grid import INPUT_PRICE, type_into_cell, wait_until_drawn
from tests.console import consoles

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
    "Query id": "Task #",
    "Message text *": "What was asked",
    "Model *": "System under test",
    "Quality *": "Success?",
    "Cost": "Bill ($)",
}
#: Clicks and fields, prices apart, that an operator may need at most.
MOST_STEPS = 12
QUERIES = 300
NEWCOMER = "mistral-next"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="module")
def console(workspace):
    """One of its own: it is published to."""
    with consoles.console(workspace) as (_, port):
        yield f"http://127.0.0.1:{port}"


class Steps:
    """Counts what an operator clicks and fills in."""

    def __init__(self, page):
        self.page, self.count = page, 0

    def click(self, name, role="button"):
        self.count += 1
        self.page.get_by_role(role, name=name, exact=True).last.click()

    def upload(self, path):
        self.count += 1
        upload(self.page, path)

    def choose(self, label, option):
        self.count += 1
        box = self.page.get_by_role("combobox", name=re.compile(f"{re.escape(label)}$"))
        box.click()
        box.fill(option)
        self.page.get_by_role("option", name=option, exact=True).click()


def text_of(query):
    return TASKS[query % len(TASKS)].format(query)


def messy_csv(path):
    rng = np.random.default_rng(5)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow([*COLUMNS.values(), "Prompt Tokens", "Completion Tokens"])
        for query in range(QUERIES):
            for model, (share, written) in MODELS.items():
                bill = (300 * 2 + written * 8) / 1e6
                passed = int(rng.random() < share)
                writer.writerow([f"t {query}", text_of(query), model, passed, bill, 300, written])
    return path


WIDE_IDS = ("gpt-4o-may", "sonnet-3.5", "llama-3-8b")


def wide_csv(path):
    """Columns for each model under headers for people, every one written in its own way."""
    rng = np.random.default_rng(5)
    models = ("GPT 4o (May)", "Sonnet 3.5", "Llama 3 8B")
    header = ["Ticket #", "What the customer asked"]
    header += [f"{models[0]} correct", f"{models[0]} $", f"{models[1]} score (%)"]
    header += [f"{models[1]} cost (€)", f"{models[1]} input tokens", f"{models[1]} output tokens"]
    header += [f"{models[2]} passed?", f"{models[2]} cost (cents)", "Comment"]
    rows = []
    for query in range(60):
        good = rng.random(3) < [0.9, 0.85, 0.6]
        rows.append([f"T-{query}", TASKS[query % len(TASKS)].format(query)])
        rows[-1] += ["yes" if good[0] else "no", f"${rng.uniform(0.01, 0.02):.4f}"]
        rows[-1] += [
            "100 %" if good[1] else "12,5 %",
            f"{rng.uniform(5, 9) / 1e3:.5f}".replace(".", ","),
        ]
        rows[-1] += ["1,234", "567", "pass" if good[2] else "fail", "0.05", "seen by Kim"]
    rows[7][2] = rows[8][4] = rows[9][5] = ""  # missing cells
    rows += [rows[20], rows[21]]  # doubled rows
    with path.open("w", newline="", encoding="utf-8-sig") as stream:
        csv.writer(stream).writerows([header, *rows])
    return path


def prices_file(path, ids=IDS):
    lines = ["models:"]
    for name, (read, written) in zip(ids, ((2.5, 10), (3, 15), (1, 4)), strict=True):
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


def test_what_a_pool_from_a_messy_file_shows_is_what_serve_does(page, workspace, tmp_path):
    build_the_pool(page, Steps(page), tmp_path)
    preview = add_a_model_without_outcomes_and_edit_a_price(page)
    release = publish(page)
    assert preview == release[NEWCOMER] > 0
    assert release == reported(workspace)
    served = list(served_models(workspace, [text_of(query) for query in range(QUERIES)]))
    assert {model: percent(count / QUERIES) for model, count in Counter(served).items()} == release
    assert served == replayed_models(workspace)


def build_the_pool(page, steps, tmp_path):
    """From the file to a published catalog, in few steps."""
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
    upload(page, prices_file(tmp_path / "p.yaml"))
    page.get_by_text("Profiles and").wait_for()
    picture(page, "4-proposed")
    steps.click("Publish and open Tune")
    page.get_by_text("Threshold τ").first.wait_for()
    page.locator("[data-testid=stPlotlyChart] .js-plotly-plot").first.wait_for()
    picture(page, "5-tune")
    page.wait_for_url("**my_results**")
    assert page.get_by_text("price edits do not change this set's costs").count() == 0
    assert steps.count <= MOST_STEPS, steps.count


def percent(share):
    return round(100 * share, 1)


def add_a_model_without_outcomes_and_edit_a_price(page):
    """Share of the traffic that the catalog's page announces for the newcomer, in percent."""
    page.get_by_role("link", name="Catalog", exact=True).click()
    wait_until_drawn(page)
    page.get_by_role("button", name="Add model").click()
    page.get_by_label("Model id").click()
    for typed in (NEWCOMER, "mistral", "0.2", "0.9", "200000"):
        page.keyboard.type(typed)
        page.keyboard.press("Tab")
    page.get_by_role("spinbutton", name="How often does it solve").click()
    page.keyboard.type("80")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Add to the draft").click()
    page.get_by_text(f"of the queries go to {NEWCOMER}, without outcomes").first.wait_for()
    wait_until_drawn(page)
    type_into_cell(page, INPUT_PRICE[0], 0, INPUT_PRICE[1], "2.75")
    page.get_by_text("Draft: 2 changes").wait_for()
    picture(page, "6-draft")
    said = page.get_by_text(f"of the queries go to {NEWCOMER}, without outcomes").first.inner_text()
    return float(re.search(r"([\d.]+) % of the queries go to", said)[1])


def publish(page):
    """Traffic by model that the release shows, in percent."""
    page.get_by_role("link", name="Releases", exact=True).click()
    page.get_by_text("changes to what is published").wait_for()
    at_rest(page)
    shown = {}
    for line in page.get_by_role("row").filter(has_text="Traffic to").all():
        label, _, new, _ = line.get_by_role("cell").all_inner_texts()
        shown[label.removeprefix("Traffic to ").removesuffix(" (no outcomes)")] = float(new[:-2])
    picture(page, "7-release")
    assert page.get_by_role("button", name="Publish revision 2").is_disabled()
    page.get_by_text("of the traffic to models without outcomes").click()
    page.get_by_role("button", name="Publish revision 2").click()
    page.get_by_text("Revision 2 is published").first.wait_for()
    return {model: share for model, share in shown.items() if share}


def program(workspace, *words):
    """How the program is started beside the console."""
    environ = os.environ | {"HYDRA_WORKSPACE": str(workspace), "PYTHONPATH": str(consoles.ROOT)}
    return {"args": [sys.executable, "-m", "hydra_core", *words], "env": environ, "text": True}


def reported(workspace):
    """Traffic by model in the report of what is published, in percent."""
    words = ("evaluate", "my_results", "--catalog", "my_results", "--json")
    done = subprocess.run(**program(workspace, *words), capture_output=True, check=True)
    shares = json.loads(done.stdout)["router"]["shares"]
    return {model: percent(share) for model, share in shares.items() if share}


def replayed_models(workspace):
    """The model of each query, replayed as the pages do."""
    evalset = load_evalset(workspace / "evalsets" / "my_results")
    with closing(open_store(workspace)) as store:
        catalog = parse_catalog(store.newest("my_results").yaml, "my_results")
    sweep = sweep_catalog(evalset, catalog, catalog_scores(evalset, catalog), today=date.today())
    ids = [f"t {query}" for query in range(QUERIES)]
    chosen = dict(zip(sweep.data.query_ids, sweep.served(catalog.policy.tau), strict=True))
    return [sweep.data.pool.ids[chosen[one]] for one in ids]


def served_models(workspace, texts):
    """The model that `serve` chooses for each message."""
    port = consoles.free_port()
    words = ("serve", "--catalog", "store:my_results", "--port", str(port))
    service = subprocess.Popen(**program(workspace, *words), stderr=subprocess.PIPE)
    try:
        consoles.wait_for(f"http://127.0.0.1:{port}/health/live", service)
        with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as line:
            for text in texts:
                asked = {"model": "auto", "messages": [{"role": "user", "content": text}]}
                line.request("POST", "/v1/decision", json.dumps(asked))
                answer = line.getresponse()
                body = answer.read()
                assert answer.status == 200, body
                yield json.loads(body)["model"]
    finally:
        service.terminate()
        service.communicate(timeout=60)


def test_wide_table_with_euros_and_percents_to_a_tuned_catalog(page, tmp_path):
    steps = Steps(page)
    page.goto("/eval_sets")
    steps.click("Import", role="radio")
    page.get_by_text("What do you have?").wait_for()
    steps.upload(wide_csv(tmp_path / "support answers.csv"))
    page.get_by_text("Say how many USD one EUR was.").wait_for()
    steps.count += 1
    page.get_by_role("spinbutton", name="USD per EUR").fill("1.25")
    page.keyboard.press("Enter")
    page.get_by_text("Say how many USD one EUR was.").wait_for(state="detached")
    picture(page, "6-wide")
    steps.click("Import")
    page.get_by_text("Kept 60 queries with 178 outcomes of 3 models").wait_for()
    page.get_by_text("outcome that an earlier row holds too").wait_for(state="attached")
    picture(page, "7-wide-imported")
    steps.click("Make a catalog")
    page.get_by_text("Prices of 3 of 3 models are missing").wait_for()
    prices = prices_file(tmp_path / "p.yaml", WIDE_IDS)
    upload(page, prices)
    page.get_by_text("Profiles and").wait_for()
    steps.click("Publish and open Tune")
    page.get_by_text("Threshold τ").first.wait_for()
    page.locator("[data-testid=stPlotlyChart] .js-plotly-plot").first.wait_for()
    picture(page, "8-wide-tune")
    assert "support_answers" in page.url
    assert steps.count <= MOST_STEPS, steps.count
