"""The README's screenshots, taken of the shipped sample data in a real Chromium.

python -m docs.screenshots [--out docs]
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.console.browser import browser, console

TUNE = "/tune?set=paper_swebench&catalog=paper_five_published&tau=0.24&pin=0.64&pin_w=1,1,1,1"
#: File name, address, theme, width, height.
SHOTS = (
    ("tune.png", TUNE, "light", 1440, 1290),
    ("tune-dark.png", TUNE, "dark", 1440, 1290),
    ("learn.png", "/learn?set=mixed_2024&catalog=mixed_2024", "light", 1440, 1000),
    ("eval-sets.png", "/eval_sets", "light", 1440, 1000),
)


def main() -> None:
    """Take every screenshot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    args = parser.parse_args()
    os.environ["LOGNAME"] = "operator"  # the name in the corner
    with tempfile.TemporaryDirectory() as folder, console(Path(folder)) as url:
        shoot(url, args.out)


def shoot(url: str, out: Path) -> None:
    """Open every page and write its picture."""
    with browser() as chromium:
        for name, path, theme, width, height in SHOTS:
            size = {"width": width, "height": height}
            page = chromium.new_page(viewport=size, color_scheme=theme)
            page.goto(url + path)
            page.wait_for_selector(".js-plotly-plot", timeout=60_000)
            time.sleep(3)
            page.screenshot(path=out / name)
            page.close()
            sys.stdout.write(f"{out / name}\n")


if __name__ == "__main__":
    main()
