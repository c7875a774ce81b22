"""How long a large JSONL table takes to import, and how much memory it needs at most.

    python -m benchmarks.speed.import_large [--mb 300] [--models 3] [--chars 1500]

Makes a file of that size in a temporary folder (synthetic texts and outcomes, one row a query and
model) and imports it with the verb, in a process of its own, the guesses of languages included.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

_TEXT = (
    "the reconnect code loses a message when two workers write at once and the queue is full so "
    "please find out why this happens and write a test that shows it before you mend anything"
)


def write_table(path, mb, models, chars):
    """A JSONL table of about `mb` million bytes; how many rows it has."""
    rng = np.random.default_rng(0)
    words = _TEXT.split()
    query = rows = 0
    with path.open("w") as stream:
        while stream.tell() < mb * 1e6:
            text = " ".join(rng.choice(words, chars // 5).tolist())
            for model in range(models):
                row = {
                    "query_id": f"q{query}",
                    "text": text,
                    "model": f"model-{model}",
                    "quality": int(rng.random() < 0.6),
                    "cost_usd": round(float(rng.lognormal(-6, 1)), 7),
                    "input_tokens": chars // 4,
                    "output_tokens": int(rng.integers(10, 900)),
                }
                stream.write(json.dumps(row) + "\n")
                rows += 1
            query += 1
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=float, default=300)
    parser.add_argument("--models", type=int, default=3)
    parser.add_argument("--chars", type=int, default=1500, help="of each message")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.jsonl"
        rows = write_table(path, options.mb, options.models, options.chars)
        verb = ["import", "table", str(path), "--out", str(Path(folder) / "set")]
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "hydra_core", *verb], check=True)
        seconds = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(
            f"{path.stat().st_size / 1e6:.0f} MB, {rows:,} rows: {seconds:.0f} s, "
            f"at most {peak:,.0f} MiB of memory"
        )


if __name__ == "__main__":
    main()
