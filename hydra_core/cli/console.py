"""The verb console: the pages in a browser."""

from __future__ import annotations

import argparse
import gc
import os

from hydra_core.cli.options import Verbs, verb

_CONSOLE = """start the console in a browser
Starts the console and opens it in a browser; Ctrl-C stops it. Every option is one of Streamlit's.
Eval sets, drafts and published catalogs are kept in ./workspace, or in HYDRA_WORKSPACE.

examples:
  hydra-router console
  hydra-router console --server.port 8600 --server.headless true
"""


def add_verbs(verbs: Verbs) -> None:
    """Add console; options that it does not know go to Streamlit."""
    parser = verb(verbs, "console", _console, _CONSOLE, prints=False)
    parser.usage = "%(prog)s [-h] [STREAMLIT OPTIONS]"
    parser.set_defaults(passed_on=[])


def _console(options: argparse.Namespace) -> None:
    # Read when NumPy and SciPy are loaded. Matrices here are small: a second thread gains nothing
    # and waits at full speed, on a processor that the browser or another page's run would use.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # What is imported stays: looking for garbage meanwhile takes a seventh of the time. It begins
    # again when the first page is prepared.
    gc.disable()
    from hydra_core.console.access.serve import main

    main(options.passed_on)
