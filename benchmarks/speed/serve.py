"""What the router adds to a request, beside LiteLLM's proxy, against a local fake upstream.

    python -m benchmarks.speed.serve [--litellm PYTHON] [--rounds 6] [--seconds 5] [--rate 50]

Three servers stand side by side on this machine: the fake upstream, `hydra_core serve` with one
worker in front of it, and, where --litellm names a Python that has litellm[proxy], LiteLLM's proxy
with its complexity router in front of the same upstream. In turns of a few seconds each of them is
sent requests at a fixed rate, whether or not earlier ones were answered (open loop); messages are
32 tokens long and all differ. What is added is a server's percentile less the bare upstream's, of
the same run. Then decisions as fast as two callers can ask, and the first byte of streams.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import yaml

MODELS = ("gpt-5.4-mini", "claude-haiku-4.5", "gpt-5.3-codex", "claude-sonnet-4.6", "gpt-5.4")
CATALOG = "catalog/paper_five.yaml"
TEXT = (
    "please fix the race in our retry code when a server drops idle links and explain what "
    "change keeps older clients working after they reconnect to another node with fresh state"
)
WORDS = TEXT.split()


class Connection:
    """One kept-open HTTP/1.1 connection, as little work as possible on the caller's side."""

    def __init__(self, port):
        self.port, self.reader, self.writer, self.used = port, None, None, 0.0

    async def post(self, path, body):
        """(seconds to the first byte, seconds to the last, status)."""
        if self.writer is None or time.perf_counter() - self.used > 2:  # servers hang up after 5 s
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = (
            f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        start = time.perf_counter()
        self.writer.write(head.encode() + body)
        headers = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = headers.partition(b"content-length:")[2].partition(b"\r\n")[0]
        if length:
            await self.reader.readexactly(int(length))
            first = time.perf_counter() - start
        else:
            first = await self._chunks(start)
        self.used = time.perf_counter()
        return first, time.perf_counter() - start, int(headers.split()[1])

    async def _chunks(self, start):
        first = None
        while True:
            size = int(await self.reader.readline(), 16)
            await self.reader.readexactly(size + 2)
            first = first or time.perf_counter() - start
            if not size:
                return first


class Target:
    """A server that is sent requests over a pool of connections."""

    def __init__(self, name, port, model, path="/v1/chat/completions"):
        self.name, self.port, self.model, self.path = name, port, model, path
        self.idle, self.first, self.last, self.bad = [], [], [], 0

    async def one(self, rng, *, stream=False, keep=True):
        words = rng.choices(WORDS, k=26)
        text = f"{' '.join(words)} {rng.randrange(10**4)}"
        asked = {"model": self.model, "messages": [{"role": "user", "content": text}]}
        body = json.dumps(asked | ({"stream": True} if stream else {})).encode()
        connection = self.idle.pop() if self.idle else Connection(self.port)
        first, last, status = await connection.post(self.path, body)
        self.idle.append(connection)
        if keep:
            self.first.append(first)
            self.last.append(last)
            self.bad += status != 200

    def forget(self):
        self.first, self.last, self.bad = [], [], 0


async def turn(target, rate, seconds, rng, *, stream=False, keep=True):
    """Requests at a fixed rate for some seconds, none waiting for another."""
    begun, tasks = time.perf_counter(), []
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, begun + number / rate - time.perf_counter()))
        tasks.append(asyncio.create_task(target.one(rng, stream=stream, keep=keep)))
    await asyncio.gather(*tasks)


async def side_by_side(targets, options, *, stream):
    rng = random.Random(0)
    for target in targets:
        target.forget()
        await turn(target, options.rate, 2, rng, stream=stream, keep=False)
    for _ in range(options.rounds):
        for target in targets:
            await turn(target, options.rate, options.seconds, rng, stream=stream)


