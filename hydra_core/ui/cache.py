"""Every cached load of the console, keyed by digests and frozen values."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import streamlit as st

from hydra_core.catalog.schema import load_catalog
from hydra_core.errors import HydraError
from hydra_core.evaluation.evalset import EvalSet, EvalSetInfo, list_evalsets, load_evalset
from hydra_core.evaluation.scoring import load_scores
from hydra_core.predictor.bundle import Bundle, load_bundle
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.predictor.tokens import TokenCounter
from hydra_core.types import Catalog
from hydra_core.ui import bench as benches
from hydra_core.ui.bench import Bench
from hydra_core.ui.jobs import Jobs

__all__ = [
    "PROJECT",
    "CatalogEntry",
    "SetEntry",
    "bench",
    "bundle",
    "catalogs",
    "evalset",
    "evalsets",
    "jobs",
    "predictor",
    "token_counter",
    "workspace",
]

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A catalog file: `catalog` when it is valid, otherwise `problem` says why not."""

    key: str
    path: Path
    catalog: Catalog | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SetEntry:
    """An eval set folder; `shipped` ones come with the console and cannot be replaced."""

    key: str
    info: EvalSetInfo
    shipped: bool


def workspace() -> Path:
    """The operator's own folder: HYDRA_WORKSPACE, or `workspace/` beside the console."""
    return Path(os.environ.get("HYDRA_WORKSPACE") or PROJECT / "workspace")


def evalsets() -> tuple[SetEntry, ...]:
    """Shipped eval sets, then the operator's; keys are folder names, `my/` for the operator's."""
    shipped = [SetEntry(i.path.name, i, True) for i in list_evalsets(PROJECT / "sample_data")]
    own = list_evalsets(workspace() / "evalsets")
    return (*shipped, *(SetEntry(f"my/{i.path.name}", i, False) for i in own))


def catalogs() -> tuple[CatalogEntry, ...]:
    """Every catalog file, the shipped ones first, each read again only when it changes."""
    entries = []
    for folder, prefix in ((PROJECT / "catalog", ""), (workspace() / "catalogs", "my/")):
        for path in sorted(folder.glob("*.yaml")):
            stat = path.stat()
            entries.append(_catalog(prefix + path.stem, path, stat.st_mtime_ns, stat.st_size))
    return tuple(entries)


@st.cache_resource(max_entries=64, show_spinner=False)
def _catalog(key: str, path: Path, mtime_ns: int, size: int) -> CatalogEntry:
    try:
        return CatalogEntry(key, path, load_catalog(path))
    except HydraError as error:
        return CatalogEntry(key, path, None, str(error))


@st.cache_resource(show_spinner=False)
def bundle() -> Bundle:
    """The shipped predictor bundle.

    Raises:
        BundleError: It is missing or damaged.
    """
    return load_bundle()


@st.cache_resource(max_entries=8, show_spinner="Loading the eval set")
def evalset(path: Path, digest: str) -> EvalSet:
    """A loaded and checked eval set; `digest` makes a changed folder a new entry.

    Raises:
        EvalSetError: It is damaged.
    """
    del digest
    return load_evalset(path)


def bench(entry: SetEntry, catalog: Catalog, weights: tuple[float, ...]) -> Bench:
    """The eval set replayed under a catalog and weights, for every tau.

    Raises:
        HydraError: They do not fit together; the message says what to do.
    """
    fingerprint = catalog.predictor_fingerprint
    scores = entry.info.path / "scores" / f"{fingerprint}.parquet"
    stamp = scores.stat().st_mtime_ns if scores.is_file() else 0
    key = (entry.info.digest, catalog.digest, weights, stamp, date.today())
    return _bench(key, entry.info.path, catalog)


_Key = tuple[str, str, tuple[float, ...], int, date]


@st.cache_resource(max_entries=24, show_spinner="Replaying")
def _bench(key: _Key, _path: Path, _catalog: Catalog) -> Bench:
    digest, _, weights, _, today = key
    loaded = evalset(_path, digest)
    scores = load_scores(loaded, _catalog.predictor_fingerprint)
    return benches.build(loaded, _catalog, scores, weights, today=today)


@st.cache_resource(show_spinner="Loading the predictor")
def predictor() -> Predictor:
    """The shipped predictor, ready to score.

    Raises:
        BundleError: The bundle is missing or damaged.
    """
    return Predictor(bundle())


@st.cache_resource(show_spinner=False)
def token_counter() -> TokenCounter:
    """Counts tokens with the shipped predictor's tokenizer.

    Raises:
        BundleError: The bundle is missing or damaged.
    """
    return TokenCounter(bundle())


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """The scoring jobs of this console, shared by all sessions."""
    return Jobs()
