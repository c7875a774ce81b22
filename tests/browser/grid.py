"""Typing into a cell of a Streamlit table: it is drawn on a canvas, so by position."""

from playwright.sync_api import Page, TimeoutError

from tests.browser.conftest import at_rest

__all__ = ["INPUT_PRICE", "open_cell", "type_into_cell", "wait_until_drawn"]

#: Column of the catalog's table, and where it is in pixels.
INPUT_PRICE = (3, 410.0)

_HEADER, _ROW = 36, 36


def wait_until_drawn(page: Page) -> None:
    """The table is there and nothing else is coming."""
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
    page.wait_for_function("() => !document.querySelector('[data-testid=stSkeleton]')")
    at_rest(page)


def type_into_cell(page: Page, column: int, row: int, x: float, text: str) -> None:
    """Open the cell at `x` pixels in `row`, write `text`, leave it with Enter."""
    open_cell(page, column, row, x, text)
    page.keyboard.press("Enter")


def open_cell(page: Page, column: int, row: int, x: float, text: str) -> None:
    """Open the cell at `x` pixels in `row` and write `text`, without leaving it.

    Args:
        column: Index from 0 that the table itself gives the cell, to see that the right one is hit.
    """
    table = page.locator("[data-testid=stDataFrame]").first
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    y = box["y"] + _HEADER + row * _ROW + _ROW / 2
    for _ in range(5):
        page.mouse.move(box["x"] + x, y)
        page.wait_for_timeout(150)
        page.mouse.click(box["x"] + x, y)
        try:
            cell = page.locator(f"#glide-cell-{column}-{row}[aria-selected=true]")
            cell.wait_for(state="attached", timeout=2_000)
            page.keyboard.press("Enter")
            page.locator(".gdg-input").fill(text, timeout=2_000)
        except TimeoutError:
            continue
        return
    raise AssertionError(f"the cell in column {column}, row {row} could not be opened")
