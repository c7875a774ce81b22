"""Inspect in a real Chromium: typing, the tau strip, and messages that try to be markup."""

from __future__ import annotations

import re

import pytest

from tests.hostile_messages import MARKUP

pytestmark = pytest.mark.browser

STRIP = ".st-key-inspect-strip .js-plotly-plot"


def open_inspect(page):
    page.goto("/inspect?catalog=paper_five&tau=0.24")
    page.get_by_text("Which model for every τ").wait_for()
    page.wait_for_selector(STRIP)


def route(page, text):
    box = page.get_by_role("textbox", name="Message", exact=True)
    box.fill(text)
    box.press("Control+Enter")
    page.wait_for_timeout(300)
    page.locator("[data-testid=stStatusWidget]").wait_for(state="detached")


def test_typing_a_message_routes_it_and_keeps_it_out_of_the_address(page):
    open_inspect(page)
    route(page, "thanks, a private word")
    page.get_by_text("Cheapest model within τ.").wait_for()
    assert "private" not in page.url
    assert "r=" in page.url


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
