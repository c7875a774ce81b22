"""Every attack that is promised to fail, tried: what, how often, and how it ended.

    python -m benchmarks.attacks [--quick] [--keep FILE]

Most attacks are tests of the suite, run here by name and counted; kills, stops, editors and the
flood of messages run at the length that a claim needs, half an hour on two cores. --quick leaves
those out. --keep writes each row to a file (JSON lines) and takes rows that are there from it.
Exit code 1 when one got through.
"""

import argparse
import json
import random
import re
import shlex
import subprocess
import sys
import time
import traceback
from pathlib import Path

from benchmarks.attacks.floods import flood, long_manifests
from benchmarks.attacks.kills import kill_imports, kill_learning
from benchmarks.attacks.stops import stop_servers
from benchmarks.speed.store import databases
from benchmarks.speed.store_load import kill_rounds, soak
from tests.store.servers import postgres_bin

#: What is tried -> the tests that try it, as pytest takes them.
TESTS = {
    "an address of the network, a rebound host, a foreign origin": "tests/console/test_serve.py "
    "tests/base/test_addresses.py",
    "a broken or half secrets.toml": "tests/console/test_sign_in.py",
    "a typed publisher's name, open doors, missing roles, at the page": "tests/pages/test_doors.py",
    "claims of a sign-in, roles files": "tests/store/test_roles.py",
    "a sign-in in a real browser, and unverified addresses": "tests/browser/test_sign_in.py",
    "every write by a viewer: page, below it, command line": "tests/pages/test_viewer.py",
    "a changed, removed or rewritten audit trail, both databases": "tests/store/test_trail.py",
    "forged authors of notes and points": "tests/store/test_pins.py",
    "eval sets replaced, removed, torn, linked": "tests/evalsets/test_changes.py",
    "names with markup, links and shell text; look-alikes": "tests/browser/test_hostile_names.py "
    "tests/store/test_revisions.py tests/console/test_widgets.py",
    "hostile ONNX graphs": "tests/predictor/test_onnx_rules.py",
    "hostile bundles": "tests/predictor/test_bundle.py tests/predictor/test_onnx_predictor.py "
    "-k 'refused or leave or named or reported or checked or monotone or opened'",
    "hostile outcome models": "tests/outcome_model/test_hostile.py",
    "hostile catalogs": "tests/catalog/test_faults_in_models.py "
    "tests/catalog/test_faults_in_settings.py tests/catalog/test_loader_fuzz.py",
    "hostile imports": "tests/evalsets/importers "
    "-k 'broken or damaged or refused or bomb or executes or reported or limit'",
    "hostile messages, tiny predictor": "tests/routing/test_hostile.py",
    "damaged, restarted and lost Redis": "tests/routing/test_sessions.py",
    "upstreams that lie, break off, hang or never end": "tests/server/test_upstream_behaviours.py "
    "tests/server/test_obeyed.py tests/server/test_failures.py",
    "a full disk, a pipe and other processes at the decision log, kills": "tests/decision_log",
    "heads without end, half-open connections, slow bodies": "tests/server/test_connections.py",
    "a flood of requests": "tests/server/test_admission.py",
    "another caller's conversation and feedback, forged ids": "tests/server/test_owners.py",
    "requests that name, nest or hold very much": "tests/server/test_costly.py "
    "tests/server/test_requests.py -k 'nested or many or logged or name or conversation or long'",
    "tokens that were taken out, shared files, names with YAML": "tests/server/test_doors.py",
    "a labelling server that lies, a ledger that was written into": "tests/lab/labeling/"
    "test_hostile.py",
    "tables that a spreadsheet or LaTeX would run": "tests/console/test_downloads.py",
    "a database copied without its -wal, a clock that goes back": "tests/store/test_database.py "
    "tests/server/test_logging.py tests/server/test_canary.py -k 'wal or budget or clock'",
    "a demo that reaches the workspace, another session or a role": "tests/console/test_demos.py "
    "tests/pages/test_demo.py tests/browser/test_demo.py",
    "scores and outcome models that no audit event names, damaged ones": "tests/outcome_model/"
    "test_format.py",
    "an upload after its tab is closed": "tests/browser/test_uploads.py",
    "a backup that lacks rows, a restore over what is there": "tests/store/test_copying.py "
    "tests/test_cli_releases.py -k 'copied or copy or row or backup'",
    "catalogs that overflow while routing": "tests/catalog/test_bounds.py",
    "closed or full ends of the command line": "tests/test_cli_ends.py",
    "other machines, from the tests and what they start": "tests/test_no_network.py",
}
_COUNTS = re.compile(r"(\d+) (passed|failed|error|skipped)")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def tried(arguments):
    """(tries, outcome) of the tests that pytest takes by these arguments."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *shlex.split(arguments)], capture_output=True, text=True)
    counts = {word: int(count) for count, word in _COUNTS.findall(done.stdout[-300:])}
    passed, bad = counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)
    if done.returncode or bad or not passed:
        names = ", ".join(_FAILED.findall(done.stdout)) or "not run"
        return passed + bad, f"GOT THROUGH: {names}"
    skipped = f", {counts['skipped']} not tried here" if "skipped" in counts else ""
    return passed, f"refused or survived{skipped}"


def killed(url, kills):
    """(tries, outcome) of kills while publishing."""
    kept, promised = kill_rounds(url, kills, random.Random(42))
    return kills, f"{promised:,} acknowledged, {kept:,} kept, 0 lost"


def killed_writing(kill, kills):
    """(tries, outcome) of kills while importing or learning."""
    begun, promised = kill(kills, random.Random(42))
    return kills, f"{promised:,} of {begun:,} acknowledged, 0 lost, none torn"


def stopped(stops):
    """(tries, outcome) of stops of the database server while publishing."""
    kept, promised = stop_servers(stops, random.Random(42))
    return stops, f"{promised:,} acknowledged, {kept:,} kept, 0 lost"


def edited(url, editors, seconds):
    """(tries, outcome) of many editors at once."""
    report = soak(url, editors, seconds)
    return report["published"], f"{report['lost']} lost, {editors} editors, {seconds:.0f} s"


def flooded(count):
    """(tries, outcome) of hostile messages through the shipped predictor."""
    return count, f"all routed, slowest {flood(count):.2f} s of CPU"


def long_bundles():
    """(tries, outcome) of bundles whose description has a megabyte."""
    tries, slowest = long_manifests()
    return tries, f"refused, slowest in {slowest:.2f} s"


def attacks(quick):
    """Name and a function that gives (tries, outcome)."""
    yield "a bundle.yaml of 1 MB", long_bundles
    for name, arguments in TESTS.items():
        yield name, lambda arguments=arguments: tried(arguments)
    if quick:
        return
    yield "killed while importing", lambda: killed_writing(kill_imports, 60)
    yield "killed while learning", lambda: killed_writing(kill_learning, 60)
    if postgres_bin() is not None:
        yield "PostgreSQL stopped at once while publishing", lambda: stopped(20)
    with databases() as found:
        for kind, url in found:
            yield f"killed while publishing, {kind}", lambda url=url: killed(url, 60)
            yield f"20 editors, {kind}", lambda url=url: edited(url, 20, 60)
    yield "hostile messages, shipped predictor", lambda: flooded(10_000)


def tell(name, attack):
    """One row: what was tried, how often, how it ended, how long it took."""
    began = time.monotonic()
    try:
        tries, outcome = attack()
    except AssertionError as error:
        place = traceback.extract_tb(error.__traceback__)[-1].line
        tries, outcome = 1, f"GOT THROUGH: {error or place}"
    return {"attack": name, "tries": tries, "outcome": outcome, "s": time.monotonic() - began}


def main():
    """Print the table line by line; 1 when an attack got through."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keep", type=Path, metavar="FILE")
    options = parser.parse_args()
    lines = options.keep.read_text().splitlines() if options.keep and options.keep.exists() else []
    kept = {row["attack"]: row for row in map(json.loads, lines)}
    print("| attack | tries | outcome | s |\n|---|---|---|---|")
    through = 0
    for name, attack in attacks(options.quick):
        row = kept.get(name) or tell(name, attack)
        through += row["outcome"].startswith("GOT THROUGH")
        print("| {attack} | {tries:,} | {outcome} | {s:.0f} |".format(**row), flush=True)
        if options.keep and name not in kept:
            with options.keep.open("a") as file:
                file.write(json.dumps(row) + "\n")
    return 1 if through else 0


if __name__ == "__main__":
    sys.exit(main())
