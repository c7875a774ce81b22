"""Router overhead beyond the encoder, one thread; and memory over many conversations.

    python -m benchmarks.speed.router [--json] [--queries 20000] [--soak 1000000]

The encoder is replaced by one that answers at once, so that what is left is the router's own work:
gates, shortfall, veto, choice, session; under the value rule also what success profiles predict.
The receipt is spelt out only when it is asked for and is timed on its own. So are the gates for a
query that uses all of them; an ordinary one passes them at once.
"""

import argparse
import json
import resource
import time
from dataclasses import replace
from datetime import date

import numpy as np

from hydra_core.base.fitted_blocks import ModelSuccess, SuccessBlock
from hydra_core.base.types import (
    DIMENSIONS,
    Ability,
    Band,
    Catalog,
    ModelSpec,
    ModelStatus,
    Policy,
    Rule,
)
from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.routing.gates import gate_reasons
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


def with_profiles(m):
    """The same catalog by the value rule, from success profiles with four knots a dimension."""
    rng, plain = np.random.default_rng(8), catalog(m)
    knots = ((0.1, 0.2, 0.4, 1.0),) * 4

    def adds():
        return tuple(map(tuple, (-0.3 * np.cumsum(rng.random((4, 4)), axis=1)).tolist()))

    models = {
        one.id: ModelSuccess(0.9, adds(), (float(rng.integers(99, 999)),) * 2)
        for one in plain.models
    }
    block = SuccessBlock("benchmark", "0" * 64, 5_183, knots, -0.4, adds(), models)
    policy = replace(plain.policy, rule=Rule.VALUE, value_usd=0.01)
    return replace(plain, policy=policy, success_profiles=block)


def overhead_us(made, n):
    """p50, p99 of route() and p50 of its receipt, microseconds."""
    router = Router(made, Instant(), sessions=MemorySessions())
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
    receipt_us = np.median(receipts) / 1e3
    return {"models": len(made.models), "p50_us": p50, "p99_us": p99, "receipt_us": receipt_us}


def gates_us(m, n):
    """p50, p99 of all gates for one query, microseconds: each model is looked at for every gate."""
    models = catalog(m).models
    ids = [model.id for model in models]
    query = Query(
        "please fix the failing test in parser.py",
        deny=frozenset({"elsewhere"}),
        allow=frozenset(ids),
        needs=frozenset(Ability),
        needs_tools=True,
        context_tokens=4_000,
        output_tokens=1_000,
        max_s=60.0,
        max_ttft_s=10.0,
        expected=dict.fromkeys(ids, (1.0, 20.0)),
    )
    times = []
    for _ in range(n):
        start = time.perf_counter_ns()
        gate_reasons(models, query)
        times.append(time.perf_counter_ns() - start)
    p50, p99 = np.quantile(times[n // 10 :], [0.5, 0.99]) / 1e3
    return {"models": m, "p50_us": p50, "p99_us": p99}


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


_NAMES = {
    "overhead": "shortfall rule",
    "success_profiles": "success profiles",
    "gates": "all gates together",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--soak", type=int, default=0)
    options = parser.parse_args()
    result = {
        "overhead": [overhead_us(catalog(m), options.queries) for m in (5, 15)],
        "success_profiles": [overhead_us(with_profiles(m), options.queries) for m in (5, 15)],
        "gates": [gates_us(m, options.queries) for m in (5, 15)],
    }
    if options.soak:
        result["soak"] = soak(options.soak, 100_000)
    if options.json:
        print(json.dumps(result))
        return
    for kind in ("overhead", "success_profiles", "gates"):
        for row in result[kind]:
            receipt = row.get("receipt_us")
            more = "" if receipt is None else f" (receipt, when asked for: {receipt:.0f} us)"
            print(
                f"{_NAMES[kind]}, {row['models']:>2} models: p50 {row['p50_us']:.0f} us, "
                f"p99 {row['p99_us']:.0f} us{more}"
            )
    if options.soak:
        s = result["soak"]
        print(
            f"{s['queries']:,} queries, {s['conversations']:,} conversations: {s['kept']:,} kept, "
            f"resident MiB {s['rss_mib']}"
        )


if __name__ == "__main__":
    main()
