"""Every attack that is promised to fail, tried: what, how often, and how it ended.

    python -m benchmarks.attacks [--quick]    # a few minutes; --quick leaves out kills and editors

Most attacks are tests of the suite, run here by name and counted; kills and editors run at the
length that a claim needs. Exit code 1 when one got through.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import time

from benchmarks.attacks.imports import kill_imports
from benchmarks.speed.store import databases
from benchmarks.speed.store_load import kill_rounds, soak

#: What is tried -> the tests that try it, as pytest takes them.
TESTS = {
    "an address of the network, a rebound host, a foreign origin": "tests/ui/test_serve.py "
    "tests/test_addresses.py",
    "a broken or half secrets.toml": "tests/ui/test_sign_in.py",
    "a typed publisher's name, open doors, missing roles, at the page": "tests/pages/test_doors.py",
    "claims of a sign-in, roles files": "tests/store/test_roles.py",
    "a sign-in in a real browser, and unverified addresses": "tests/browser/test_sign_in.py",
    "every write by a viewer: page, below it, command line": "tests/pages/test_viewer.py",
    "a changed, removed or rewritten audit trail, both databases": "tests/store/test_trail.py",
    "forged authors of notes and points": "tests/store/test_pins.py",
    "names with markup, links and shell text; look-alikes": "tests/browser/test_hostile_names.py "
    "tests/store/test_revisions.py tests/ui/test_widgets.py",
    "hostile ONNX graphs": "tests/predictor/test_onnx_rules.py",
    "hostile bundles": "tests/predictor/test_bundle.py tests/predictor/test_onnx_predictor.py",
    "hostile catalogs": "tests/catalog/test_faults_in_models.py "
    "tests/catalog/test_faults_in_settings.py tests/catalog/test_loader_fuzz.py",
    "hostile imports": "tests/evaluation/importers tests/evaluation/evalset",
    "hostile messages": "tests/routing/test_hostile.py",
    "damaged, restarted and lost Redis": "tests/routing/test_sessions.py",
    "closed or full ends of the command line": "tests/test_cli_ends.py",
    "other machines, from the tests and what they start": "tests/test_no_network.py",
}
_COUNTS = re.compile(r"(\d+) (passed|failed|error|skipped)")


def tried(paths):
    """(tries, outcome) of the tests at `paths`."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *paths.split()], capture_output=True, text=True)
    counts = {word: int(count) for count, word in _COUNTS.findall(done.stdout[-300:])}
    passed, bad = counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)
    if done.returncode or bad or not passed:
        return passed + bad, f"GOT THROUGH: {bad or 'not run'}"
    skipped = f", {counts['skipped']} not tried here" if "skipped" in counts else ""
    return passed, f"refused or survived{skipped}"


def killed(url, kills):
    """(tries, outcome) of kills while publishing."""
    kept, promised = kill_rounds(url, kills, random.Random(42))
    return kills, f"{promised:,} acknowledged, {kept:,} kept, 0 lost"


def killed_imports(kills):
    """(tries, outcome) of kills while importing."""
    begun, promised = kill_imports(kills, random.Random(42))
    return kills, f"{promised:,} of {begun:,} acknowledged, 0 lost, none torn"


def edited(url, editors, seconds):
    """(tries, outcome) of many editors at once."""
    report = soak(url, editors, seconds)
    return report["published"], f"{report['lost']} lost, {editors} editors, {seconds:.0f} s"


def attacks(quick):
    """Name and a function that gives (tries, outcome)."""
    for name, paths in TESTS.items():
        yield name, lambda paths=paths: tried(paths)
    if quick:
        return
    yield "killed while importing", lambda: killed_imports(60)
    with databases() as found:
        for kind, url in found:
            yield f"killed while publishing, {kind}", lambda url=url: killed(url, 60)
            yield f"20 editors, {kind}", lambda url=url: edited(url, 20, 60)


def main():
    """Print the table line by line; 1 when an attack got through."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    print("| attack | tries | outcome | s |\n|---|---|---|---|")
    through = 0
    for name, attack in attacks(options.quick):
        began = time.monotonic()
        try:
            tries, outcome = attack()
        except AssertionError as error:
            tries, outcome = 1, f"GOT THROUGH: {error}"
        through += outcome.startswith("GOT THROUGH")
        print(f"| {name} | {tries:,} | {outcome} | {time.monotonic() - began:.0f} |", flush=True)
    return 1 if through else 0


if __name__ == "__main__":
    sys.exit(main())
