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
executable is ever deserialised, nothing is fetched: `bundle.yaml` is plain YAML, and all problems
found in it are raised together. `load_bundle` is the only reader, `write_manifest` in
`bundle_writing.py` the only writer.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from hydra_core.base.digests import SHA256, file_sha256, text_sha256
from hydra_core.base.errors import BundleError, Problem
from hydra_core.base.reading.plain_yaml import (
    MAX_BYTES,
    Problems,
    Yaml,
    mapping,
    numbers,
    read_plain_yaml,
)
from hydra_core.base.types import Band
from hydra_core.predictor.languages import SCRIPTS

_BY_SCRIPT = "calibration_by_script"


@dataclass(frozen=True, slots=True)
class Curve:
    """A monotone piecewise-linear recalibration of one dimension, clipped to [0, 1].

    Attributes:
        x: (p,) raw scores, strictly ascending, p >= 2.
        y: (p,) recalibrated scores, not descending. An affine map a*x + b is the two knots
            x = (0, 1), y = (b, a + b).
    """

    x: tuple[float, ...]
    y: tuple[float, ...]


def _curves(
    data: Yaml, dimensions: tuple[str, ...], problems: Problems
) -> tuple[Curve, ...] | None:
    """(K,) the curves of `calibration`, None where there are none."""
    if data.get("calibration") is None:
        return None
    given = mapping(data, "calibration", problems)
    for name in given.keys() ^ set(dimensions):
        problems.say(f"calibration.{name}", "must name exactly the bundle's dimensions")
    return tuple(_curve(f"calibration.{name}", given.get(name), problems) for name in dimensions)


def _script_curves(
    data: Yaml, dimensions: tuple[str, ...], problems: Problems
) -> Mapping[str, Mapping[str, Curve]]:
    """Writing system -> dimension -> curve, of `calibration_by_script`; empty where there is none.

    A dimension left out goes through the curve of `calibration`, which must be there.
    """
    if data.get(_BY_SCRIPT) is None:
        return {}
    if data.get("calibration") is None:
        problems.say(_BY_SCRIPT, "needs calibration beside it, for all other messages")
    given = mapping(data, _BY_SCRIPT, problems)
    for script in given.keys() - set(SCRIPTS):
        problems.say(f"{_BY_SCRIPT}.{script:.80}", f"is none of {', '.join(SCRIPTS)}")
    found: dict[str, Mapping[str, Curve]] = {}
    for script in [one for one in SCRIPTS if one in given]:
        place = f"{_BY_SCRIPT}.{script}"
        curves = mapping(given, script, problems, place)
        for name in curves.keys() - set(dimensions):
            problems.say(f"{place}.{name:.80}", "is not one of the bundle's dimensions")
        found[script] = {
            name: _curve(f"{place}.{name}", curves[name], problems)
            for name in dimensions
            if name in curves
        }
        if not curves:
            problems.say(place, "holds no curve", "leave it out")
    return found


def _curve(place: str, value: object, problems: Problems) -> Curve:
    knots = value if isinstance(value, dict) else {}
    x, y = numbers(knots.get("x")), numbers(knots.get("y"))
    if x is None or y is None or len(x) != len(y) or not 2 <= len(x) <= 1000:
        problems.say(place, "must be {x: [...], y: [...]} of equal length, 2 to 1000 numbers each")
    elif any(b <= a for a, b in zip(x, x[1:], strict=False)):
        problems.say(f"{place}.x", "must ascend strictly")
    elif any(b < a for a, b in zip(y, y[1:], strict=False)):
        problems.say(f"{place}.y", "must not descend: a recalibration keeps the order of scores")
    else:
        return Curve(x, y)
    return Curve((0.0, 1.0), (0.0, 1.0))


