"""The folder of an eval set: its manifest, and Parquet parts read within a memory bound.

A folder appears whole or not at all: it is written beside the target, then swapped by rename.
"""

import ctypes
import fcntl
import hashlib
import io
import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from ruamel.yaml import YAML

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.list_price import ListPrice
from hydra_core.base.reading.plain_yaml import read_plain_yaml
from hydra_core.base.whole_file import synced
from hydra_core.evalsets.manifest_prices import price_problems, price_rows, prices_of
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
_KEYS = ("schema", *_FACTS, "prices", "models", "parts", "dependence")


#: What an operator may answer about dependent queries.
ACCEPTED, DECLINED, NONE_FOUND = "accepted", "declined", "none found"
_ANSWERS = (ACCEPTED, DECLINED, NONE_FOUND)


@dataclass(frozen=True, slots=True)
class DependenceAnswer:
    """What was found when dependent queries were looked for, and what the operator said to it.

    Attributes:
        answer: accepted (declared as clusters), declined, or none found.
        groups, queries: What was found, beyond the clusters declared before.
        vectors: Whether texts were compared by their vectors, not only by ids and wording.
    """

    answer: str
    groups: int = 0
    queries: int = 0
    vectors: bool = False


def dependence_note(given: DependenceAnswer | None) -> str:
    """What every verdict on a set must say; empty where nothing is left open."""
    if given is None:
        return (
            "This set has not been checked for dependent queries (translations, near-duplicates). "
            "If it has any, the interval is too narrow."
        )
    if given.answer != DECLINED:
        return ""
    return (
        f"{given.queries:,} queries form {given.groups:,} groups of translations or "
        "near-duplicates, and the operator declined to count each group as one. If they belong "
        "together, the interval is too narrow."
    )


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
        **({"prices": price_rows(manifest.prices)} if manifest.prices else {}),
        "models": list(manifest.models),
        "parts": dict(manifest.parts),
        **({"dependence": asdict(manifest.dependence)} if manifest.dependence else {}),
    }
    yaml = YAML()
    yaml.width = 100
    out = io.StringIO()
    yaml.dump(content, out)
    return out.getvalue()


def read_manifest(folder: Path) -> tuple[Manifest, str]:
    """The manifest of a folder and its digest (SHA-256, hex); EvalSetError where it is broken."""
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
    """Parse and check the bytes of an evalset.yaml; EvalSetError lists every problem."""
    content = _yaml(raw, source)
    problems, given = _manifest_problems(content), content.get("dependence")
    EvalSetError.raise_any(source, problems)
    return Manifest(
        **{key: content.get(key, kind()) for key, kind in _FACTS.items()},
        models=tuple(content["models"]),
        parts={part: content["parts"][part] for part in PARTS},
        dependence=given and DependenceAnswer(**given),
        prices=prices_of(content.get("prices", {})),
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
    problems += price_problems(content.get("prices", {}), content.get("models"))
    problems += _model_problems(content.get("models")) + _part_problems(content.get("parts"))
    return problems + _dependence_problems(content.get("dependence"))


def _dependence_problems(given: object) -> list[Problem]:
    if given is None:
        return []
    remedy = "look for dependent queries again"
    if not isinstance(given, dict) or given.get("answer") not in _ANSWERS:
        return [Problem("dependence", f"must have an answer of {', '.join(_ANSWERS)}", remedy)]
    kinds = {"answer": str, "groups": int, "queries": int, "vectors": bool}
    return [
        Problem(f"dependence: {key}", f"is not valid: {value!r:.40}", remedy)
        for key, value in given.items()
        if type(value) is not kinds.get(key) or (isinstance(value, int) and value < 0)
    ]


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
    """Read one Parquet part; EvalSetError where it is missing, damaged, or over 2 GiB."""
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


@dataclass(frozen=True, slots=True)
class EvalSetInfo:
    """What a list shows of an eval set without loading it.

    Attributes:
        n: Number of queries; 0 when it cannot be read.
        scored: Fingerprints of the bundles whose scores lie in the folder.
        problem: Why it cannot be used, empty when it looks fine.
        texts: Whether the messages themselves are in it.
    """

    path: Path
    name: str
    n: int
    models: tuple[str, ...]
    synthetic: bool
    digest: str
    scored: tuple[str, ...]
    problem: str = ""
    texts: bool = True


def list_evalsets(root: Path) -> tuple[EvalSetInfo, ...]:
    """The eval sets directly under `root`, by name; broken ones carry their `problem`."""
    if not root.is_dir():
        return ()
    folders = (p for p in sorted(root.iterdir()) if not p.name.startswith("."))
    return tuple(evalset_info(folder) for folder in folders if (folder / MANIFEST).is_file())


def evalset_info(folder: Path) -> EvalSetInfo:
    """What the eval set in a folder says of itself; a broken one carries its `problem`."""
    scored = scored_by(folder)
    try:
        text = (folder / MANIFEST).read_bytes()
        manifest = parse_manifest(text, str(folder))
        part = pq.ParquetFile(folder / QUERIES)
    except (EvalSetError, OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        return EvalSetInfo(folder, folder.name, 0, (), False, "", scored, str(error))
    digest = hashlib.sha256(text).hexdigest()
    return EvalSetInfo(
        folder, manifest.name, part.metadata.num_rows, manifest.models, manifest.synthetic, digest,
        scored, texts="text" in part.schema_arrow.names,
    )  # fmt: skip


#: As `mkdtemp` names folders, and as they are put aside.
_TEMPORARY = re.compile(r"\..+\.[a-z0-9_]{8}(\.old)?")
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def replace_folder(target: Path, fill: Callable[[Path], None], *, replace: bool = True) -> None:
    """Create `target`, or replace it, with what `fill` writes into an empty folder.

    Readers see the old folder or the new one. If `fill` fails, nothing has changed.

    Args:
        replace: Whether a folder with something in it may be replaced.

    Raises:
        OSError: Disk full, no permission, `target` is taken; nothing was changed.
    """
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target.parent)
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    held = os.open(fresh, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)  # a killed process lets go, so `sweep` knows
    try:
        fill(fresh)
        for path in (*fresh.rglob("*"), fresh):
            synced(path)
        fresh.chmod(0o777 & ~_umask())
        _swap_in(fresh, target, replace)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # on success: what stood at `target` before
        os.close(held)


def sweep(parent: Path) -> None:
    """Remove what writers that were killed left under `parent`; running ones hold their folder."""
    for path in parent.glob(".*"):
        if not _TEMPORARY.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
            continue
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(handle)


def _umask() -> int:
    """The process's umask (mkdtemp makes folders that only their owner can read)."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _swap_in(fresh: Path, target: Path, replace: bool) -> None:
    """Put `fresh` at `target`; what was there before ends up at `fresh`."""
    if not replace or not target.exists():
        fresh.rename(target)  # fails on a folder with something in it
        return
    if _exchange(fresh, target):
        return
    # No atomic exchange on this system: two renames, undone if the second one fails.
    aside = fresh.with_name(f"{fresh.name}.old")
    target.rename(aside)
    try:
        fresh.rename(target)
    except OSError:
        aside.rename(target)
        raise
    aside.rename(fresh)


def _exchange(one: Path, other: Path) -> bool:
    """Linux renameat2(RENAME_EXCHANGE); False where kernel or file system has none."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    done = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return bool(done == 0)


def folder_name(name: str) -> str:
    """A plain folder name for an eval set's name: lower-case letters, digits and underscores."""
    flat = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "_", flat).strip("_")[:60] or "eval_set"
