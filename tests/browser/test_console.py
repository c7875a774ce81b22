"""What an operator does, in a real Chromium."""

import re
from pathlib import Path

import pytest

from hydra_core.console.frame import MOVED
from tests.browser.conftest import at_rest, upload

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
PAPER = "/tune?set=paper_swebench&catalog=paper_five_published&tau=0.24"
PLOT = "[data-testid=stPlotlyChart] .js-plotly-plot"


def figure(page, label):
    """The value of a figure: a metric, or what the live knob shows."""
    tile = page.locator("[data-testid=stMetric], .tile").filter(has_text=label)
    return tile.locator("[data-testid=stMetricValue], .value")


def kpi(page, label):
    return figure(page, label).inner_text()


def open_tune(page):
    page.goto(PAPER)
    page.wait_for_selector(PLOT)
    page.get_by_text("τ 0.24").first.wait_for()


def wait_for_change(page, label, before):
    value = figure(page, label)
    value.filter(has_not_text=re.compile(f"^{re.escape(before)}$")).wait_for()
    return value.inner_text()


def test_cold_deep_link_opens_the_page_asked_for(page):
    open_tune(page)
    assert page.get_by_role("heading", name="Tune").is_visible()
    assert not page.get_by_text("Page not found").is_visible()


@pytest.mark.parametrize("former", MOVED)
def test_a_former_address_leads_to_its_new_place_with_its_parameters(page, former):
    page.goto(f"/{former}?catalog=paper_five_published&set=paper_swebench")
    place = MOVED[former]
    title = Path(place.page).stem.replace("_", " ").capitalize()
    page.get_by_role("heading", name=title, exact=True).wait_for()
    page.wait_for_url(re.compile("catalog=paper_five_published"))
    if place.part:
        page.wait_for_url(re.compile(f"part={place.part}"))
    assert not page.get_by_text("Page not found").is_visible()


def test_click_on_the_curve_sets_tau(page):
    open_tune(page)
    before = kpi(page, "Cost per query")
    traces = [t.locator("path.point") for t in page.locator(f"{PLOT} .scatterlayer .trace").all()]
    curve = max(traces, key=lambda points: points.count())
    box = curve.nth(5).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator(f"{PLOT} .hoverlayer .hovertext").first.wait_for()  # else a click has no point
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert wait_for_change(page, "Cost per query", before) != before


def test_back_takes_tau_back(page):
    open_tune(page)
    page.get_by_role("spinbutton", name="Threshold τ").fill("0.5")
    page.keyboard.press("Enter")
    page.get_by_text("τ 0.5").first.wait_for()
    page.wait_for_url("**tau=0.5**")
    page.go_back()
    page.get_by_text("τ 0.24").first.wait_for()
    page.go_forward()
    page.get_by_text("τ 0.5").first.wait_for()


def test_each_press_of_back_leads_one_page_back(page):
    page.goto("/")
    names = ("Inspect", "Catalog", "Eval sets", "Tune", "Compare")

    def arrived(name):
        page.get_by_role("heading", level=1).filter(has_text=name).first.wait_for()
        if name == "Inspect":  # its address is whole when its message is scored
            page.wait_for_url(lambda url: "r=" in url)
        at_rest(page)

    arrived("Home")
    for name in names:
        page.get_by_test_id("stSidebarNavLink").filter(has_text=name).click()
        arrived(name)
    for name in (*names[-2::-1], "Home"):
        page.go_back()
        arrived(name)
    page.go_forward()
    arrived("Inspect")


@pytest.mark.parametrize(
    ("told", "entries"),
    [
        (["/a?x=1", "/a?y=2"], ["/"]),
        (["press page", "/a?x=1", "press link", "/b"], ["/", "/a", "/a?x=1"]),
        (["press link", "/a?x=1", "/b"], ["/", "/a?x=1"]),
        (["press link", "/a?y=2", "/b?y=2", "/b?y=2&z=3"], ["/", "/a"]),
        (["press page", "/a?y=2", "/b?y=2"], ["/", "/a"]),
    ],
    ids=[
        "what a page tells by itself",
        "what was pressed on a page",
        "what a page tells after a link was pressed",
        "a link's parameters before its page",
        "a button's parameters before its page",
    ],
)
def test_an_entry_of_the_history_is_what_was_pressed(page, told, entries):
    page.goto("/_stcore/health")
    code = (ROOT / "hydra_core/console/components/back_button.js").read_text(encoding="utf-8")
    page.evaluate(
        """async ([code, told]) => {
          history.replaceState({}, '', '/');
          history.pushState({}, '', '/a');
          const component = await import(`data:text/javascript,${encodeURIComponent(code)}`);
          component.default();
          const link = Object.assign(document.createElement('a'), {href: '/b'});
          document.body.append(link);
          for (const one of told) {
            if (!one.startsWith('press')) { history.pushState({}, '', one); continue; }
            const on = one.endsWith('link') ? link : document.body;
            on.dispatchEvent(new Event('pointerdown', {bubbles: true}));
          }
        }""",
        [code, told],
    )
    assert addresses_before(page, len(entries)) == entries


