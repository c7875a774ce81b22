"""One whole audit in a real Chromium: draw, rate by keyboard, undo, resume, agreement."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import at_rest

pytestmark = pytest.mark.browser
DIMENSIONS = ("Reasoning", "Code generation", "Debugging", "Tool use")


def rate(page, scores, done, total, *, fresh=True):
    """Score the message on screen and save by keyboard."""
    at_rest(page)  # a click on what is about to be drawn again may be lost
    if fresh:  # the form of the message before is gone
        expect(page.get_by_role("button", name="Save")).to_be_disabled()
    for name, score in zip(DIMENSIONS, scores, strict=True):
        group = page.get_by_test_id("stButtonGroup").filter(has_text=name)
        group.get_by_role("radio", name=str(score), exact=True).click()
    expect(page.get_by_role("button", name="Save")).to_be_enabled()
    at_rest(page)  # a key pressed while the page is drawn again may be lost
    page.keyboard.press("Alt+s")
    expect(page.get_by_text(f"{done} of {total} rated")).to_be_visible()


def test_a_sample_is_drawn_rated_and_compared(page):
    page.goto("/audit?set=console_demo&catalog=paper_five")
    page.get_by_label("Name").fill("browser audit")
    page.get_by_label("Messages").fill("6")
    page.get_by_label("Messages").press("Tab")
    page.get_by_role("button", name="Draw").click()
    expect(page.get_by_text("0 of 6 rated")).to_be_visible()
    for done in range(1, 6):
        rate(page, (1 + done % 5, 2, 1 + done % 3, 1), done, 6)
    at_rest(page)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("4 of 6 rated")).to_be_visible()
    rate(page, (5, 3, 2, 4), 5, 6, fresh=False)  # it comes back with its scores
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    at_rest(page)
    page.get_by_role("button", name="Skip").click()
    expect(page.get_by_text("1 skipped")).to_be_visible()
    page.reload()  # resumes
    expect(page.get_by_text("5 of 6 rated")).to_be_visible()
    page.get_by_text("Agreement", exact=True).click()
    expect(page.get_by_text("5 messages, rated by")).to_be_visible()
