"""Scoring many messages that is killed with -9 over and over, against scoring that was left alone.

    python -m benchmarks.speed.score_resume [--messages 200000] [--kills 3] [--ray PYTHON]

Generated short messages, all different, in parts of 1,000. `score-parts` first runs undisturbed;
then, on each engine, it is killed with every process below it as soon as another share of the parts
is there, and started again. Printed are wall time and the CPU time of what was seen of the
processes, whether parts that were done stayed as they were, and whether every part equals the
undisturbed one. `--ray` names a Python that has `hydra-console[ray]`.
"""

import argparse
import contextlib
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

PART = 1_000
ASKED = ("Why does", "How can", "Explain when", "Show me how", "Test whether", "Prove that")
THINGS = ("the loop", "this query", "a retry", "the cache", "my regex", "the parser", "the lock")
ENDS = ("never end", "run twice", "slow down", "drop rows", "fail at night", "leak memory")


def generate(folder, messages):
    rng = random.Random(0)
    for number, first in enumerate(range(0, messages, PART)):
        rows = range(first, min(first + PART, messages))
        parts = ([rng.choice(words) for words in (ASKED, THINGS, ENDS)] for _ in rows)
        texts = [f"{' '.join(words)}? case {row}" for row, words in zip(rows, parts, strict=True)]
        pq.write_table(pa.table({"text": texts}), folder / f"part-{number:05}.parquet")


class Scoring:
    """One engine's runs over the parts."""

    def __init__(self, python, engine, workers, source, out):
        self.words = [python, "-m", "hydra_core", "score-parts", str(source), "--out", str(out)]
        self.words += ["--engine", engine, "--workers", str(workers)]
        self.out, self.wall, self.cpu = out, 0.0, {}

    def done(self):
        return {path: path.stat().st_mtime_ns for path in self.out.glob("*.parquet")}

    def run(self, until=None):
        """Run to the end, or kill everything once `until` parts are there; whether it ended."""
        start = time.monotonic()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = psutil.Popen(self.words, **quiet, process_group=0)
        try:
            while process.poll() is None:
                below = self._count(process)
                if until is not None and len(self.done()) >= until:
                    for one in (process, *below):
                        with contextlib.suppress(psutil.NoSuchProcess):
                            one.kill()
                    process.wait()
                    return False
                time.sleep(0.1)
        finally:
            self.wall += time.monotonic() - start
        if process.returncode:
            raise SystemExit(f"{' '.join(self.words)} ended with {process.returncode}")
        return True

    def _count(self, process):
        """Note the CPU time of the processes; those below the first."""
        with contextlib.suppress(psutil.NoSuchProcess):
            below = process.children(recursive=True)
            for one in (process, *below):
                with contextlib.suppress(psutil.NoSuchProcess):
                    self.cpu[one.pid] = sum(one.cpu_times()[:2])
            return below
        return []


def killed(scoring, parts, kills):
    """Kill and start again; how many parts were done at each kill, and whether they stayed."""
    seen, kept = [], {}
    for number in range(1, kills + 1):
        if scoring.run(until=max(1, parts * number // (kills + 1))):
            break
        kept |= scoring.done()
        seen.append(len(kept))
    scoring.run()
    after = scoring.done()
    return seen, all(after[path] == stamp for path, stamp in kept.items())


def equal(one, other):
    names = [sorted(path.name for path in out.glob("*.parquet")) for out in (one, other)]
    same = (pq.read_table(one / name).equals(pq.read_table(other / name)) for name in names[0])
    return names[0] == names[1] and all(same)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--ray", metavar="PYTHON", help="a Python with hydra-console[ray]")
    options = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        source, whole = Path(folder) / "messages", Path(folder) / "whole"
        source.mkdir()
        generate(source, options.messages)
        parts = len(list(source.glob("*.parquet")))
        alone = Scoring(sys.executable, "local", options.workers, source, whole)
        alone.run()
        print(f"{options.messages:,} messages in {parts} parts")
        print(f"undisturbed, local: {alone.wall:.0f} s, CPU {sum(alone.cpu.values()):.0f} s")
        for engine, python in (("local", sys.executable), ("ray", options.ray)):
            if python is None:
                continue
            scoring = Scoring(python, engine, options.workers, source, Path(folder) / engine)
            seen, stayed = killed(scoring, parts, options.kills)
            same = equal(whole, scoring.out)
            good = good and same and stayed and len(seen) == options.kills
            print(
                f"{engine}: killed {len(seen)} times, at {seen} parts; done parts "
                f"{'stayed' if stayed else 'CHANGED'}; output {'equal' if same else 'DIFFERENT'}; "
                f"{scoring.wall:.0f} s, CPU {sum(scoring.cpu.values()):.0f} s"
            )
    raise SystemExit(not good)


if __name__ == "__main__":
    main()