def addresses_before(page, count):
    """Press Back so often; the addresses it led to, the first one first."""
    found = []
    for _ in range(count):
        page.evaluate("new Promise(r => { addEventListener('popstate', r); history.back(); })")
        found.insert(0, page.evaluate("location.pathname + location.search"))
    return found


def test_a_link_pressed_before_the_console_listens_makes_an_entry(page):
    page.goto("/_stcore/health")
    page.mouse.click(5, 5)
    code = (ROOT / "hydra_core/console/components/back_button.js").read_text(encoding="utf-8")
    page.evaluate(
        """async code => {
          history.replaceState({}, '', '/');
          const component = await import(`data:text/javascript,${encodeURIComponent(code)}`);
          component.default();
          for (const one of ['/?x=1', '/a', '/a?y=2']) history.pushState({}, '', one);
        }""",
        code,
    )
    assert addresses_before(page, 1) == ["/?x=1"]


def test_back_passes_over_an_entry_that_completes_itself(page):
    page.goto("/_stcore/health")
    code = (ROOT / "hydra_core/console/components/back_button.js").read_text(encoding="utf-8")
    page.evaluate(
        """async (code) => {
          history.replaceState({}, '', '/');
          for (const url of ['/a', '/a?x=1']) history.pushState({}, '', url);
          const component = await import(`data:text/javascript,${encodeURIComponent(code)}`);
          component.default();
          addEventListener('popstate', () => {
            if (location.pathname === '/a') history.pushState({}, '', '/a?x=1');
          });
          history.back();
        }""",
        code,
    )
    page.wait_for_function("location.pathname + location.search === '/'")


def test_state_survives_a_page_change(page):
    open_tune(page)
    page.get_by_role("spinbutton", name="Threshold τ").fill("0.5")
    page.keyboard.press("Enter")
    page.get_by_text("τ 0.5").first.wait_for()
    here = kpi(page, "Quality retention")
    page.get_by_role("link", name="Home").click()
    page.get_by_role("heading", name="Home").wait_for()
    page.get_by_text("What to do next").wait_for()
    assert kpi(page, "Quality retention") == here
    page.get_by_role("link", name="Tune").first.click()
    page.get_by_text("τ 0.5").first.wait_for()
    assert kpi(page, "Quality retention") == here


def upload_table(page, models, name="traffic"):
    rows = [
        f"q{i},Please fix bug {i} in the parser,{model},{(i * 7 + j) % 2},{0.01 * (j + 1)}"
        for i in range(40)
        for j, model in enumerate(models)
    ]
    text = "\n".join(["id,prompt,model,score,cost", *rows])
    page.goto("/eval_sets")
    page.get_by_text("Import", exact=True).click()
    table = {"name": f"{name}.csv", "mimeType": "text/csv", "buffer": text.encode()}
    upload(page, table)
    page.get_by_text("What the columns mean").wait_for()
    at_rest(page)  # a click while the page still runs is lost
    page.locator("[class*=st-key-eval_sets-import] button").click()


def test_a_table_is_imported_scored_and_tuned(page):
    upload_table(page, ("gpt-5.4-mini", "gpt-5.4"))
    page.get_by_text("traffic is imported").wait_for()
    page.get_by_text("Kept 40 queries with 80 outcomes of 2 models").wait_for()
    page.get_by_role("button", name="Open it").click()
    page.get_by_role("button", name="Score 40 queries").click()
    page.get_by_role("button", name="Tune on this set").click()
    page.get_by_role("heading", name="Tune").wait_for()
    page.wait_for_selector(PLOT)
    page.locator(".legend .model").nth(4).wait_for()  # the whole pool, outcomes or not


def test_markup_in_a_model_name_is_text_where_it_is_read_and_where_it_is_refused(page):
    models = ("gpt-5.4-mini", "<img src=x onerror=alert(1)>")
    upload_table(page, models, "markup")
    page.get_by_text("markup is imported").wait_for()
    assert page.locator("img[src=x]").count() == 0
    upload_table(page, models, "markup")  # a set of that name is there now
    page.get_by_text("Nothing was changed.").wait_for()
    assert page.locator("img[src=x]").count() == 0


def test_every_page_fits_its_width(page):
    for width in (1280, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        for path in ("/", PAPER, "/eval_sets"):
            page.goto(path)
            page.wait_for_selector(PLOT)
            inner, outer = page.evaluate(
                "() => { const main = document.querySelector('[data-testid=stMain]');"
                " return [main.scrollWidth, main.clientWidth]; }"
            )
            assert inner <= outer + 1, path


def test_tiles_and_parts_are_whole_in_a_narrow_window(page):
    page.set_viewport_size({"width": 700, "height": 900})
    for address in ("/inspect?part=conversation", "/live?part=experiments"):
        page.goto(address)
        page.locator("[data-testid=stMetric]").first.wait_for()
        at_rest(page)
        cut = """() => [...document.querySelectorAll(
            '[data-testid=stMetric] .stMarkdownEllipsis, [data-testid=stColumn] [role=radiogroup]')]
            .filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.innerText)"""
        assert page.evaluate(cut) == []
