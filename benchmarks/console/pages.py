"""Cold first page and page changes in a real Chromium, on the sample data.

    python -m benchmarks.console.pages [--starts 5] [--rounds 4]

"Cold" starts a console of its own with an empty workspace, waits for its health address and opens
the first page in a fresh browser: milliseconds until its title is painted, until its result stands
there (does routing help?, in the first screen), and until the page is
whole (its script has run, nothing on it is stale or a placeholder, and every figure is drawn). A
page change is a click on the page's name in the margin of a warm console; every page is gone to
once before anything is timed. Needs playwright (PyPI) and a chromium on the PATH.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.console.browser import browser, console

#: Waits for a page to be whole; times are from the beginning of the visit or from the click.
_WHOLE = """(began) => new Promise((resolve, reject) => {
  const before = began ? document.querySelector('h1')?.innerText : undefined;
  if (began) window.__link.click();
  const start = began ? performance.now() : 0;
  let title = 0;
  let answer = 0;
  const look = () => {
    const now = performance.now();
    const heading = document.querySelector('h1')?.innerText;
    if (!title && heading && heading !== before) title = now - start;
    if (!answer && title && document.querySelector('[data-testid=stAlert]')) answer = now - start;
    const done = document.querySelector(
      '[data-testid=stApp][data-test-script-state=notRunning]');
    const stale = document.querySelector('[data-stale=true], [data-testid=stSkeleton]');
    const empty = [...document.querySelectorAll('[data-testid=stPlotlyChart]')]
      .some(chart => !chart.querySelector('.main-svg'));
    if (title && done && !stale && !empty) {
      requestAnimationFrame(() => resolve([title, performance.now() - start, answer]));
    } else if (now - start > 60000) {
      reject(new Error('the page was not whole within 60 s'));
    } else {
      requestAnimationFrame(look);
    }
  };
  look();
})"""
_POINT = r"""([links, name]) => {
  window.__link = [...document.querySelectorAll(links)]
    .find(link => link.innerText.split('\n').pop() === name);
}"""
_LINKS = "[data-testid=stSidebarNavLink]"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    with browser() as chromium:
        _first(chromium)  # compiles what was changed since it was last started
        first = [_first(chromium) for _ in range(options.starts)]
        _tell("cold first page", [took[:2] for took in first])
        answer = [took[2] for took in first]
        print(
            f"  its result         p50 {np.median(answer):5.0f}, "
            f"p95 {np.percentile(answer, 95):5.0f} ms",
            flush=True,
        )
        changes = _changes(chromium, options.rounds) if options.rounds else {}
    for name, times in changes.items():
        _tell(f"  {name}", times)
    if changes:
        _tell("page changes", [took for times in changes.values() for took in times])


def _first(chromium: Any) -> tuple[float, float, float]:  # noqa: ANN401 (playwright is optional)
    with tempfile.TemporaryDirectory() as folder, console(Path(folder)) as url:
        return _visit(chromium.new_context(viewport={"width": 1280, "height": 800}), url)[1]


def _visit(context: Any, url: str) -> tuple[Any, tuple[float, float, float]]:  # noqa: ANN401
    page = context.new_page()
    page.goto(url, wait_until="commit")
    return page, tuple(page.evaluate(_WHOLE, False))


def _changes(chromium: Any, rounds: int) -> dict[str, list[tuple[float, float]]]:  # noqa: ANN401
    with tempfile.TemporaryDirectory() as folder, console(Path(folder)) as url:
        context = chromium.new_context(viewport={"width": 1280, "height": 800})
        page, _ = _visit(context, url)
        names = [text.split("\n")[-1] for text in page.locator(_LINKS).all_inner_texts()]
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        for turn in range(rounds + 1):
            for name in [*names[1:], names[0]]:
                page.evaluate(_POINT, [_LINKS, name])
                took = page.evaluate(_WHOLE, True)
                if turn:
                    times[name].append(tuple(took[:2]))
                page.wait_for_timeout(200)
        return times


def _tell(name: str, times: list[tuple[float, float]]) -> None:
    title, whole = np.array(times).T
    print(
        f"{name:20} title p50 {np.median(title):5.0f}, p95 {np.percentile(title, 95):5.0f} ms; "
        f"whole p50 {np.median(whole):5.0f}, p95 {np.percentile(whole, 95):5.0f} ms; "
        f"n {len(times)}",
        flush=True,
    )


if __name__ == "__main__":
    main()
