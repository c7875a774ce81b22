"""From an edited price to the history, in a real Chromium."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from tests.browser.conftest import PATIENCE_MS
from tests.browser.grid import INPUT_PRICE, type_into_cell, wait_until_drawn

pytestmark = pytest.mark.browser

HERE = "set=console_demo&catalog=paper_five"
CODEX = 2


def test_an_edited_price_is_weighed_published_and_remembered(page):
    page.goto(f"/catalog?{HERE}")
    wait_until_drawn(page)
    page.get_by_text("Edit a cell to see its effect").wait_for()
    type_into_cell(page, INPUT_PRICE[0], CODEX, INPUT_PRICE[1], "30")
    page.get_by_text("Draft: 1 change").wait_for()
    page.get_by_text(re.compile(r"of 640 queries \(.* %\) change their model")).wait_for()

    page.reload()
    page.get_by_text("Draft: 1 change").wait_for()
    page.get_by_role("link", name="Releases", exact=True).click()
    page.get_by_text("1 change to the file").wait_for()
    page.get_by_label("Note: why this change").fill("codex costs more now")
    page.keyboard.press("Control+Enter")
    page.get_by_role("button", name="Publish revision 1").click()
    page.get_by_text("Revision 1 is published").first.wait_for()
    page.get_by_text("History", exact=True).click()
    page.get_by_text("This is what is published").wait_for()
    note = page.locator("[data-testid^=glide-cell]", has_text="codex costs more now")
    note.first.wait_for(state="attached")


def test_prices_typed_one_after_another_are_all_kept(page):
    page.goto("/catalog?part=models&set=console_demo&catalog=paper_eight")
    wait_until_drawn(page)
    box = page.locator("[data-testid=stDataFrame]").first.bounding_box()
    page.mouse.click(box["x"] + INPUT_PRICE[1], box["y"] + 54)
    typed = ["411", "422", "433", "444", "455", "466"]
    for row, price in enumerate(typed):  # thirty keys a second, into the cell below with each Enter
        page.locator(f"#glide-cell-3-{row}[aria-selected=true]").wait_for(state="attached")
        page.keyboard.type(price, delay=30)
        page.wait_for_function("v => document.querySelector('.gdg-input')?.value === v", arg=price)
        page.keyboard.press("Enter")
    page.get_by_text("Draft: 6 changes").wait_for()
    page.reload()
    wait_until_drawn(page)
    rows = range(len(typed))
    assert [page.locator(f"#glide-cell-3-{row}").inner_text().strip() for row in rows] == typed


@pytest.mark.parametrize("delay", [60, 90, 140])
def test_the_first_edit_of_a_page_is_kept_however_fast_it_is_typed(page, delay):
    page.goto("/catalog?part=models&set=console_demo&catalog=paper_five")
    wait_until_drawn(page)
    box = page.locator("[data-testid=stDataFrame]").first.bounding_box()
    page.mouse.click(box["x"] + INPUT_PRICE[1], box["y"] + 54)
    page.locator("#glide-cell-3-0[aria-selected=true]").wait_for(state="attached")
    page.keyboard.type("0.4321", delay=delay)
    page.keyboard.press("Enter")
    page.get_by_text("Draft: 1 change").wait_for()
    assert page.locator("#glide-cell-3-0").inner_text().strip() == "0.4321"
    page.get_by_role("button", name="Discard").click()  # other tests look at this catalog
    page.get_by_text("No unpublished edits").wait_for()


def test_what_is_typed_right_after_a_double_click_is_kept_whatever_its_spelling(page):
    page.goto(f"/catalog?{HERE}")
    wait_until_drawn(page)
    box = page.locator("[data-testid=stDataFrame]").first.bounding_box()
    typed = ["0.77", "1,5", "2e-2", "$.5"]
    for row, price in enumerate(typed):  # the first of a page loads the input
        page.mouse.dblclick(box["x"] + INPUT_PRICE[1], box["y"] + 36 + row * 36 + 18)
        page.keyboard.type(price)
        page.keyboard.press("Enter")
        page.get_by_text(f"Draft: {row + 1} change").wait_for()
        wait_until_drawn(page)
    page.reload()
    wait_until_drawn(page)
    prices = [page.locator(f"#glide-cell-3-{row}").inner_text().strip() for row in range(4)]
    assert prices == ["0.77", "1.5", "0.02", "0.5"]
    page.get_by_role("button", name="Discard").click()  # other tests look at this catalog
    page.get_by_text("No unpublished edits").wait_for()


def test_what_is_no_number_stays_in_its_cell_and_is_named(page):
    page.goto(f"/catalog?{HERE}")
    wait_until_drawn(page)
    for row, price in enumerate(("3k", "1/2")):
        column, x = (INPUT_PRICE[0] + row, INPUT_PRICE[1] + 260 * row)  # a Check column comes
        type_into_cell(page, column, row, x, price)
        page.get_by_text(f"{row + 1} cell").first.wait_for()
        page.get_by_role("alert").filter(
            has_text=f"must be a number, got the text '{price}'"
        ).wait_for()
        wait_until_drawn(page)
    assert [page.locator(f"#glide-cell-4-{row}").inner_text() for row in range(2)] == ["3k", "1/2"]
    page.get_by_role("button", name="Discard").click()  # other tests look at this catalog
    page.get_by_text("No unpublished edits").wait_for()


def test_a_decimal_comma_in_a_field_is_read_as_such_and_one_of_thousands_is_not(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/catalog?{HERE}")
    wait_until_drawn(page)
    page.get_by_role("button", name="Add model").click()
    price = page.get_by_role("spinbutton", name="Input price, USD / Mtok")
    window = page.get_by_role("spinbutton", name="Context window, tokens")
    for field, typed in ((price, "1,25"), (window, "200,000")):
        field.click()
        page.keyboard.type(typed)
        page.keyboard.press("Tab")
    assert (price.input_value(), window.input_value()) == ("1.25", "200000")
    for key in ("Control+a", "Delete", "2", ",", "5", "Tab"):
        price.press(key)
    assert price.input_value() == "2.5"
    page.evaluate("() => navigator.clipboard.writeText('0,75')")
    for key in ("Control+a", "Control+v"):
        price.press(key)
    assert price.input_value() == "0.75"


def test_two_tabs_edit_one_draft_and_no_edit_is_lost(page):
    other = page.context.new_page()
    other.set_default_timeout(PATIENCE_MS)
    for tab in (page, other):
        tab.goto("/catalog?part=models&set=mixed_2024&catalog=mixed_2024")
        wait_until_drawn(tab)
    type_into_cell(page, INPUT_PRICE[0], 0, INPUT_PRICE[1], "311")
    page.get_by_text("Draft: 1 change").wait_for()
    type_into_cell(other, INPUT_PRICE[0], 1, INPUT_PRICE[1], "322")  # it has not seen the first
    other.get_by_text("Draft: 2 changes").wait_for()
    for tab in (page, other):
        tab.reload()
        wait_until_drawn(tab)
        prices = [tab.locator(f"#glide-cell-3-{row}").inner_text().strip() for row in (0, 1)]
        assert prices == ["311", "322"]
    page.get_by_role("button", name="Discard").click()  # other tests look at this catalog
    page.get_by_text("No unpublished edits").wait_for()
    type_into_cell(other, INPUT_PRICE[0], 0, INPUT_PRICE[1], "333")  # of a draft that is gone
    other.get_by_text("Draft: 1 change").wait_for()
    wait_until_drawn(other)
    assert other.locator("#glide-cell-3-1").inner_text() != "322"
    other.get_by_role("button", name="Discard").click()
    other.get_by_text("No unpublished edits").wait_for()


def test_a_model_is_added_in_six_clicks(page):
    page.goto("/")
    clicks = 0

    def click(target):
        nonlocal clicks
        clicks += 1
        target.click()

    click(page.get_by_role("link", name="Catalog", exact=True))
    click(page.get_by_role("button", name="Add model"))
    click(page.get_by_label("Model id"))
    for typed in ("haiku-next", "anthropic", "0.3", "0.6", "200000"):
        page.keyboard.type(typed)
        page.keyboard.press("Tab")
    click(page.get_by_role("spinbutton", name="How often does it solve"))
    page.keyboard.type("70")
    page.keyboard.press("Tab")
    click(page.get_by_role("button", name="Add to the draft"))
    page.get_by_text("of the queries go to haiku-next, without outcomes").first.wait_for()
    assert clicks <= 6
    page.get_by_role("button", name="Discard").click()
    page.get_by_text("No unpublished edits").wait_for()


def test_a_price_below_nothing_is_refused_and_never_read_as_its_opposite(page):
    page.goto("/catalog?part=models&set=console_demo&catalog=paper_five_published")
    wait_until_drawn(page)
    type_into_cell(page, INPUT_PRICE[0], CODEX, INPUT_PRICE[1], "-5")
    page.get_by_text("1 cell to correct before this can be published").wait_for()
    page.get_by_role("alert").filter(has_text="must be > 0, got -5").wait_for()
    page.get_by_role("button", name="Undo").first.click()  # other tests look at this catalog
    page.get_by_text("1 cell to correct before this can be published").wait_for(state="detached")


def test_ticked_rows_are_removed_with_the_mouse_straight_from_the_table(page):
    page.goto("/catalog?part=models&set=console_demo&catalog=matched_three")
    wait_until_drawn(page)
    box = page.locator("[data-testid=stDataFrame]").first.bounding_box()
    page.mouse.click(box["x"] + 18, box["y"] + 54)
    page.get_by_role("button", name="Remove").click()  # its whole face is free
    page.get_by_text("Draft: 1 change").wait_for()
