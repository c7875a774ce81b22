"""A predictor bundle: the folder that a shipped model is.

Format `hydra.predictor/v1`, one folder with `bundle.yaml` beside the files it lists::

    schema: hydra.predictor/v1
    name: hydra-compact                    # text
    version: "1"                           # text
    encoder: {type: modernbert, origin: trained here, licence: Apache-2.0}
    dimensions: [reasoning, code_generation, debugging, tool_use]
    bands:                                 # 5th and 95th percentile on validation, per dimension
      reasoning: [0.05, 0.62]
    max_tokens: 512                        # cap, special tokens and signal prefix included
    model: model.int8.onnx                 # inputs input_ids, attention_mask (n, t) int64, perhaps
    tokenizer: tokenizer.json              #   token_type_ids, position_ids; one output (n, K) of
    input:                                 #   probabilities in dimension order
      signals: 1                           # form of the signal prefix it was trained on
      before: ""                           # fixed text before the prefix, e.g. "query: "
    calibration:                           # optional; per dimension, monotone, knots of raw -> said
      reasoning: {x: [0.0, 0.5, 1.0], y: [0.0, 0.4, 0.9]}
    vectors: 384                           # optional; width of the graph's output `vectors` (n, d),
                                           #   what success heads are learned on; at most 400
    fingerprint: <sha256>                  # of all that makes a score: see `fingerprint_of`
    files:                                 # every file, relative, with its sha256
      model.int8.onnx: <sha256>
      tokenizer.json: <sha256>
      MODEL_CARD.md: <sha256>
    training: {...}                        # facts of the training run, free form
    quality: {...}                         # measured quality, free form

The text the model sees is `before + signal_prefix(message, turn) + message`, shortened to the cap
as in `inputs.py`; `tokenizer.json` adds the special tokens. A model is read as data: nothing
executable is ever deserialised, nothing is fetched. `write_manifest` and `load_bundle` are the only
writer and the only reader.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML

from hydra_core.errors import BundleError, Problem
from hydra_core.predictor.manifest import (
    MANIFEST,
    SCHEMA,
    SIGNALS_FORM,
    Curve,
    Manifest,
    parse_manifest,
)
from hydra_core.predictor.plain_yaml import MAX_BYTES
from hydra_core.types import Band

__all__ = [
    "SHIPPED",
    "SHIPPED_SMALL",
    "Bundle",
    "Curve",
    "digest_of",
    "fingerprint_of",
    "load_bundle",
    "write_manifest",
]

#: The bundle that comes with the console.
SHIPPED = Path(__file__).parent / "default"
#: A second one: smaller, trained from scratch, of ModernBERT's type.
SHIPPED_SMALL = Path(__file__).parent / "modernbert"


@dataclass(frozen=True, slots=True)
class Bundle:
    """A checked bundle.

    Attributes:
        path: Its folder.
        fingerprint: Hex SHA-256 of all that makes a score or a vector; catalogs, cached scores and
            outcome models carry it.
        dimensions: (K,) names.
        bands: (K,) the score band of each dimension.
        max_tokens: The cap on tokens, special tokens and prefix included.
        calibration: (K,) curves applied to the model's output, or None.
        vectors: Numbers in the text vector that comes with the scores, 0 when there is none.
        encoder: type, origin, licence.
        model: File name of the graph.
        tokenizer: File name of the tokenizer.
        before: Fixed text in front of the signal prefix.
        files: File name -> sha256.
        training: Facts of the training run.
        quality: Measured quality.
    """

    path: Path
    name: str
    version: str
    fingerprint: str
    dimensions: tuple[str, ...]
    bands: tuple[Band, ...]
    max_tokens: int
    calibration: tuple[Curve, ...] | None
    vectors: int
    encoder: Mapping[str, object]
    model: str
    tokenizer: str
    before: str
    files: Mapping[str, str]
    training: Mapping[str, object]
    quality: Mapping[str, object]

    @property
    def size_bytes(self) -> int:
        """Bytes of all files listed, and of the manifest."""
        return sum((self.path / name).stat().st_size for name in (*self.files, MANIFEST))


def digest_of(path: Path) -> str:
    """Hex SHA-256 of a file.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint_of(manifest: Manifest) -> str:
    """SHA-256 (hex) of all that makes a score or a text vector, so of nothing that does not.

    It covers the sorted lines `name:sha256` of the model and the tokenizer, then those of the
    calibration (as canonical JSON), the dimensions, the token cap, the form of the input and, where
    there is one, the width of the text vector (its values are fixed by the model file).
    """
    curves = [asdict(curve) for curve in manifest.calibration or ()]
    calibration = hashlib.sha256(json.dumps(curves, sort_keys=True).encode()).hexdigest()
    lines = sorted(
        [f"{name}:{manifest.files[name]}" for name in {manifest.model, manifest.tokenizer}]
    )
    lines += [f"calibration:{calibration}", f"dimensions:{','.join(manifest.dimensions)}"]
    lines += [f"max_tokens:{manifest.max_tokens}", f"input:{SIGNALS_FORM}:{manifest.before}"]
    if manifest.vectors:
        lines.append(f"vectors:{manifest.vectors}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BundleError(str(path), [Problem("", f"is larger than {MAX_BYTES:,} bytes")])
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        remedy = "point to the folder of a predictor bundle"
        raise BundleError(str(path), [Problem("", "there is no such file", remedy)]) from error
    except OSError as error:
        problem = Problem("", f"cannot be read: {error.strerror}")
        raise BundleError(str(path), [problem]) from error
    except UnicodeDecodeError as error:
        problem = Problem("", f"is not UTF-8 text (byte {error.start})")
        raise BundleError(str(path), [problem]) from error
    return parse_manifest(text, str(path))


def _file_problem(folder: Path, name: str, digest: str) -> Problem | None:
    remedy = "restore the file or install the bundle again"
    path = folder / name
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            return Problem(name, "lies outside the bundle's folder", remedy)
        if not path.is_file():
            return Problem(name, "is missing", remedy)
        found = digest_of(path)
    except (OSError, RuntimeError) as error:
        return Problem(name, f"cannot be read: {error}", remedy)
    if found == digest:
        return None
    size = path.stat().st_size
    message = f"is damaged or was replaced: {size:,} bytes with sha256 {found[:12]}..."
    return Problem(name, f"{message}, bundle.yaml says {digest[:12]}...", remedy)


def load_bundle(path: Path | None = None) -> Bundle:
    """Load and check a bundle; a model file is hashed, not yet opened.

    Args:
        path: Its folder; None for the one that comes with the console.

    Raises:
        BundleError: A file is missing, damaged or foreign; says which and why.
    """
    folder = SHIPPED if path is None else Path(path)
    manifest = _read_manifest(folder)
    checks = (_file_problem(folder, name, sha) for name, sha in manifest.files.items())
    problems = [problem for problem in checks if problem]
    expected = fingerprint_of(manifest)
    if manifest.fingerprint != expected:
        message = f"is {manifest.fingerprint[:12]}..., the contents give {expected[:12]}..."
        problems.append(Problem("fingerprint", message, "write the manifest again"))
    if problems:
        raise BundleError(str(folder), problems)
    return Bundle(
        path=folder,
        **{name: getattr(manifest, name) for name in Manifest.__slots__},
    )


def _plain(value: object) -> object:
    """`value` with NumPy scalars, tuples and nested containers as plain YAML values."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (str, bool, int, float)) and type(value) in (str, bool, int, float):
        return value
    if value is None:
        return None
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)


def write_manifest(
    folder: Path,
    *,
    name: str,
    version: str,
    encoder: Mapping[str, object],
    dimensions: Sequence[str],
    bands: Sequence[Band],
    training: Mapping[str, object],
    quality: Mapping[str, object],
    max_tokens: int = 512,
    calibration: Sequence[Curve] | None = None,
    vectors: int = 0,
    model: str = "model.int8.onnx",
    tokenizer: str = "tokenizer.json",
    before: str = "",
    other_files: Sequence[str] = (),
) -> Bundle:
    """Write `bundle.yaml` for the files already in `folder`, and load it back.

    Args:
        bands: (K,) in the order of `dimensions`.
        calibration: (K,) curves in the same order, or None.
        vectors: Width of the graph's output `vectors`, 0 for a graph without.
        other_files: Further files to list, such as MODEL_CARD.md; not part of the fingerprint.

    Raises:
        BundleError: What was asked for would not load; an existing manifest is left as it was.
        OSError: A file named is not there.
    """
    files = {file: digest_of(folder / file) for file in (model, tokenizer, *other_files)}
    data: dict[str, object] = {
        "schema": SCHEMA,
        "name": name,
        "version": version,
        "encoder": encoder,
        "dimensions": list(dimensions),
        "bands": {d: [b.lo, b.hi] for d, b in zip(dimensions, bands, strict=True)},
        "max_tokens": max_tokens,
        "model": model,
        "tokenizer": tokenizer,
        "input": {"signals": SIGNALS_FORM, "before": before},
        "fingerprint": "0" * 64,
        "files": files,
        "training": training,
        "quality": quality,
    }
    if calibration is not None:
        pairs = zip(dimensions, calibration, strict=True)
        data["calibration"] = {d: {"x": curve.x, "y": curve.y} for d, curve in pairs}
    if vectors:
        data["vectors"] = vectors
    draft = parse_manifest(_dump(data), str(folder / MANIFEST))
    text = _dump({**data, "fingerprint": fingerprint_of(draft)})
    temporary = folder / f".{MANIFEST}.new"
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, folder / MANIFEST)
    return load_bundle(folder)


def _dump(data: Mapping[str, object]) -> str:
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = None
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 100
    out = StringIO()
    yaml.dump(_plain(data), out)
    return out.getvalue()
