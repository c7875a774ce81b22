"""Catalog YAML, schema hydra.catalog/v1: text -> validated Catalog, or every problem at once.

What a catalog must say is checked here and nowhere else; inside, the types are trusted. Nothing
is repaired or filled in: a missing price or a missing benchmark rate is an error, never 0.
"""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Final

from hydra_core.base.errors import CatalogError
from hydra_core.base.reading.fields import SHARE, Section, read_mapping
from hydra_core.base.reading.yaml_reader import MAX_BYTES, ListNode, ScalarNode, shown
from hydra_core.base.types import Band, Catalog, ModelSpec, Policy
from hydra_core.catalog.identifiers import id_problem, skeleton
from hydra_core.catalog.model_fields import (
    model_names,
    read_benchmarks,
    read_models,
    read_realised_costs,
)
from hydra_core.catalog.policy_fields import read_outcome_model, read_policy, read_success_profiles

SCHEMA: Final = "hydra.catalog/v1"
MAX_DIMENSIONS: Final = 32
_ZIP: Final = b"PK\x03\x04"
_KEYS: Final = (
    *("schema", "name", "notes", "dimensions", "predictor", "bands", "policy", "outcome_model"),
    *("success_profiles", "realised_costs", "evidence", "models"),
)


def load_catalog(path: Path) -> Catalog:
    """The catalog in a file.

    Raises:
        CatalogError: The file cannot be read, or is not a valid catalog; all problems are listed.
    """
    catalog = parse_catalog(read_catalog_text(path), source=path.name)
    return replace(catalog, folder=str(path.absolute().parent))


def read_catalog_text(path: Path) -> str:
    """The text of a catalog file: UTF-8, at most 5 MB, a byte order mark dropped.

    Raises:
        CatalogError: It is not a readable file, too large, or not UTF-8.
    """
    try:
        if not path.is_file():
            reason = "is not a file" if path.exists() else "does not exist"
            raise CatalogError.of(str(path), reason, "check the path")
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise CatalogError.of(str(path), f"cannot be read: {error}") from error
    if data.startswith(_ZIP):
        remedy = "unpack it in the workspace; the catalog is the .yaml file in it"
        raise CatalogError.of(path.name, "is a zip file", remedy)
    if len(data) > MAX_BYTES:
        remedy = "a catalog is a few kB; is this the right file?"
        raise CatalogError.of(path.name, f"is larger than {MAX_BYTES / 1e6:g} MB", remedy)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        remedy = "save the file as UTF-8"
        raise CatalogError.of(
            path.name, "is not UTF-8 text", remedy, place=f"line {line}"
        ) from error


def parse_catalog(text: str, source: str = "catalog") -> Catalog:
    """The catalog in `text`.

    Args:
        text: YAML; a leading byte order mark is ignored.
        source: File name or label, the start of every message.

    Raises:
        CatalogError: It is not a valid catalog; every problem is listed with place and remedy.
    """
    text = text.removeprefix("\ufeff")
    root, problems = read_mapping(
        text, f"begin with 'schema: {SCHEMA}', or start from a file in catalog/"
    )
    catalog = None if root is None else catalog_of(root, text, source)
    if catalog is None or problems.found:
        raise CatalogError(source, problems.listed())
    return catalog


def catalog_of(root: Section, text: str, source: str) -> Catalog | None:
    """The catalog in a tree, or None with at least one problem recorded."""
    if not _is_this_schema(root):
        return None
    root.known(_KEYS)
    dimensions = _dimensions(root)
    bands = _bands(root, dimensions)
    policy = read_policy(root, dimensions)
    benchmarks = read_benchmarks(root, dimensions)
    models, names = read_models(root, dimensions, benchmarks), model_names(root)
    whole = len(models) == len(names)  # else what a model with a fault has is not known
    if policy is not None and whole:
        _fits_models(root, models, policy)
    realised = read_realised_costs(root, names, policy)
    outcome_model = read_outcome_model(root, policy)
    pool = [one.id for one in models if one.status.in_pool] if whole else names
    success = read_success_profiles(root, dimensions, names, pool)
    name = root.text("name", "a short name for this catalog", limit=200)
    notes = root.text("notes", "write text", required=False)
    predictor, fingerprint = _predictor(root)
    if root.problems.found or policy is None:
        return None
    return Catalog(
        name=name,
        dimensions=dimensions,
        predictor=predictor,
        predictor_fingerprint=fingerprint,
        bands=bands,
        policy=policy,
        benchmarks=benchmarks,
        models=models,
        digest=hashlib.sha256(text.encode()).hexdigest(),
        source=source,
        notes=notes,
        realised_costs=realised,
        outcome_model=outcome_model,
        success_profiles=success,
    )


