"""What the flight figures promise, by simulation.

    python -m benchmarks.quality.flights [--flights 2000]

False alarms over A/A flights of 50 looks, coverage of ratio intervals, power as predicted.
"""

import argparse

import numpy as np

from hydra_core.live.flight.analysis import plan, power
from hydra_core.live.flight.effects import Effect, Moments, Reading, compare, moments

LOOKS = 50
UNITS = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flights", type=int, default=2000)
    count = parser.parse_args().flights
    print(f"{count} A/A flights, {UNITS:,} users, {LOOKS} looks, cost per request (a ratio), CUPED")
    for reading in Reading:
        alarms = [bool(_excludes(_flight(seed, reading=reading)).any()) for seed in range(count)]
        print(f"  read daily, {reading.value}: false alarms {np.mean(alarms):.2%}")
    _coverage(count)
    _power(count)


def _coverage(count: int) -> None:
    """Intervals of a ratio's relative change (-5 %), one fixed look, by number of users."""
    for units in (200, 1_000, UNITS):
        for adjust in (False, True):
            held = []
            for seed in range(count):
                one = _flight(seed, change=-0.05, units=units, looks=1, reading=Reading.FIXED,
                              adjust=adjust)  # fmt: skip
                held.append(bool((one.relative_lo <= -0.05) & (one.relative_hi >= -0.05)))
            cuped = " with CUPED" if adjust else ""
            print(
                f"  coverage of the ratio's interval, {units:,} users{cuped}: {np.mean(held):.2%}"
            )


def _power(count: int) -> None:
    """Flights as long as planned for 80 % power at -2 %, and at half that length."""
    pilot = _arms(10**6, 1, UNITS * 10, 0.0)
    both = Moments(pilot[0].sums + pilot[1].sums, pilot[0].origin)
    value, spread = _spread(both)
    for reading in Reading:
        whole = plan(-0.02 * value, spread, units_per_day=1.0, reading=reading).units or 0
        for units in (whole, whole // 2):
            predicted = power(-0.02 * value, spread, units, reading=reading)
            shown = [
                bool(_excludes(_flight(seed, change=-0.02, units=units, looks=1, reading=reading,
                                       adjust=False)).all())
                for seed in range(count)
            ]  # fmt: skip
            print(f"  power at {units:,} users, {reading.value}: predicted {predicted:.1%}, "
                  f"found {np.mean(shown):.1%}")  # fmt: skip


def _spread(both: Moments) -> tuple[float, float]:
    from hydra_core.live.flight.effects import linear

    found = linear(both.over_strata(), both)
    return float(found.value.item()), float(np.sqrt(found.variance.item()))


def _excludes(effect: Effect) -> np.ndarray:
    return (effect.lo > 0) | (effect.hi < 0)


def _flight(
    seed: int, *, change: float = 0.0, units: int = UNITS, looks: int = LOOKS, reading: Reading,
    adjust: bool = True,
) -> Effect:  # fmt: skip
    control, treatment = _arms(seed, looks, units, change)
    with np.errstate(all="ignore"):
        return compare(control, treatment, reading=reading, adjust=adjust)


def _arms(seed: int, looks: int, units: int, change: float) -> tuple[Moments, Moments]:
    """Moments after each look: skewed costs, requests that vary, a covariate that moves both."""
    rng = np.random.default_rng(seed)
    arm = rng.random(units) < 0.5
    z = rng.gamma(2.0, 1.0, units)
    requests = 1.0 + rng.poisson(4.0 + 2.0 * z)
    cost = requests * (0.5 + 0.3 * z) * rng.lognormal(0.0, 0.6, units)
    cost = np.where(arm, cost * (1.0 + change), cost)
    day = np.arange(units) * looks // units
    origin = np.array([cost.mean(), requests.mean(), z.mean()])
    cells = arm.astype(int) * looks + day
    found = moments(cost, requests, z, cells, (2, looks, 1), origin).sums.cumsum(axis=1)
    return Moments(found[0], origin), Moments(found[1], origin)


if __name__ == "__main__":
    main()