SCHEMA = "hydra.predictor/v1"
MANIFEST = "bundle.yaml"
#: The form of the signal prefix; a bundle trained on another form cannot be scored here.
SIGNALS_FORM = 1
#: The form of the context that a bundle may read (`routing/conversations/context.py`).
CONVERSATION_FORM = 1
#: A smaller cap would leave a message too little room beside its context.
_LEAST_WITH_CONTEXT = 256
_INPUT = ("signals", "before", "conversation")
_MAX_TOKENS = (8, 8192)
#: Most numbers a text vector may have: 800 KB in half precision for a thousand queries.
MAX_VECTOR = 400
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,99}){0,4}")
_REQUIRED = (
    ("schema", "name", "version", "encoder", "dimensions", "bands", "max_tokens", "model")
    + ("tokenizer", "fingerprint", "files", "training", "quality")
)  # fmt: skip
_OPTIONAL = ("input", "calibration", "calibration_by_script", "vectors", "reference")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A `bundle.yaml` that passed every check.

    Attributes:
        encoder: type, origin, licence.
        dimensions: (K,) names.
        bands: (K,) the score band of each dimension.
        max_tokens: The cap on tokens, special tokens and prefix included.
        model: File name of the graph.
        tokenizer: File name of the tokenizer.
        before: Fixed text in front of the signal prefix.
        conversation: Form of the context that it reads, 0 where it reads the message alone.
        calibration: (K,) curves applied to the model's output, or None.
        calibration_by_script: Writing system -> dimension -> the curve instead; mostly empty.
        vectors: Numbers in the text vector that comes with the scores, 0 when there is none.
        reference: File name of what text vectors usually are, '' when there is none.
        fingerprint: Hex SHA-256 of all that makes a score or a vector; catalogs, cached scores and
            outcome models carry it.
        files: File name -> sha256.
    """

    name: str
    version: str
    encoder: Yaml
    dimensions: tuple[str, ...]
    bands: tuple[Band, ...]
    training: Yaml
    quality: Yaml
    max_tokens: int = 512
    model: str = "model.int8.onnx"
    tokenizer: str = "tokenizer.json"
    before: str = ""
    conversation: int = 0
    calibration: tuple[Curve, ...] | None = None
    calibration_by_script: Mapping[str, Mapping[str, Curve]] = field(default_factory=dict)
    vectors: int = 0
    reference: str = ""
    fingerprint: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def _read_yaml(text: str, source: str) -> Yaml:
    data, problem = read_plain_yaml(text)
    if problem:
        raise BundleError(source, [problem])
    if not isinstance(data, dict):
        raise BundleError.of(source, f"must be a mapping with schema: {SCHEMA}")
    return {str(key): value for key, value in data.items()}


def _text(data: Yaml, key: str, problems: Problems) -> str:
    value = data.get(key)
    if isinstance(value, str) and value.strip():
        return value
    if key in data:
        problems.say(key, f"must be text, got {value!r:.80}", "put it in quotes")
    return ""


def _dimensions(data: Yaml, problems: Problems) -> tuple[str, ...]:
    value = data.get("dimensions")
    names = tuple(value) if isinstance(value, list) else ()
    unique = len(set(map(str, names))) == len(names)
    if not names or not unique or not all(isinstance(name, str) and name for name in names):
        if "dimensions" in data:
            problems.say("dimensions", f"must be a list of different names, got {value!r:.80}")
        return ()
    return names


def _bands(data: Yaml, dimensions: tuple[str, ...], problems: Problems) -> tuple[Band, ...]:
    given = mapping(data, "bands", problems)
    bands = []
    for name in dimensions:
        ends = numbers(given.get(name))
        if ends is None or len(ends) != 2 or not 0 <= ends[0] < ends[1] <= 1:
            value = given.get(name)
            problems.say(f"bands.{name}", f"must be [lo, hi] with 0 <= lo < hi <= 1, got {value!r}")
        else:
            bands.append(Band(*ends))
    for name in given.keys() - set(dimensions):
        problems.say(f"bands.{name}", "is not one of the bundle's dimensions")
    return tuple(bands)


def _files(data: Yaml, problems: Problems) -> Mapping[str, str]:
    files = mapping(data, "files", problems)
    for name, digest in files.items():
        if not _FILE_NAME.fullmatch(name):
            problems.say(f"files.{name!r:.120}", "is not a plain relative name inside the bundle")
        if not isinstance(digest, str) or not SHA256.fullmatch(digest):
            problems.say(f"files.{name!r:.120}", f"must be a sha256 in hex, got {digest!r:.80}")
    for key in ("model", "tokenizer", "reference"):
        if data.get(key) is not None and data[key] not in files:
            problems.say(key, f"{data[key]!r:.80} is not listed under files", "list its sha256")
    return {name: str(digest) for name, digest in files.items()}


def _whole(data: Yaml, key: str, low: int, high: int, problems: Problems) -> int:
    """A whole number between two; 0 where it is not there."""
    value = data.get(key, 0)
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    if key in data:
        problems.say(key, f"must be a whole number {low} to {high}, got {value!r:.80}")
    return 0


def _reference(data: Yaml, problems: Problems) -> str:
    name = _text(data, "reference", problems)
    if name and not data.get("vectors"):
        problems.say("reference", "needs text vectors", "leave it out, or say vectors: their width")
    return name


def _before(data: Yaml, problems: Problems) -> str:
    given = mapping(data, "input", problems)
    form, before = given.get("signals", SIGNALS_FORM), given.get("before", "")
    if form != SIGNALS_FORM:
        remedy = "use the HyDRA version the bundle was made with"
        problems.say("input.signals", f"is form {form!r}, this is form {SIGNALS_FORM}", remedy)
    if not isinstance(before, str) or len(before) > 200:
        problems.say("input.before", "must be text of at most 200 characters")
        return ""
    return before


def _conversation(data: Yaml, problems: Problems) -> int:
    given = data.get("input")
    inputs = given if isinstance(given, dict) else {}
    for key in inputs.keys() - set(_INPUT):
        problems.say(f"input.{key!s:.80}", f"is none of {', '.join(_INPUT)}")
    form, place, cap = inputs.get("conversation", 0), "input.conversation", data.get("max_tokens")
    if form not in (0, CONVERSATION_FORM) or isinstance(form, bool):
        message = f"is form {form!r:.80}, this is form {CONVERSATION_FORM}"
        remedy = "use the HyDRA version the bundle was made with, or leave it out: message alone"
        problems.say(place, message, remedy)
        return 0
    if form and isinstance(cap, int) and cap < _LEAST_WITH_CONTEXT:
        message = f"needs max_tokens of {_LEAST_WITH_CONTEXT} or more, got {cap}"
        problems.say(place, message, "leave it out: message alone")
    return int(form)


def _check_keys(data: Yaml, source: str, problems: Problems) -> None:
    if data.get("schema") != SCHEMA:
        found = f"must be {SCHEMA}, got {data.get('schema')!r:.80}"
        raise BundleError.of(source, found, "this is not a predictor bundle", place="schema")
    for key in _REQUIRED:
        if data.get(key) is None:
            problems.say(key, "is missing")
    for key in data.keys() - {*_REQUIRED, *_OPTIONAL}:
        problems.say(f"{key!r:.80}", "is not a key of a predictor bundle")


def parse_manifest(text: str, source: str = MANIFEST) -> Manifest:
    """Read and check the text of a `bundle.yaml`.

    Raises:
        BundleError: With every problem found, each naming its place.
    """
    data = _read_yaml(text, source)
    problems = Problems()
    _check_keys(data, source, problems)
    dimensions = _dimensions(data, problems)
    manifest = Manifest(
        name=_text(data, "name", problems),
        version=_text(data, "version", problems),
        encoder=mapping(data, "encoder", problems),
        dimensions=dimensions,
        bands=_bands(data, dimensions, problems),
        max_tokens=_whole(data, "max_tokens", *_MAX_TOKENS, problems),
        model=_text(data, "model", problems),
        tokenizer=_text(data, "tokenizer", problems),
        before=_before(data, problems),
        conversation=_conversation(data, problems),
        calibration=_curves(data, dimensions, problems),
        calibration_by_script=_script_curves(data, dimensions, problems),
        vectors=_whole(data, "vectors", 0, MAX_VECTOR, problems),
        reference=_reference(data, problems),
        fingerprint=_text(data, "fingerprint", problems),
        files=_files(data, problems),
        training=mapping(data, "training", problems),
        quality=mapping(data, "quality", problems),
    )
    BundleError.raise_any(source, problems)
    return manifest


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
            raise BundleError.of(str(path), f"is larger than {MAX_BYTES:,} bytes")
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        remedy = "point to the folder of a predictor bundle"
        raise BundleError.of(str(path), "there is no such file", remedy) from error
    except OSError as error:
        raise BundleError.of(str(path), f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BundleError.of(str(path), f"is not UTF-8 text (byte {error.start})") from error
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
    BundleError.raise_any(str(folder), problems)
    return Bundle(
        path=folder, **{one.name: getattr(manifest, one.name) for one in fields(manifest)}
    )
