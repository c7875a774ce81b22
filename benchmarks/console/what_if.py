"""Edited cell to refreshed what-if on the Catalog page, in a real Chromium with 8,040 queries.

    python -m benchmarks.console.what_if [--queries 8040] [--rounds 30]

Makes an eval set in a temporary workspace, starts its own console on a free port, types prices into
the table and prints p50 and p95 of the time from the Enter key to the frame in which the figures of
the what-if show the new draft. Needs playwright (PyPI) and a chromium on the PATH.
"""

from collections.abc import Callable

from benchmarks.console.browser import CATALOG, browser, edits, measured
from tests.browser.grid import INPUT_PRICE, open_cell

#: In / Mtok of the third model: its price decides the cost order, so its traffic moves.
(COLUMN, X), ROW = INPUT_PRICE, 2
#: The figures, and nothing as long as they belong to the draft before.
_LABEL = """document.querySelector('[data-testid=stMetric] [data-stale=true]') ? '' :
    [...document.querySelectorAll('[data-testid=stMetric]')].map(node => node.innerText).join()"""


def measure(url: str, rounds: int) -> list[float]:
    """Milliseconds of every edit."""
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(f"{url}/catalog?set=my%2Fbench&catalog={CATALOG}")
        page.locator("[data-testid=stDataFrame] canvas").first.wait_for(timeout=60_000)
        page.get_by_text("Edit a cell to see its effect").wait_for(timeout=60_000)
        page.wait_for_timeout(2000)

        def prepare(i: int) -> Callable[[], None]:
            # dearer than all, then in its place again: the order of costs changes every time
            open_cell(page, COLUMN, ROW, X, f"{20 + i if i % 2 == 0 else 0.58 + i / 1000:.3f}")
            return lambda: page.keyboard.press("Enter")

        return edits(page, rounds, "keydown", _LABEL, prepare)


if __name__ == "__main__":
    measured(__doc__, "edited price to refreshed what-if", measure)
