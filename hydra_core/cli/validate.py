"""The verbs validate and rebind: check an artifact; move catalogs to another predictor bundle."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hydra_core.base.digests import SHA256
from hydra_core.base.errors import CatalogError, HydraError, Problem, ProblemsError
from hydra_core.cli.options import Verbs, verb
from hydra_core.cli.output import print_json, say, show
from hydra_core.cli.score import open_predictor, scored
from hydra_core.cli.workspace import CATALOG, EVALSET, existing, find_any, open_evalset

if TYPE_CHECKING:
    from hydra_core.base.types import Band
    from hydra_core.predictor.bundle import Bundle

_VALIDATE = """check a catalog, an eval set, a bundle or an outcome model
Checks a catalog (YAML file), an eval set, a predictor bundle or an outcome model (folders) and
lists every problem, not only the first. Exit code 0: valid; 2: not valid; 1: could not be run.

examples:
  hydra-router validate mine
  hydra-router validate workspace/catalogs/mine.yaml --json
"""
_REBIND = """move catalogs to another predictor bundle
Recomputes catalogs on the score bands of a predictor bundle: `predictor` and `bands` are replaced,
derived capabilities follow when the catalog is loaded, everything else stays as it is, comments
included. Tune tau anew afterwards. With --from-evalset the bands are the 5th to 95th percentile of
that set's own requirements (scored first where they are not) instead of the bundle's.

examples:
  hydra-router rebind mine
  hydra-router rebind pool.yaml --bundle bundles/compact-2
  hydra-router rebind mine --from-evalset mine
"""
_KINDS = {
    "evalset.yaml": "eval set",
    "bundle.yaml": "bundle",
    "outcome_model.yaml": "outcome model",
}


def add_verbs(verbs: Verbs) -> None:
    """Add validate and rebind."""
    parser = verb(verbs, "validate", _validate, _VALIDATE)
    parser.option("file", "FILE", "name in the workspace, or a file or folder")
    parser = verb(verbs, "rebind", _rebind, _REBIND, "REBIND")
    said = "names in the workspace, or YAML files"
    parser.option("catalogs", "CATALOG", said, type=CATALOG.place, nargs="+")
    parser.option("--from-evalset", "SET", "bands from this set's requirements", type=EVALSET.find)
    parser.shared("--bundle")


def _validate(options: argparse.Namespace) -> int:
    path = find_any(options.file)
    kind = _kind(path)
    document: dict[str, object] = {"valid": True, "kind": kind, "file": str(path), "problems": []}
    try:
        summary = _check(kind, path)
    except HydraError as error:
        own = error.problems if isinstance(error, ProblemsError) else (Problem("", str(error)),)
        listed = [{"place": p.place, "message": p.message, "remedy": p.remedy} for p in own]
        if options.json:
            print_json({**document, "valid": False, "problems": listed})
        else:
            say(str(error))
        return 2
    show(options, document, f"{path}: valid {kind}, {summary}")
    return 0


def _kind(path: Path) -> str:
    """What a path holds, by its content; read anything unknown as a catalog."""
    folder = path if path.is_dir() else path.parent
    for name, kind in _KINDS.items():
        if path.name == name or (path.is_dir() and (folder / name).is_file()):
            return kind
    return "eval set" if path.is_dir() else "catalog"


def _check(kind: str, path: Path) -> str:
    """Load it with every check there is; one phrase about it."""
    folder = path if path.is_dir() else path.parent
    if kind == "bundle":
        from hydra_core.predictor.onnx_predictor import open_apart

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
    from hydra_core.catalog.promised import not_covered
    from hydra_core.catalog.schema import load_catalog

    catalog = load_catalog(path)
    costs = dict.fromkeys((model.id for model in catalog.models), 1.0)
    basis = costs if catalog.policy.cost_basis is CostBasis.REALISED else None
    routable = pool(catalog, today=date.today(), realised_cost=basis)
    summary = f"{len(catalog.models)} models, {len(routable.ids)} of them routable today"
    if catalog.policy.promise is not None:
        summary += f", promises {catalog.policy.promise.claim}"
        if problem := not_covered(catalog):
            raise CatalogError(str(path), [Problem("policy.promise", f"does not hold: {problem}")])
    if catalog.success_profiles is not None:
        summary += f", success profiles of {len(catalog.success_profiles.models)} models"
    if catalog.outcome_model is None:
        return summary
    from hydra_core.outcome_model.format import catalog_outcome_model

    named = catalog_outcome_model(catalog)
    return f"{summary}, outcome model {named.digest[:12]} of {len(named.models)} models"


def _check_outcome_model(folder: Path) -> str:
    from hydra_core.outcome_model.format import load_outcome_model

    model = load_outcome_model(folder)
    queries = len(model.learned.query_ids)
    return f"{len(model.models)} models, learned on {queries} queries of {model.evalset!r}"


def _check_evalset(folder: Path) -> str:
    from hydra_core.evalsets.format import scored_by
    from hydra_core.evalsets.score_files import load_scores

    evalset = open_evalset(folder)
    fingerprints = scored_by(folder)
    for fingerprint in fingerprints:
        load_scores(evalset, fingerprint)
    return f"{evalset.n} queries, {len(evalset.models)} models, {len(fingerprints)} sets of scores"


def _bands(options: argparse.Namespace, bundle: Bundle) -> tuple[Band, ...]:
    """The bundle's bands, or those of an eval set's requirements by it."""
    if options.from_evalset is None:
        return bundle.bands
    from hydra_core.predictor.score_bands import score_bands

    return score_bands(scored(open_evalset(options.from_evalset), open_predictor(options.bundle)))


def _rebind(options: argparse.Namespace) -> None:
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
