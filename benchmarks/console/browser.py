"""What measurements in a browser share: an eval set, a console of its own, a page, a watch."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hydra_core.base.shipped import CATALOGS
from hydra_core.catalog.schema import load_catalog
from hydra_core.evalsets.evalset import save_evalset
from hydra_core.evalsets.scores import save_scores
from tests.browser.conftest import CHROMIUM
from tests.console import consoles

__all__ = ["CATALOG", "browser", "console", "edits", "measured", "timed", "watching"]

CATALOG = "paper_five_published"
#: Waits for an event, then for the first painted frame in which a label of the page has changed.
_WATCH = """() => {
  window.__took = new Promise((resolve, reject) => {
    const label = () => %s;
    const before = label();
    window.addEventListener('%s', () => {
      const start = performance.now();
      const look = () => {
        const now = label();
        if (now && now !== before) {
          // a task begun in a frame runs as soon as that frame is painted
          const painted = new MessageChannel();
          painted.port1.onmessage = () => resolve(performance.now() - start);
          painted.port2.postMessage(0);
        } else if (performance.now() - start > 10000) {
          reject(new Error('nothing changed within 10 s'));
        } else {
          requestAnimationFrame(look);
        }
      };
      look();
    }, {once: true, capture: true});
  });
}"""


def measured(doc: str, what: str, measure: Callable[[str, int], list[float]]) -> None:
    """Run one measurement as a command with --queries and --rounds, and print its figures.

    Args:
        doc: Docstring of the command.
        what: What is timed, as the line printed says it.
        measure: (address of the console, rounds) -> milliseconds of every round.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--queries", type=int, default=8040)
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make_evalset(Path(folder), args.queries)
        with console(Path(folder)) as url:
            times = measure(url, args.rounds)
    p50, p95 = np.percentile(times, [50, 95])
    print(
        f"{what}, {args.queries:,} queries x 5 models, {len(times)} rounds: "
        f"p50 {p50:.0f} ms, p95 {p95:.0f} ms, max {max(times):.0f} ms"
    )


def make_evalset(workspace: Path, n: int) -> None:
    """An eval set with simulated outcomes for the models of a shipped catalog, scored."""
    rng = np.random.default_rng(0)
    catalog = load_catalog(CATALOGS / f"{CATALOG}.yaml")
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
    """The address of a console with this workspace; its modules are compiled once, as installed."""
    with consoles.console(workspace, PYTHONDONTWRITEBYTECODE="") as (_, port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def browser() -> Iterator[Any]:
    """A Chromium without a window."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    if path is None:
        sys.exit("no chromium on the PATH: nothing was done")
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=CHROMIUM)
        yield started
        started.close()


def edits(
    page: Any,  # noqa: ANN401 (playwright is optional)
    rounds: int,
    event: str,
    label: str,
    prepare: Callable[[int], Callable[[], None]],
) -> list[float]:
    """Milliseconds from each edit's event to the change of a label; three warm up, uncounted.

    Args:
        prepare: Number of the edit -> what triggers the event, all before it being done.
    """
    times = []
    for i in range(rounds + 3):
        trigger = prepare(i)
        watching(page, event, label)
        trigger()
        times.append(timed(page))
        page.wait_for_timeout(600)
    return times[3:]


def watching(page: Any, event: str, label: str) -> None:  # noqa: ANN401 (playwright is optional)
    """Start to wait for `event` and then for `label`, a JavaScript expression, to change."""
    page.evaluate(_WATCH % (label, event))


def timed(page: Any) -> float:  # noqa: ANN401
    """Milliseconds from the event to the frame that shows the change."""
    return float(page.evaluate("window.__took"))
