"""How fast `init` makes a catalog from an eval set that is scored already.

    python -m benchmarks.speed.init [--sizes 5183x5 100000x12]

From reading the set to the catalog on disk, as the verb does it, the start of Python and of the
predictor included. Outcomes and scores are simulated: what is timed does not depend on them.
"""

import argparse
import contextlib
import io
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from hydra_core.catalog import load_catalog
from hydra_core.cli.main import main as hydra
from hydra_core.evalsets.evalset import save_evalset
from hydra_core.evalsets.scores import TextFacts, save_scores
from hydra_core.predictor.bundle import load_bundle


def simulated(folder, n, m):
    """A scored set with tokens, and a price file for its models."""
    rng = np.random.default_rng(0)
    bundle = load_bundle()
    need = rng.uniform(0.05, 0.8, (n, len(bundle.dimensions)))
    able = np.linspace(0.4, 0.9, m)
    quality = (rng.random((n, m)) < able - 0.4 * (need.mean(axis=1, keepdims=True) - 0.4)) * 1.0
    written = rng.lognormal(5, 0.5, (n, m))
    price = np.geomspace(0.2, 20, m)
    models = [f"model-{number}" for number in range(m)]
    text = "Why does this loop never end? Message number {}"
    evalset = save_evalset(
        folder / "set",
        name="simulated",
        queries=pd.DataFrame(
            {
                "query_id": [f"q{number}" for number in range(n)],
                "text": [text.format(number) for number in range(n)],
                "language": "en",
            }
        ),
        models=models,
        quality=quality,
        cost_usd=(written * 4 * price + 300 * price) / 1e6,
        extras={"input_tokens": np.full((n, m), 300.0), "output_tokens": written},
        synthetic=True,
    )
    vectors = rng.normal(size=(n, 384)).astype(np.float16)
    facts = TextFacts(vectors, rng.integers(1, 400, (n, 6)).astype(np.int32))
    save_scores(evalset, bundle.fingerprint, bundle.dimensions, need, facts)
    lines = [
        f"  {name}: {{input: {p:g}, output: {4 * p:g}}}"
        for name, p in zip(models, price, strict=True)
    ]
    path = folder / "prices.yaml"
    path.write_text("\n".join(["models:", *lines]), encoding="utf-8")
    return evalset, path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["5183x5", "100000x12"])
    options = parser.parse_args()
    for size in options.sizes:
        n, m = map(int, size.split("x"))
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            evalset, prices = simulated(folder, n, m)
            out = folder / "made.yaml"
            argv = ["init", str(evalset.path), "--prices", str(prices), "--out", str(out)]
            start, used = time.perf_counter(), time.process_time()
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                ended = hydra(argv)
            wall_s, cpu_s = time.perf_counter() - start, time.process_time() - used
            assert ended == 0
            assert len(load_catalog(out).models) == m
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"init {n:,} x {m}: {wall_s:.1f} s, CPU {cpu_s:.1f} s, peak {peak:,.0f} MiB")


if __name__ == "__main__":
    main()
