"""The folder of an outcome model, format `hydra.outcome_model/v1`.

    outcome_model.yaml   what it is: bundle, eval set, models, learner, SHA-256 of the files
    heads.npz            arrays of features and heads
    learned.npz          the queries it was learned on, with cross-fitted predictions
    figures.json         what `learn` found

Arrays are read with `allow_pickle=False`: nothing executable is deserialised. The writer is
`hydra_core/evaluation/learning/write.py`.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import AliasEvent

from hydra_core.errors import OutcomeModelError, Problem
from hydra_core.outcome_model.features import BLOCKS, Features
from hydra_core.outcome_model.heads import Forest, Linear
from hydra_core.outcome_model.learned import Learned
from hydra_core.outcome_model.model import Costs, OutcomeHeads, OutcomeModel, Part
from hydra_core.outcome_model.raw import Raw

__all__ = ["FIGURES", "HEADS", "LEARNED", "MANIFEST", "SCHEMA", "load_outcome_model"]

SCHEMA: Final = "hydra.outcome_model/v1"
MANIFEST: Final = "outcome_model.yaml"
HEADS: Final = "heads.npz"
LEARNED: Final = "learned.npz"
FIGURES: Final = "figures.json"

_KEYS: Final = ("schema", "predictor", "evalset", "models", "learner", "blocks", "parts", "files")
_MAX_MANIFEST = 1 << 20
_MAX_FILE = 1 << 30
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REMEDY = "learn it again"
Yaml = Mapping[str, Any]


def load_outcome_model(path: Path, *, sha256: str | None = None) -> OutcomeModel:
    """Load and check an outcome model.

    Args:
        path: Its folder.
        sha256: The digest its manifest must have, as the catalog names it; None for any.

    Raises:
        OutcomeModelError: Missing, damaged, half-written, or another than asked for.
    """
    raw = _bytes(path / MANIFEST, _MAX_MANIFEST)
    digest = hashlib.sha256(raw).hexdigest()
    if sha256 is not None and digest != sha256:
        message = f"is another outcome model: sha256 {digest[:12]}..., asked for {sha256[:12]}..."
        remedy = "take this one into the catalog, or point to the folder it was learned into"
        raise OutcomeModelError(str(path), [Problem(MANIFEST, message, remedy)])
    manifest = _manifest(raw, str(path / MANIFEST))
    files = manifest["files"]
    arrays = _arrays(path, HEADS, files)
    figures = json.loads(_checked(path, FIGURES, files))
    try:
        return _built(path, digest, manifest, arrays, figures)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        message = f"does not hold what {MANIFEST} says: {error}"
        raise OutcomeModelError(str(path), [Problem(HEADS, message, _REMEDY)]) from error


def _built(
    path: Path, digest: str, manifest: Yaml, arrays: Mapping[str, np.ndarray], figures: Yaml
) -> OutcomeModel:
    entries = manifest["models"]
    parts = [
        Part(float(entry["share"]), _heads(arrays, f"part{i}", entry["kind"]))
        for i, entry in enumerate(manifest["parts"])
    ]
    names = ("centre", "directions", "mean", "scale")
    features = Features(tuple(manifest["blocks"]), *(arrays[f"features.{n}"] for n in names))
    newcomers, read, written = (
        _linear(arrays, name) if f"{name}.weights" in arrays else None
        for name in ("newcomers", "input_tokens", "output_tokens")
    )
    heads = OutcomeHeads(
        models=tuple(entry["id"] for entry in entries),
        features=features,
        parts=tuple(parts),
        newcomers=newcomers,
        costs=Costs(_linear(arrays, "cost_usd"), read, written),
        mean_difference=arrays["mean_difference"],
    )
    _check_shapes(heads)
    reliability = arrays["reliability"]
    _require(reliability.ndim == 3, "reliability")
    _require(reliability.shape[::2] == (len(entries), 3), "reliability")
    return OutcomeModel(
        path=path,
        digest=digest,
        fingerprint=manifest["predictor"]["fingerprint"],
        vectors=int(manifest["predictor"]["vectors"]),
        evalset=manifest["evalset"]["name"],
        evalset_digest=manifest["evalset"]["digest"],
        outcomes=tuple(int(entry["outcomes"]) for entry in entries),
        learner=manifest["learner"],
        heads=heads,
        reliability=reliability,
        open_learned=lambda: _learned(path, manifest["files"]),
        figures=figures,
    )


def _check_shapes(model: OutcomeHeads) -> None:
    """Every array must fit the models and columns; a wrong one would answer nonsense.

    Raises:
        ValueError: Says which does not.
    """
    m, p = len(model.models), model.features.mean.size
    small = p - model.features.directions.shape[1]
    wide = p + small * (small + 1) // 2
    together = m - (0 if model.newcomers is None else model.newcomers.offset.size)
    if not set(model.features.blocks) <= set(BLOCKS) or not model.parts:
        raise ValueError(f"blocks {model.features.blocks} and {len(model.parts)} parts")
    for part in model.parts:
        if isinstance(part.heads, Linear):
            _require(part.heads.weights.shape == (wide, 1 + together), "linear heads")
        else:
            forest = part.heads
            nodes = forest.left.size
            inside = forest.left.min() >= 0 and (forest.left + 1).max() <= nodes
            _require(inside and 0 <= forest.column.min() <= forest.column.max() < p, "trees")
            _require(forest.value.shape == (nodes, 1 + together), "leaves")
    for head in (model.costs.cost_usd, model.costs.input_tokens, model.costs.output_tokens):
        _require(head is None or head.weights.shape == (wide, m), "cost heads")
    if model.newcomers is not None:
        _require(model.newcomers.weights.shape == (together, m - together), "newcomers' heads")
    _require(model.mean_difference.shape == (m,), "mean differences")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"the {what} have another shape")


def _heads(arrays: Mapping[str, np.ndarray], name: str, kind: str) -> Linear | Forest:
    if kind == "linear":
        return _linear(arrays, name)
    if kind != "trees":
        raise ValueError(f"unknown kind of heads {kind!r}")
    column, left, roots = (
        arrays[f"{name}.{key}"].astype(np.intp) for key in ("column", "left", "roots")
    )
    depth = int(arrays[f"{name}.depth"])
    return Forest(column, arrays[f"{name}.threshold"], left, arrays[f"{name}.value"], roots, depth)


def _linear(arrays: Mapping[str, np.ndarray], name: str) -> Linear:
    return Linear(arrays[f"{name}.weights"], arrays[f"{name}.offset"])


def _learned(path: Path, files: Yaml) -> Learned:
    arrays = _arrays(path, LEARNED, files)
    try:
        plain = {name: arrays[name] for name in Learned.__slots__ if name != "raw"}
        raw = Raw(*(arrays[f"raw.{name}"] for name in Raw.__slots__))
        return Learned(**plain, raw=raw)
    except KeyError as error:
        problem = Problem(LEARNED, f"has no array {error}", _REMEDY)
        raise OutcomeModelError(str(path), [problem]) from error


def _arrays(path: Path, name: str, files: Yaml) -> dict[str, np.ndarray]:
    raw = _checked(path, name, files)
    try:
        with np.load(BytesIO(raw), allow_pickle=False) as loaded:
            arrays = {key: loaded[key] for key in loaded.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        problem = Problem(name, f"is not a file of arrays: {error}", _REMEDY)
        raise OutcomeModelError(str(path), [problem]) from error
    for key, array in arrays.items():
        # what was left out of cross-fitting is NaN in learned.npz, nowhere else
        if name == HEADS and array.dtype.kind == "f" and np.isnan(array).any():
            raise OutcomeModelError(str(path), [Problem(f"{name}: {key}", "holds NaN", _REMEDY)])
        array.setflags(write=False)
    return arrays


def _checked(path: Path, name: str, files: Yaml) -> bytes:
    raw = _bytes(path / name, _MAX_FILE)
    found = hashlib.sha256(raw).hexdigest()
    if found != files[name]:
        message = (
            f"is damaged or was replaced: sha256 {found[:12]}..., expected {files[name][:12]}..."
        )
        raise OutcomeModelError(str(path), [Problem(name, message, _REMEDY)])
    return raw


def _bytes(file: Path, limit: int) -> bytes:
    try:
        with file.open("rb") as stream:
            raw = stream.read(limit + 1)
    except OSError as error:
        reason = (
            "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
        )
        remedy = "give the folder that `learn` has written"
        raise OutcomeModelError(str(file.parent), [Problem(file.name, reason, remedy)]) from error
    if len(raw) > limit:
        problem = Problem(file.name, f"is larger than {limit:,} bytes", _REMEDY)
        raise OutcomeModelError(str(file.parent), [problem])
    return raw


def _manifest(raw: bytes, source: str) -> Yaml:
    try:
        text = raw.decode("utf-8")
        if any(isinstance(event, AliasEvent) for event in YAML(typ="safe", pure=True).parse(text)):
            raise OutcomeModelError(source, [Problem("", "uses YAML aliases", _REMEDY)])
        found = YAML(typ="safe", pure=True).load(text)
    except (UnicodeDecodeError, YAMLError, ValueError, RecursionError) as error:
        problem = Problem("", f"is not valid YAML: {str(error)[:200]}", _REMEDY)
        raise OutcomeModelError(source, [problem]) from error
    problems = _manifest_problems(found)
    if problems:
        raise OutcomeModelError(source, problems)
    checked: Yaml = found
    return checked


def _manifest_problems(found: object) -> list[Problem]:
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        said = found.get("schema") if isinstance(found, dict) else found
        return [Problem("schema", f"must be {SCHEMA}, got {said!r:.80}", "give another folder")]
    if set(found) != set(_KEYS):
        odd = sorted(map(str, set(found) ^ set(_KEYS)))
        return [Problem("", f"keys missing or unknown: {', '.join(odd)}", _REMEDY)]
    problems = [
        *_typed(found, "predictor", dict, {"fingerprint": str, "vectors": int}),
        *_typed(found, "evalset", dict, {"name": str, "digest": str}),
        *_typed(found, "models", list, {"id": str, "outcomes": int}),
        *_typed(found, "parts", list, {"kind": str, "share": float}),
    ]
    for name in (HEADS, LEARNED, FIGURES):
        digest = found["files"].get(name) if isinstance(found["files"], dict) else None
        if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
            problems.append(Problem(f"files.{name}", "must be a SHA-256 in hex", _REMEDY))
    return problems


def _typed(
    found: Yaml, key: str, kind: type[dict[str, Any]] | type[list[Any]], fields: Mapping[str, type]
) -> list[Problem]:
    value = found[key]
    if not isinstance(value, kind) or not value:
        return [Problem(key, f"must be a {kind.__name__} with something in it", _REMEDY)]
    entries: Sequence[object] = [value] if isinstance(value, dict) else value
    return [
        Problem(f"{key}[{i}].{name}", f"must be {wanted.__name__}", _REMEDY)
        for i, entry in enumerate(entries)
        for name, wanted in fields.items()
        if not isinstance(entry, dict) or not isinstance(entry.get(name), wanted)
    ]
