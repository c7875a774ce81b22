"""Verbs that look after files: validate, rebind."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.base.digests import SHA256
from hydra_core.base.errors import HydraError, Problem, ProblemsError
from hydra_core.cli.grammar import bundle_option, verb
from hydra_core.cli.output import existing, open_predictor, print_json, say
from hydra_core.cli.scoring import scored

if TYPE_CHECKING:
    from hydra_core.base.types import Band
    from hydra_core.predictor.bundle import Bundle


_REBIND = """\
Recomputes catalogs on the score bands of a predictor bundle: `predictor` and `bands` are replaced,
derived capabilities follow when the catalog is loaded, everything else stays as it is, comments
included. tau should be tuned anew afterwards. With --from-evalset the bands are the 5th to 95th
percentile of that set's own requirements (scored first where they are not) instead of the bundle's.

examples:
  python -m hydra_core rebind catalog/paper_five.yaml
  python -m hydra_core rebind pool.yaml --bundle bundles/compact-2
  python -m hydra_core rebind pool.yaml --from-evalset evalsets/mine
"""
_KINDS = {
    "evalset.yaml": "eval set",
    "bundle.yaml": "bundle",
    "outcome_model.yaml": "outcome model",
}


def validate(options: argparse.Namespace) -> int:
    """Check a catalog, an eval set, a bundle or an outcome model; 0 valid, 2 not valid."""
    path = existing(options.file)
    kind = _kind(path)
    try:
        summary = _check(kind, path)
    except ProblemsError as error:
        return _report(options, kind, error.problems, str(error))
    except HydraError as error:
        return _report(options, kind, (Problem("", str(error)),), str(error))
    if options.json:
        print_json({"valid": True, "kind": kind, "file": str(path), "problems": []})
    else:
        print(f"{path}: valid {kind}, {summary}")
    return 0


def _report(
    options: argparse.Namespace, kind: str, problems: tuple[Problem, ...], text: str
) -> int:
    if options.json:
        listed = [{"place": p.place, "message": p.message, "remedy": p.remedy} for p in problems]
        print_json({"valid": False, "kind": kind, "file": str(options.file), "problems": listed})
    else:
        say(text)
    return 2


def _kind(path: Path) -> str:
    """What a path holds, told by its content; anything unknown is read as a catalog."""
    folder = path if path.is_dir() else path.parent
    for name, kind in _KINDS.items():
        if path.name == name or (path.is_dir() and (folder / name).is_file()):
            return kind
    return "eval set" if path.is_dir() else "catalog"


def _check(kind: str, path: Path) -> str:
    """Load it with every check there is; one phrase about it.

    Raises:
        HydraError: It is not valid.
    """
    folder = path if path.is_dir() else path.parent
    if kind == "bundle":
        from hydra_core.predictor.opening import open_apart

        return open_apart(folder)  # opens the model and scores one message
    if kind == "eval set":
        return _check_evalset(folder)
    if kind == "outcome model":
        return _check_outcome_model(folder)
    return _check_catalog(path)


def _check_catalog(path: Path) -> str:
    from datetime import date

    from hydra_core.base.types import CostBasis
    from hydra_core.catalog.profiles import pool
    from hydra_core.catalog.schema import load_catalog

    catalog = load_catalog(path)
    costs = dict.fromkeys((model.id for model in catalog.models), 1.0)
    basis = costs if catalog.policy.cost_basis is CostBasis.REALISED else None
    routable = pool(catalog, today=date.today(), realised_cost=basis)
    told = f"{len(catalog.models)} models, {len(routable.ids)} of them routable today"
    if catalog.outcome_model is None:
        return told
    from hydra_core.outcome_model.find import catalog_outcome_model

    named = catalog_outcome_model(catalog)
    return f"{told}, outcome model {named.digest[:12]} of {len(named.models)} models"


def _check_outcome_model(folder: Path) -> str:
    from hydra_core.outcome_model.format import load_outcome_model

    found = load_outcome_model(folder)
    queries = len(found.learned.query_ids)
    return f"{len(found.models)} models, learned on {queries} queries of {found.evalset!r}"


def _check_evalset(folder: Path) -> str:
    from hydra_core.evalsets.evalset import load_evalset
    from hydra_core.evalsets.format import scored_by
    from hydra_core.evalsets.score_files import load_scores

    evalset = load_evalset(folder)
    fingerprints = scored_by(folder)
    for fingerprint in fingerprints:
        load_scores(evalset, fingerprint)
    return f"{evalset.n} queries, {len(evalset.models)} models, {len(fingerprints)} sets of scores"


def add_rebind(verbs: Any) -> None:  # noqa: ANN401 (argparse has no public type)
    """Add the verb rebind."""
    short = "move catalogs to another predictor bundle"
    parser = verb(verbs, "rebind", rebind, short, _REBIND, "REBIND")
    parser.add_argument("catalogs", type=Path, nargs="+", metavar="CATALOG.yaml")
    parser.add_argument(
        "--from-evalset", type=Path, metavar="DIR", help="bands from this set's requirements"
    )
    bundle_option(parser)


def _bands(options: argparse.Namespace, bundle: Bundle) -> tuple[Band, ...]:
    """The bundle's bands, or those of an eval set's requirements by it."""
    if options.from_evalset is None:
        return bundle.bands
    from hydra_core.choosing.initial_catalog import bands_of
    from hydra_core.evalsets.evalset import load_evalset

    evalset = load_evalset(existing(options.from_evalset))
    return bands_of(scored(evalset, open_predictor(options.bundle)))


def rebind(options: argparse.Namespace) -> int:
    """Move catalogs to a bundle's fingerprint, and to its bands or those of an eval set."""
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
