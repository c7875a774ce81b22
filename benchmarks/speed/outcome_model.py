"""How fast an outcome model is learned, loaded, asked, and how fast every V is known.

    python -m benchmarks.speed.outcome_model [--queries 5183] [--models 5]

Simulated vectors and outcomes: what is timed does not depend on what they say.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from hydra_core.choosing.learn import learn
from hydra_core.choosing.material import gather
from hydra_core.choosing.write import write_outcome_model
from hydra_core.evalsets.evalset import save_evalset
from hydra_core.outcome_model.format import load_outcome_model
from hydra_core.outcome_model.heads import Messages
from hydra_core.predictor.signals import surface_counts
from hydra_core.replay.frontier import frontier
from hydra_core.routing.matcher import choose, returns_on_upgrading, value_shortfall

_TEXT = "Why does this loop never end, and which line of the listing below is to blame? " * 6


def simulated(folder, n, m, rng):
    """Messages and a set whose outcomes follow the first numbers of the vectors."""
    vectors = rng.normal(size=(n, 384)).astype(np.float16)
    chance = 0.3 + 0.5 * (np.arange(m) / m) - 0.2 * np.sign(vectors[:, :1].astype(float))
    quality = (rng.random((n, m)) < chance).astype(float)
    cost_usd = rng.lognormal(-7, 0.5, (n, m)) * np.geomspace(1, 40, m)
    tokens = rng.lognormal(5, 0.5, (n, m))
    evalset = save_evalset(
        folder,
        name="simulated",
        queries=pd.DataFrame({"query_id": [f"q{i}" for i in range(n)], "language": "en"}),
        models=[f"model-{i}" for i in range(m)],
        quality=quality,
        cost_usd=cost_usd,
        extras={"input_tokens": tokens, "output_tokens": tokens},
        synthetic=True,
    )
    counts = rng.integers(1, 400, (n, 6)).astype(np.int32)
    return evalset, Messages(rng.random((n, 4)), vectors, counts)


def timed(call, runs):
    """Seconds of each of several calls."""
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return np.array(found)


def asked(model, messages, m):
    """Microseconds of a decision beyond the encoder, counts of the message included."""
    ids = model.models[:m]
    prices = np.ones((len(ids), 2))
    pool = model.heads.for_pool(ids, np.zeros(len(ids)), prices)
    one = messages.take(np.array([0]))

    def decide():
        read = Messages(one.requirements, one.vectors, surface_counts([_TEXT]))
        found = pool.predict(read)
        choose(value_shortfall(found.success, found.cost_usd, 0.02), found.cost_usd, 0.0)

    timed(decide, 200)
    return 1e6 * timed(decide, 2_000)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=5_183)
    parser.add_argument("--models", type=int, default=5)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        n, m = options.queries, options.models
        evalset, messages = simulated(folder / "set", n, m, rng)
        start = time.perf_counter()
        found = learn(gather(evalset, messages, evalset.models), np.ones((m, 2)))
        spent = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"learn {n:,} x {m}, folds and learning curve: {spent:.1f} s, peak {peak:,.0f} MiB")
        write_outcome_model(folder / "om", found, fingerprint="f" * 64)
        load = timed(lambda: load_outcome_model(folder / "om"), 20)
        print(f"load: median {1e3 * np.median(load):.1f} ms")
        micros = asked(load_outcome_model(folder / "om"), messages, m)
        p50, p99 = np.percentile(micros, [50, 99])
        print(f"decision beyond the encoder, {m} models: p50 {p50:.0f} us, p99 {p99:.0f} us")
    n, m = 100_000, 12
    success, quality = rng.random((n, m)), (rng.random((n, m)) < 0.6).astype(float)
    cost = rng.lognormal(size=(n, m)) * np.geomspace(1, 50, m)
    static = np.arange(float(m))

    def whole():
        frontier(returns_on_upgrading(success, cost), static, quality, cost, ranked_by=cost)

    curve = timed(whole, 5)
    print(f"exact curve for every V, {n:,} x {m}: median {1e3 * np.median(curve):.0f} ms")


if __name__ == "__main__":
    main()
