"""What every verb's grammar shares."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

EXIT_CODES = "exit codes: 0 done; 2 the input is not valid; 1 it could not be run"


def verb(
    verbs: Any,  # noqa: ANN401 (argparse has no public type for a group of verbs)
    name: str,
    run: Callable[[argparse.Namespace], int],
    short: str,
    long: str,
    asks: str = "",
    *,
    prints: bool = True,
) -> argparse.ArgumentParser:
    """One verb: its help text, its exit codes and the function that runs it.

    Args:
        asks: Name of the `Action` that the account running it must be allowed; '' for none.
        prints: It has a result on stdout, so it takes --json.
    """
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=short,
        description=long,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run, asks=asks)
    if prints:
        parser.add_argument("--json", action="store_true", help="machine-readable result on stdout")
    return parser


def add_fixed(parser: argparse.ArgumentParser) -> None:
    """The operator's word that tau and weights were settled before anybody looked at the set."""
    told = "tau and weights were settled before anybody looked at this set"
    parser.add_argument("--fixed", action="store_true", help=told)


def import_options(parser: argparse.ArgumentParser) -> None:
    """Where an eval set goes and what an operator says about it."""
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write the eval set to")
    parser.add_argument("--force", action="store_true", help="replace an eval set that is there")
    parser.add_argument("--dry-run", action="store_true", help="report only, write nothing")
    parser.add_argument("--name", default="", help="name of the eval set (default: the folder's)")
    parser.add_argument("--origin", default="", help="where the data comes from")
    parser.add_argument("--licence", default="", help="licence of the data")
    parser.add_argument("--price-notes", default="", help="what is known about the costs")
    parser.add_argument("--synthetic", action="store_true", help="outcomes were simulated")
    parser.add_argument(
        "--cost-estimated", action="store_true", help="costs were computed from prices"
    )


def bundle_option(parser: argparse.ArgumentParser) -> None:
    """Which predictor bundle to use."""
    parser.add_argument(
        "--bundle",
        type=Path,
        metavar="B",
        help="predictor bundle folder (default: the shipped one)",
    )
