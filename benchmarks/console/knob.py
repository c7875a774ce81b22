"""The live knob in a real Chromium: is every step of a drag followed, and what it costs.

    python -m benchmarks.console.knob [--rounds 30] [--size 8040x5] [--size 100000x12]
                                      [--page tune|profiles|inspect]

Makes an eval set in a temporary workspace, starts its own console on a free port and drags. Prints
how many of 60 steps the figures and the plot followed, milliseconds of script and layout a step,
milliseconds from release to the frame with the new verdict, and what the server sent for it. On
Profiles (the what-if of both catalogs) and Inspect what the knob itself says is followed. Needs
playwright (PyPI) and a chromium on the PATH.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.console.browser import CATALOG, browser, console, make_evalset, timed, watching
from benchmarks.console.depth_pages import make as make_twelve

STEPS = 60
#: Page -> the class of its knob, and what has changed when a release is answered.
_PAGES = {
    "tune": ("st-key-tune-knob", "document.querySelector('.st-key-tune-verdict')?.textContent"),
    "profiles": (
        "st-key-what_if-knob",
        "document.querySelector('.st-key-what_if-told')?.textContent",
    ),
    "inspect": (
        "st-key-inspect-knob-shortfall",
        "document.querySelector('.st-key-inspect-decision')?.textContent",
    ),
}
_INSIDE = """const root = [...document.querySelectorAll('.KNOB *')]
    .map(node => node.shadowRoot).find(Boolean);
  const input = root.querySelector('input[type=range]');"""
#: What is shown: setting, everything the knob says, and how the ring or the line was moved.
_SHOWN = f"""() => {{ {_INSIDE}
  const moved = document.querySelector(
    '.scatterlayer .trace[transform], .shapelayer path[transform]');
  return [root.querySelector('.at').textContent, root.textContent,
          moved?.getAttribute('transform') ?? '']; }}"""
#: Milliseconds of every step: the handler, then the layout that it asks for.
_COST = f"""() => {{ {_INSIDE}
  const before = input.value, times = [];
  for (let i = 0; i < {STEPS}; i++) {{
    input.value = Math.round(i / {STEPS - 1} * input.max);
    const start = performance.now();
    input.dispatchEvent(new Event('input'));
    document.body.getBoundingClientRect();
    times.push(performance.now() - start);
  }}
  input.value = before;
  input.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Escape'}}));
  return times; }}"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--size", action="append", choices=["8040x5", "100000x12"])
    parser.add_argument("--page", choices=[*_PAGES], default="tune")
    options = parser.parse_args()
    for size in options.size or ["8040x5", "100000x12"]:
        queries, models = map(int, size.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            if models == 5:
                make_evalset(Path(folder), queries)
            else:
                make_twelve(Path(folder), queries)
            link = (
                f"my%2Fbench&catalog={CATALOG}" if models == 5 else "my%2Fbig&catalog=my%2Ftwelve"
            )
            with console(Path(folder)) as url, browser() as chromium:
                page = chromium.new_page(viewport={"width": 1280, "height": 1000})
                if options.page == "inspect":  # it needs a catalog of the shipped predictor
                    link = "&catalog=paper_five"
                _measure(
                    page, f"{url}/{options.page}?set={link}", options.page, options.rounds, size
                )


def _measure(page: Any, link: str, name: str, rounds: int, size: str) -> None:  # noqa: ANN401
    knob, verdict = _PAGES[name]
    received: list[int] = []
    page.on("websocket", lambda ws: ws.on("framereceived", lambda data: received.append(len(data))))
    page.goto(link)
    page.locator(f".{knob} input[type=range]").wait_for(timeout=300_000)
    page.locator(f".{knob} input[type=range]").scroll_into_view_if_needed()
    page.wait_for_timeout(3000)
    costs = page.evaluate(_COST.replace("KNOB", knob))
    followed = _followed(page, knob, plot=name != "profiles")
    times, sent = [], []
    rng = np.random.default_rng(1)
    for i in range(rounds + 3):
        page.wait_for_timeout(600)
        received.clear()
        _grab(page, knob, float(rng.uniform(0.05, 0.95)))
        watching(page, "pointerup", verdict)
        page.mouse.up()
        took = timed(page)
        page.wait_for_timeout(300)
        if i >= 3:  # the first ones warm up
            times.append(took)
            sent.append(sum(received))
    p50, p95 = np.percentile(times, [50, 95])
    print(
        f"{name}, {size}: {followed} of {STEPS} steps followed; "
        f"a step p50 {np.median(costs):.1f} ms, max {max(costs):.1f} ms; "
        f"release to verdict, {rounds} rounds, p50 {p50:.0f} ms, "
        f"p95 {p95:.0f} ms; received {max(sent) / 1e3:.0f} KB at most",
        flush=True,
    )


def _followed(page: Any, knob: str, *, plot: bool) -> int:  # noqa: ANN401
    """Steps of one slow drag after which setting, what is said, and ring or line were all new."""
    box = _grab(page, knob, 0.1)
    look = _SHOWN.replace("KNOB", knob)
    count, before = 0, page.evaluate(look)
    for i in range(STEPS):
        page.mouse.move(box["x"] + box["width"] * (0.1 + 0.8 * (i + 1) / STEPS), box["y"] + 15)
        now = page.evaluate(look)
        # neighbours may agree in a rounded figure: setting and ring are never the same
        count += now[:2] != before[:2] and (not plot or now[2] != before[2])
        before = now
    page.keyboard.press("Escape")
    page.mouse.up()
    return count


def _grab(page: Any, key: str, share: float) -> Any:  # noqa: ANN401
    """Press the pointer on the thumb and move it to a share of the track."""
    knob = page.locator(f".{key} input[type=range]")
    box = knob.bounding_box()
    at = int(knob.input_value()) / int(knob.get_attribute("max"))
    x, y = box["x"] + 8 + (box["width"] - 16) * at, box["y"] + box["height"] / 2
    goal = box["x"] + box["width"] * share
    if abs(goal - x) < 25:
        goal = x + 40 if at < 0.5 else x - 40
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move((x + goal) / 2, y, steps=4)
    page.mouse.move(goal, y, steps=4)
    return box


if __name__ == "__main__":
    main()
