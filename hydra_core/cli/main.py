"""Entry point: parse, run one verb, turn what went wrong into one message and an exit code.

0: done. 2: the input is not valid (arguments, catalog, eval set, bundle, or they do not fit
together). 1: it could not be run (a file is missing, the disk is full).
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from hydra_core.cli.account import require_account
from hydra_core.cli.output import CannotRunError, say
from hydra_core.cli.parser import build_parser
from hydra_core.errors import HydraError, MismatchError, ProblemsError, RoutingError

__all__ = ["main"]

#: The input is fine, the place to write to is not.
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code.

    Args:
        arguments: Command line without the program's name; None takes the process's own.
    """
    parser = build_parser()
    options, unknown = parser.parse_known_args(arguments)
    if unknown and not hasattr(options, "passed_on"):
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    options.passed_on = unknown
    if sys.stdout is None:
        say("standard output is closed; send it somewhere, such as > result.txt")
        return 1
    try:
        require_account("" if getattr(options, "dry_run", False) else options.asks)
        code: int = options.run(options)
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


def _discard_output() -> None:
    """What could not be written must not be tried again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
