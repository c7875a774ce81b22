"""How often a canary that is no worse is stopped, and how soon one that is worse.

    python -m benchmarks.quality.canary [--runs 200] [--conversations 2000] [--looks 20]

Traffic is drawn as a service logs it: a fifth of the conversations on the canary, one to three
requests each, failures, rejections, ratings of every fifth answer, times and costs with long tails.
The canary is looked at again and again, as the service does, by `live.canary.canary_report`.
"""

import argparse
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from hydra_core.decision_log.reading import DecisionLog
from hydra_core.live.canary import canary_report
from hydra_core.live.traffic import traffic_of

DIGEST = "canary"
#: What is changed on the canary; the first is the same as the main revision.
CANARIES = {
    "the same": {},
    "5 % of first attempts fail (1 %)": {"failed": 0.05},
    "all first attempts fail": {"failed": 1.0},
    "5 % rejected (0.5 %)": {"rejected": 0.05},
    "feedback 0.7 (0.8)": {"quality": 0.7},
    "1.5 times as dear": {"dearer": 1.5},
    "3 times as dear": {"dearer": 3.0},
}


def drawn(rng, count, *, failed=0.01, rejected=0.005, quality=0.8, dearer=1.0):
    """The log's rows of so many conversations, in the order in which they came."""
    conversation = np.repeat(np.arange(count), rng.integers(1, 4, count))
    n = conversation.size
    on = (rng.random(count) < 0.2)[conversation]
    bad = rng.random(n) < np.where(on, failed, 0.01)
    wrong = ~bad & (rng.random(n) < np.where(on, rejected, 0.005))
    rated = rng.random(n) < 0.2
    tail = rng.lognormal(0.0, 1.0, n)
    return pd.DataFrame(
        {
            "decision_id": [f"d{i}" for i in range(n)],
            "conversation_id": [f"c{i}" for i in conversation],
            "at": pd.Timestamp(datetime(2026, 11, 25, tzinfo=UTC))
            + pd.to_timedelta(np.arange(n), "s"),
            "arm": np.where(on, "canary", "main"),
            "catalog_digest": np.where(on, DIGEST, "main"),
            "status": np.where(wrong, "rejected", "answered"),
            "attempts": [["m:server_error"] if one else [] for one in bad],
            "vetoed": "",
            "latency_ms": 800.0 * rng.lognormal(0.0, 0.8, n),
            "cost_usd": 0.002 * tail * np.where(on, dearer, 1.0),
            "about_usd": np.nan,
            "quality": np.where(
                rated, rng.random(n) < np.where(on, quality, 0.8), np.nan
            ),
        }
    )  # fmt: skip


def stopped_after(rng, options, **changed):
    """Conversations until the canary is stopped, None where it is not."""
    rows = drawn(rng, options.conversations, **changed)
    ends = np.linspace(0, len(rows), options.looks + 1).astype(int)[1:]
    for end in ends:
        some = traffic_of(DecisionLog(rows.iloc[:end], 0, 0))
        if canary_report(some, DIGEST).worse:
            return int(some.rows["conversation_id"].nunique())
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--conversations", type=int, default=2_000)
    parser.add_argument("--looks", type=int, default=20)
    options = parser.parse_args()
    print("| canary | stopped | of runs | after conversations, median |\n|---|---|---|---|")
    for name, changed in CANARIES.items():
        rng = np.random.default_rng(7)
        runs = options.runs if not changed else max(20, options.runs // 10)
        found = [stopped_after(rng, options, **changed) for _ in range(runs)]
        ended = [one for one in found if one is not None]
        median = f"{np.median(ended):,.0f}" if ended else "–"
        print(f"| {name} | {len(ended)} | {runs} | {median} |", flush=True)


if __name__ == "__main__":
    main()
