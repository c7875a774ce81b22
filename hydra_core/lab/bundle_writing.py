"""Writes `bundle.yaml` beside the files of a predictor bundle."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML

from hydra_core.base.digests import file_sha256
from hydra_core.base.types import Band
from hydra_core.predictor.bundle import Bundle, fingerprint_of, load_bundle
from hydra_core.predictor.manifest import MANIFEST, SCHEMA, SIGNALS_FORM, Curve, parse_manifest


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
    calibration_by_script: Mapping[str, Mapping[str, Curve]] | None = None,
    vectors: int = 0,
    reference: str = "",
    model: str = "model.int8.onnx",
    tokenizer: str = "tokenizer.json",
    before: str = "",
    conversation: int = 0,
    other_files: Sequence[str] = (),
) -> Bundle:
    """Write `bundle.yaml` for the files already in `folder`, and load it back.

    Args:
        bands: (K,) in the order of `dimensions`.
        calibration: (K,) curves in the same order, or None.
        calibration_by_script: Writing system -> dimension -> the curve instead of that one.
        vectors: Width of the graph's output `vectors`, 0 for a graph without.
        reference: File of what text vectors usually are, '' for none.
        conversation: Form of the context that the model was trained on, 0 for none.
        other_files: Further files to list, such as MODEL_CARD.md; not part of the fingerprint.

    Raises:
        BundleError: What was asked for would not load; an existing manifest is left as it was.
        OSError: A file named is not there.
    """
    named = dict.fromkeys([model, tokenizer, *([reference] if reference else []), *other_files])
    files = {file: file_sha256(folder / file) for file in named}
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
        "input": {
            "signals": SIGNALS_FORM,
            "before": before,
            **({"conversation": conversation} if conversation else {}),
        },
        "fingerprint": "0" * 64,
        "files": files,
        "training": training,
        "quality": quality,
    }
    if calibration is not None:
        pairs = zip(dimensions, calibration, strict=True)
        data["calibration"] = {d: asdict(curve) for d, curve in pairs}
    if calibration_by_script:
        data["calibration_by_script"] = {
            script: {d: asdict(curve) for d, curve in curves.items()}
            for script, curves in calibration_by_script.items()
        }
    if vectors:
        data["vectors"] = vectors
    if reference:
        data["reference"] = reference
    draft = parse_manifest(_dump(data), str(folder / MANIFEST))
    text = _dump({**data, "fingerprint": fingerprint_of(draft)})
    temporary = folder / f".{MANIFEST}.new"
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, folder / MANIFEST)
    return load_bundle(folder)


def rewrite_manifest(
    bundle: Bundle,
    folder: Path | None = None,
    *,
    version: str | None = None,
    bands: Sequence[Band] | None = None,
    calibration: Sequence[Curve] | None = None,
    calibration_by_script: Mapping[str, Mapping[str, Curve]] | None = None,
    reference: str | None = None,
    training: Mapping[str, object] | None = None,
    quality: Mapping[str, object] | None = None,
) -> Bundle:
    """A bundle's manifest written anew for its files as they are now; None: as it was.

    Args:
        folder: Where the files lie, if not where the bundle does.

    Raises:
        BundleError: What was asked for would not load; an existing manifest is left as it was.
        OSError: A file is not there.
    """
    kept = bundle.reference if reference is None else reference
    return write_manifest(
        bundle.path if folder is None else folder,
        name=bundle.name,
        version=version or bundle.version,
        encoder=bundle.encoder,
        dimensions=bundle.dimensions,
        bands=bands or bundle.bands,
        training=bundle.training if training is None else training,
        quality=bundle.quality if quality is None else quality,
        max_tokens=bundle.max_tokens,
        calibration=calibration or bundle.calibration,
        calibration_by_script=(
            bundle.calibration_by_script if calibration_by_script is None else calibration_by_script
        ),
        vectors=bundle.vectors,
        reference=kept,
        model=bundle.model,
        tokenizer=bundle.tokenizer,
        before=bundle.before,
        conversation=bundle.conversation,
        other_files=[
            name
            for name in bundle.files
            if name not in (bundle.model, bundle.tokenizer, bundle.reference)
        ],
    )


def _dump(data: Mapping[str, object]) -> str:
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = None
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 100
    out = StringIO()
    yaml.dump(_plain(data), out)
    return out.getvalue()
