"""The verb version."""

from __future__ import annotations

import argparse
import platform

from hydra_core.base.build_info import VERSION, commit
from hydra_core.cli.options import Verbs, verb
from hydra_core.cli.output import print_json

_VERSION = """\
Says which version runs, the commit it was built from, and the version of Python.

examples:
  hydra-router version
  hydra-router version --json
"""


def add_verbs(verbs: Verbs) -> None:
    """Add version."""
    verb(verbs, "version", _version, "say which version runs", _VERSION)


def _version(options: argparse.Namespace) -> int:
    facts = {"version": VERSION, "commit": commit(), "python": platform.python_version()}
    if options.json:
        print_json(facts)
    else:
        print(f"hydra-router {VERSION} (commit {facts['commit']}, Python {facts['python']})")
    return 0
