"""Writes `bundle.yaml` beside the files of a predictor bundle."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from hydra_core.base.digests import file_sha256
from hydra_core.base.reading.plain_yaml import plain_text
from hydra_core.base.whole_file import whole_file
from hydra_core.predictor.bundle import (
    MANIFEST,
    SCHEMA,
    SIGNALS_FORM,
    Bundle,
    Manifest,
    fingerprint_of,
    load_bundle,
    parse_manifest,
)


def _plain(value: object) -> object:
    """`value` with NumPy scalars, tuples and nested containers as plain YAML values."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or type(value) in (str, bool, int, float):
        return value
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)


def write_manifest(folder: Path, manifest: Manifest, *, other_files: Sequence[str] = ()) -> Bundle:
    """Write `bundle.yaml` for the files already in `folder`, and load it back.

    Args:
        manifest: What it says; fingerprint and digests are those of the files as they are now.
        other_files: Further files to list, such as MODEL_CARD.md; not part of the fingerprint.

    Raises:
        BundleError: What was asked for would not load; an existing manifest is left as it was.
        OSError: A file named is not there.
    """
    own = [manifest.model, manifest.tokenizer, manifest.reference]
    named = dict.fromkeys([*filter(None, own), *manifest.files, *other_files])
    data: dict[str, object] = {
        "schema": SCHEMA,
        "name": manifest.name,
        "version": manifest.version,
        "encoder": manifest.encoder,
        "dimensions": list(manifest.dimensions),
        "bands": dict(
            zip(manifest.dimensions, ([b.lo, b.hi] for b in manifest.bands), strict=True)
        ),
        "max_tokens": manifest.max_tokens,
        "model": manifest.model,
        "tokenizer": manifest.tokenizer,
        "input": {
            "signals": SIGNALS_FORM,
            "before": manifest.before,
            **({"conversation": manifest.conversation} if manifest.conversation else {}),
        },
        "fingerprint": "0" * 64,
        "files": {file: file_sha256(folder / file) for file in named},
        "training": manifest.training,
        "quality": manifest.quality,
    }
    if manifest.calibration is not None:
        pairs = zip(manifest.dimensions, manifest.calibration, strict=True)
        data["calibration"] = {d: asdict(curve) for d, curve in pairs}
    if manifest.calibration_by_script:
        data["calibration_by_script"] = {
            script: {d: asdict(curve) for d, curve in curves.items()}
            for script, curves in manifest.calibration_by_script.items()
        }
    if manifest.vectors:
        data["vectors"] = manifest.vectors
    if manifest.reference:
        data["reference"] = manifest.reference
    draft = parse_manifest(plain_text(_plain(data)), str(folder / MANIFEST))
    text = plain_text(_plain({**data, "fingerprint": fingerprint_of(draft)}))
    with whole_file(folder / MANIFEST) as fresh:
        fresh.write_text(text, encoding="utf-8")
    return load_bundle(folder)
