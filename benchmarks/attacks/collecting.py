"""Kill a collection three times, against a server with faults, and compare with an undisturbed one.

    python -m benchmarks.attacks.collecting [--messages 1000] [--models 4] [--kills 3]

The server answers 5 % of the requests with 429, 2 % with 5xx and 1 % with rubbish, and remembers no
idempotency key. Held are: every cell is graded once or set aside with a reason, no call is charged
twice, the budget covers what was charged, every grade is that of the undisturbed run; and with
--again nothing is missing.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from hydra_core.evalsets.evalset import load_evalset
from tests.lab.labeling.fake_server import FakeServer

#: USD per million tokens read and written, of every model; and what the server says was used.
PRICE, TOKENS = 1.0, (120, 40)
CALL_USD = 1e-6 * PRICE * sum(TOKENS)


def answer(body, rubbish):
    """A function of the request: model k is right on numbers that k + 2 does not divide."""
    if rubbish:
        return ""
    number = int(body["messages"][-1]["content"].split()[-1])
    return str(2 * number + (number % (int(body["model"][-1]) + 2) == 0))


def write_files(folder, server, messages, models):
    """Messages, prices, upstreams and graders."""
    rows = [
        {"id": f"q{i:05d}", "text": f"Double the number {i}", "reference": str(2 * i), "lang": "en"}
        for i in range(messages)
    ]
    (folder / "messages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = [f"model-{i}" for i in range(models)]
    prices = "".join(f"  {n}: {{input: {PRICE}, output: {PRICE}}}\n" for n in names)
    (folder / "prices.yaml").write_text(f"models:\n{prices}")
    served = ", ".join(f"{name}: m{i}" for i, name in enumerate(names))
    (folder / "upstreams.yaml").write_text(
        "schema: hydra.upstreams/v1\nupstreams:\n  - name: fake\n"
        f"    base_url: {server.url}\n    models: {{{served}}}\n"
    )


def begun(folder, out, budget, *more):
    """A collection in a process of its own."""
    (folder / "grade.yaml").write_text(
        f"schema: hydra.grade/v1\nbudget_usd: {budget}\nmax_tokens: 64\nconcurrency: 16\n"
        "default: number\ngraders:\n  number: {kind: number}\n"
    )
    words = [
        *("collect", folder / "messages.jsonl", "--prices", folder / "prices.yaml"),
        *("--upstreams", folder / "upstreams.yaml", "--grade", folder / "grade.yaml"),
        *("--out", folder / out, "--force", "--json", *more),
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "hydra_core", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip


def finished(process):
    """(exit code, result) of a collection that is let run."""
    out, _ = process.communicate()
    return process.returncode, json.loads(out) if out.strip() else None


def killed(folder, server, kills, budget):
    """Kill the collection after each of equal parts of the calls."""
    cells = server.cells
    for number in range(kills):
        process = begun(folder, "rough", budget)
        target = cells * (number + 1) // (kills + 1)
        while server.paid.total() < target and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        print(f"killed after {server.paid.total():,} charged calls", flush=True)


def check(folder, server, messages, models, kills):
    """Run calm, then with faults and kills; raises AssertionError where something does not hold."""
    server.cells, server.write = messages * models, answer
    server.usage = dict(zip(("prompt_tokens", "completion_tokens"), TOKENS, strict=True))
    write_files(folder, server, messages, models)
    budget = 2 * server.cells * CALL_USD
    began = time.perf_counter()
    assert finished(begun(folder, "calm", budget))[0] == 0
    print(f"undisturbed: {server.cells:,} cells in {time.perf_counter() - began:.1f} s", flush=True)
    server.paid.clear()
    server._memory = {}
    server.busy, server.broken, server.malformed = 0.05, 0.02, 0.01
    server.remembers, server.rubbish_once = False, True
    began = time.perf_counter()
    killed(folder, server, kills, budget)
    code, found = finished(begun(folder, "rough", budget))
    assert code == 0
    rows = found["models"].values()
    aside = sum(sum(one["missing"].values()) for one in rows)
    assert all(one["graded"] + sum(one["missing"].values()) == messages for one in rows)
    assert server.paid_twice == 0
    assert server.paid.total() * CALL_USD <= budget
    calm, rough = load_evalset(folder / "calm"), load_evalset(folder / "rough")
    at = [calm.query_ids.index(name) for name in rough.query_ids]
    known = ~np.isnan(rough.quality)
    np.testing.assert_array_equal(rough.quality[known], calm.quality[at][known])
    assert finished(begun(folder, "rough", budget, "--again"))[0] == 0
    np.testing.assert_array_equal(load_evalset(folder / "rough").quality, calm.quality)
    spent = time.perf_counter() - began
    print(
        f"with faults and {kills} kills: {aside} of {server.cells:,} cells set aside, none charged "
        f"twice, ${server.paid.total() * CALL_USD:.3f} of ${budget:.3f}, equal after --again, "
        f"{spent:.1f} s"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=1000)
    parser.add_argument("--models", type=int, default=4)
    parser.add_argument("--kills", type=int, default=3)
    options = parser.parse_args()
    server = FakeServer()
    with tempfile.TemporaryDirectory() as scratch:
        check(Path(scratch), server, options.messages, options.models, options.kills)
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    main()
