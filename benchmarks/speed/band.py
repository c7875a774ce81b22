"""How long the simultaneous band over the whole curve takes.

    python -m benchmarks.speed.band

Wall and processor seconds of one band at the console's number of positions, routes included.
"""

import time

import numpy as np

from hydra_core.replay.band import lift_band
from hydra_core.replay.frontier import choices, frontier
from hydra_core.replay.sweep import BAND_POSITIONS

SIZES = ((8_040, 4, 1.5), (100_000, 12, 20.0))


def main():
    for n, m, limit in SIZES:
        rng = np.random.default_rng(0)
        shortfalls = rng.random((n, m)) * np.linspace(1.0, 0.2, m)
        price = 4.0 ** np.arange(m)
        quality = (rng.normal(size=(n, m)) + np.linspace(0, 1, m) > rng.normal(size=(n, 1))) * 1.0
        cost = price * rng.lognormal(size=(n, m))
        curve = frontier(shortfalls, price, quality, cost)
        wall, cpu = time.perf_counter(), time.process_time()
        knob = curve.knob[curve.simplified(BAND_POSITIONS)]
        routes = choices(shortfalls, price, knob)
        band = lift_band(quality, cost, routes, knob, rng=np.random.default_rng(0))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(
            f"{n:,} x {m}: {wall:.2f} s wall, {cpu:.2f} s of processor (wanted under {limit:g} s), "
            f"critical value {band.critical:.2f}"
        )


if __name__ == "__main__":
    main()
