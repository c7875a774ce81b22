"""How a verb is declared, and the arguments that several verbs share."""

import argparse
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

from hydra_core.cli.workspace import EVALSET

EXIT_CODES = "exit codes: 0 done; 2 the input is not valid; 1 it could not be run"


class Grammar(argparse.ArgumentParser):
    def option(self, name: str, metavar: str, said: str = "", **more: Any) -> None:  # noqa: ANN401
        """Add an option with a value, or an argument known by its place."""
        self.add_argument(name, metavar=metavar, help=said or None, **more)

    def each(self, name: str, metavar: str, said: str = "") -> None:
        """Add an option that may be given several times."""
        self.option(name, metavar, said, action="append", default=[])

    def flag(self, name: str, said: str) -> None:
        self.add_argument(name, action="store_true", help=said)

    def shared(self, *names: str) -> None:
        for name in names:
            self.add_argument(name, **SHARED[name])


#: What argparse adds verbs to.
Verbs: TypeAlias = "argparse._SubParsersAction[Grammar]"


def verb(
    verbs: Verbs,
    name: str,
    run: Callable[[argparse.Namespace], int | None],
    text: str,
    asks: str = "",
    *,
    prints: bool = True,
) -> Grammar:
    """Add one verb: its help text, its exit codes and the function that runs it.

    Args:
        run: Returns the exit code, None for 0.
        text: One line for the list of verbs, then what `--help` says.
        asks: Name of the `Action` that the account running it must be allowed; '' for none.
        prints: It has a result on stdout, so it takes --json.
    """
    short, _, long = text.partition("\n")
    parser: Grammar = verbs.add_parser(
        name,
        help=short,
        description=long,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run, asks=asks, refuse=parser.error)
    if prints:
        parser.flag("--json", "machine-readable result on stdout")
    return parser


def whole(text: str) -> int:
    """A whole number from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number from 0, got {text!r}")
    return int(text)


def _moment(text: str) -> datetime:
    """A time in UTC, or so long ago."""
    units = {"m": "minutes", "h": "hours", "d": "days"}
    try:
        if text[:-1].isdecimal() and text[-1] in units:
            return datetime.now(UTC) - timedelta(**{units[text[-1]]: int(text[:-1])})
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time: write 2026-11-20, 2026-11-20T12:00 or 24h"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


#: What several verbs take, by name.
SHARED: Final[dict[str, dict[str, Any]]] = {
    "evalset": dict(type=EVALSET.find, metavar="SET", help="name in the workspace, or a folder"),
    "--catalog": dict(
        required=True, metavar="CATALOG", help="name in the workspace, a YAML file, or store:NAME"
    ),
    "--tau": dict(type=float, metavar="T", help="threshold (default: the catalog's)"),
    "--bundle": dict(
        type=Path, metavar="B", help="folder of a predictor bundle (default: the shipped one)"
    ),
    "--fixed": dict(
        action="store_true",
        help="tau and weights were fixed before anybody saw results on this set",
    ),
    "--model": dict(
        action="append",
        default=[],
        metavar="ID=NAME",
        help="what the files call model ID; once per model",
    ),
    "--since": dict(
        type=_moment,
        metavar="T",
        help="from this time on: 2026-11-20, 2026-11-20T12:00 (UTC), or ago: 90m, 24h, 7d",
    ),
    "--until": dict(type=_moment, metavar="T", help="up to this time, likewise"),
    "--arm": dict(choices=("main", "canary"), help="only this arm of a canary"),
    "--out": dict(type=EVALSET.place, metavar="SET", help="name in the workspace, or a new folder"),
    "--force": dict(action="store_true", help="replace an eval set that is there"),
    "--dry-run": dict(action="store_true", help="report only, write nothing"),
    "--name": dict(default="", help="name of the eval set (default: the folder's)"),
    "--origin": dict(default="", help="where the data comes from"),
    "--licence": dict(default="", help="licence of the data"),
    "--price-notes": dict(default="", help="what is known about the costs"),
    "--synthetic": dict(action="store_true", help="outcomes were simulated"),
    "--cost-estimated": dict(action="store_true", help="costs were computed from prices"),
    "--groups-are-traffic": dict(
        action="store_true",
        help="the set's groups are real kinds of traffic: telling them apart counts",
    ),
}
#: Which part of a decision log to read.
WINDOW: Final = ("--since", "--until", "--arm")
#: Where an eval set is written, and what the operator states about it.
IMPORT: Final = (
    *("--out", "--force", "--dry-run", "--name", "--origin", "--licence", "--price-notes"),
    *("--synthetic", "--cost-estimated"),
)
