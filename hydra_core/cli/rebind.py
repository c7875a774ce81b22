"""The verb rebind: catalogs moved to another predictor bundle."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hydra_core.base.digests import SHA256
from hydra_core.cli.options import Verbs, bundle_option, verb
from hydra_core.cli.output import print_json, say
from hydra_core.cli.score import open_predictor, scored
from hydra_core.cli.workspace import CATALOG, EVALSET, existing

if TYPE_CHECKING:
    from hydra_core.base.types import Band
    from hydra_core.predictor.bundle import Bundle

_REBIND = """\
Recomputes catalogs on the score bands of a predictor bundle: `predictor` and `bands` are replaced,
derived capabilities follow when the catalog is loaded, everything else stays as it is, comments
included. Tune tau anew afterwards. With --from-evalset the bands are the 5th to 95th percentile of
that set's own requirements (scored first where they are not) instead of the bundle's.

examples:
  hydra-router rebind mine
  hydra-router rebind pool.yaml --bundle bundles/compact-2
  hydra-router rebind mine --from-evalset mine
"""


def add_verbs(verbs: Verbs) -> None:
    """Add rebind."""
    short = "move catalogs to another predictor bundle"
    parser = verb(verbs, "rebind", _rebind, short, _REBIND, "REBIND")
    help_text = "names in the workspace, or YAML files"
    parser.add_argument(
        "catalogs", type=CATALOG.place, nargs="+", metavar="CATALOG", help=help_text
    )
    help_text = "bands from this set's requirements"
    parser.add_argument("--from-evalset", type=EVALSET.find, metavar="SET", help=help_text)
    bundle_option(parser)


def _bands(options: argparse.Namespace, bundle: Bundle) -> tuple[Band, ...]:
    """The bundle's bands, or those of an eval set's requirements by it."""
    if options.from_evalset is None:
        return bundle.bands
    from hydra_core.choosing.initial_catalog import bands_of
    from hydra_core.evalsets.evalset import load_evalset

    evalset = load_evalset(existing(options.from_evalset))
    return bands_of(scored(evalset, open_predictor(options.bundle)))


def _rebind(options: argparse.Namespace) -> int:
    from hydra_core.catalog.binding import rebind as rebound
    from hydra_core.catalog.schema import parse_catalog, read_catalog_text
    from hydra_core.export.release import write_release
    from hydra_core.predictor.bundle import load_bundle

    bundle = load_bundle(None if options.bundle is None else existing(options.bundle))
    bands = dict(zip(bundle.dimensions, _bands(options, bundle), strict=True))
    done: dict[Path, str] = {}
    for path in options.catalogs:
        text = read_catalog_text(existing(path))
        catalog = parse_catalog(text, path.name)
        if not SHA256.fullmatch(catalog.predictor_fingerprint):
            say(f"{path}: left alone, it is bound to the named profiles {catalog.predictor!r}")
            continue
        done[path] = rebound(text, bundle.name, bundle.fingerprint, bands)
    for path, text in done.items():  # nothing is written unless every catalog could be moved
        write_release(path, text)
    if options.json:
        print_json({"fingerprint": bundle.fingerprint, "rebound": [str(path) for path in done]})
    else:
        for path in done:
            print(f"{path}: bound to {bundle.name} ({bundle.fingerprint[:12]}); tune tau anew")
    return 0