def _fits_models(root: Section, models: tuple[ModelSpec, ...], policy: Policy) -> None:
    """Refuse a policy that asks for what no model, or not every one, of the pool has."""
    pool = [one for one in models if one.status.in_pool]
    if policy.require and not any(policy.require <= one.tags for one in pool):
        message = f"{', '.join(sorted(policy.require))}: no routable model has all of it"
        root.wrong("policy", f"require {message}", "give models these tags, or require less")
    known = {one.id for one in pool}
    for name, team in () if root.problems.found else policy.teams.items():
        if team.models is not None and not team.models & known:
            message = f"teams.{name}: none of its models is routed to"
            root.wrong("policy", message, f"name some of {', '.join(sorted(known))}")
    lacking = [one.id for one in pool if one.latency_s is None]
    if policy.second_usd and lacking:
        message = f"second_usd needs latency_s of every model; missing of {', '.join(lacking[:5])}"
        root.wrong("policy", message, "give their mean seconds, or remove second_usd")


def _is_this_schema(root: Section) -> bool:
    """Another schema, or none, makes every other message noise: only that is reported."""
    found = root.node.get("schema")
    if isinstance(found, ScalarNode) and found.value == SCHEMA:
        return True
    if found is None:
        message, remedy = "is missing", f"begin the file with 'schema: {SCHEMA}'"
        related = any(key in _KEYS for key in root.node.entries)
        if not related:
            message = "is missing; this does not look like a catalog"
        root.wrong("schema", message, remedy)
        return related
    root.wrong("schema", f"must be {SCHEMA}, got {shown(found)}", "this version reads no other")
    return False


def _dimensions(root: Section) -> tuple[str, ...]:
    remedy = "list the predictor's dimensions, such as [reasoning, debugging]"
    nodes = root.items("dimensions", remedy, limit=MAX_DIMENSIONS)
    names: dict[str, str] = {}
    for node in nodes:
        name = node.value if isinstance(node, ScalarNode) else None
        if not isinstance(name, str):
            root.wrong("dimensions", f"must contain names, got {shown(node)}", remedy)
            continue
        problem = id_problem(name)
        if problem is not None:
            root.wrong("dimensions", *problem)
        twin = names.get(skeleton(name))
        if twin is not None:
            root.wrong("dimensions", f"{name!r} is given twice (as {twin!r})", "keep one")
        names.setdefault(skeleton(name), name)
    listed = root.node.get("dimensions")
    if isinstance(listed, ListNode) and not listed.items:
        root.wrong("dimensions", "must not be empty", remedy)
    return tuple(names.values())


def _predictor(root: Section) -> tuple[str, str]:
    remedy = "name the predictor bundle and its fingerprint: the bands hold for that bundle only"
    section = root.section("predictor", remedy, keys=("name", "fingerprint"))
    if section is None:
        return "", ""
    name = section.text("name", "the bundle's name, as in its bundle.yaml", limit=200)
    fingerprint = section.text("fingerprint", "the bundle's fingerprint in quotes", limit=128)
    problem = id_problem(fingerprint) if fingerprint else None
    if problem is not None:
        section.wrong("fingerprint", *problem)
    return name, fingerprint


#: A narrower band would blow a difference of scores up to an infinite shortfall.
_LEAST_WIDTH: Final = 1e-6


def _bands(root: Section, dimensions: tuple[str, ...]) -> tuple[Band, ...]:
    remedy = "give each dimension [lo, hi]: the low and high end of the predictor's scores"
    section = root.section("bands", remedy)
    if section is None:
        return ()
    if dimensions:
        section.known(dimensions, "dimension")
    bands = [_band(section, dimension, remedy) for dimension in dimensions]
    return tuple(band for band in bands if band is not None)


def _band(section: Section, dimension: str, remedy: str) -> Band | None:
    ends = section.items(dimension, remedy, limit=MAX_DIMENSIONS)
    if len(ends) != 2:
        if isinstance(section.node.get(dimension), ListNode):
            section.wrong(dimension, f"must be [lo, hi], got {len(ends)} numbers", remedy)
        return None
    lo, hi = (section.checked_number(dimension, end, SHARE, remedy) for end in ends)
    if lo is None or hi is None:
        return None
    if lo >= hi:
        section.wrong(dimension, f"lo must be < hi, got [{lo:g}, {hi:g}]", remedy)
    elif hi - lo < _LEAST_WIDTH:
        message = f"is {hi - lo:g} wide, at least {_LEAST_WIDTH:g} is needed"
        section.wrong(dimension, message, remedy)
    return Band(lo, hi)
