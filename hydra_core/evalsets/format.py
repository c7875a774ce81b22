"""The files of an eval set folder: the manifest, and Parquet parts read within a memory bound."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from ruamel.yaml import YAML

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.list_price import ListPrice
from hydra_core.base.reading.plain_yaml import read_plain_yaml
from hydra_core.evalsets.dependence import DependenceAnswer, dependence_problems
from hydra_core.evalsets.rules import model_id_problem

SCHEMA = "hydra.evalset/v1"
MANIFEST = "evalset.yaml"
PARTS = QUERIES, OUTCOMES = "queries.parquet", "outcomes.parquet"

_MANIFEST_BYTES = 1 << 20
_MANIFEST_VALUES = 100_000
_PART_BYTES = 2 << 30
_BATCH_ROWS = 256
#: What is said of a set in words and flags, in reading order.
_FACTS: Mapping[str, type[str] | type[bool]] = {
    "name": str,
    "origin": str,
    "licence": str,
    "synthetic": bool,
    "cost_estimated": bool,
    "price_notes": str,
}
_PRICES = ("input", "output", "cached")
_KEYS = ("schema", *_FACTS, "prices", "models", "parts", "dependence")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Manifest:
    """The content of evalset.yaml.

    Attributes:
        synthetic: Outcomes were simulated; must be said wherever they are shown.
        cost_estimated: Costs were computed from prices, not billed.
        models: (m,) model ids in the order of the matrices' columns.
        parts: File name -> SHA-256 (hex).
        dependence: What was said about dependent queries; None if nobody has looked.
        prices: Model id -> list price when the costs were recorded, where it is known.
    """

    name: str
    origin: str
    licence: str
    synthetic: bool
    cost_estimated: bool
    price_notes: str
    models: tuple[str, ...]
    parts: Mapping[str, str]
    dependence: DependenceAnswer | None = None
    prices: Mapping[str, ListPrice] = field(default_factory=dict)


def dump_manifest(manifest: Manifest) -> str:
    """YAML text of a manifest, keys in reading order."""
    content = {
        "schema": SCHEMA,
        **{key: getattr(manifest, key) for key in _FACTS},
        **({"prices": _price_rows(manifest.prices)} if manifest.prices else {}),
        "models": list(manifest.models),
        "parts": dict(manifest.parts),
        **({"dependence": asdict(manifest.dependence)} if manifest.dependence else {}),
    }
    yaml = YAML()
    yaml.width = 100
    out = io.StringIO()
    yaml.dump(content, out)
    return out.getvalue()


def _price_rows(prices: Mapping[str, ListPrice]) -> dict[str, dict[str, float]]:
    """As `parse_manifest` reads them: USD per million tokens, without those of long requests."""
    rows = {model: zip(_PRICES, astuple(price), strict=False) for model, price in prices.items()}
    return {model: {k: v for k, v in row if v is not None} for model, row in rows.items()}


def read_manifest(folder: Path) -> tuple[Manifest, str]:
    """The manifest of an eval set folder and its digest (SHA-256, hex).

    Raises:
        EvalSetError: No such folder, no or a broken evalset.yaml.
    """
    file = folder / MANIFEST
    if not file.is_file():
        found = "has no evalset.yaml" if folder.is_dir() else "is not a folder"
        raise EvalSetError.of(str(folder), found, "give the folder that an import has written")
    try:
        with file.open("rb") as stream:
            raw = stream.read(_MANIFEST_BYTES + 1)
    except OSError as error:
        raise EvalSetError.of(str(file), f"cannot be read: {error}") from error
    return parse_manifest(raw, str(file)), hashlib.sha256(raw).hexdigest()


def parse_manifest(raw: bytes, source: str) -> Manifest:
    """Parse and check the bytes of an evalset.yaml.

    Raises:
        EvalSetError: With every problem found.
    """
    content = _yaml(raw, source)
    problems, given = _manifest_problems(content), content.get("dependence")
    if problems:
        raise EvalSetError(source, problems)
    return Manifest(
        **{key: content.get(key, kind()) for key, kind in _FACTS.items()},
        models=tuple(content["models"]),
        parts={part: content["parts"][part] for part in PARTS},
        dependence=given and DependenceAnswer(**given),
        prices={
            model: ListPrice(*(price.get(name) for name in _PRICES))
            for model, price in content.get("prices", {}).items()
        },
    )


def _yaml(raw: bytes, source: str) -> dict[str, Any]:
    if len(raw) > _MANIFEST_BYTES:
        raise EvalSetError.of(source, "is over 1 MiB, the limit of an evalset.yaml")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EvalSetError.of(source, f"is not valid YAML: {error}") from error
    content, problem = read_plain_yaml(text, _MANIFEST_VALUES)
    if problem is not None:
        raise EvalSetError(source, [problem])
    if not isinstance(content, dict):
        raise EvalSetError.of(source, "is not a mapping", f"begin: schema: {SCHEMA}")
    return content


def _manifest_problems(content: Mapping[str, Any]) -> list[Problem]:
    problems = []
    if content.get("schema") != SCHEMA:
        problems.append(Problem("schema", f"must be {SCHEMA}, got {content.get('schema')!r}"))
    problems += [
        Problem(str(key), "is not a key of an eval set", f"known keys: {', '.join(_KEYS)}")
        for key in content
        if key not in _KEYS
    ]
    for key, kind in _FACTS.items():
        if not isinstance(content.get(key, kind()), kind):
            form = "text" if kind is str else "true or false"
            problems.append(Problem(key, f"must be {form}, got {content[key]!r}"))
    if not content.get("name"):
        problems.append(Problem("name", "is missing"))
    if "synthetic" not in content:
        problems.append(Problem("synthetic", "is missing", "say true for simulated outcomes"))
    problems += _price_problems(content.get("prices", {}), content.get("models"))
    problems += _model_problems(content.get("models")) + _part_problems(content.get("parts"))
    return problems + dependence_problems(content.get("dependence"))


def _price_problems(prices: object, models: object) -> list[Problem]:
    if not isinstance(prices, dict):
        return [Problem("prices", "must map each model to its price", "or leave it out")]
    known = models if isinstance(models, list) else []
    strange = [model for model in prices if model not in known]
    problems = [Problem(f"prices: {model}", "is not among the models") for model in strange]
    for model, price in prices.items():
        row = price if isinstance(price, dict) else {}
        needed = {"input", "output"} <= row.keys() <= set(_PRICES)
        if not (needed and all(_above_zero(value) for value in row.values())):
            remedy = "{input: 2.5, output: 10, cached: 1.25}, cached may be left out"
            message = f"must be USD per million tokens above 0, got {price!r}"
            problems.append(Problem(f"prices: {model}", message, remedy))
    return problems


def _above_zero(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < float(cast(float, value)) < math.inf


def _model_problems(models: object) -> list[Problem]:
    if not isinstance(models, list) or not models:
        return [Problem("models", "must be a list of at least one model id")]
    found = (model_id_problem(model, f"models[{i}]") for i, model in enumerate(models))
    problems = [problem for problem in found if problem is not None]
    texts = [str(model) for model in models]
    if len(set(texts)) < len(texts):
        problems.append(Problem("models", "names a model twice"))
    return problems


def _part_problems(parts: object) -> list[Problem]:
    if not isinstance(parts, dict):
        return [Problem("parts", "must map each file to its SHA-256")]
    return [
        Problem(f"parts: {part}", "must be a SHA-256 in hex", "import the set again")
        for part in PARTS
        if not (isinstance(parts.get(part), str) and len(parts[part]) == 64)
    ]


def load_part(path: Path) -> pd.DataFrame:
    """Read one Parquet part of an eval set.

    Raises:
        EvalSetError: Missing, damaged, or larger in memory than 2 GiB.
    """
    try:
        frame: pd.DataFrame = read_arrow(path, _PART_BYTES).to_pandas()
    except (OSError, ValueError, OverflowError, pa.ArrowException) as error:
        raise EvalSetError.of(
            str(path), f"cannot be read: {error}", "import the set again"
        ) from error
    return frame


def read_arrow(
    source: Path | BinaryIO,
    limit: int,
    columns: Sequence[str] | None = None,
    *,
    stop: int | None = None,
) -> pa.Table:
    """Read Parquet in small batches, so that a file that inflates stops at `limit` bytes.

    Args:
        columns: Columns to read, which the file has; None reads all.
        stop: Read at least this many rows, then no more.

    Raises:
        OverflowError: The table is larger than `limit`.
        OSError, ValueError, pyarrow.ArrowException: Unreadable or damaged.
    """
    with pq.ParquetFile(source) as file:
        names = file.schema_arrow.names if columns is None else list(columns)
        whole = file.schema_arrow
        schema = pa.schema([whole.field(name) for name in names], metadata=whole.metadata)
        batches, size, rows = [], 0, 0
        batch_rows = max(_BATCH_ROWS, limit >> 20)  # full of 1 MiB cells, it is as large as allowed
        for batch in file.iter_batches(batch_size=batch_rows, columns=names):
            size, rows = size + batch.nbytes, rows + batch.num_rows
            if size > limit:
                raise OverflowError(f"holds more than {limit >> 20} MiB of data")
            batches.append(batch)
            if stop is not None and rows >= stop:
                break
    batches = [batch.replace_schema_metadata(schema.metadata) for batch in batches]
    return pa.Table.from_batches(batches, schema=schema)[:stop]


def scored_by(folder: Path) -> tuple[str, ...]:
    """Fingerprints of the predictor bundles whose scores lie in an eval set folder."""
    return tuple(sorted(path.stem for path in folder.glob("scores/[!.]*.parquet")))


def require_free(path: Path, *, force: bool) -> None:
    """Refuse a target that would overwrite something.

    Raises:
        EvalSetError: It exists and `force` is off, or it exists and is no eval set.
    """
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not (path / MANIFEST).is_file():
        raise EvalSetError.of(str(path), "exists and is not an eval set", "choose another folder")
    if not force:
        raise EvalSetError.of(
            str(path), "exists already", "choose another folder, or replace it with --force"
        )
