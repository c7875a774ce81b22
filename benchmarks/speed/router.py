"""Router overhead beyond the encoder, one thread; and memory over many conversations.

    python -m benchmarks.speed.router [--json] [--queries 20000] [--soak 1000000]

The encoder is replaced by one that answers at once, so that what is left is the router's own work:
gates, shortfall, veto, choice, session. The receipt is spelt out only when it is asked for and is
timed on its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from datetime import date

import numpy as np

from hydra_core.base.types import DIMENSIONS, Band, Catalog, ModelSpec, ModelStatus, Policy
from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from hydra_core.routing.sessions import MemorySessions


class Instant:
    """A predictor that costs nothing: scores drawn beforehand."""

    def __init__(self, n=4096):
        rng = np.random.default_rng(42)
        tokens, cut = np.full(1, 40), np.zeros(1, dtype=bool)
        self.answers = [Prediction(rng.random((1, 4)), tokens, cut) for _ in range(n)]
        self.next = 0

    def predict(self, texts, turns=None, contexts=None):
        self.next = (self.next + 1) % len(self.answers)
        return self.answers[self.next]


def catalog(m):
    rng = np.random.default_rng(7)
    models = tuple(
        ModelSpec(
            id=f"model-{i}",
            provider="p",
            status=ModelStatus.ACTIVE,
            input_usd_per_mtok=float(price),
            output_usd_per_mtok=float(4 * price),
            context_window=200_000,
            vision=i % 2 == 0,
            tools=True,
            scores={},
            overrides=dict(zip(DIMENSIONS, rng.random(4), strict=True)),
            price_source="benchmark",
            price_date=date(2026, 1, 1),
        )
        for i, price in enumerate(np.geomspace(0.1, 5, m))
    )
    return Catalog(
        "benchmark",
        DIMENSIONS,
        "none",
        "none",
        (Band(0, 1),) * 4,
        Policy(0.1, (1.0,) * 4),
        (),
        models,
    )


def overhead_us(m, n):
    """p50, p99 of route() and p50 of its receipt, microseconds."""
    router = Router(catalog(m), Instant(), sessions=MemorySessions())
    query, times, receipts = Query("please fix the failing test in parser.py"), [], []
    for i in range(n):
        start = time.perf_counter_ns()
        decision = router.route(query)
        times.append(time.perf_counter_ns() - start)
        if i % 50 == 0:
            start = time.perf_counter_ns()
            decision.receipt()
            receipts.append(time.perf_counter_ns() - start)
    p50, p99 = np.quantile(times[n // 10 :], [0.5, 0.99]) / 1e3
    return {"models": m, "p50_us": p50, "p99_us": p99, "receipt_us": np.median(receipts) / 1e3}


def soak(n, conversations):
    """Resident memory in MiB after each tenth of `n` routed queries."""
    sessions = MemorySessions(max_sessions=conversations // 2)
    router, marks = Router(catalog(5), Instant(), sessions=sessions), []
    for i in range(n):
        router.route(Query("next step please", 1 + i // conversations, f"c{i % conversations}"))
        if (i + 1) % max(1, n // 10) == 0:
            marks.append(round(_resident_mib(), 1))
    return {"queries": n, "conversations": conversations, "kept": len(sessions), "rss_mib": marks}


def _resident_mib():
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize() / 2**20
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--soak", type=int, default=0)
    options = parser.parse_args()
    result = {"overhead": [overhead_us(m, options.queries) for m in (5, 15)]}
    if options.soak:
        result["soak"] = soak(options.soak, 100_000)
    if options.json:
        print(json.dumps(result))
        return
    for row in result["overhead"]:
        print(
            f"{row['models']:>3} models: p50 {row['p50_us']:.0f} us, p99 {row['p99_us']:.0f} us "
            f"(receipt, when asked for: {row['receipt_us']:.0f} us)"
        )
    if options.soak:
        s = result["soak"]
        print(
            f"{s['queries']:,} queries, {s['conversations']:,} conversations: {s['kept']:,} kept, "
            f"resident MiB {s['rss_mib']}"
        )


if __name__ == "__main__":
    main()
