"""The folder of an outcome model, format `hydra.outcome_model/v1`.

    outcome_model.yaml   what it is: bundle, eval set, models, learner, SHA-256 of the files
    heads.npz            arrays of features and heads
    learned.npz          the queries it was learned on, with cross-fitted predictions
    figures.json         what `learn` found

Arrays are read with `allow_pickle=False`: nothing executable is deserialised. The writer is
`hydra_core/choosing/write.py`. `catalog_outcome_model` finds the one that a catalog names.
"""

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from hydra_core.base.digests import SHA256
from hydra_core.base.errors import MismatchError, OutcomeModelError, Problem
from hydra_core.base.reading.plain_yaml import MAX_BYTES, read_plain_yaml
from hydra_core.base.shipped import CATALOGS
from hydra_core.base.types import Catalog, OutcomeModelRef
from hydra_core.base.workspace import workspace_folder
from hydra_core.outcome_model.heads import BLOCKS, Features, Forest, Linear, Raw
from hydra_core.outcome_model.model import Costs, Learned, OutcomeHeads, OutcomeModel, Part
from hydra_core.predictor.bundle import MAX_VECTOR

Arrays = Mapping[str, np.ndarray]
#: Unpacked, all arrays of a file together; what 100,000 queries need is a tenth of it.
_MAX_BYTES: Final = 1 << 30
_MAX_ARRAYS: Final = 1_000
_HEADERS: Final = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_arrays(raw: bytes, name: str, source: str) -> Arrays:
    """The arrays in the bytes of an .npz file, read-only.

    Raises:
        OutcomeModelError: It is none, needs pickle, is larger unpacked than the limit, or holds
            numbers that are not finite where every number must be.
    """
    try:
        _require_within_limits(raw)
        with np.load(BytesIO(raw), allow_pickle=False) as loaded:
            arrays = {key: loaded[key] for key in loaded.files}
    except (ValueError, OSError, EOFError, KeyError, MemoryError, zipfile.BadZipFile) as error:
        raise _refused(source, name, f"is not a file of arrays: {error}") from error
    except (NotImplementedError, RuntimeError) as error:  # packed in another way, or encrypted
        raise _refused(source, name, f"cannot be unpacked: {error}") from error
    for key, array in arrays.items():
        # what was left out of cross-fitting is NaN in learned.npz; a leaf's threshold is infinity
        sound = np.isfinite if not key.endswith(".threshold") else lambda one: ~np.isnan(one)
        if name == HEADS and (array.dtype.kind == "U" or not sound(array).all()):
            raise _refused(source, f"{name}: {key}", "holds what is no finite number")
        array.setflags(write=False)
    return arrays


def _require_within_limits(raw: bytes) -> None:
    """Raise a ValueError where an array is not as long as its header says, before it is read."""
    with zipfile.ZipFile(BytesIO(raw)) as packed:
        members = packed.infolist()
        if len(members) > _MAX_ARRAYS or sum(one.file_size for one in members) > _MAX_BYTES:
            raise ValueError(f"more than {_MAX_ARRAYS:,} arrays or {_MAX_BYTES:,} bytes unpacked")
        if len({one.filename for one in members}) < len(members):
            raise ValueError("two arrays have one name")
        for one in members:
            with packed.open(one) as stream:
                unpacked = _length(stream)
            if unpacked != one.file_size:
                raise ValueError(f"{one.filename:.80} is not as long as its header says")


