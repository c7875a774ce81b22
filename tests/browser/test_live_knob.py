"""The knob of Tune follows the hand: what is shown at a step is the evaluation at that setting."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hydra_core.base.shipped import CATALOGS, SAMPLE_DATA
from hydra_core.catalog.schema import load_catalog
from hydra_core.console import browser
from hydra_core.console.view_result import tiles
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.scores import load_scores
from hydra_core.replay.evaluation import evaluate
from hydra_core.replay.sweep import sweep_catalog
from tests.browser.conftest import PATIENCE_MS, at_rest

pytestmark = pytest.mark.browser

LINK = "/tune?set=paper_swebench&catalog=paper_five_published&tau=0.24"
PLOT = ".st-key-tune-plot .js-plotly-plot"
#: Centre of the operating point's ring on the screen.
_RING = f"""() => {{
  const box = [...document.querySelectorAll('{PLOT} .scatterlayer .trace')].at(-1)
    .querySelector('path.point').getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}}"""


@pytest.fixture(scope="module")
def sweep():
    catalog = load_catalog(CATALOGS / "paper_five_published.yaml")
    evalset = load_evalset(SAMPLE_DATA / "paper_swebench")
    scores = load_scores(evalset, catalog.predictor_fingerprint)
    return sweep_catalog(evalset, catalog, scores, today=datetime.now(UTC).date())


@pytest.fixture
def knob(page):
    page.goto(LINK)
    page.wait_for_selector(PLOT)
    page.get_by_text("τ 0.24").first.wait_for()
    return page.get_by_role("slider", name="τ along the curve")


def shown(page):
    """The setting, and label -> value of every figure."""
    at = page.locator(".st-key-tune-knob .at").inner_text()
    labels, values = (
        page.locator(f".tile .{part}").all_inner_texts() for part in ("label", "value")
    )
    return float(at.removeprefix("τ ")), dict(zip(labels, values, strict=True))


def intervals(page):
    return page.locator(".tile .interval").all_inner_texts()


def grip(knob):
    """Where the thumb is on the screen, and the y of the track."""
    box, at = knob.bounding_box(), int(knob.input_value()) / int(knob.get_attribute("max"))
    return box["x"] + 8 + (box["width"] - 16) * at, box["y"] + box["height"] / 2


def test_figures_traffic_and_point_follow_a_drag_and_the_verdict_follows_its_end(page, knob, sweep):
    ring, before, link = page.evaluate(_RING), intervals(page), page.url
    told = page.locator(".st-key-tune-verdict").inner_text()
    x, y = grip(knob)
    page.mouse.move(x, y)
    page.mouse.down()
    for step in (20, 60, 100):
        page.mouse.move(x - step, y)
        tau, figures = shown(page)
        there = evaluate(sweep, tau)
        assert figures == {tile.label: tile.value for tile in tiles(there)}
        traffic = page.locator(".legend .model b").all_inner_texts()
        assert traffic == [f"{100 * there.router.shares[m]:.1f} %" for m in sweep.models]
        lift = page.locator(".lift b").inner_text().removesuffix(" pp").replace("−", "-")
        assert float(lift) == pytest.approx(100 * there.verdict.delta, abs=0.051)
    assert page.url == link  # no script ran
    assert page.locator(".st-key-tune-verdict").inner_text() == told
    assert set(intervals(page)) == {"on release"}
    moved = page.evaluate(_RING)
    assert abs(moved[0] - ring[0]) > 20
    page.mouse.up()
    page.wait_for_url(re.compile(f"tau={re.escape(repr(tau))}(&|$)"))
    page.locator(".tile .interval").first.filter(has_text="–").wait_for()
    assert intervals(page) == [tile.interval for tile in tiles(there)] != before
    assert shown(page) == (tau, figures)
    page.locator(".st-key-tune-verdict").get_by_text(there.verdict.text).wait_for()
    # plotly draws the point where the hand had moved it
    page.wait_for_function(f"x => Math.abs(({_RING})()[0] - x) <= 1", arg=moved[0])


def test_keys_move_it_and_the_last_one_released_decides(page, knob):
    knob.focus()
    for _ in range(3):
        page.keyboard.down("ArrowRight")
    tau, _ = shown(page)
    assert tau != 0.24
    assert "tau=0.24" in page.url
    assert f"τ {tau:.4g}:" in knob.get_attribute("aria-valuetext")
    page.keyboard.up("ArrowRight")
    page.wait_for_url(lambda url: "tau=0.24" not in url)
    page.locator(".tile .interval").first.filter(has_text="–").wait_for()
    page.keyboard.press("Home")
    page.wait_for_url(re.compile("tau=0.0(&|$)"))


def test_escape_takes_a_drag_back(page, knob):
    before = shown(page), intervals(page), page.evaluate(_RING)
    x, y = grip(knob)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 80, y)
    assert shown(page) != before[0]
    page.keyboard.press("Escape")
    page.mouse.up()
    assert (shown(page), intervals(page), page.evaluate(_RING)) == before
    assert "tau=0.24" in page.url


def test_a_finger_moves_it(chromium, console):
    context = chromium.new_context(
        base_url=console, has_touch=True, viewport={"width": 800, "height": 900}
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(LINK)
    page.get_by_text("τ 0.24").first.wait_for()
    knob = page.get_by_role("slider", name="τ along the curve")
    box = knob.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
    page.wait_for_url(lambda url: "tau=0.24" not in url)
    context.close()


def test_a_typed_setting_moves_the_knob(page, knob):
    at = knob.input_value()
    page.get_by_role("spinbutton", name="Threshold τ").fill("0.5")
    page.keyboard.press("Enter")
    page.get_by_text("τ 0.5").first.wait_for()
    page.wait_for_url("**tau=0.5**")
    assert int(knob.input_value()) > int(at)


def dragged_what_if(page, knob):
    """What the knob of a what-if says where it was let go, and its changes until then."""
    knob.wait_for()
    at_rest(page)  # what is drawn above the knob still moves it
    knob.scroll_into_view_if_needed()
    tiles = page.locator(".st-key-what_if-knob .tile .value")
    before = tiles.all_inner_texts()
    x, y = grip(knob)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + (150 if x < 700 else -150), y, steps=5)
    assert tiles.all_inner_texts() != before
    changes = intervals(page)
    told = page.locator(".st-key-what_if-knob .at").inner_text()
    page.mouse.up()
    page.locator(".tile .interval").first.filter(has_text="unchanged").wait_for()
    return told, changes


def test_what_a_draft_would_change_follows_the_hand(page):
    page.goto("/profiles?set=paper_swebench&catalog=paper_five_published")
    knob = page.get_by_role("slider", name="τ along the curve")
    told, changes = dragged_what_if(page, knob)
    assert set(changes) == {"0.0 pp", "$0.000"}  # nothing is edited
    tau = told.removeprefix("τ ")
    typed = page.get_by_role("spinbutton", name="At τ").input_value()
    assert float(typed) == pytest.approx(float(tau), rel=1e-3)
    page.get_by_text(f"at τ {tau}").first.wait_for()


def test_a_share_has_the_digits_that_the_rest_of_the_page_gives_it(chromium):
    """20 of 320 queries are 6.25 %: a browser writes 6.3 and Python 6.2."""
    source = (Path(browser.__file__).parent / "components" / "live_knob.js").read_text(
        encoding="utf-8"
    )
    (tenths,) = re.findall(r"const tenths = .*?;\n", source, re.S)
    values = [sign * 100 * one / n for n in (320, 7, 8_040) for one in range(n) for sign in (1, -1)]
    page = chromium.new_page()
    written = page.evaluate(f"values => {{ {tenths} return values.map(tenths); }}", values)
    page.close()
    assert written == [f"{one:.1f}" for one in values]