async def throughput(target, callers, seconds):
    """Requests a second that so many callers get answered, each asking as soon as it was."""
    rng, count, end = random.Random(1), 0, time.perf_counter() + seconds

    async def caller():
        nonlocal count
        while time.perf_counter() < end:
            await target.one(rng, keep=False)
            count += 1

    await asyncio.gather(*(caller() for _ in range(callers)))
    return count / seconds


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def process(words, port, path="/", patience_s=120, **environ):
    """A server process that answers on its port."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(words, env={**os.environ, **environ}, **quiet)
    deadline = time.monotonic() + patience_s
    try:
        while True:
            if server.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{' '.join(words[:4])} did not start")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.2)
        yield server
    finally:
        server.terminate()
        server.wait(timeout=20)


def upstreams_file(folder, port):
    names = {model: model for model in MODELS}
    server = {"name": "fake", "base_url": f"http://127.0.0.1:{port}/v1", "models": names}
    content = {"schema": "hydra.upstreams/v1", "upstreams": [server]}
    path = Path(folder) / "upstreams.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def litellm_file(folder, port):
    base = {"api_base": f"http://127.0.0.1:{port}/v1", "api_key": "x"}
    models = [
        {"model_name": model, "litellm_params": {"model": f"openai/{model}", **base}}
        for model in MODELS
    ]
    tiers = dict(zip(("SIMPLE", "MEDIUM", "COMPLEX", "REASONING"), MODELS, strict=False))
    router = {
        "model": "auto_router/complexity_router",
        "complexity_router_config": {"tiers": tiers},
    }
    content = {"model_list": [*models, {"model_name": "auto", "litellm_params": router}]}
    path = Path(folder) / "litellm.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@contextlib.contextmanager
def servers(options):
    """Targets, all running: the bare upstream first."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        fake, hydra, lite = free_port(), free_port(), free_port()
        words = [sys.executable, "-m", "tests.server.fake_upstream", str(fake)]
        stack.enter_context(process(words, fake))
        targets = [Target("upstream", fake, MODELS[0])]
        words = [sys.executable, "-m", "hydra_core", "serve", "--catalog", CATALOG]
        words += ["--upstreams", str(upstreams_file(folder, fake)), "--port", str(hydra)]
        words += ["--log", f"{folder}/log"]
        stack.enter_context(process(words, hydra))
        targets.append(Target("hydra", hydra, "auto"))
        if options.litellm:
            command = [str(Path(options.litellm).parent / "litellm"), "--config"]
            command += [str(litellm_file(folder, fake)), "--host", "127.0.0.1", "--port", str(lite)]
            settings = {
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "LITELLM_LOG": "ERROR",
                "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
            }
            stack.enter_context(process(command, lite, **settings))
            targets.append(Target("litellm", lite, "auto"))
        yield targets


def table(targets, times):
    bare = np.percentile(times(targets[0]), (50, 99))
    rows = []
    for target in targets:
        found = np.percentile(times(target), (50, 99))
        added = found - bare
        rows.append(
            {
                "server": target.name,
                "n": len(times(target)),
                "errors": target.bad,
                "p50_ms": 1e3 * found[0],
                "p99_ms": 1e3 * found[1],
                "added_p50_ms": 1e3 * added[0],
                "added_p99_ms": 1e3 * added[1],
            }
        )
    return rows


def show(title, rows):
    print(title)
    print(
        f"{'':10}{'n':>6}{'errors':>8}{'p50 ms':>9}{'p99 ms':>9}{'added p50':>11}{'added p99':>11}"
    )
    for row in rows:
        print(
            f"{row['server']:10}{row['n']:6}{row['errors']:8}{row['p50_ms']:9.2f}"
            f"{row['p99_ms']:9.2f}{row['added_p50_ms']:11.2f}{row['added_p99_ms']:11.2f}"
        )


async def measured(options):
    with servers(options) as targets:
        await side_by_side(targets, options, stream=False)
        whole = table(targets, lambda target: target.last)
        await side_by_side(targets, options, stream=True)
        first = table(targets, lambda target: target.first)
        deciding = Target("decisions", targets[1].port, "auto", "/v1/decision")
        rate = await throughput(deciding, 4, options.seconds)
    return {"whole": whole, "first_byte": first, "decisions_a_second": rate}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--litellm", metavar="PYTHON", help="a Python with litellm[proxy]")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = asyncio.run(measured(options))
    if options.json:
        print(json.dumps(found, indent=2))
        return
    show(f"whole answers, {options.rate:g} requests/s, 32-token messages", found["whole"])
    show("streams, to the first byte", found["first_byte"])
    print(f"decisions a second, 4 callers: {found['decisions_a_second']:.0f}")


if __name__ == "__main__":
    main()
