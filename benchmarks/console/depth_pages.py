"""Compare and Explore with 100,000 queries and 12 models: server time of first paint and clicks.

    python -m benchmarks.console.depth_pages [--queries 100000]

Makes a catalog of 12 models and a simulated eval set in a temporary workspace and drives the pages
from app.py. "Cold" is the first visit after a start and reads the set from disk; "first paint" is
a new session on a warm console; each interaction is timed several times.
"""

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from streamlit.testing.v1 import AppTest

from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.schema import parse_catalog
from hydra_core.evalsets.evalset import save_evalset
from hydra_core.evalsets.scores import save_scores

ROOT = Path(__file__).resolve().parents[2]
MODELS = 12
ROUNDS = 5


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=100_000)
    options = parser.parse_args()
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HYDRA_WORKSPACE"] = folder
        make(Path(folder), options.queries)
        for page, measure in (("compare", compare), ("explore", explore)):
            _tell(f"{page}, cold", [_timed(partial(_open, page))])
            _tell(f"{page}, first paint", [_timed(partial(_open, page)) for _ in range(ROUNDS)])
            measure()
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


def make(workspace: Path, n: int) -> None:
    """A catalog of 12 models and an eval set with their simulated outcomes."""
    document = CatalogDocument.parse((ROOT / "catalog/paper_five_published.yaml").read_text())
    known = document.data()["models"]
    for i in range(MODELS - len(known)):
        like = dict(known[i % len(known)])
        document.append("models", {**like, "id": f"model-{i}",
                                   "input_usd_per_mtok": 0.3 + 0.7 * i})  # fmt: skip
    (workspace / "catalogs").mkdir()
    (workspace / "catalogs" / "twelve.yaml").write_text(document.text())
    catalog = parse_catalog(document.text())
    rng = np.random.default_rng(0)
    models = tuple(model.id for model in catalog.models)
    skill = np.sort(rng.normal(0.3, 0.6, len(models)))
    hard = rng.normal(0, 1, n)
    quality = (rng.normal(0, 1, (n, len(models))) + skill - hard[:, None] > 0).astype(float)
    cost = rng.lognormal(-3, 1, (n, 1)) * np.linspace(0.2, 3, len(models))
    languages = rng.choice(["en", "fr", "de", "zh", "ja", "ru", "ar", "es"], n)
    texts = [f"Simulated message {i}: " + "words that fill the line " * 12 for i in range(n)]
    queries = pd.DataFrame(
        {"query_id": [f"q{i}" for i in range(n)], "text": texts, "language": languages}
    )
    loaded = save_evalset(
        workspace / "evalsets" / "big", name="big", queries=queries, models=models,
        quality=quality, cost_usd=cost, synthetic=True,
    )  # fmt: skip
    scores = 1 / (1 + np.exp(-(hard[:, None] + rng.normal(0, 0.5, (n, len(catalog.dimensions))))))
    save_scores(loaded, catalog.predictor_fingerprint, catalog.dimensions, scores)


def compare() -> None:
    """Every interaction of the Compare page."""
    app = _open("compare")
    _tell("  another tau", [_timed(lambda at=at: app.number_input(key="compare.tau_b").set_value(at)
                                   .run()) for at in np.linspace(0.1, 0.8, ROUNDS)])  # fmt: skip
    for part in ("Languages and groups", "Who moved", "Queries"):
        _clicks(app, "compare.part", part)
    for which in ("Dearest losses", "Largest wastes", "Flipped"):
        _clicks(app, "compare.which", which)


def explore() -> None:
    """Every part of the Explore page."""
    app = _open("explore")
    for part in ("Costs", "Difficulty", "Data checks", "Who solves what"):
        _clicks(app, "explore.part", part)


def _open(page: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    app.switch_page(f"pages/evaluate/{page}.py")
    app.query_params["set"], app.query_params["catalog"] = "my/big", "my/twelve"
    app.run()
    if app.exception or app.error:
        raise SystemExit(f"{page}: {app.exception or app.error}")
    return app


def _clicks(app: AppTest, key: str, value: str) -> None:
    control = app.segmented_control(key=key)
    _tell(f"  {value}, first time", [_timed(lambda: control.set_value(value).run())])
    _tell(f"  {value}, again", [_timed(app.run) for _ in range(ROUNDS)])


def _timed(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def _tell(name: str, seconds: list[float]) -> None:
    p50, p95 = np.percentile(seconds, [50, 95])
    print(f"{name:34} p50 {p50:6.2f} s   p95 {p95:6.2f} s   n {len(seconds)}", flush=True)


if __name__ == "__main__":
    main()
