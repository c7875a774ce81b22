"""Opens a bundle of unknown origin in a process of its own, with limits on time and memory.

Reading the file refuses what could run for ever by design; what is left can still ask for a tensor
of a terabyte or for hours of honest work. Here that ends a child, not the program that asks.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Final

from hydra_core.base.errors import BundleError, Problem

MEMORY_BYTES: Final = 4 << 30
SECONDS: Final = 60


def open_apart(path: Path, *, seconds: int = SECONDS, memory_bytes: int = MEMORY_BYTES) -> str:
    """Name and version of a bundle that opens and scores a message within the limits.

    Args:
        seconds: Of computing; twice as long by the clock.
        memory_bytes: Of address space.

    Raises:
        BundleError: It is not valid, or goes over a limit.
    """
    words = [str(path), str(seconds), str(memory_bytes)]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "hydra_core.predictor.opening", *words],
            capture_output=True,
            timeout=2 * seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _over(path, seconds, memory_bytes) from error
    try:
        told = json.loads(done.stdout)
    except ValueError as error:
        raise _over(path, seconds, memory_bytes) from error
    if "problems" in told:
        raise BundleError(told["source"], [Problem(*words) for words in told["problems"]])
    return str(told["opened"])


def _over(path: Path, seconds: int, memory_bytes: int) -> BundleError:
    message = f"does not open within {seconds} s of computing and {memory_bytes >> 20:,} MiB"
    return BundleError(str(path), [Problem("", message, "do not use it")])


def _child(path: str, seconds: int, memory_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from hydra_core.predictor.bundle import load_bundle
    from hydra_core.predictor.onnx_predictor import Predictor

    try:
        bundle = Predictor(load_bundle(Path(path))).bundle
        told: dict[str, object] = {"opened": f"{bundle.name} {bundle.version}"}
    except BundleError as error:
        problems = [(p.place, p.message, p.remedy) for p in error.problems]
        told = {"source": error.source, "problems": problems}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    _child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
