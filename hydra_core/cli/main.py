"""Entry point: parse, run one verb, turn an error into one message and an exit code.

0: done. 2: the input is not valid (arguments, catalog, eval set, bundle, or they do not fit
together). 1: it could not be run (a file is missing, the disk is full).
"""

import argparse
import errno
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hydra_core.base.errors import HydraError, MismatchError, ProblemsError, RoutingError
from hydra_core.base.shipped import VERSION, commit
from hydra_core.cli import (
    catalogs,
    collect,
    evaluate,
    experiments,
    import_records,
    import_tables,
    label,
    large_sets,
    learn,
    predictor,
    promise,
    releases,
    report,
    route,
    score,
    serve,
)
from hydra_core.cli.options import EXIT_CODES, Grammar, verb
from hydra_core.cli.output import CannotRunError, say, show
from hydra_core.cli.workspace import require_account

#: In the order of --help: a group of verbs ('' for none), its help, and what adds them.
_VERBS: Final = (
    ("", "", (serve.add_console,)),
    (
        "import",
        "make an eval set of other files",
        (import_tables.add_verbs, import_records.add_verbs),
    ),
    ("", "", (collect.add_verbs, score.add_verbs, catalogs.add_init, evaluate.add_verbs)),
    ("", "", (learn.add_verbs, promise.add_verbs)),
    ("report", "write an evaluation, portability or ablation report", (report.add_verbs,)),
    ("", "", (releases.add_verbs, route.add_verbs, catalogs.add_verbs, serve.add_verbs)),
    ("", "", (experiments.add_verbs, large_sets.add_verbs)),
    ("audit", "check the record of who changed what", (releases.add_audit,)),
    ("lab", "make and check predictors", (label.add_verbs, predictor.add_verbs)),
)
_VERSION = """say which version runs
Says which version runs, the commit it was built from, and the version of Python.

examples:
  hydra-router version
  hydra-router version --json
"""
#: The input is fine, the place to write to is not.
_DISK: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


def build_parser() -> Grammar:
    """The parser of all verbs; `options.run(options)` runs the chosen one."""
    parser = Grammar(
        prog="hydra-router" if Path(sys.argv[0]).name == "hydra-router" else "python -m hydra_core",
        description="HyDRA on the command line. A bare name such as `mine` means what the\n"
        "workspace holds under it (./workspace, or HYDRA_WORKSPACE), --catalog NAME the\n"
        "newest revision where NAME is published. A path stays a path.",
        epilog=f"{EXIT_CODES}\nevery verb has --help with examples",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for group, short, adding in _VERBS:
        holder = verbs
        if group:
            holder = verbs.add_parser(group, help=short).add_subparsers(
                metavar="WHAT", required=True
            )
        for add in adding:
            add(holder)
    verb(verbs, "version", _version, _VERSION)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb by these arguments, None for the process's own; the exit code."""
    options, unknown = build_parser().parse_known_args(arguments)
    if unknown and not hasattr(options, "passed_on"):
        options.refuse(f"unrecognized arguments: {' '.join(unknown)}")
    options.passed_on = unknown
    if sys.stdout is None:
        say("standard output is closed; send it somewhere, such as > result.txt")
        return 1
    try:
        require_account("" if getattr(options, "dry_run", False) else options.asks)
        code: int = options.run(options) or 0
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough (`| head`); nothing more may be written to it.
        _discard_output()
        return 0
    except (ProblemsError, MismatchError, RoutingError) as error:
        say(str(error))
        return 1 if getattr(error.__cause__, "errno", None) in _DISK else 2
    except (CannotRunError, HydraError, OSError) as error:
        say(str(error))
        if isinstance(error, OSError) and error.errno in _DISK:
            _discard_output()
        return 1
    except KeyboardInterrupt:
        say("stopped")
        return 130
    return code


def _version(options: argparse.Namespace) -> None:
    facts = {"version": VERSION, "commit": commit(), "python": platform.python_version()}
    text = f"hydra-router {VERSION} (commit {facts['commit']}, Python {facts['python']})"
    show(options, facts, text)


def _discard_output() -> None:
    """Keep Python from writing again, when it ends, what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
