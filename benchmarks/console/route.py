"""Inspect in a real Chromium: from the click on Route to the whole answer.

    python -m benchmarks.console.route [--rounds 4]

Starts a console of its own, routes six messages of 2 to 500 words a round and prints milliseconds
from the click until the page is whole (its script has run, nothing on it is stale), and in how many
painted frames the card with the chosen model was blank. Needs playwright (PyPI) and a chromium on
the PATH.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.console.browser import browser, console
from tests.browser.conftest import FRAMES

TEXTS = (
    "Thank you!",
    "Prove that 17 is prime.",
    "Translate 'good morning' into French and explain the grammar.",
    "Write a Python function that merges two sorted lists and state its complexity.",
    "Fix the deadlock in this lock-free queue and prove that the memory order is right.",
    "Summarise this report. " + "The queue was full and no request was answered in time. " * 45,
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=4)
    rounds = parser.parse_args().rounds
    times, blank = [], 0
    with tempfile.TemporaryDirectory() as folder, console(Path(folder)) as url, browser() as chrome:
        page = chrome.new_context(viewport={"width": 1280, "height": 800}).new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{url}/inspect?catalog=paper_five&tau=0.24")
        page.get_by_text("Which model for every τ").wait_for()
        for turn in range(rounds + 1):
            for text in TEXTS:
                page.get_by_role("textbox", name="Message", exact=True).fill(text)
                page.evaluate(FRAMES)
                page.get_by_role("button", name="Route", exact=True).click()
                took, empty = page.evaluate("window.__frames")
                blank += empty
                if turn:  # the first round warms up
                    times.append(took)
    p50, p95 = np.percentile(times, [50, 95])
    print(
        f"click on Route to the whole answer, {len(times)} messages: p50 {p50:.0f} ms, "
        f"p95 {p95:.0f} ms, max {max(times):.0f} ms; the card was blank in {blank} frames"
    )


if __name__ == "__main__":
    main()
