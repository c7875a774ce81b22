"""Inspect in a real Chromium: typing, the tau strip, and messages that try to be markup."""

import re

import pytest

from tests.browser.conftest import FRAMES, at_rest
from tests.hostile_messages import MARKUP

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

STRIP = ".st-key-inspect-strip-shortfall .js-plotly-plot"


def open_inspect(page):
    page.goto("/inspect?catalog=paper_five&tau=0.24")
    page.get_by_text("Which model for every τ").wait_for()
    page.wait_for_selector(STRIP)


def route(page, text):
    box = page.get_by_role("textbox", name="Message", exact=True)
    box.fill(text)
    box.press("Control+Enter")
    at_rest(page)


def test_typing_a_message_routes_it_and_keeps_it_out_of_the_address(page):
    open_inspect(page)
    route(page, "thanks, a private word")
    page.get_by_text("Cheapest model within τ.").wait_for()
    assert "private" not in page.url
    assert "r=" in page.url


def test_the_card_is_never_blank_while_a_message_is_routed(page):
    open_inspect(page)
    for text in ("Prove that 17 is prime.", "thanks"):
        page.get_by_role("textbox", name="Message", exact=True).fill(text)
        page.evaluate(FRAMES)
        page.get_by_role("button", name="Route", exact=True).click()
        _, blank = page.evaluate("window.__frames")
        assert blank == 0


def test_a_click_on_the_strip_sets_tau(page):
    open_inspect(page)
    page.locator(STRIP).scroll_into_view_if_needed()
    box = page.locator(STRIP).bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + 45)
    page.wait_for_url(re.compile(r"tau=(?!0\.24(&|$))"))
    assert page.get_by_test_id("stNumberInputField").input_value() != "0.2400"


def test_markup_in_a_message_is_text(page):
    open_inspect(page)
    title = page.title()
    for text in MARKUP[:8]:
        route(page, text)
        assert page.title() == title
        assert page.locator("#owned, iframe[srcdoc], img[src=x], a[href^=javascript]").count() == 0
        assert page.get_by_text("Chosen model").is_visible()


def line(page):
    """Where the strip's line stands on the screen."""
    box = page.locator(f"{STRIP} .shapelayer path").bounding_box()
    return box["x"] + box["width"] / 2


def test_the_strip_and_the_chosen_model_follow_a_drag_and_the_page_its_end(page):
    open_inspect(page)
    knob = page.get_by_role("slider", name="τ along the curve")
    knob.scroll_into_view_if_needed()
    link, before = page.url, line(page)
    model = page.locator(".message b")
    was = model.inner_text()
    box = knob.bounding_box()
    x = (
        box["x"]
        + 8
        + (box["width"] - 16) * int(knob.input_value()) / int(knob.get_attribute("max"))
    )
    y = box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 9, y, steps=5)
    assert model.inner_text() != was  # the cheapest model, where everything is acceptable
    assert abs(line(page) - (box["x"] + box["width"] - 9)) < 5  # under the hand
    assert line(page) - before > 50
    assert page.url == link  # no script ran
    page.keyboard.press("Escape")
    page.mouse.up()
    assert (model.inner_text(), page.url) == (was, link)
    assert line(page) == pytest.approx(before, abs=1)
    knob.focus()
    page.keyboard.press("End")
    page.wait_for_url(re.compile(r"tau=(?!0\.24(&|$))"))
    assert model.inner_text() != was
    expect(page.locator(".st-key-inspect-decision h1")).to_have_text(model.inner_text())
