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
      conversation: 1                      # optional; form of the context it reads of what came
                                           #   before the message; left out: the message alone
    calibration:                           # optional; per dimension, monotone, knots of raw -> said
      reasoning: {x: [0.0, 0.5, 1.0], y: [0.0, 0.4, 0.9]}
    calibration_by_script:                 # optional; writing system -> dimension -> the curve that
      cjk:                                 #   its messages go through instead; latin, cjk,
        tool_use: {x: [0, 1], y: [0.1, 1]} #   cyrillic, arabic, other: see `script_of`
    vectors: 384                           # optional; width of the graph's output `vectors` (n, d),
                                           #   what success heads are learned on; at most 400
    reference: reference.npz               # optional; what text vectors usually are, see
                                           #   `reference.py`; no part of the fingerprint
    fingerprint: <sha256>                  # of all that makes a score: see `fingerprint_of`
    files:                                 # every file, relative, with its sha256
      model.int8.onnx: <sha256>
      tokenizer.json: <sha256>
      MODEL_CARD.md: <sha256>
    training: {...}                        # facts of the training run, free form
    quality: {...}                         # measured quality, free form

The text the model sees is `before + signal_prefix(message, turn) + context + message`, shortened to
the cap as in `tokens.py`; `tokenizer.json` adds the special tokens. The context is empty but for
bundles that name its form (`routing/conversations/context.py`). A model is read as data: nothing
executable is ever deserialised, nothing is fetched. `load_bundle` is the only reader,
`write_manifest` in `bundle_writing.py` the only writer.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from hydra_core.base.digests import file_sha256, text_sha256
from hydra_core.base.errors import BundleError, Problem
from hydra_core.base.reading.plain_yaml import MAX_BYTES
from hydra_core.predictor.manifest import MANIFEST, SIGNALS_FORM, Curve, Manifest, parse_manifest

#: The bundle that comes with the console.
SHIPPED = Path(__file__).parent / "default"
#: A second one: smaller, trained from scratch, of ModernBERT's type.
SHIPPED_SMALL = Path(__file__).parent / "modernbert"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle(Manifest):
    """A checked bundle: what its manifest says, and the folder it lies in."""

    path: Path

    @property
    def size_bytes(self) -> int:
        """Bytes of all files listed, and of the manifest."""
        return sum((self.path / name).stat().st_size for name in (*self.files, MANIFEST))

    def curves_of(self, script: str) -> tuple[Curve, ...] | None:
        """(K,) what scores of messages in a writing system go through, None for nothing."""
        own = self.calibration_by_script.get(script)
        if not own or self.calibration is None:
            return self.calibration
        pairs = zip(self.dimensions, self.calibration, strict=True)
        return tuple(own.get(name, common) for name, common in pairs)


def fingerprint_of(manifest: Manifest) -> str:
    """SHA-256 (hex) of all that makes a score or a text vector, so of nothing that does not.

    It covers the sorted lines `name:sha256` of the model and the tokenizer, then those of the
    calibration (as canonical JSON), the dimensions, the token cap, the form of the input and, where
    there is one, the calibration by writing system, the form of the context and the width of the
    text vector (its values are fixed by the model file).
    """
    calibration = _digest_of_json([asdict(curve) for curve in manifest.calibration or ()])
    lines = sorted(
        [f"{name}:{manifest.files[name]}" for name in {manifest.model, manifest.tokenizer}]
    )
    lines += [f"calibration:{calibration}", f"dimensions:{','.join(manifest.dimensions)}"]
    lines += [f"max_tokens:{manifest.max_tokens}", f"input:{SIGNALS_FORM}:{manifest.before}"]
    if manifest.calibration_by_script:
        by_script = {
            script: {name: asdict(curve) for name, curve in curves.items()}
            for script, curves in manifest.calibration_by_script.items()
        }
        lines.append(f"calibration_by_script:{_digest_of_json(by_script)}")
    if manifest.conversation:
        lines.append(f"conversation:{manifest.conversation}")
    if manifest.vectors:
        lines.append(f"vectors:{manifest.vectors}")
    return text_sha256("\n".join(lines))


def _digest_of_json(value: object) -> str:
    return text_sha256(json.dumps(value, sort_keys=True))


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
        found = file_sha256(path)
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
        path=folder, **{one.name: getattr(manifest, one.name) for one in fields(manifest)}
    )
