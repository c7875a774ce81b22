"""How often each test failed over several runs: `python -m benchmarks.flaky`.

The slow tests, the browser's and the wheel's are not run.

What follows the number of runs goes to pytest: `python -m benchmarks.flaky 10 tests/server -n 2`.
"""

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

MOST = ["-q", "-p", "no:cacheprovider", "-m", "not slow and not browser and not package"]


def failures(report: Path) -> list[str]:
    """The tests that failed by one run's JUnit file."""
    cases = ElementTree.parse(report).iter("testcase")
    bad = [one for one in cases if one.find("failure") is not None or one.find("error") is not None]
    return [f"{one.get('classname')}::{one.get('name')}" for one in bad]


def main(runs: int, options: list[str]) -> int:
    """Run, count and print; 1 where a test failed in some runs or in all."""
    count: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        for run in range(runs):
            report.unlink(missing_ok=True)
            command = [sys.executable, "-m", "pytest", *MOST, f"--junitxml={report}", *options]
            code = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
            if code not in (0, 1):
                print(f"run {run + 1}: pytest ended with {code} before it had run the tests")
                return code
            count.update(failures(report))
    for name, times in count.most_common():
        print(f"{times} of {runs}: {name}")
    print(f"{len(count)} tests failed in {runs} runs")
    return int(bool(count))


if __name__ == "__main__":
    words = sys.argv[1:] or ["10"]
    sys.exit(main(int(words[0]), words[1:]))
