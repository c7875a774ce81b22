"""WCAG 2.2 A and AA as far as axe-core can tell, on every page in both themes."""

from importlib.resources import files
from pathlib import Path

import pytest

from hydra_core.console import frame
from hydra_core.console.demo.panel import STEPS
from tests.browser.conftest import at_rest

pytestmark = pytest.mark.browser

THEMES = ("light", "dark")
RUN = """() => axe.run(
    {exclude: [['[data-testid=stSidebarNav]']]},  // Streamlit's own lists
    {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'], resultTypes: ['violations']}
).then(found => found.violations.flatMap(rule => rule.nodes.map(
    node => `${rule.id}: ${node.html.slice(0, 200)} (${node.any[0]?.message})`)))"""


#: Every page, and every part of it, as its address names it.
PLACES = sorted(
    {
        f"/{Path(place.page).stem if place != frame.HOME else ''}"
        + (f"?part={place.part}" if place.part else "")
        for place in vars(frame).values()
        if isinstance(place, frame.Place)
    }
)


@pytest.fixture(scope="module")
def visitor(chromium, console):
    """One page for all: only the first one is opened cold."""
    axe = pytest.importorskip("axe_playwright_python", reason="axe-core is not installed")
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, base_url=console)
    page = context.new_page()
    page.set_default_timeout(90_000)
    page.goto("/")
    page.wait_for_selector("[data-testid=stHeading]")
    page.evaluate((files(axe) / "axe.min.js").read_text())
    yield page
    context.close()


@pytest.mark.parametrize("address", PLACES)
def test_nothing_is_illegible_or_unnamed_in_either_theme(visitor, address):
    visitor.goto(address)
    visitor.wait_for_selector("[data-testid=stHeading]")
    legible_in_either_theme(visitor)


#: What lies behind a click: popovers, dialogs, expanders and views that a page does not open with.
OPENED = [
    ("/tune", "radio", "Numbers"),
    ("/inspect", "button", "Request"),
    ("/inspect", "button", "Link"),
    ("/inspect?part=conversation", "button", "Stickiness and prices"),
    ("/catalog", "button", "Add model"),
    ("/catalog", "button", "Import prices"),
    ("/catalog?part=profiles", "button", "From rates to capabilities"),
    ("/compare", "radio", "Queries"),
    ("/compare", "radio", "Significance"),
    ("/eval_sets?part=routing-help", "radio", "Data checks"),
    ("/eval_sets", "radio", "Import"),
]


def legible_in_either_theme(visitor):
    """Browsers let the keyboard into a box that scrolls; axe does not know it."""
    visitor.evaluate((files("axe_playwright_python") / "axe.min.js").read_text())
    for theme in THEMES:
        visitor.emulate_media(color_scheme=theme)
        at_rest(visitor)
        found = visitor.evaluate(RUN)
        assert [one for one in found if not one.startswith("scrollable-region")] == [], theme


@pytest.mark.parametrize(("address", "role", "name"), OPENED)
def test_what_a_click_opens_is_legible_in_either_theme(visitor, address, role, name):
    visitor.emulate_media(color_scheme="light")
    visitor.goto(address)
    visitor.get_by_role(role, name=name, exact=True).first.click()
    at_rest(visitor)
    legible_in_either_theme(visitor)


@pytest.mark.parametrize(
    ("address", "tab"), [("/releases?part=exports", "Export"), ("/inspect", "Receipt")]
)
def test_code_is_legible_in_either_theme(visitor, address, tab):
    """Commands, YAML and JSON in their colours; those of Streamlit fall short."""
    visitor.goto(address)
    visitor.get_by_text(tab, exact=True).click()
    visitor.locator("[data-testid=stCode] .token").first.wait_for()
    legible_in_either_theme(visitor)


def test_illegible_text_is_found(visitor):
    """The measure itself: grey on white is told."""
    visitor.emulate_media(color_scheme="light")
    at_rest(visitor)
    ground = "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    visitor.wait_for_function(f"() => {ground} === 'rgb(255, 255, 255)'")
    visitor.evaluate("document.querySelector('[data-testid=stHeading] *').style.color = '#ccc'")
    assert any("color-contrast" in told for told in visitor.evaluate(RUN))


def test_a_demos_margin_is_legible_in_either_theme(visitor):
    """The last test here: it takes the visitor to another session."""
    visitor.goto("/?demo=3")
    visitor.get_by_role("button", name="Begin", exact=True).click()
    visitor.get_by_text(STEPS[2].say).wait_for()
    visitor.evaluate((files("axe_playwright_python") / "axe.min.js").read_text())
    for theme in THEMES:
        visitor.emulate_media(color_scheme=theme)
        at_rest(visitor)
        assert visitor.evaluate(RUN) == [], theme
    visitor.get_by_role("button", name="End", exact=True).click()
    visitor.get_by_role("link", name="Demo").wait_for()