def _length(stream: IO[bytes]) -> int:
    """Bytes that an .npy file has by its header."""
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"arrays of version {version} are not read")
    shape, _, dtype = _HEADERS[version](stream)
    if dtype.kind not in "biufU":
        raise ValueError(f"arrays of {dtype} are not read")
    size = dtype.itemsize
    for axis in shape:
        size *= axis
    return stream.tell() + size


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
        raise _refused(source, "", f"is not text: {error}") from error
    problems = [trick] if trick else _problems(found)
    OutcomeModelError.raise_any(source, problems)
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
        raise _refused(source, FIGURES, f"is not valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise _refused(source, FIGURES, "must be an object")
    problems = [
        Problem(f"{FIGURES}: {key}", "is missing or of another kind", REMEDY)
        for key, kind in _FIGURES.items()
        if key not in found or not isinstance(found[key], kind)
    ]
    OutcomeModelError.raise_any(source, problems)
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


_MAX_FILE: Final = 1 << 30
_MAX_TREES: Final = 10_000
_MAX_DEPTH: Final = 64


def load_outcome_model(path: Path, *, sha256: str | None = None) -> OutcomeModel:
    """Load and check an outcome model.

    Args:
        sha256: The digest its manifest must have, as the catalog names it; None for any.

    Raises:
        OutcomeModelError: Missing, damaged, half-written, or another than asked for.
    """
    raw = _bytes(path / MANIFEST, MAX_BYTES)
    digest = hashlib.sha256(raw).hexdigest()
    if sha256 is not None and digest != sha256:
        message = f"is another outcome model: sha256 {digest[:12]}..., asked for {sha256[:12]}..."
        remedy = "take this one into the catalog, or point to the folder it was learned into"
        raise _refused(path, MANIFEST, message, remedy)
    said = manifest(raw, str(path / MANIFEST))
    arrays = read_arrays(_checked(path, HEADS, said["files"]), HEADS, str(path))
    found = figures(_checked(path, FIGURES, said["files"]), str(path))
    try:
        return _built(path, digest, said, arrays, found)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        message = f"does not hold what {MANIFEST} says: {error}"
        raise _refused(path, HEADS, message) from error


def _built(path: Path, digest: str, said: Yaml, arrays: Arrays, found: Yaml) -> OutcomeModel:
    entries = said["models"]
    parts = [
        Part(float(entry["share"]), _heads(arrays, f"part{i}", entry["kind"]))
        for i, entry in enumerate(said["parts"])
    ]
    names = ("centre", "directions", "mean", "scale")
    features = Features(tuple(said["blocks"]), *(arrays[f"features.{n}"] for n in names))
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
    _check_shapes(heads, said["predictor"]["vectors"])
    reliability = arrays["reliability"]
    fits = reliability.ndim == 3 and reliability.shape[::2] == (len(entries), 3)
    _require(fits, "reliability")
    return OutcomeModel(
        path=path,
        digest=digest,
        fingerprint=said["predictor"]["fingerprint"],
        vectors=said["predictor"]["vectors"],
        evalset=said["evalset"]["name"],
        evalset_digest=said["evalset"]["digest"],
        outcomes=tuple(entry["outcomes"] for entry in entries),
        learner=said["learner"],
        heads=heads,
        reliability=reliability,
        open_learned=lambda: _learned(path, said["files"], heads),
        figures=found,
    )


def _check_shapes(model: OutcomeHeads, vectors: int) -> None:
    """Raise a ValueError where an array does not fit the models and columns."""
    features, m, p = model.features, len(model.models), model.features.mean.size
    _require(features.directions.ndim == 2, "directions")
    read, reduced = features.directions.shape
    small = p - reduced
    wide = p + small * (small + 1) // 2
    _require(small >= 0 and features.centre.shape == (read,), "centre")
    _require(read == vectors or "vectors" not in features.blocks, "vectors")
    _require(features.mean.shape == features.scale.shape == (p,), "mean and scale")
    if not (features.scale > 0).all():
        raise ValueError("the scale is not above 0")
    together = m - (0 if model.newcomers is None else model.newcomers.offset.size)
    for part in model.parts:
        if isinstance(part.heads, Linear):
            _check_linear(part.heads, (wide, 1 + together), "linear heads")
        else:
            _check_forest(part.heads, p, 1 + together)
    if model.newcomers is not None:
        _check_linear(model.newcomers, (together, m - together), "heads of newcomers")
    for head in (model.costs.cost_usd, model.costs.input_tokens, model.costs.output_tokens):
        if head is not None:
            _check_linear(head, (wide, m), "cost heads")
    _require(model.mean_difference.shape == (m,), "mean differences")


def _check_linear(head: Linear, shape: tuple[int, int], what: str) -> None:
    _require(head.weights.shape == shape and head.offset.shape == shape[1:], what)


def _check_forest(forest: Forest, columns: int, outputs: int) -> None:
    """Trees that end: children lie behind their parent, and a leaf stays where it is."""
    own = np.arange(forest.left.size)
    _require(
        forest.left.shape == forest.column.shape == forest.threshold.shape == own.shape, "trees"
    )
    leaf = (forest.left == own) & np.isposinf(forest.threshold)
    inside = (forest.left > own) & (forest.left + 1 < own.size)
    _require(bool((leaf | inside).all()), "trees")
    _require(bool(((forest.column >= 0) & (forest.column < columns)).all()), "trees")
    _require(bool(((forest.roots >= 0) & (forest.roots < own.size)).all()), "roots")
    _require(forest.roots.ndim == 1 and 0 < forest.roots.size <= _MAX_TREES, "roots")
    _require(0 <= forest.depth <= _MAX_DEPTH, "depths")
    _require(forest.value.shape == (own.size, outputs), "leaves")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"the {what} do not fit")


def _heads(arrays: Arrays, name: str, kind: str) -> Linear | Forest:
    if kind == "linear":
        return _linear(arrays, name)
    if kind != "trees":
        raise ValueError(f"unknown kind of heads {kind!r:.80}")
    column, left, roots = (
        arrays[f"{name}.{key}"].astype(np.intp) for key in ("column", "left", "roots")
    )
    depth = int(arrays[f"{name}.depth"])
    return Forest(column, arrays[f"{name}.threshold"], left, arrays[f"{name}.value"], roots, depth)


