"""Slider release to redrawn plot on the Tune page, in a real Chromium with 8,040 queries.

    python -m benchmarks.console.slider [--queries 8040] [--drags 30]

Makes an eval set in a temporary workspace, starts its own console on a free port, drags the tau
slider and prints p50 and p95 of the time from the pointer's release to the frame in which the
plot shows the new operating point. Needs playwright (PyPI) and a chromium on the PATH.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from hydra_core.catalog.schema import load_catalog
from hydra_core.evaluation.evalset.evalset import save_evalset
from hydra_core.evaluation.evalset.score_files import save_scores

ROOT = Path(__file__).resolve().parents[2]
CATALOG = "paper_five_published"
CHROMIUM = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
#: Waits for the release, then for the first painted frame whose operating point has changed.
WATCH = """
() => new Promise((resolve, reject) => {
  const label = () => [...document.querySelectorAll('.js-plotly-plot text')]
    .map(node => node.textContent).filter(text => text.startsWith('τ ')).join();
  const before = label();
  window.addEventListener('pointerup', () => {
    const start = performance.now();
    const look = () => {
      const now = label();
      if (now && now !== before) {
        requestAnimationFrame(() => resolve(performance.now() - start));
      } else if (performance.now() - start > 10000) {
        reject(new Error('the plot did not change within 10 s'));
      } else {
        requestAnimationFrame(look);
      }
    };
    look();
  }, {once: true, capture: true});
})
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=8040)
    parser.add_argument("--drags", type=int, default=30)
    args = parser.parse_args()
    if shutil.which("chromium") is None:
        sys.exit("no chromium on the PATH: nothing was measured")
    with tempfile.TemporaryDirectory() as folder:
        make_evalset(Path(folder), args.queries)
        with console(Path(folder)) as url:
            times = measure(url, args.drags)
    p50, p95 = np.percentile(times, [50, 95])
    print(
        f"slider release to redrawn plot, {args.queries:,} queries x 5 models, "
        f"{len(times)} drags: p50 {p50:.0f} ms, p95 {p95:.0f} ms, max {max(times):.0f} ms"
    )


def make_evalset(workspace: Path, n: int) -> None:
    """An eval set with simulated outcomes for the models of a shipped catalog, scored."""
    rng = np.random.default_rng(0)
    catalog = load_catalog(ROOT / "catalog" / f"{CATALOG}.yaml")
    models = tuple(model.id for model in catalog.models)
    bands = np.asarray([[band.lo, band.hi] for band in catalog.bands])
    hardness = rng.beta(2, 2, size=(n, 1))
    spread = np.clip(hardness + rng.normal(0, 0.15, (n, len(bands))), 0, 1)
    scores = bands[:, 0] + spread * (bands[:, 1] - bands[:, 0])
    ability = np.linspace(0.45, 0.9, len(models))
    quality = (rng.random((n, len(models))) < ability + 0.4 * (0.5 - hardness)).astype(float)
    cost = rng.gamma(2.0, np.geomspace(0.01, 0.12, len(models)) / 2, (n, len(models)))
    languages = rng.choice(["en", "zh", "fr", "de", "ja"], n)
    queries = pd.DataFrame(
        {"query_id": [f"q{i}" for i in range(n)], "text": "simulated", "language": languages}
    )
    loaded = save_evalset(
        workspace / "evalsets" / "bench",
        name="bench",
        queries=queries,
        models=models,
        quality=quality,
        cost_usd=cost,
        synthetic=True,
    )
    save_scores(loaded, catalog.predictor_fingerprint, catalog.dimensions, scores)


@contextmanager
def console(workspace: Path) -> Iterator[str]:
    """The console on a free port with this workspace; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--server.port", str(port), "--server.headless", "true"]
    server = subprocess.Popen(
        [sys.executable, "-m", "hydra_core.ui.serve", *options],
        cwd=ROOT,
        env={**os.environ, "HYDRA_WORKSPACE": str(workspace)},
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait_for(f"http://127.0.0.1:{port}/_stcore/health", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(150):
        if server.poll() is not None:
            sys.exit(f"the console stopped with exit code {server.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except OSError:
            time.sleep(0.2)
    sys.exit("the console did not start within 30 s")


def measure(url: str, drags: int) -> list[float]:
    """Milliseconds of every drag; the first three warm up and are not counted."""
    from playwright.sync_api import sync_playwright

    times = []
    rng = np.random.default_rng(1)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM)
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(f"{url}/tune?set=my%2Fbench&catalog={CATALOG}")
        page.wait_for_selector("[data-testid=stSlider]", timeout=60_000)
        page.wait_for_selector(".js-plotly-plot", timeout=60_000)
        time.sleep(2)
        for i in range(drags + 3):
            took = _drag(page, float(rng.uniform(0.05, 0.95)))
            times += [took] if i >= 3 else []
            time.sleep(0.4)
        browser.close()
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
    page.evaluate(f"() => {{ window.__took = ({WATCH.strip()})(); }}")
    page.mouse.up()
    return float(page.evaluate("window.__took"))


if __name__ == "__main__":
    main()
