"""Size, latency and quality of every export variant, next to a ModernBERT-base in the same run.

    python -m benchmarks.quality.predictor_table --run runs/e5 --run runs/modernbert \\
        --data ../shared/data

A run is a folder in which `python -m hydra_core.lab.training export` left `model.fp32.onnx` and
`tokenizer.json`. Latency: one thread, one message, p50 / p99 in ms at 32, 128 and 512 tokens; the
graphs take turns within a round, so that a busy moment of the machine hits all of them alike.
Quality: mean Pearson and MAE of the raw scores (before recalibration) on our held-out messages;
distance from the float32 graph: mean |delta| and the worst Spearman. The ModernBERT-base
has the paper's size and random weights: its speed is real, its scores are not. Needs
the extra `train`.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from hydra_core.base.types import DIMENSIONS
from hydra_core.lab.training.network.model import EncoderConfig, Predictor
from hydra_core.lab.training.ship.export import (
    VARIANTS,
    export_onnx,
    feed_of,
    parity,
    run_graph,
    session,
    variant_of,
)
from hydra_core.lab.training.ship.release import metrics
from hydra_core.lab.training.texts.dataset import DataPaths, Message, read_messages, split
from hydra_core.lab.training.texts.encode import token_ids

LENGTHS = (32, 128, 512)


@dataclass(frozen=True)
class Row:
    name: str
    path: Path
    quality: str = " | | | "


def variants(run: Path, test: Sequence[Message], folder: Path) -> list[Row]:
    tokenizer = Tokenizer.from_file(str(run / "tokenizer.json"))
    tokenizer.no_truncation()
    rows = token_ids(tokenizer, [m.text for m in test], 512)
    out, float32 = [], None
    for variant in VARIANTS:
        path = variant_of(run / "model.fp32.onnx", variant, folder / f"{run.name}.{variant}.onnx")
        scores = run_graph(session(path), rows)
        float32 = scores if float32 is None else float32
        found, near = metrics(test, scores), parity(float32, scores)
        quality = (
            f"{found['pearson']} | {found['mae']} | {near.mean_delta:.4f} | {near.spearman:.4f}"
        )
        out.append(Row(f"{run.name} {variant}", path, quality))
    return out


def base(folder: Path) -> list[Row]:
    source = export_onnx(Predictor(EncoderConfig.modernbert_base()), folder / "base.onnx")
    int8 = variant_of(source, "int8", folder / "base8.onnx")
    return [Row("ModernBERT-base fp32", source), Row("ModernBERT-base int8", int8)]


def latencies(rows: Sequence[Row], rounds: int) -> dict[str, list[str]]:
    """p50 / p99 in ms of every graph at every length."""
    rng = np.random.default_rng(0)
    graphs = {row.name: session(row.path) for row in rows}
    out: dict[str, list[str]] = {name: [] for name in graphs}
    for length in LENGTHS:
        took: dict[str, list[float]] = {name: [] for name in graphs}
        for _ in range(rounds):
            ids = rng.integers(10, 30_000, (1, length))
            for name, graph in graphs.items():
                feed = feed_of(graph, ids[0].tolist())
                start = time.perf_counter()
                graph.run(None, feed)
                took[name].append((time.perf_counter() - start) * 1e3)
        for name, values in took.items():
            low, high = np.percentile(values[1:], [50, 99])
            out[name].append(f"{low:.1f} / {high:.1f}")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--run", type=Path, action="append", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=25)
    args = parser.parse_args()
    messages = split(read_messages(DataPaths.under(args.data), DIMENSIONS)).test
    test = [m for m in messages if m.origin == "corpus"]
    with tempfile.TemporaryDirectory() as name:
        rows = [row for run in args.run for row in variants(run, test, Path(name))]
        rows += base(Path(name))
        print("| graph | MB | 32 tokens | 128 | 512 | Pearson | MAE | mean delta | Spearman |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
        took = latencies(rows, args.rounds)
        for row in rows:
            size = row.path.stat().st_size / 1e6
            print(f"| {row.name} | {size:.1f} | {' | '.join(took[row.name])} | {row.quality} |")


if __name__ == "__main__":
    main()
