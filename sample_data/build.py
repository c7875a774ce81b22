"""Build the sample data: `python -m sample_data.build [WHAT]`, see --help."""

import argparse
import sys
from pathlib import Path

from hydra_core.base.errors import HydraError
from hydra_core.base.shipped import CATALOGS
from hydra_core.evalsets.evalset import EvalSet
from sample_data import console_demo, mixed_2024, paper_flight, paper_reconstruction

HERE = Path(__file__).parent


def _say(evalset: EvalSet) -> None:
    solved = ", ".join(f"{model} {count}" for model, count in evalset.resolved.items())
    sys.stdout.write(f"{evalset.path}: {evalset.n} queries; resolved: {solved}\n")


def main(arguments: list[str] | None = None) -> int:
    """Build what is asked for under this folder (or --out); 0 ok, 1 when it could not."""
    parser = argparse.ArgumentParser(prog="python -m sample_data.build", description=__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        default="all",
        choices=("paper_swebench", "console_demo", "scores", "paper_flight", "mixed_2024", "all"),
        help="scores: score console_demo with the shipped predictor bundle; mixed_2024: real "
        "outcomes without texts, of the replay data beside the project, with a catalog and an "
        "outcome model of its pool (not part of all)",
    )
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write the sets to")
    options = parser.parse_args(arguments)
    try:
        if options.what in ("paper_swebench", "all"):
            _say(paper_reconstruction.build(options.out / "paper_swebench"))
        if options.what in ("console_demo", "all"):
            _say(console_demo.build(options.out / "console_demo"))
        if options.what in ("scores", "all"):
            count = console_demo.score(options.out / "console_demo")
            sys.stdout.write(f"{options.out / 'console_demo'}: {count} queries scored\n")
        if options.what == "mixed_2024":
            catalogs = CATALOGS if options.out == HERE else options.out
            _say(mixed_2024.build(options.out / "mixed_2024", catalogs))
        if options.what in ("paper_flight", "all"):
            count = paper_flight.build(options.out / "paper_flight")
            sys.stdout.write(f"{options.out / 'paper_flight'}: {count} users\n")
    except HydraError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
