"""What the router adds to a request, and what an overload leaves, beside LiteLLM's proxy.

    python -m benchmarks.speed.serve [--litellm PYTHON] [--rounds 6] [--seconds 5] [--rate 50]
                                     [--lengths short mixed] [--burst 15]

Three servers stand side by side on this machine: a local fake upstream, `hydra_core serve` with one
worker in front of it, and, where --litellm names a Python that has litellm[proxy], LiteLLM's proxy
with its complexity router in front of the same upstream. Messages all differ; they are 32 tokens
long (short), or as long as the messages of mixed-2024 (mixed). For both lengths:

- Added: in turns of a few seconds each server is sent requests at a fixed rate, whether or not
  earlier ones were answered (open loop). What is added is a server's percentile less the bare
  upstream's, of the same run. Then the first byte of streams.
- Overload: how many requests a second a server answers to eight callers is its capacity. Three
  times that comes for --burst seconds. Goodput is what is answered within 2 s; "callers" is the
  share of one core that sending took, on the same cores. Each request of both has a connection of
  its own. Then one request alone: what the burst left behind.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import uvloop
import yaml

MODELS = ("gpt-5.4-mini", "claude-haiku-4.5", "gpt-5.3-codex", "claude-sonnet-4.6", "gpt-5.4")
CATALOG = "catalog/paper_five.yaml"
TEXT = (
    "please fix the race in our retry code when a server drops idle links and explain what "
    "change keeps older clients working after they reconnect to another node with fresh state"
)
WORDS = TEXT.split()
#: Bytes of the messages of mixed-2024 (5,183 of them): percentiles and lengths.
PERCENTILES = (0, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 97, 99, 99.5, 99.9, 100)
MIXED_BYTES = (
    *(20, 64, 91, 132, 168, 204, 245, 304, 394, 479, 618, 1019, 1367, 1916, 2172, 2612, 4711),
)
#: An answer that takes longer is of no use.
GOOD_S = 2.0
#: Nobody waits longer.
PATIENCE_S = 60.0


def short(rng):
    """A message of 32 tokens."""
    return f"{' '.join(rng.choices(WORDS, k=26))} {rng.randrange(10**4)}"


def mixed(rng):
    """A message as long as one of mixed-2024."""
    size = float(np.interp(rng.uniform(0, 100), PERCENTILES, MIXED_BYTES))
    words = rng.choices(WORDS, k=max(1, round(size / 6)))
    return f"{' '.join(words)} {rng.randrange(10**4)}"


LENGTHS = {"short": short, "mixed": mixed}


class Connection(asyncio.Protocol):
    """One kept-open HTTP/1.1 connection, as little work as possible on the caller's side."""

    def __init__(self, port):
        self.port, self.transport, self.ended, self.used = port, None, None, 0.0

    async def post(self, path, body):
        """(seconds to the first byte of the body, seconds to the last, status)."""
        loop = asyncio.get_running_loop()
        if self.transport is None or time.perf_counter() - self.used > 2:  # servers hang up at 5 s
            self.close()
            await loop.create_connection(lambda: self, "127.0.0.1", self.port)
        self.answer, self.body_at, self.ended = b"", 0, loop.create_future()
        head = (
            f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        start = time.perf_counter()
        self.transport.write(head.encode() + body)
        await self.ended
        self.used = time.perf_counter()
        return self.first - start, self.used - start, int(self.answer[9:12])

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.answer += data
        if not self.body_at:
            head, end, _ = self.answer.partition(b"\r\n\r\n")
            if not end:
                return
            self.body_at = len(head) + len(end)
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            self.length, self.first = int(length) if length else None, 0.0
        if len(self.answer) > self.body_at:
            self.first = self.first or time.perf_counter()
        if self.length is None:
            whole = self.answer.endswith(b"0\r\n\r\n")
        else:
            whole = len(self.answer) >= self.body_at + self.length
        if whole and not self.ended.done():
            self.ended.set_result(None)

    def connection_lost(self, error):
        self.transport = None
        if self.ended is not None and not self.ended.done():
            self.ended.set_exception(error or EOFError("the server hung up"))

    def close(self):
        if self.transport is not None:
            self.transport.abort()
            self.transport = None


class Target:
    """A server that is sent requests over a pool of connections."""

    def __init__(self, name, port, model, path="/v1/chat/completions"):
        self.name, self.port, self.model, self.path = name, port, model, path
        self.write = short
        self.idle, self.first, self.last, self.bad = [], [], [], 0

    async def one(self, rng, *, stream=False, keep=True):
        body = self.body(rng, stream=stream)
        connection = self.idle.pop() if self.idle else Connection(self.port)
        first, last, status = await connection.post(self.path, body)
        self.idle.append(connection)
        if keep:
            self.first.append(first)
            self.last.append(last)
            self.bad += status != 200
        return status, last

    def body(self, rng, *, stream=False):
        asked = {"model": self.model, "messages": [{"role": "user", "content": self.write(rng)}]}
        return json.dumps(asked | ({"stream": True} if stream else {})).encode()

    async def alone(self, rng):
        """(status, seconds) of a request over a connection of its own; 0 for no answer."""
        connection, start = Connection(self.port), time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE_S):
                _, last, status = await connection.post(self.path, self.body(rng))
                return status, last
        except (OSError, EOFError, TimeoutError):
            return 0, time.perf_counter() - start
        finally:
            connection.close()

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


