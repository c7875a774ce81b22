"""Time of the tuner: 2,000 trials on 8,040 queries x 4 models, twice with one seed.

python -m benchmarks.speed.tuner [--trials 2000] [--queries 8040] [--json]
"""

import argparse
import json
import time

import numpy as np

from hydra_core.base.types import Band, Pool
from hydra_core.choosing.policy_search import Space, search_policy
from hydra_core.replay.operating_point import Aim, AimKind
from hydra_core.replay.replay import ReplayData

BANDS = (Band(0.29, 0.72), Band(0.02, 0.79), Band(0.0, 0.69), Band(0.02, 0.43))


def sample(n, m=4, seed=42):
    """Queries whose outcome depends on two of the four requirements."""
    rng = np.random.default_rng(seed)
    lo, width = (np.array([getattr(b, key) for b in BANDS]) for key in ("lo", "width"))
    requirements = lo + width * rng.random((n, 4))
    capabilities = lo + width * np.linspace(0.1, 1.0, m)[:, None]
    hidden = ((requirements - lo) / width)[:, :2].mean(axis=1)
    chance = 1 / (1 + np.exp(-8 * (np.linspace(0.1, 1.0, m)[None, :] - hidden[:, None])))
    cost = 0.01 * 4.0 ** np.arange(m)
    return ReplayData(
        query_ids=tuple(map(str, range(n))),
        languages=tuple("en" if i % 2 else "de" for i in range(n)),
        requirements=requirements,
        quality=(rng.random((n, m)) < chance).astype(np.float64),
        cost_usd=rng.lognormal(np.log(cost), 0.5, size=(n, m)),
        pool=Pool(tuple(f"m{i}" for i in range(m)), capabilities, cost, np.ones(4)),
        rows=np.arange(n),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--queries", type=int, default=8040)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    data, space = sample(options.queries), Space(BANDS)
    seconds, found = [], []
    for _ in range(2):
        start, cpu = time.perf_counter(), time.process_time()
        aim = Aim(AimKind.CHEAPEST_WITH_QR, 0.90)
        found.append(search_policy(data, space, aim, trials=options.trials, seed=1))
        seconds.append((time.perf_counter() - start, time.process_time() - cpu))
    same = found[0].setting == found[1].setting and found[0].halves == found[1].halves
    if options.json:
        print(json.dumps({"trials": found[0].trials, "seconds": seconds, "same_result": same}))
        return
    for wall, cpu in seconds:
        print(f"{found[0].trials} trials on {options.queries} x 4: {wall:.1f} s ({cpu:.1f} s CPU)")
    print(f"same seed, same result: {'yes' if same else 'NO'}")
    print(found[0].text)


if __name__ == "__main__":
    main()
