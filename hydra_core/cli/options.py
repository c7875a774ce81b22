"""How a verb is declared, and the options that several verbs share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias

from hydra_core.cli.workspace import EVALSET

EXIT_CODES = "exit codes: 0 done; 2 the input is not valid; 1 it could not be run"
#: What argparse adds verbs to.
Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def verb(
    verbs: Verbs,
    name: str,
    run: Callable[[argparse.Namespace], int],
    short: str,
    long: str,
    asks: str = "",
    *,
    prints: bool = True,
) -> argparse.ArgumentParser:
    """Add one verb: its help text, its exit codes and the function that runs it.

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
    parser.set_defaults(run=run, asks=asks, refuse=parser.error)
    if prints:
        parser.add_argument("--json", action="store_true", help="machine-readable result on stdout")
    return parser


def evalset_argument(parser: argparse.ArgumentParser) -> None:
    """The eval set to read."""
    parser.add_argument(
        "evalset", type=EVALSET.find, metavar="SET", help="name in the workspace, or a folder"
    )


def catalog_option(parser: argparse.ArgumentParser) -> None:
    """The catalog to route by."""
    help_text = "name in the workspace, a YAML file, or store:NAME"
    parser.add_argument("--catalog", required=True, metavar="CATALOG", help=help_text)


def tau_option(parser: argparse.ArgumentParser) -> None:
    """A threshold other than the catalog's."""
    parser.add_argument("--tau", type=float, metavar="T", help="threshold (default: the catalog's)")


def bundle_option(parser: argparse.ArgumentParser) -> None:
    """Which predictor bundle to use."""
    help_text = "folder of a predictor bundle (default: the shipped one)"
    parser.add_argument("--bundle", type=Path, metavar="B", help=help_text)


def fixed_option(parser: argparse.ArgumentParser) -> None:
    """The operator's statement that tau and weights were not picked on this set."""
    help_text = "tau and weights were fixed before anybody saw results on this set"
    parser.add_argument("--fixed", action="store_true", help=help_text)


def model_names_option(parser: argparse.ArgumentParser) -> None:
    """What the files call each model."""
    help_text = "what the files call model ID; once per model"
    parser.add_argument("--model", action="append", default=[], metavar="ID=NAME", help=help_text)


def window_options(parser: argparse.ArgumentParser) -> None:
    """Which part of a decision log to read."""
    help_text = "from this time on: 2026-11-20, 2026-11-20T12:00 (UTC), or ago: 90m, 24h, 7d"
    parser.add_argument("--since", type=_moment, metavar="T", help=help_text)
    parser.add_argument("--until", type=_moment, metavar="T", help="up to this time, likewise")
    parser.add_argument("--arm", choices=("main", "canary"), help="only this arm of a canary")


def _moment(text: str) -> datetime:
    """A time in UTC, or so long ago.

    Raises:
        argparse.ArgumentTypeError: It is neither.
    """
    units = {"m": "minutes", "h": "hours", "d": "days"}
    if text[:-1].isdigit() and text[-1] in units:
        return datetime.now(UTC) - timedelta(**{units[text[-1]]: int(text[:-1])})
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time: write 2026-11-20, 2026-11-20T12:00 or 24h"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def import_options(parser: argparse.ArgumentParser) -> None:
    """Where an eval set is written, and what the operator states about it."""
    parser.add_argument(
        "--out", type=EVALSET.place, metavar="SET", help="name in the workspace, or a new folder"
    )
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
