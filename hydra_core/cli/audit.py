"""The verb audit: is the trail of who changed what whole?"""

from __future__ import annotations

import argparse
from typing import Any

from hydra_core.cli.grammar import verb
from hydra_core.cli.output import print_json, say

_VERIFY = """\
Reads the whole audit trail of the workspace's store (or of HYDRA_DATABASE_URL). Every record
carries the digest of the one before, so the first that was changed or is missing is named; exit
code 2 then. Whoever can write the database can also write the whole trail anew: keep the digest
that is printed somewhere else, and give it next time.

examples:
  python -m hydra_core audit verify
  python -m hydra_core audit verify --kept 4c1f...
"""


def add_audit(verbs: Any) -> None:  # noqa: ANN401 (argparse has no public type)
    """Add the verb."""
    kinds = verbs.add_parser("audit", help="the trail of who changed what")
    kinds = kinds.add_subparsers(metavar="WHAT", required=True)
    parser = verb(kinds, "verify", _verify, "name the first record changed or missing", _VERIFY)
    parser.add_argument("--kept", default="", metavar="DIGEST", help="one that was noted down")


def _verify(options: argparse.Namespace) -> int:
    from hydra_core.store import open_store

    store = open_store()
    found, where = store.check_audit(options.kept), store.where
    store.close()
    if options.json:
        told = {"entries": found.entries, "head": found.head, "fault": found.fault or None}
        print_json({"whole": not found.fault, **told})
    elif found.fault:
        say(f"{where}: {found.fault}; the {found.entries} records before it are whole")
    else:
        print(f"{where}: {found.entries} records, whole; the newest has digest\n{found.head}")
    return 2 if found.fault else 0
