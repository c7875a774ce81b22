"""Memory of the service over a million decisions, with sessions, metrics and the decision log on.

    python -m benchmarks.speed.serve_memory [--decisions 1000000]

The encoder is replaced by one that answers at once; everything else is the service's own path from
a decoded request to the log's record. Printed are the resident memory at every tenth, how far it
moves over the last half, and whether the log holds every decision.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import psutil
import pyarrow.parquet as pq

from benchmarks.speed.router import Instant, catalog
from hydra_core.decision_log.writer import LogWriter, parquet_segments
from hydra_core.routing.router import Router
from hydra_core.routing.sessions import MemorySessions
from hydra_core.server.admission import Admission
from hydra_core.server.chat import read_chat
from hydra_core.server.deciding import Decider, Result
from hydra_core.server.exploration import Exploration
from hydra_core.server.live import LiveCatalog, Published
from hydra_core.server.service import Service
from hydra_core.server.telemetry import Metrics
from hydra_core.server.upstream.failures import Health

_AT_ONCE = 64


class Fixed:
    """A source that never changes."""

    def stamp(self):
        return 0

    def load(self):
        return Published(catalog(12))


async def measured(decisions, folder):
    sessions = MemorySessions(max_sessions=10_000)
    predictor = Instant()
    live = LiveCatalog(Fixed(), lambda one: Router(one, predictor, sessions=sessions))
    log = LogWriter(Path(folder))
    decider = Decider(live, Health(), Exploration(0.05, 0.5, 1e9), sessions)
    metrics = Metrics(spec.id for spec in live.now.catalog.models)
    service = Service(decider, Admission(1, metrics, _AT_ONCE, 60.0), metrics, None, log)
    live.start()
    process, seen = psutil.Process(), []

    async def stays():
        await asyncio.Event().wait()

    async def one(number):
        started = time.perf_counter()
        messages = [{"role": "user", "content": f"message {number}"}] * (1 + number % 2)
        chat = read_chat({"messages": messages}, f"c-{number // 2}")
        decided = await service.decide(chat, stays)
        service.finish(decided, Result("decided"), started)

    begun = time.perf_counter()
    for first in range(0, decisions, _AT_ONCE):
        await asyncio.gather(*(one(first + k) for k in range(min(_AT_ONCE, decisions - first))))
        if first // (decisions // 20) > len(seen) - 1:
            seen.append(process.memory_info().rss / 2**20)
    rate = decisions / (time.perf_counter() - begun)
    await service.close()
    kept = sum(pq.read_metadata(path).num_rows for path in parquet_segments(Path(folder)))
    return seen, rate, kept


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--decisions", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seen, rate, kept = asyncio.run(measured(options.decisions, folder))
    half = seen[len(seen) // 2 :]
    print("MiB at every twentieth: " + " ".join(f"{value:.0f}" for value in seen))
    moved = 100 * (max(half) / min(half) - 1)
    print(f"last half: {min(half):.1f} to {max(half):.1f} MiB ({moved:.1f} %)")
    print(
        f"{rate:.0f} decisions a second without encoder; {kept:,} of {options.decisions:,} logged"
    )


if __name__ == "__main__":
    main()
