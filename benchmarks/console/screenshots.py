"""The README's screenshots, taken of the shipped sample data in a real Chromium.

python -m benchmarks.console.screenshots [--out docs]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.console.slider import CHROMIUM, ROOT, console

TUNE = "/tune?set=paper_swebench&catalog=paper_five_published&tau=0.24&pin=0.64&pin_w=1,1,1,1"
#: File name, address, theme, width, height.
SHOTS = (
    ("tune.png", TUNE, "light", 1440, 1290),
    ("tune-dark.png", TUNE, "dark", 1440, 1290),
    ("eval-sets.png", "/eval_sets", "light", 1440, 1000),
)


def main() -> None:
    """Take every screenshot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    args = parser.parse_args()
    if shutil.which("chromium") is None:
        sys.exit("no chromium on the PATH: no screenshot was taken")
    os.environ["LOGNAME"] = "operator"  # the name in the corner
    with tempfile.TemporaryDirectory() as folder, console(Path(folder)) as url:
        shoot(url, args.out)


def shoot(url: str, out: Path) -> None:
    """Open every page and write its picture."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM)
        for name, path, theme, width, height in SHOTS:
            size = {"width": width, "height": height}
            page = browser.new_page(viewport=size, color_scheme=theme)
            page.goto(url + path)
            page.wait_for_selector(".js-plotly-plot", timeout=60_000)
            time.sleep(3)
            page.screenshot(path=out / name)
            page.close()
            print(out / name)
        browser.close()


if __name__ == "__main__":
    main()
