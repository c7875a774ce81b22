"""The verb audit verify: whether the trail of who changed what is complete."""

from __future__ import annotations

import argparse

from hydra_core.cli.options import Verbs, verb
from hydra_core.cli.output import print_json, say

_VERIFY = """name the first record that was changed or is missing
Reads the whole audit trail of the workspace's store (or of HYDRA_DATABASE_URL). Every record holds
the digest of the one before. If a record was changed or is missing, the first such record is named
and the exit code is 2. Whoever can write the database can also rewrite the whole trail: keep the
printed digest somewhere else, and pass it next time with --kept.

examples:
  hydra-router audit verify
  hydra-router audit verify --kept 4c1f...
"""


def add_verbs(verbs: Verbs) -> None:
    """Add audit verify."""
    parser = verb(verbs, "verify", _verify, _VERIFY)
    parser.option("--kept", "DIGEST", "a digest you noted earlier", default="")


def _verify(options: argparse.Namespace) -> int:
    from hydra_core.store import open_store

    store = open_store()
    trail, where = store.check_audit(options.kept), store.where
    store.close()
    if options.json:
        facts = {"entries": trail.entries, "head": trail.head, "fault": trail.fault or None}
        print_json({"whole": not trail.fault, **facts})
    elif trail.fault:
        say(f"{where}: {trail.fault}; the {trail.entries} records before it are unchanged")
    else:
        print(f"{where}: {trail.entries} records, unchanged; the newest has digest\n{trail.head}")
    return 2 if trail.fault else 0