def _linear(arrays: Arrays, name: str) -> Linear:
    return Linear(arrays[f"{name}.weights"], arrays[f"{name}.offset"])


def _learned(path: Path, files: Yaml, heads: OutcomeHeads) -> Learned:
    arrays = read_arrays(_checked(path, LEARNED, files), LEARNED, str(path))
    try:
        plain = {name: arrays[name] for name in Learned.__slots__ if name != "raw"}
        raw = Raw(*(arrays[f"raw.{name}"] for name in Raw.__slots__))
        found = Learned(**plain, raw=raw)
        _check_learned(found, len(heads.models), heads.features.mean.size)
    except (KeyError, ValueError) as error:
        message = f"does not hold what was learned on: {error}"
        raise _refused(path, LEARNED, message) from error
    return found


def _check_learned(found: Learned, m: int, p: int) -> None:
    n, raw = found.query_ids.size, found.raw
    shapes = (raw.input_tokens.shape, raw.output_tokens.shape)
    _require(found.query_ids.shape == (n,) and found.query_ids.dtype.kind == "U", "ids")
    _require(found.texts.shape in ((n,), (0,)) and found.texts.dtype == np.uint64, "texts")
    _require(n > 0 and found.columns.shape == (n, p), "columns")
    _require(found.quality.shape == raw.difference.shape == raw.cost_usd.shape == (n, m), "rows")
    _require(raw.shared.shape == (n, 1) and set(shapes) <= {(n, 0), (n, m)}, "rows")


def _checked(path: Path, name: str, files: Yaml) -> bytes:
    raw = _bytes(path / name, _MAX_FILE)
    found = hashlib.sha256(raw).hexdigest()
    if found != files[name]:
        said = f"sha256 {found[:12]}..., expected {files[name][:12]}..."
        raise _refused(path, name, f"is damaged or was replaced: {said}")
    return raw


def _bytes(file: Path, limit: int) -> bytes:
    try:
        if file.exists() and not file.is_file():
            raise OSError("it is no plain file")
        with file.open("rb") as stream:
            raw = stream.read(limit + 1)
    except OSError as error:
        reason = (
            "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
        )
        remedy = "give the folder that `learn` has written"
        raise _refused(file.parent, file.name, reason, remedy) from error
    if len(raw) > limit:
        raise _refused(file.parent, file.name, f"is larger than {limit:,} bytes")
    return raw


def _refused(
    source: Path | str, place: str, message: str, remedy: str = REMEDY
) -> OutcomeModelError:
    return OutcomeModelError.of(str(source), message, remedy, place=place)


def catalog_outcome_model(catalog: Catalog) -> OutcomeModel:
    """The outcome model that a catalog names, checked against its bundle.

    Raises:
        OutcomeModelError: The catalog names none; it is missing, damaged or another one.
        MismatchError: It was learned with another predictor bundle.
    """
    if catalog.outcome_model is None:
        remedy = "learn one: hydra-router learn SET --catalog C.yaml --out DIR"
        message = "names no outcome model, and the value rule needs one"
        raise OutcomeModelError.of(catalog.name, message, remedy, place="outcome_model")
    model = _opened(_found(catalog, catalog.outcome_model), catalog.outcome_model.sha256)
    require_same_bundle(catalog, model)
    return model


def require_same_bundle(catalog: Catalog, model: OutcomeModel) -> None:
    """Refuse (MismatchError) an outcome model of another bundle than the catalog's."""
    if model.fingerprint != catalog.predictor_fingerprint:
        raise MismatchError(
            f"outcome model {model.path.name!r} was learned with the predictor bundle "
            f"{model.fingerprint[:12]}, catalog {catalog.name!r} is bound to "
            f"{catalog.predictor_fingerprint[:12]}: learn it again with this bundle"
        )


def _found(catalog: Catalog, named: OutcomeModelRef) -> Path:
    own = [Path(catalog.folder)] if catalog.folder else []
    # last the shipped catalogs: a published revision of one lies in no folder
    folders = [*own, workspace_folder(), Path.cwd(), CATALOGS]
    places = [folder / named.path for folder in folders]
    for place in places:
        if (place / MANIFEST).is_file():
            return place
    looked = ", ".join(dict.fromkeys(str(place) for place in places))
    remedy = "learn it again, or correct the path in the catalog"
    raise OutcomeModelError.of(
        catalog.name, f"{named.path!r} is not there ({looked})", remedy, place="outcome_model: path"
    )


@lru_cache(maxsize=8)
def _opened(path: Path, sha256: str) -> OutcomeModel:
    return load_outcome_model(path, sha256=sha256)
