"""A weight edited on Tune to the new curve, in a real Chromium with 8,040 queries.

    python -m benchmarks.console.weights [--queries 8040] [--rounds 30]

Makes an eval set in a temporary workspace, starts its own console on a free port, presses the step
button of one weight after the other, so that no weighting was computed before, and prints p50 and
p95 of the time from the click to the frame in which the plot shows the new curve; its band and the
verdict follow. Needs playwright (PyPI) and a chromium on the PATH.
"""

from collections.abc import Callable

from benchmarks.console.browser import CATALOG, browser, edits, measured

#: The path of the router's curve: the widest solid line that is drawn.
_CURVE = """[...document.querySelectorAll('.st-key-tune-place .scatterlayer .js-line')]
    .filter(line => line.style.strokeWidth === '3px').map(line => line.getAttribute('d')).join()"""


def measure(url: str, rounds: int) -> list[float]:
    """Milliseconds of every edit."""
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(f"{url}/tune?set=my%2Fbench&catalog={CATALOG}")
        page.locator(".st-key-tune-place .main-svg").first.wait_for(timeout=60_000)
        page.get_by_text("Weights", exact=True).click()
        steps = page.locator("[class*=st-key-tune-w-]").get_by_test_id("stNumberInputStepUp")
        steps.first.wait_for()
        page.wait_for_timeout(2000)

        def prepare(i: int) -> Callable[[], None]:
            step = steps.nth(i % steps.count())
            step.scroll_into_view_if_needed()
            return lambda: step.click()

        return edits(page, rounds, "pointerdown", _CURVE, prepare)


if __name__ == "__main__":
    measured(__doc__, "edited weight to the new curve", measure)
