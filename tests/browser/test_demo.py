"""The story of a demo from end to end, in a real Chromium; the workspace is untouched after it."""

import hashlib
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from hydra_core.console.demo.panel import REPRICED, STEPS
from hydra_core.store import Actor, Role, open_store
from tests.browser.conftest import PATIENCE_MS, at_rest
from tests.console import consoles
from tests.evalsets.sets import saved

pytestmark = pytest.mark.browser

ANA = Actor("ana", Role.PUBLISHER)
ROOT = Path(__file__).resolve().parents[2]
CATALOG = ROOT / "catalog" / "mixed_2024.yaml"
MOST_S = 180
LEFTOVER = ".demo.k1ll3d_x"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A workspace with a revision, somebody's draft, a pin, a note and an eval set in it."""
    folder, text = tmp_path_factory.mktemp("workspace"), CATALOG.read_text(encoding="utf-8")
    store = open_store(folder)
    store.publish("mixed_2024", text, actor=ANA, base_revision=0, note="ours")
    draft = store.drafts.start("mixed_2024", text, actor=ANA, base_revision=1)
    store.drafts.save(draft, text + "# mine\n", actor=ANA)
    store.points.pin(
        "mixed_2024", "ours", revision=1, evalset_digest="d" * 64, tau=0.1,
        weights=(1.0, 1.0, 1.0, 1.0), actor=ANA,
    )  # fmt: skip
    store.notes.add("d" * 64, "q1", "ours", actor=ANA)
    store.close()
    saved(folder / "evalsets" / "own", name="Our own")
    (folder / LEFTOVER / "samples").mkdir(parents=True)  # of a console that was killed
    return folder


@pytest.fixture(scope="module")
def console(workspace):
    """Address of a console of its own: what it must not touch is looked at."""
    with consoles.console(workspace) as (_, port):
        yield f"http://127.0.0.1:{port}"


def busy():
    """Whether others keep the machine from its work, so that no time says anything."""
    return os.getloadavg()[0] > 2 * (os.cpu_count() or 1)


def rows(workspace):
    """Every row of every table of the store."""
    file = f"file:{workspace / 'hydra.sqlite3'}?mode=ro"
    with closing(sqlite3.connect(file, uri=True)) as connection:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}


def files(workspace):
    """Path and digest of every file, without what SQLite keeps while a store is open."""
    return {
        path.relative_to(workspace).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(workspace.rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def at(page, number):
    """Wait until the margin tells this step; the address then opens it."""
    page.get_by_text(STEPS[number - 1].say).wait_for()
    page.wait_for_url(f"**demo={number}.**")
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    page.wait_for_selector("[data-stale=true]", state="detached")
    box = page.get_by_test_id("stSidebar").bounding_box()
    assert box["x"] + box["width"] <= page.get_by_test_id("stMain").bounding_box()["x"] + 1


def onwards(page, number):
    button(page, "Next").click()
    at(page, number)
    page.get_by_role("heading", name=STEPS[number - 1].where, exact=True).wait_for()


def test_the_story_is_told_in_under_three_minutes_and_leaves_no_trace(page, workspace):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/")
    page.get_by_role("heading", name="Home").wait_for()
    page.get_by_role("link", name="Demo").wait_for()
    assert not (workspace / LEFTOVER).exists()
    before, before_rows = files(workspace), rows(workspace)
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Demo").click()
    told = opened.value
    told.set_default_timeout(PATIENCE_MS)
    told.set_viewport_size({"width": 1280, "height": 800})
    faults = []
    told.on("pageerror", lambda error: faults.append(error))
    began = time.monotonic()
    button(told, "Begin").click()
    at(told, 1)
    told.get_by_text("with catalog demo").wait_for()
    told.get_by_text("A fixed mix does better here").wait_for()

    onwards(told, 2)
    told.get_by_text("Chosen model").wait_for()
    button(told, "Receipt").click()
    button(told, "Download JSON").wait_for()
    told.keyboard.press("Escape")

    onwards(told, 3)
    knob = told.get_by_role("slider").first
    knob.focus()
    at_rest(told)
    for _ in range(12):
        told.keyboard.press("ArrowRight")
    told.wait_for_url("**tau=**")

    onwards(told, 4)
    button(told, "Learn").click()
    told.get_by_text("Learning, cross-fitted").wait_for()
    told.locator(".st-key-ladder-take-heads button").first.click(timeout=300_000)
    told.get_by_text("in your draft").wait_for()

    onwards(told, 5)
    told.get_by_text("router better").wait_for()
    button(told, "Publish revision 2").click()
    told.get_by_text("Revision 2 is published").wait_for()
    button(told, "To Compare").click()
    told.get_by_text("B is better and costs no more").wait_for()
    told.reload()  # the demo goes on where it was
    at(told, 5)

    onwards(told, 6)
    told.get_by_text(f"What if: {REPRICED} at 1.5/7.5").wait_for()
    told.get_by_role("combobox", name="What if").click()
    told.get_by_role("option", name="a model is removed").click()
    told.get_by_text(f"What if: remove {REPRICED}").wait_for()

    onwards(told, 7)
    told.get_by_text("HyDRA release =====").first.wait_for()
    told.get_by_text("History", exact=True).click()
    pick_oldest(told)
    button(told, "Publish it again as revision 3").click()
    told.get_by_text("Revision 3 is published").wait_for()
    took_s = time.monotonic() - began
    assert took_s < MOST_S or busy(), f"{took_s:.0f} s"
    assert list(workspace.glob(".demo.*"))
    button(told, "End").click()
    told.get_by_role("link", name="Demo").wait_for()
    told.get_by_text("with catalog mixed_2024").wait_for()

    assert not list(workspace.glob(".demo.*"))
    assert files(workspace) == before
    assert rows(workspace) == before_rows
    assert not faults


def test_back_goes_one_step_back_with_one_press(page):
    page.goto("/?demo=1")
    button(page, "Begin").click()
    at(page, 1)
    for number in (2, 3, 4):
        onwards(page, number)
    for number in (3, 2, 1):
        page.go_back()
        at(page, number)
        page.get_by_role("heading", name=STEPS[number - 1].where, exact=True).wait_for()
    button(page, "End").click()
    page.get_by_role("link", name="Demo").wait_for()


@pytest.mark.parametrize(
    "told",
    [
        ["/tune?demo=4.t", "/learn?demo=4.t", "/learn?set=a&demo=4.t"],
        ["/tune?demo=4.t", "/tune?set=a&demo=4.t", "/learn?set=a&demo=4.t"],
    ],
    ids=["the page's name first", "what the page tells first"],
)
def test_a_step_is_one_entry_whichever_comes_first(page, told):
    page.goto("/_stcore/health?demo=3.t")
    code = (ROOT / "hydra_core/console/components/one_entry.js").read_text(encoding="utf-8")
    entries = page.evaluate(
        """async ([code, told]) => {
          const component = await import(`data:text/javascript,${encodeURIComponent(code)}`);
          component.default();
          history.pushState({}, '', '/tune?demo=3.t');
          const before = history.length;
          for (const url of told) history.pushState({}, '', url);
          return [history.length - before, location.pathname + location.search];
        }""",
        [code, told],
    )
    assert entries == [1, "/learn?set=a&demo=4.t"]


def pick_oldest(page):
    """Tick the last row of the history, on the canvas that the table is drawn on."""
    table = page.get_by_test_id("stDataFrame").first
    table.locator("[data-testid^=glide-cell]").first.wait_for(state="attached")
    at_rest(page)
    box = table.bounding_box()
    page.mouse.click(box["x"] + 18, box["y"] + 35 + 35 * 1.5)