async def throughput(target, callers, seconds, *, alone=False):
    """Requests a second that so many callers get answered, each asking as soon as it was.

    Args:
        alone: Each request over a connection of its own, as in an overload.
    """
    rng, count, end = random.Random(1), 0, time.perf_counter() + seconds

    async def caller():
        nonlocal count
        while time.perf_counter() < end:
            asked = target.alone(rng) if alone else target.one(rng, keep=False)
            status, _ = await asked  # others count meanwhile
            count += status == 200

    await asyncio.gather(*(caller() for _ in range(callers)))
    return count / seconds


async def overload(target, options):
    """What a server does with three times what it carries, and just after."""
    rng = random.Random(2)
    await throughput(target, 8, 1.0, alone=True)
    capacity = await throughput(target, 8, options.seconds, alone=True)
    used_s = time.process_time()
    count, begun, tasks = int(3 * capacity * options.burst), time.perf_counter(), []
    for number in range(count):
        await asyncio.sleep(max(0.0, begun + number / (3 * capacity) - time.perf_counter()))
        tasks.append(asyncio.create_task(target.alone(rng)))
    sent_s = time.perf_counter() - begun
    used_s = time.process_time() - used_s
    found = await asyncio.gather(*tasks)
    status, after_s = await target.alone(rng)
    took = np.array([seconds for _, seconds in found])
    good = sum(code == 200 and seconds <= GOOD_S for code, seconds in found)
    return {
        "server": target.name,
        "capacity": capacity,
        "offered": count / sent_s,
        "goodput": good / sent_s,
        "goodput_of_capacity": good / sent_s / capacity,
        "callers_cpu": used_s / sent_s,
        "answered": sum(code == 200 for code, _ in found),
        "refused_503": sum(code == 503 for code, _ in found),
        "lost": sum(code not in (200, 503) for code, _ in found),
        "p50_s": float(np.median(took)),
        "p99_s": float(np.percentile(took, 99)),
        "slowest_s": float(took.max()),
        "after": status,
        "after_s": after_s,
    }


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


def show_overload(rows):
    print("three times the capacity")
    names = (
        "capacity",
        "offered",
        "goodput",
        "of cap.",
        "callers",
        "200",
        "503",
        "lost",
        "p50 s",
        "p99 s",
    )
    print(f"{'':10}" + "".join(f"{name:>9}" for name in (*names, "slowest", "after s")))
    for row in rows:
        cells = [f"{row[name]:9.1f}" for name in ("capacity", "offered", "goodput")]
        cells += [f"{100 * row[name]:8.0f}%" for name in ("goodput_of_capacity", "callers_cpu")]
        cells += [f"{row[name]:9}" for name in ("answered", "refused_503", "lost")]
        cells += [f"{row[name]:9.2f}" for name in ("p50_s", "p99_s", "slowest_s", "after_s")]
        print(f"{row['server']:10}" + "".join(cells) + ("" if row["after"] == 200 else "  failed"))


async def measured(options):
    found = {}
    with servers(options) as targets:
        for length in options.lengths:
            for target in targets:
                target.write = LENGTHS[length]
            await side_by_side(targets, options, stream=False)
            whole = table(targets, lambda target: target.last)
            await side_by_side(targets, options, stream=True)
            first = table(targets, lambda target: target.first)
            deciding = Target("decisions", targets[1].port, "auto", "/v1/decision")
            deciding.write = LENGTHS[length]
            rate = await throughput(deciding, 4, options.seconds)
            found[length] = {"whole": whole, "first_byte": first, "decisions_a_second": rate}
            if options.burst:
                rows = [await overload(target, options) for target in targets[1:]]
                found[length]["overload"] = rows
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--litellm", metavar="PYTHON", help="a Python with litellm[proxy]")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--lengths", nargs="+", choices=list(LENGTHS), default=list(LENGTHS))
    parser.add_argument("--burst", type=float, default=15.0, help="seconds of overload; 0 for none")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    found = uvloop.run(measured(options))
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for length, rows in found.items():
        said = "32-token messages" if length == "short" else "messages as long as mixed-2024's"
        show(f"whole answers, {options.rate:g} requests/s, {said}", rows["whole"])
        show("streams, to the first byte", rows["first_byte"])
        print(f"decisions a second, 4 callers: {rows['decisions_a_second']:.0f}")
        if "overload" in rows:
            show_overload(rows["overload"])
        print()


if __name__ == "__main__":
    main()
