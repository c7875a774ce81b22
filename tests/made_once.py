"""What many tests only read is made once a run, by the first process that asks for it."""

import fcntl
import os
from pathlib import Path


def made_once(name, fill):
    """The folder of that name, filled by `fill(folder)`; nobody writes to it later."""
    root = Path(os.environ["HYDRA_TEST_MADE_ONCE"])
    place = root / name
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            fresh = root / f"{name}.partial"
            fresh.mkdir()
            fill(fresh)
            fresh.rename(place)
    return place
