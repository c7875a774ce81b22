"""Hostile messages through the router's API: none may crash it, every score lies in [0, 1].

python -m benchmarks.quality.hostile [--count 10000] [--bundle FOLDER]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from benchmarks.quality.hostile_messages import hostile_messages
from hydra_core.catalog.schema import load_catalog
from hydra_core.predictor.bundle import load_bundle
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.routing.decision import Query, redecide
from hydra_core.routing.explain import flips
from hydra_core.routing.router import Router

CATALOG = Path(__file__).parents[2] / "catalog" / "paper_eight.yaml"


def attack(router, catalog, messages):
    """Route every message and check what comes out; CPU seconds (n,), and model counts."""
    seconds, chosen = [], {}
    for number, text in enumerate(messages):
        start = time.thread_time()
        decision = router.route(Query(text, turn=1 + number % 9))
        seconds.append(time.thread_time() - start)
        needs = decision.requirements
        assert np.isfinite(needs).all(), ascii(text[:80])
        assert (needs >= 0).all(), ascii(text[:80])
        assert (needs <= 1).all(), ascii(text[:80])
        written = json.dumps(decision.receipt(), allow_nan=False)
        assert redecide(json.loads(written)) == decision.model, ascii(text[:80])
        if number % 10 == 0:
            flips(decision, catalog)
        chosen[decision.model] = chosen.get(decision.model, 0) + 1
    return np.asarray(seconds), chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--bundle", type=Path)
    options = parser.parse_args()
    bundle = load_bundle(options.bundle)
    catalog = load_catalog(CATALOG)
    router = Router(catalog, Predictor(bundle))
    seconds, chosen = attack(router, catalog, hostile_messages(options.count))
    print(f"{seconds.size:,} hostile messages, bundle {bundle.name} {bundle.version}")
    print("no crash; every score in [0, 1]; every receipt leads to its own decision")
    print(
        f"CPU ms per message, one thread: p50 {1e3 * np.median(seconds):.1f}, p99 "
        f"{1e3 * np.quantile(seconds, 0.99):.1f}, worst {1e3 * seconds.max():.0f}"
    )
    print("routed to: " + ", ".join(f"{name} {n:,}" for name, n in sorted(chosen.items())))


if __name__ == "__main__":
    main()
