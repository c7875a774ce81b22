"""Which messages does a bundle flag as unlike those that it was trained on?

    python -m benchmarks.quality.unusual [--bundle DIR] [--data DIR] [--json]

Ordinary messages that neither training nor the limit saw, rubbish made here, scripts that no bundle
knows, and the demo messages with every family of claims. With --data (the labelled corpus) also the
corpus' test split, and kinds of messages that training did not have.
"""

import argparse
import base64
import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from hydra_core.base.types import IntArray
from hydra_core.evalsets.evalset import cluster_numbers
from hydra_core.lab.robustness.findings import probed
from hydra_core.predictor.bundle import SHIPPED, load_bundle
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.replay.significance import clustered_wilson

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "sample_data" / "console_demo" / "queries.parquet"
OWN = ROOT / "hydra_core" / "lab" / "training" / "data"
MADE = 200
DEMO_TASKS = "demo tasks, 16 languages"
#: First and last letter of scripts that none of the sixteen languages uses.
SCRIPTS = ((0x10D0, 0x10F0), (0x5D0, 0x5EA), (0x905, 0x939), (0x1200, 0x1248), (0x531, 0x556),
           (0x391, 0x3C9), (0x980, 0x9B9), (0xB85, 0xBB9), (0xD05, 0xD39), (0x1000, 0x1020),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """Messages of one kind: how many are flagged, with Wilson's interval, and how far they lie.

    Wordings of one task count as dependent, of a demo task with every claim and change.
    """

    kind: str
    n: int
    flagged: float
    lo: float
    hi: float
    median: float


def rubbish() -> dict[str, list[str]]:
    """Messages that ask for nothing, the same in every run."""
    rng = random.Random(2)

    def letters(low: int, high: int, pool: str) -> str:
        return "".join(rng.choice(pool) for _ in range(rng.randint(low, high)))

    latin = "abcdefghijklmnopqrstuvwxyz"
    return {
        "random letters": [
            " ".join(letters(2, 10, latin) for _ in range(rng.randint(5, 60))) for _ in range(MADE)
        ],
        "base64": [
            base64.b64encode(rng.randbytes(rng.randint(40, 400))).decode() for _ in range(MADE)
        ],
        "hexadecimal": [rng.randbytes(rng.randint(30, 300)).hex() for _ in range(MADE)],
        "punctuation": [letters(20, 200, "!@#$%^&*()_+-=[]{}|;:,.<>/?~`") for _ in range(MADE)],
        "one word repeated": [
            rng.choice(("a ", "the ", "buffalo ", "lol ", "0 ")) * rng.randint(20, 300)
            for _ in range(MADE)
        ],
        "other scripts": [
            letters(30, 200, "".join(map(chr, range(low, high))) + " " * 5)
            for low, high in SCRIPTS
            for _ in range(MADE // len(SCRIPTS))
        ],
    }


def ordinary(data: Path | None) -> dict[str, tuple[list[str], IntArray | None]]:
    """Messages held out from training and from the limit; with `data` further kinds.

    Each with the cluster number of each message's task, None where all are independent.
    """
    demo = pd.read_parquet(DEMO)
    with gzip.open(OWN / "fresh.jsonl.gz", "rt", encoding="utf-8") as file:
        fresh = [json.loads(line)["text"] for line in file]
    found: dict[str, tuple[list[str], IntArray | None]] = {
        DEMO_TASKS: (demo["text"].astype(str).tolist(), cluster_numbers(demo)),
        "terse and sweeping requests": (fresh, None),
    }
    if data is None:
        return found
    from hydra_core.lab.training.texts.dataset import DataPaths, read_messages, split

    splits = split(read_messages(DataPaths.under(data, OWN), load_bundle().dimensions))
    kinds = {
        "corpus, test split": [m for m in splits.test if m.origin == "corpus"],
        "wordings of held-out tasks": list(splits.tasks),
        "benchmark questions (MMLU, maths, puzzles)": [
            m for m in splits.train if m.origin == "outcomes"
        ],
    }
    rng = np.random.default_rng(5)
    for kind, messages in kinds.items():
        rows = rng.choice(len(messages), min(len(messages), 800), replace=False)
        drawn = [messages[row] for row in rows]
        tasks = [one.task or f"message {one.id}" for one in drawn]
        found[kind] = ([one.text for one in drawn], np.unique(tasks, return_inverse=True)[1])
    return found


def measure(predictor: Predictor, data: Path | None) -> list[Row]:
    rows = []
    for kind, (texts, clusters) in ordinary(data).items():
        rows.append(row(kind, distances(predictor, texts), clusters))
    rows += [row(kind, distances(predictor, texts)) for kind, texts in rubbish().items()]
    demo = pd.read_parquet(DEMO)
    tasks = cluster_numbers(demo)
    found = probed(predictor, list(demo["text"]), list(demo["language"]))
    for family in dict.fromkeys(attack.family for attack in found.attacks):
        both = [one.read.distances for one in found.attacks if one.family == family]
        rows.append(
            row(f"demo tasks with a claim: {family}", np.concatenate(both), np.tile(tasks, 2))
        )
    for change, read in found.changed.items():
        rows.append(row(f"demo tasks, {change}", read.distances, tasks))
    return rows


def distances(predictor: Predictor, texts: Sequence[str]) -> np.ndarray:
    found = predictor.predict_batches(texts).distances
    if found is None:
        raise SystemExit(f"{predictor.bundle.name} has no reference to compare with")
    return found


def row(kind: str, far: np.ndarray, clusters: IntArray | None = None) -> Row:
    units = np.arange(len(far)) if clusters is None else clusters
    share = clustered_wilson((far > 1.0).astype(float), units)
    return Row(kind, len(far), share.value, share.lo, share.hi, float(np.median(far)))


def table(rows: Sequence[Row]) -> str:
    lines = [
        "| messages | n | flagged | 95 % | median distance |",
        "|---|---:|---:|---|---:|",
    ]
    lines += [
        f"| {one.kind} | {one.n:,} | {one.flagged:.1%} | {one.lo:.1%} to {one.hi:.1%} "
        f"| {one.median:.2f} |"
        for one in rows
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="What is flagged as unlike training.")
    parser.add_argument("--bundle", type=Path, default=SHIPPED)
    parser.add_argument("--data", type=Path, help="folder of the labelled corpus")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = measure(Predictor(load_bundle(options.bundle)), options.data)
    print(json.dumps([asdict(one) for one in rows], indent=2) if options.json else table(rows))


if __name__ == "__main__":
    main()
