"""Robustness in a real Chromium: paste messages, attack, look along the knob and at one message."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

MESSAGES = "Please sort this list.\nRename this variable.\nBitte sortiere diese Liste.\n"


def test_messages_are_attacked_and_looked_at(page):
    page.goto("/robustness?set=console_demo&catalog=paper_five")
    expect(page.get_by_text("Can a user talk this router into an expensive model?")).to_be_visible()
    page.get_by_role("radio", name="Pasted").click()
    box = page.get_by_label("One message a line")
    box.fill(MESSAGES)
    box.press("Control+Enter")
    attack = page.get_by_role("button", name="Attack", exact=True)
    expect(attack).to_be_enabled()
    attack.click()
    expect(page.get_by_text("of 3 messages", exact=True)).to_be_visible()
    page.get_by_role("radio", name="Along the knob").click()
    plot = page.locator("[data-testid=stPlotlyChart]")
    expect(plot.get_by_text("τ 0.24")).to_be_visible()
    expect(plot.get_by_text("Attacks that succeed")).to_be_visible()
    page.get_by_role("radio", name="Messages").click()
    expect(page.get_by_text("The receipt records this; it changes no route.")).to_be_visible()
    table = page.locator("[data-testid=stDataFrame]")
    expect(table).to_be_visible()
    bounds = table.bounding_box()
    assert bounds["x"] + bounds["width"] <= 1280
    table.click(position={"x": 15, "y": 50})
    expect(page.get_by_text("Select a row to read")).to_have_count(0)
    expect(page.get_by_text("was scored").or_(page.get_by_text("not scored."))).to_be_visible()
