"""A synthetic A/B flight with the effects that the paper reports of its own.

24,000 users an arm over 14 days, two SKUs. Built in: median time to complete -6.4 %, time to first
token -4.6 %, errors a turn -17.7 %, turns a user +1.7 %, cost a request -2.3 %, retention flat, and
a routed segment some 15 % under the flagship's cost. Everything is drawn from a fixed seed; chance
is left in, so measured effects differ from those by about their interval.
"""

from pathlib import Path

import numpy as np
import pandas as pd

__all__ = ["EFFECTS", "build"]

#: Relative change in the treatment.
EFFECTS = {"ttc": -0.064, "ttft": -0.046, "errors": -0.177, "turns": 0.017, "cost": -0.023}
_PER_ARM = 24_000
_DAYS = 14
_SEED = 20260622


def build(folder: Path) -> int:
    """Write ``users.parquet``; how many users. The settings, ``flight.yaml``, lie beside it."""
    frame = users(np.random.default_rng(_SEED))
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(folder / "users.parquet", index=False, compression="zstd")
    return len(frame)


def users(rng: np.random.Generator) -> pd.DataFrame:
    """One row a user; what a user needs moves every metric, so it serves as a covariate."""
    n = 2 * _PER_ARM
    treated = rng.permutation(np.repeat([0, 1], _PER_ARM)).astype(bool)
    sku = rng.random(n) < 0.3
    needs = rng.beta(2.0, 8.0, n)

    def effect(name: str) -> np.ndarray:
        return np.where(treated, 1.0 + EFFECTS[name], 1.0)

    activity = (14 + 30 * needs) * np.where(sku, 1.2, 1.0) * rng.gamma(9.0, 1 / 9.0, n)
    turns = rng.poisson(activity * effect("turns")) + 1
    requests = turns + rng.poisson(1.6 * turns)
    errors = rng.binomial(turns, np.clip(0.035 * (0.6 + 2 * needs) * effect("errors"), 0, 1))
    request_usd = 0.012 * (0.5 + 2.5 * needs) * rng.gamma(25.0, 1 / 25.0, n)
    cost = requests * request_usd * effect("cost")
    flagship = requests * request_usd * 1.155 * rng.gamma(400.0, 1 / 400.0, n)
    complete = 9.0 * (0.7 + 1.5 * needs) * rng.gamma(12.0, 1 / 12, n)
    back = [rng.random(n) < 0.44 - 0.03 * day for day in (2, 3, 4, 5)]
    return pd.DataFrame(
        {
            "user": [f"u{i:05d}" for i in range(n)],
            "arm": np.where(treated, "hydra", "control"),
            "first_day": rng.choice(_DAYS, n, p=_arrivals()).astype(np.int8),
            "sku": np.where(sku, "pro", "free"),
            "predicted_requirement": needs.round(3),
            "turns": turns.astype(np.int16),
            "requests": requests.astype(np.int16),
            "errors": errors.astype(np.int16),
            "cost_usd": cost.round(4),
            "flagship_usd": flagship.round(4),
            "ttc_s": (complete * effect("ttc")).round(2),
            "ttft_s": (1.4 * rng.gamma(16.0, 1 / 16, n) * effect("ttft")).round(3),
            **{f"back_{day}": b.astype(np.int8) for day, b in zip((2, 3, 4, 5), back, strict=True)},
        }
    )


def _arrivals() -> np.ndarray:
    """Share of users first seen on each day: most come early."""
    weights = 0.82 ** np.arange(_DAYS)
    return weights / weights.sum()
