"""`console`: the pages in a browser."""

from __future__ import annotations

import argparse
from typing import Any

from hydra_core.cli.grammar import verb

__all__ = ["add_console"]

_CONSOLE = """\
Starts the console and opens it in a browser; Ctrl-C stops it. Every option is one of Streamlit's.
What is imported, drafted and published is kept in ./workspace, or in HYDRA_WORKSPACE.

examples:
  hydra-router console
  hydra-router console --server.port 8600 --server.headless true
"""


def add_console(verbs: Any) -> None:  # noqa: ANN401
    """The verb's grammar; what it does not know is passed on to Streamlit."""
    short = "start the console in a browser"
    parser = verb(verbs, "console", _console, short, _CONSOLE, prints=False)
    parser.usage = "%(prog)s [-h] [STREAMLIT OPTIONS]"
    parser.set_defaults(passed_on=[])


def _console(options: argparse.Namespace) -> int:
    from hydra_core.ui.access.serve import main

    main(options.passed_on)
    return 0
