"""The verb canary: begin, change, stop and resume a canary of a running service."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from hydra_core.base.errors import HydraError
from hydra_core.cli.options import Verbs, verb
from hydra_core.cli.output import print_json, say
from hydra_core.cli.workspace import acting, catalog_source, log_folder, require_account, store_of

if TYPE_CHECKING:
    from hydra_core.decision_log.canaries import CanaryOrder

_CANARY = """\
Says which second catalog gets a share of the conversations of the services that write this log.
They follow within a second, without a restart, and an order goes before their --canary.

begin takes a catalog, or another share or limit for it; stop and resume are for the newest canary;
end leaves the services without one; show says how it stands.

examples:
  hydra-router canary begin log --catalog candidate --share 0.1
  hydra-router canary stop log --why "prices changed"
  hydra-router canary resume log
  hydra-router canary end log
  hydra-router canary show log
"""


def add_verbs(verbs: Verbs) -> None:
    """Add canary."""
    short = "begin, stop or resume a canary of a running service"
    parser = verb(verbs, "canary", _canary, short, _CANARY)
    parser.add_argument("action", choices=["begin", "stop", "resume", "end", "show"])
    help_text = "the service's log: a name in the workspace, or a folder"
    parser.add_argument("log", type=log_folder, metavar="LOG", help=help_text)
    help_text = "name in the workspace, a YAML file or store:NAME"
    parser.add_argument("--catalog", default="", metavar="CATALOG", help=help_text)
    parser.add_argument("--share", type=float, default=0.1, metavar="SHARE")
    parser.add_argument(
        "--limit",
        type=float,
        default=2.0,
        metavar="X",
        help="stop it when it is so many times as expensive or as slow",
    )
    parser.add_argument("--why", default="stopped by hand", metavar="TEXT")


def _canary(options: argparse.Namespace) -> int:
    from hydra_core.decision_log import canaries as kept
    from hydra_core.live.canary import CanaryChanges

    if options.action != "show":
        require_account("CANARY")
    if not options.log.is_dir():
        raise HydraError(f"{options.log}: there is no such log folder")
    if options.action != "show":
        changes = CanaryChanges(options.log, acting(), store_of(options.log))
        act = {
            "begin": lambda: changes.begin(*_order(options)),
            "end": changes.end,
            "stop": lambda: changes.stop(options.why),
            "resume": changes.resume,
        }
        act[options.action]()
    order, records = kept.ordered_canary(options.log), kept.canaries(options.log)
    if options.json:
        ordered = None if order is None else asdict(order)
        print_json({"order": ordered, "canaries": [asdict(one) for one in records]})
        return 0
    if order is not None:
        say(f"ordered: {order.catalog or 'no canary'}, share {order.share:g}")
    if order is not None and (why := kept.refused_order(options.log, order)):
        say(f"not followed: {why}")
    ended = order is not None and not order.catalog
    for place, one in enumerate(records):
        over = "ended" if ended or place else "running"  # the newest alone runs
        state = f"stopped: {one.stopped}" if one.stopped else over
        print(f"{one.catalog} ({one.digest[:12]}), share {one.share:g}, since {one.began}, {state}")
    return 0


def _order(options: argparse.Namespace) -> tuple[CanaryOrder, str]:
    """The order, and the digest of its catalog."""
    from hydra_core.decision_log.canaries import CanaryOrder
    from hydra_core.live.canary import require_order
    from hydra_core.server.live import source_of

    require_order(CanaryOrder(options.catalog, options.share, options.limit))
    source = catalog_source(options.catalog)
    digest = source_of(source).load().catalog.digest
    catalog = source if source.startswith("store:") else str(Path(source).resolve())
    return CanaryOrder(catalog, options.share, options.limit), digest
