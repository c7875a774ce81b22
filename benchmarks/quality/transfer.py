"""Do the scores order real difficulty? On the third that nothing learns from.

    python -m benchmarks.quality.transfer --data ../shared/data [--bundle DIR]

For every pool of models: the AUC of the mean of the scores for "the best model solves it, the
cheapest does not", and the lift of that mean as a threshold along the hull of constant models, over
the hull at the same cost, at a quarter, half and three quarters of the cost range, in points.
"""

import argparse
import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from hydra_core.base.types import FloatArray
from hydra_core.lab.training.texts.dataset import is_kept_apart
from hydra_core.predictor.bundle import SHIPPED, load_bundle
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.replay.metrics import ConstantPolicy, upper_hull

POOLS = {
    "A": ("gpt-4o-mini-2024-07-18", "claude-3-haiku-20240307", "llama-3-70b-instruct",
          "claude-3-5-sonnet-20240620", "gpt-4o-2024-05-13"),
    "B": ("gemini-1.5-flash", "gpt-4o-mini-2024-07-18", "llama-3-70b-instruct",
          "gpt-4o-2024-08-06", "claude-3-5-sonnet-20240620"),
    "C": ("llama-3-8b-instruct", "gpt-3.5-turbo-0125", "llama-3-70b-instruct",
          "claude-3-5-sonnet-20240620", "claude-3-opus-20240229"),
    "D": ("llama-3-8b-instruct", "claude-3-haiku-20240307", "gpt-4o-2024-05-13"),
    "E": ("gemini-1.5-flash", "llama-3-70b-instruct", "claude-3-5-sonnet-20240620"),
}  # fmt: skip
SHARES = (0.25, 0.5, 0.75)


def only_the_best(quality: FloatArray, cost: FloatArray, score: FloatArray) -> float:
    """(n, m), (n, m), (n,) -> AUC of the score for what only the best model solves."""
    best, cheapest = int(quality.mean(0).argmax()), int(cost.mean(0).argmin())
    asked = (quality[:, best] >= 0.5) & (quality[:, cheapest] < 0.5)
    return float(roc_auc_score(asked, score))


def lift(quality: FloatArray, cost: FloatArray, score: FloatArray) -> float:
    """(n, m), (n, m), (n,) -> mean gain over the hull at equal cost, in points of quality."""
    means = zip(quality.mean(0), cost.mean(0), strict=True)
    hull = upper_hull([ConstantPolicy(str(i), i, 0, q, c) for i, (q, c) in enumerate(means)])
    costs, qualities = ([getattr(p, n) for p in hull] for n in ("mean_cost_usd", "quality"))
    order, gains = np.argsort(-score, kind="stable"), []
    for share in SHARES:
        wanted = costs[0] + share * (costs[-1] - costs[0])
        step = min(int(np.searchsorted(costs, wanted, side="right")), len(hull) - 1)
        low, high = hull[step - 1].index, hull[step].index
        dear = round(len(score) * (wanted - costs[step - 1]) / (costs[step] - costs[step - 1]))
        chosen = np.full(len(score), low)
        chosen[order[:dear]] = high
        rows = np.arange(len(score))
        reached = float(np.interp(cost[rows, chosen].mean(), costs, qualities))
        gains.append(quality[rows, chosen].mean() - reached)
    return 100 * float(np.mean(gains))


def measure(folder: Path, bundle: Path) -> list[tuple[str, int, float, float]]:
    """Pool, queries, AUC and lift of every pool."""
    lines = gzip.decompress((folder / "queries.jsonl.gz").read_bytes()).decode().splitlines()
    rows = [row for row in map(json.loads, lines) if is_kept_apart(row["text"])]
    table = pd.read_parquet(folder / "outcomes.parquet")
    quality, cost = (
        table.pivot(index="query_id", columns="model", values=column).loc[
            [row["query_id"] for row in rows]
        ]
        for column in ("quality", "cost_usd")
    )
    predictor = Predictor(load_bundle(bundle))
    score = predictor.predict_batches([row["text"] for row in rows]).requirements.mean(1)
    out = []
    for name, models in POOLS.items():
        q, c = (frame[list(models)].to_numpy(np.float64) for frame in (quality, cost))
        out.append((name, len(rows), only_the_best(q, c, score), lift(q, c, score)))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Scores against real outcomes of public benchmark questions."
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with replay/mixed-2024/")
    parser.add_argument("--bundle", type=Path, default=SHIPPED)
    options = parser.parse_args()
    found = measure(options.data / "replay" / "mixed-2024", options.bundle)
    print("| pool | n | AUC | lift, points |\n|---|---:|---:|---:|")
    for name, n, auc, gain in found:
        print(f"| {name} | {n} | {auc:.3f} | {gain:+.2f} |")
    auc, gain = (np.mean([row[i] for row in found]) for i in (2, 3))
    print(f"| mean | | {auc:.3f} | {gain:+.2f} |")


if __name__ == "__main__":
    main()
