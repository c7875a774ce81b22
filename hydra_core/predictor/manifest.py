"""`bundle.yaml`: what a predictor bundle says of itself, read with every check.

Only plain YAML is taken (`plain_yaml.py`); shipped ones have 10 kB and 1,000 values. All problems
are collected and raised together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hydra_core.digests import SHA256
from hydra_core.errors import BundleError, Problem
from hydra_core.predictor.curves import Curve, read_curves, read_script_curves
from hydra_core.predictor.plain_yaml import Problems, Yaml, mapping, numbers, read_plain_yaml
from hydra_core.types import Band

__all__ = [
    "CONVERSATION_FORM",
    "MANIFEST",
    "MAX_VECTOR",
    "SCHEMA",
    "Manifest",
    "parse_manifest",
]

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


@dataclass(frozen=True, slots=True)
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
        training: Facts of the training run.
        quality: Measured quality.
    """

    name: str
    version: str
    encoder: Yaml
    dimensions: tuple[str, ...]
    bands: tuple[Band, ...]
    max_tokens: int
    model: str
    tokenizer: str
    before: str
    conversation: int
    calibration: tuple[Curve, ...] | None
    calibration_by_script: Mapping[str, Mapping[str, Curve]]
    vectors: int
    reference: str
    fingerprint: str
    files: Mapping[str, str]
    training: Yaml
    quality: Yaml


def _read_yaml(text: str, source: str) -> Yaml:
    data, problem = read_plain_yaml(text)
    if problem:
        raise BundleError(source, [problem])
    if not isinstance(data, dict):
        raise BundleError(source, [Problem("", f"must be a mapping with schema: {SCHEMA}")])
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


def _max_tokens(data: Yaml, problems: Problems) -> int:
    value = data.get("max_tokens")
    low, high = _MAX_TOKENS
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    if "max_tokens" in data:
        problems.say("max_tokens", f"must be a whole number {low} to {high}, got {value!r:.80}")
    return 0


def _vectors(data: Yaml, problems: Problems) -> int:
    value = data.get("vectors", 0)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_VECTOR:
        return value
    problems.say("vectors", f"must be a whole number 0 to {MAX_VECTOR}, got {value!r:.80}")
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
        raise BundleError(source, [Problem("schema", found, "this is not a predictor bundle")])
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
        max_tokens=_max_tokens(data, problems),
        model=_text(data, "model", problems),
        tokenizer=_text(data, "tokenizer", problems),
        before=_before(data, problems),
        conversation=_conversation(data, problems),
        calibration=read_curves(data, dimensions, problems),
        calibration_by_script=read_script_curves(data, dimensions, problems),
        vectors=_vectors(data, problems),
        reference=_reference(data, problems),
        fingerprint=_text(data, "fingerprint", problems),
        files=_files(data, problems),
        training=mapping(data, "training", problems),
        quality=mapping(data, "quality", problems),
    )
    if problems:
        raise BundleError(source, problems)
    return manifest
