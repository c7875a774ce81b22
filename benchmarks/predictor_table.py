"""Size, latency and quality of every export variant, next to a ModernBERT-base in the same run.

    python benchmarks/predictor_table.py --run runs/e5 --data ../shared/data --pack e5-small-q4.bin

Latency: one thread, one message, p50 / p99 in ms at 32, 128 and 512 tokens; the variants take turns
within a round, so that a busy moment of the machine hits all of them alike. Quality: mean Pearson
and MAE of the raw scores (before recalibration) on our own held-out messages. The ModernBERT-base
has the paper's size and random weights: its speed is real, its scores are not.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from hydra_core.training.dataset import DataPaths
from hydra_core.training.encode import token_ids
from hydra_core.training.export import export_onnx, parity, run_graph, session
from hydra_core.training.fit import load_weights
from hydra_core.training.model import EncoderConfig, Predictor
from hydra_core.training.quantize import VARIANTS, variant_of
from hydra_core.training.recipe import Recipe, prepare
from hydra_core.training.release import metrics

LENGTHS = (32, 128, 512)


def latencies(paths: dict[str, Path], rounds: int) -> dict[str, list[str]]:
    """p50 / p99 in ms of every graph at every length."""
    rng = np.random.default_rng(0)
    graphs = {name: session(path) for name, path in paths.items()}
    out: dict[str, list[str]] = {name: [] for name in graphs}
    for length in LENGTHS:
        took: dict[str, list[float]] = {name: [] for name in graphs}
        for _ in range(rounds):
            ids = rng.integers(10, 30_000, (1, length))
            for name, graph in graphs.items():
                start = time.perf_counter()
                graph.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
                took[name].append((time.perf_counter() - start) * 1e3)
        for name, values in took.items():
            low, high = np.percentile(values[1:], [50, 99])
            out[name].append(f"{low:.1f} / {high:.1f}")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pack", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--base", action=argparse.BooleanOptionalAction, default=True)
    args = parser.parse_args()
    material = prepare(DataPaths.under(args.data), args.pack, Recipe())
    model = material.model
    model.load_state_dict(load_weights(args.run / "best.pt"))
    test = [m for m in material.splits.test if m.origin == "corpus"]
    rows = token_ids(material.tokenizer, [m.text for m in test], 512)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = export_onnx(model, folder / "source.onnx")
        paths = {v: variant_of(source, v, folder / f"{v}.onnx") for v in VARIANTS}
        scores = {v: run_graph(session(p), rows) for v, p in paths.items()}
        if args.base:
            base = export_onnx(Predictor(EncoderConfig.modernbert_base()), folder / "base.onnx")
            paths["ModernBERT-base int8"] = variant_of(base, "int8", folder / "base8.onnx")
            paths["ModernBERT-base fp32"] = base
        print("| variant | MB | 32 tokens | 128 | 512 | Pearson | MAE | mean delta | Spearman |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
        for variant, cells in latencies(paths, args.rounds).items():
            size = paths[variant].stat().st_size / 1e6
            quality = "| | | |"
            if variant in scores:
                found = metrics(test, scores[variant])
                near = parity(scores["fp32"], scores[variant])
                quality = (f"{found['pearson']} | {found['mae']} | {near.mean_delta:.4f} "
                           f"| {near.spearman:.4f}")  # fmt: skip
            print(f"| {variant} | {size:.1f} | {' | '.join(cells)} | {quality} |")


if __name__ == "__main__":
    main()
