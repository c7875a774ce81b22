"""What lies in a folder of eval sets, told without loading any."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from hydra_core.errors import EvalSetError
from hydra_core.evaluation.evalset.format import MANIFEST, QUERIES, parse_manifest, scored_by

__all__ = ["EvalSetInfo", "list_evalsets"]


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
    return tuple(_info(folder) for folder in folders if (folder / MANIFEST).is_file())


def _info(folder: Path) -> EvalSetInfo:
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
