"""The live knob of Tune in a real Chromium: is every step of a drag followed, and what it costs.

    python -m benchmarks.console.knob [--rounds 30] [--size 8040x5] [--size 100000x12]

Makes an eval set in a temporary workspace, starts its own console on a free port and drags. Prints
how many of 60 steps the figures and the plot followed, milliseconds of script and layout a step,
milliseconds from release to the frame with the new verdict, and what the server sent for it. Needs
playwright (PyPI) and a chromium on the PATH.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.console.browser import CATALOG, browser, console, make_evalset, timed, watching
from benchmarks.console.depth_pages import make as make_twelve

STEPS = 60
_VERDICT = "document.querySelector('.st-key-tune-verdict')?.innerText"
_INSIDE = """const root = [...document.querySelectorAll('.st-key-tune-knob *')]
    .map(node => node.shadowRoot).find(Boolean);
  const input = root.querySelector('input[type=range]');"""
#: What is shown: setting, first figure, traffic, and where the ring stands.
_SHOWN = f"""() => {{ {_INSIDE}
  const ring = [...document.querySelectorAll('.st-key-tune-plot .scatterlayer .trace')].at(-1);
  const texts = ['.at', '.value', '.legend'].map(part => root.querySelector(part).textContent);
  return [...texts, ring.getAttribute('transform')]; }}"""
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
                _measure(page, f"{url}/tune?set={link}", options.rounds, size)


def _measure(page: Any, link: str, rounds: int, size: str) -> None:  # noqa: ANN401 (playwright)
    received: list[int] = []
    page.on("websocket", lambda ws: ws.on("framereceived", lambda data: received.append(len(data))))
    page.goto(link)
    page.locator(".st-key-tune-verdict").get_by_text("per query").first.wait_for(timeout=300_000)
    page.locator(".st-key-tune-plot .js-plotly-plot").wait_for(timeout=60_000)
    page.wait_for_timeout(2000)
    costs = page.evaluate(_COST)
    followed = _followed(page)
    times, sent = [], []
    rng = np.random.default_rng(1)
    for i in range(rounds + 3):
        page.wait_for_timeout(600)
        received.clear()
        _grab(page, float(rng.uniform(0.05, 0.95)))
        watching(page, "pointerup", _VERDICT)
        page.mouse.up()
        took = timed(page)
        page.wait_for_timeout(300)
        if i >= 3:  # the first ones warm up
            times.append(took)
            sent.append(sum(received))
    p50, p95 = np.percentile(times, [50, 95])
    print(
        f"{size}: {followed} of {STEPS} steps followed; a step p50 {np.median(costs):.1f} ms, "
        f"max {max(costs):.1f} ms; release to verdict, {rounds} rounds, p50 {p50:.0f} ms, "
        f"p95 {p95:.0f} ms; received {max(sent) / 1e3:.0f} KB at most",
        flush=True,
    )


def _followed(page: Any) -> int:  # noqa: ANN401
    """Steps of one slow drag after which setting, figures, traffic and ring were all new."""
    box = _grab(page, 0.1)
    count, before = 0, page.evaluate(_SHOWN)
    for i in range(STEPS):
        page.mouse.move(box["x"] + box["width"] * (0.1 + 0.8 * (i + 1) / STEPS), box["y"] + 15)
        now = page.evaluate(_SHOWN)
        # neighbours may agree in a rounded figure: setting and ring are never the same
        count += now[0] != before[0] and now[3] != before[3] and None not in now
        before = now
    page.keyboard.press("Escape")
    page.mouse.up()
    return count


def _grab(page: Any, share: float) -> Any:  # noqa: ANN401
    """Press the pointer on the thumb and move it to a share of the track."""
    knob = page.locator(".st-key-tune-knob input[type=range]")
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
