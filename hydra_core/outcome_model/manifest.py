"""What an outcome model says of itself: `outcome_model.yaml`, `figures.json`, with every check."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final

from hydra_core.digests import SHA256
from hydra_core.errors import OutcomeModelError, Problem
from hydra_core.outcome_model.features import BLOCKS
from hydra_core.predictor.manifest import MAX_VECTOR
from hydra_core.predictor.plain_yaml import read_plain_yaml

__all__ = ["FIGURES", "HEADS", "LEARNED", "MANIFEST", "REMEDY", "SCHEMA", "figures", "manifest"]

SCHEMA: Final = "hydra.outcome_model/v1"
MANIFEST: Final = "outcome_model.yaml"
HEADS: Final = "heads.npz"
LEARNED: Final = "learned.npz"
FIGURES: Final = "figures.json"
REMEDY: Final = "learn it again"

_KEYS: Final = ("schema", "predictor", "evalset", "models", "learner", "blocks", "parts", "files")
_FIGURES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "recommend": bool,
    "reason": str,
    "n": int,
    "models": dict,
    "lift": (dict, type(None)),
    "features": list,
    "learner": str,
    "errors": dict,
    "penalties": list,
    "reliability": dict,
    "learning_curve": list,
    "expected_gain": dict,
    "slices": dict,
    "folds": int,
    "seed": int,
}
Yaml = Mapping[str, Any]


def manifest(raw: bytes, source: str) -> Yaml:
    """The checked manifest.

    Raises:
        OutcomeModelError: It is not plain YAML, or says what cannot be.
    """
    try:
        found, trick = read_plain_yaml(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        problem = Problem("", f"is not text: {error}", REMEDY)
        raise OutcomeModelError(source, [problem]) from error
    problems = [trick] if trick else _problems(found)
    if problems:
        raise OutcomeModelError(source, problems)
    checked: Any = found
    return dict(checked)


def figures(raw: bytes, source: str) -> Yaml:
    """What `learn` found, as the pages read it.

    Raises:
        OutcomeModelError: It is not JSON, or not of that form.
    """
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        problem = Problem(FIGURES, f"is not valid JSON: {error}", REMEDY)
        raise OutcomeModelError(source, [problem]) from error
    if not isinstance(found, dict):
        raise OutcomeModelError(source, [Problem(FIGURES, "must be an object", REMEDY)])
    problems = [
        Problem(f"{FIGURES}: {key}", "is missing or of another kind", REMEDY)
        for key, kind in _FIGURES.items()
        if key not in found or not isinstance(found[key], kind)
    ]
    if problems:
        raise OutcomeModelError(source, problems)
    return found


def _problems(found: object) -> list[Problem]:
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        said = found.get("schema") if isinstance(found, dict) else found
        return [Problem("schema", f"must be {SCHEMA}, got {said!r:.80}", "give another folder")]
    if set(found) != set(_KEYS):
        odd = sorted(str(key)[:40] for key in set(found) ^ set(_KEYS))
        return [Problem("", f"keys missing or unknown: {', '.join(odd[:10])}", REMEDY)]
    problems = [
        *_typed(found, "predictor", dict, {"fingerprint": str, "vectors": int}),
        *_typed(found, "evalset", dict, {"name": str, "digest": str}),
        *_typed(found, "models", list, {"id": str, "outcomes": int}),
        *_typed(found, "parts", list, {"kind": str, "share": float}),
    ]
    for name in (HEADS, LEARNED, FIGURES):
        digest = found["files"].get(name) if isinstance(found["files"], dict) else None
        if not isinstance(digest, str) or not SHA256.fullmatch(digest):
            problems.append(Problem(f"files.{name}", "must be a SHA-256 in hex", REMEDY))
    if not isinstance(found["learner"], str):
        problems.append(Problem("learner", "must be text", REMEDY))
    return problems or _values(found)


def _values(found: Yaml) -> list[Problem]:
    """What has the right type and still cannot be."""
    ids = [entry["id"] for entry in found["models"]]
    blocks, shares = found["blocks"], [entry["share"] for entry in found["parts"]]
    checks = {
        "models": (len(set(ids)) == len(ids), "names a model twice"),
        "models: outcomes": (all(e["outcomes"] >= 0 for e in found["models"]), "are below 0"),
        "predictor.vectors": (
            0 <= found["predictor"]["vectors"] <= MAX_VECTOR,
            f"must be 0 to {MAX_VECTOR}",
        ),
        "blocks": (
            isinstance(blocks, list) and blocks == [name for name in BLOCKS if name in blocks],
            f"must be some of {', '.join(BLOCKS)}, in this order",
        ),
        "parts: share": (all(isfinite(s) and 0 <= s <= 1 for s in shares), "must lie in [0, 1]"),
    }
    return [Problem(place, said, REMEDY) for place, (holds, said) in checks.items() if not holds]


def _typed(
    found: Yaml, key: str, kind: type[dict[str, Any]] | type[list[Any]], fields: Mapping[str, type]
) -> list[Problem]:
    value = found[key]
    if not isinstance(value, kind) or not value:
        return [Problem(key, f"must be a {kind.__name__} with something in it", REMEDY)]
    entries: Sequence[object] = [value] if isinstance(value, dict) else value
    return [
        Problem(f"{key}[{i}].{name}", f"must be {wanted.__name__}", REMEDY)
        for i, entry in enumerate(entries)
        for name, wanted in fields.items()
        if not isinstance(entry, dict) or type(entry.get(name)) is not wanted
    ]
