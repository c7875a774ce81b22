"""A labelling run under faults and kills beside an undisturbed one, against a local fake server.

    python -m benchmarks.quality.labeling [--messages 2000]

5 % of the requests are answered 429, 2 % 5xx, 1 % with rubbish; the run is killed -9 three times.
Two servers: one that honours idempotency keys, one that does not. Printed: messages labelled, set
aside, calls paid twice, and whether the labels equal those of the undisturbed run.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.lab.labeling.fake_server import FakeServer, messages, settings

FAULTS = {"busy": 0.05, "broken": 0.02, "malformed": 0.01}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2000)
    count = parser.parse_args().messages
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "messages.jsonl").write_text(messages(count))
        calm = _run(folder, "calm", FakeServer(), kills=0)
        for remembers in (True, False):
            server = FakeServer(**FAULTS, remembers=remembers)
            rough = _run(folder, f"rough-{remembers}", server, kills=3)
            _tell(count, calm, rough, server)


def _run(folder: Path, name: str, server: FakeServer, *, kills: int) -> Path:
    config, out = folder / f"{name}.yaml", folder / name
    config.write_text(settings(server.url, honours=str(server.remembers).lower()))
    began = time.perf_counter()
    for number in range(kills):
        process = _start(folder, config, out)
        target = (number + 1) * 4 * len((folder / "messages.jsonl").read_text().splitlines())
        while server.paid.total() < target / (kills + 1) and process.poll() is None:
            time.sleep(0.005)
        if process.poll() is not None:
            raise SystemExit(f"{name} ended by itself with {process.returncode}")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    if _start(folder, config, out).wait():
        raise SystemExit(f"{name} failed")
    print(f"{name}: {time.perf_counter() - began:.0f} s, {kills} kills, statuses "
          f"{dict(sorted(server.statuses.items()))}")  # fmt: skip
    return out


def _start(folder: Path, config: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "hydra_core", "lab", "label", str(folder / "messages.jsonl")]
    arguments = ["--config", str(config), "--out", str(out)]
    return subprocess.Popen([*command, *arguments], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)  # fmt: skip


def _tell(count: int, calm: Path, rough: Path, server: FakeServer) -> None:
    expected, found, aside = (
        {row["id"]: row for row in map(json.loads, path.read_text().splitlines())}
        for path in (calm / "labels.jsonl", rough / "labels.jsonl", rough / "set_aside.jsonl")
    )
    kind = "honours idempotency keys" if server.remembers else "does not honour them"
    whole = found.keys() | aside.keys() == expected.keys() and not found.keys() & aside.keys()
    same = all(found[name] == expected[name] for name in found)
    print(f"server {kind}: {len(found)} of {count} labelled, {len(aside)} set aside with a reason, "
          f"every message once: {whole}, calls paid twice: {server.paid_twice}, "
          f"labels equal: {same}")  # fmt: skip


if __name__ == "__main__":
    main()
