"""Slider release to redrawn plot on the Tune page, in a real Chromium with 8,040 queries.

    python -m benchmarks.console.slider [--queries 8040] [--rounds 30]

Makes an eval set in a temporary workspace, starts its own console on a free port, drags the tau
slider and prints p50 and p95 of the time from the pointer's release to the frame in which the
plot shows the new operating point. Needs playwright (PyPI) and a chromium on the PATH.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.console.browser import CATALOG, browser, measured, timed, watching

_LABEL = """[...document.querySelectorAll('.js-plotly-plot text')]
    .map(node => node.textContent).filter(text => text.startsWith('τ ')).join()"""


def measure(url: str, rounds: int) -> list[float]:
    """Milliseconds of every drag; the first three warm up and are not counted."""
    times = []
    rng = np.random.default_rng(1)
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(f"{url}/tune?set=my%2Fbench&catalog={CATALOG}")
        page.wait_for_selector("[data-testid=stSlider]", timeout=60_000)
        page.wait_for_selector(".js-plotly-plot", timeout=60_000)
        time.sleep(2)
        for i in range(rounds + 3):
            took = _drag(page, float(rng.uniform(0.05, 0.95)))
            times += [took] if i >= 3 else []
            time.sleep(0.4)
    return times


def _drag(page, target: float) -> float:  # noqa: ANN001 (playwright is optional)
    """Drag the thumb to a share of the track, release, wait for the plot."""
    box = page.locator("[data-testid=stSlider]").bounding_box()
    thumb = page.locator("[data-testid=stSliderThumbValue]").locator("..").bounding_box()
    x, y = thumb["x"] + thumb["width"] / 2, thumb["y"] + thumb["height"] / 2
    goal = box["x"] + 10 + target * (box["width"] - 20)
    if abs(goal - x) < 25:
        goal = x + 40 if x < box["x"] + box["width"] / 2 else x - 40
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move((x + goal) / 2, y, steps=4)
    page.mouse.move(goal, y, steps=4)
    watching(page, "pointerup", _LABEL)
    page.mouse.up()
    return timed(page)


if __name__ == "__main__":
    measured(__doc__, "slider release to redrawn plot", measure)
