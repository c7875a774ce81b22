"""Half an hour of traffic while everything around the router breaks and comes back.

    python -m benchmarks.speed.serve_soak [--minutes 30] [--rate 50]

Two workers share conversations through Redis. The catalog is edited every 5 s (every third edit is
broken), the upstream of three of the five models is killed and started again every 20 s, Redis is
killed once half-way and started again. Printed are answers by status, and whether the decision log
holds every decision that a client saw.
"""

import argparse
import asyncio
import collections
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from benchmarks.speed.serve import MODELS, Target, free_port, process
from hydra_core.decision_log.reading import read_log


def upstreams_file(folder, weak, strong):
    servers = [
        {"name": name, "base_url": f"http://127.0.0.1:{port}/v1", "models": {m: m for m in models}}
        for name, port, models in (("weak", weak, MODELS[:3]), ("strong", strong, MODELS[3:]))
    ]
    path = Path(folder) / "upstreams.yaml"
    path.write_text(yaml.safe_dump({"schema": "hydra.upstreams/v1", "upstreams": servers}))
    return path


class Counted(Target):
    """Counts answers by status, broken connections included."""

    def __init__(self, *given):
        super().__init__(*given)
        self.seen = collections.Counter()

    async def one(self, rng, **options):
        before = self.bad
        try:
            await super().one(rng, **options)
            self.seen["200" if self.bad == before else "refused"] += 1
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            self.seen[type(error).__name__] += 1


async def traffic(target, rate, seconds):
    rng, begun, tasks = random.Random(0), time.perf_counter(), set()
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, begun + number / rate - time.perf_counter()))
        task = asyncio.create_task(target.one(rng, stream=number % 2 == 0))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)


async def edits(pool, text, seconds):
    for number in range(int(seconds // 5)):
        broken = number % 3 == 2
        pool.write_text("broken: [" if broken else text.replace("0.24", f"0.{20 + number % 9}"))
        await asyncio.sleep(5)


async def killing(stack, words, port, every_s, seconds, name):
    """Kill a server and start it again, over and over."""
    server = stack.enter_context(process(words, port))
    left = seconds
    while left > every_s:
        await asyncio.sleep(every_s)
        server.kill()
        await asyncio.sleep(3)
        server = await asyncio.to_thread(stack.enter_context, process(words, port))
        left -= every_s + 3


async def soak(options, folder):
    seconds = 60 * options.minutes
    weak, strong, redis, port = (free_port() for _ in range(4))
    pool, log = Path(folder) / "pool.yaml", Path(folder) / "log"
    text = Path("catalog/paper_five.yaml").read_text()
    pool.write_text(text)
    fake = [sys.executable, "-m", "tests.server.fake_upstream"]
    store = ["redis-server", "--port", str(redis), "--save", "", "--bind", "127.0.0.1"]
    serve = [sys.executable, "-m", "hydra_core", "serve", "--catalog", str(pool), "--workers", "2"]
    serve += ["--upstreams", str(upstreams_file(folder, weak, strong)), "--port", str(port)]
    serve += ["--redis", f"redis://127.0.0.1:{redis}/0", "--log", str(log)]
    with contextlib.ExitStack() as stack:
        stack.enter_context(process([*fake, str(strong)], strong))
        breaking = [
            asyncio.create_task(killing(stack, [*fake, str(weak)], weak, 20, seconds, "weak")),
            asyncio.create_task(killing(stack, store, redis, seconds / 2, seconds, "redis")),
        ]
        await asyncio.sleep(3)
        stack.enter_context(process(serve, port))
        await asyncio.sleep(5)
        target = Counted("router", port, "auto")
        await asyncio.gather(traffic(target, options.rate, seconds), edits(pool, text, seconds))
        for task in breaking:
            task.cancel()
        await asyncio.gather(*breaking, return_exceptions=True)
        await asyncio.sleep(1)
    return target, read_log(log)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=50.0)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(subprocess.SubprocessError):
        target, log = asyncio.run(soak(options, folder))
        print(f"answers: {dict(target.seen)}")
        rows = log.decisions
        fell = int((rows["attempts"].map(len) > 0).sum())
        print(f"log: {len(rows):,} decisions, {log.lost} lost; {fell:,} were saved by a fallback")
        print(f"statuses: {rows['status'].value_counts().to_dict()}")


if __name__ == "__main__":
    main()
