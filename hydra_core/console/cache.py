"""Every cached load of the console, keyed by digests and frozen values.

What a page asks for up to forty times a run is in plain caches: one of Streamlit's spends half a
millisecond on each key.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import streamlit as st

from hydra_core.base.errors import CatalogError, HydraError, Problem, StoreError
from hydra_core.base.shipped import CATALOGS
from hydra_core.base.types import Catalog
from hydra_core.base.workspace import DATABASE
from hydra_core.catalog.schema import load_catalog, parse_catalog
from hydra_core.console.demo import session
from hydra_core.evalsets.evalset import EvalSet, load_evalset
from hydra_core.evalsets.folders import EvalSetInfo, list_evalsets
from hydra_core.outcome_model.model import OutcomeModel
from hydra_core.predictor.bundle import Bundle, load_bundle
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.predictor.tokens import TokenCounter
from hydra_core.replay.pricing import Prices
from hydra_core.replay.replay import catalog_scores
from hydra_core.replay.sweep import Sweep, sweep_catalog

if TYPE_CHECKING:
    from hydra_core.store.store import Store

#: Keys of the operator's own eval sets and catalog files begin with it.
OWN: Final = "my/"
_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A catalog: its newest published revision, or the file where none was published yet.

    Attributes:
        path: The file; for one that was only ever published, a name that does not exist.
        catalog: None when it is not valid; `problem` says why not.
        revision: Number of the published revision, 0 for a file.
        published_at: When it was published, None for a file.
    """

    key: str
    path: Path
    catalog: Catalog | None
    problem: str = ""
    revision: int = 0
    published_at: datetime | None = None

    @property
    def own(self) -> bool:
        """Whether it is the operator's: published here, or a file of the workspace."""
        return self.revision > 0 or self.key.startswith(OWN)


@dataclass(frozen=True, slots=True)
class SetEntry:
    """An eval set folder; `shipped` ones come with the console and cannot be replaced."""

    key: str
    info: EvalSetInfo
    shipped: bool

    def fits(self, catalog: Catalog) -> bool:
        """Whether a catalog can be judged on it: no fault, scored, and outcomes of two models.

        Outcomes of one model of several say nothing about choosing between them.
        """
        models = {model.id for model in catalog.models}
        enough = len(models & set(self.info.models)) >= min(2, len(models))
        return (
            not self.info.problem and enough and catalog.predictor_fingerprint in self.info.scored
        )


def evalsets() -> tuple[SetEntry, ...]:
    """Shipped eval sets, then the operator's; keys are folder names, `my/` for the operator's."""
    shipped = [SetEntry(i.path.name, i, True) for i in _listed(session.samples())]
    own = _listed(session.folder() / "evalsets")
    return (*shipped, *(SetEntry(f"{OWN}{i.path.name}", i, False) for i in own))


def _listed(root: Path) -> tuple[EvalSetInfo, ...]:
    """The sets below `root`, real ones first, read again only when a file of one changes."""
    found = []
    for path in (*root.glob("*/*"), *root.glob("*/scores/*")):
        with suppress(FileNotFoundError):  # an import may be moving its files into place
            stat = path.stat()
            found.append((str(path), stat.st_mtime_ns, stat.st_size))
    return _listing(root, tuple(sorted(found)))


@lru_cache(maxsize=8)
def _listing(root: Path, stamp: tuple[tuple[str, int, int], ...]) -> tuple[EvalSetInfo, ...]:
    del stamp
    return tuple(sorted(list_evalsets(root), key=lambda info: info.synthetic))


def catalogs() -> tuple[CatalogEntry, ...]:
    """Every catalog as published, else its file: shipped files first, then the operator's.

    Each is read again only when it changes. Where the store cannot be read, no catalog is shown
    as valid: a file may say something else than what was published.
    """
    own = session.folder()
    try:
        published, fault = _numbers(), ""
    except StoreError as error:
        published, fault = {}, str(error)
    entries = []
    for folder, prefix in ((CATALOGS, ""), (own / "catalogs", OWN)):
        for path in sorted(folder.glob("*.yaml")):
            stat, key = path.stat(), prefix + path.stem
            if fault:
                entries.append(CatalogEntry(key, path, None, fault))
            elif key in published:
                entries.append(_published(own, key, published.pop(key), path))
            else:
                entries.append(_catalog(key, path, stat.st_mtime_ns, stat.st_size))
    added = [_published(own, *one, Path(f"{one[0]}.yaml")) for one in published.items()]
    return (*entries, *added)


def _numbers() -> dict[str, int]:
    """The newest revision of every published catalog; StoreError where the store cannot be read."""
    url = os.environ.get("HYDRA_DATABASE_URL", "")
    if session.demo() is None and not url and not (session.folder() / DATABASE).exists():
        return {}  # nothing was ever stored: a first visit need not wait for SQLAlchemy
    return store().catalogs()


def own_catalogs() -> tuple[CatalogEntry, ...]:
    """The operator's valid catalogs: what was published last first, then files."""
    own = [entry for entry in catalogs() if entry.own and entry.catalog is not None]
    never = datetime.min.replace(tzinfo=UTC)
    return tuple(sorted(own, key=lambda entry: entry.published_at or never, reverse=True))


def store() -> Store:
    """The workspace's store of revisions, drafts, notes; StoreError where it cannot be opened."""
    demo = session.demo()
    if demo is not None:
        return demo.store
    return _store(session.folder(), os.environ.get("HYDRA_DATABASE_URL", ""))


@st.cache_resource(max_entries=4, show_spinner=False)
def _store(folder: Path, url: str) -> Store:
    del url  # part of the key only
    from hydra_core.store.store import open_store  # SQLAlchemy takes half a second

    return open_store(folder)


@lru_cache(maxsize=64)
def _published(folder: Path, key: str, number: int, path: Path) -> CatalogEntry:
    try:
        found = store().revision(key, number)
        catalog = replace(parse_catalog(found.yaml, source=key), folder=str(folder))
        return CatalogEntry(key, path, catalog, "", number, found.created_at)
    except HydraError as error:
        return CatalogEntry(key, path, None, str(error), number)


def parsed(text: str, source: str) -> tuple[Catalog | None, tuple[Problem, ...]]:
    """A catalog text, perhaps unfinished: the catalog or None, and what is wrong with it."""
    return _parsed(text, source, session.folder())


@lru_cache(maxsize=128)
def _parsed(text: str, source: str, folder: Path) -> tuple[Catalog | None, tuple[Problem, ...]]:
    try:
        return replace(parse_catalog(text, source=source), folder=str(folder)), ()
    except CatalogError as error:
        return None, error.problems


@lru_cache(maxsize=64)
def _catalog(key: str, path: Path, mtime_ns: int, size: int) -> CatalogEntry:
    try:
        return CatalogEntry(key, path, load_catalog(path))
    except HydraError as error:
        return CatalogEntry(key, path, None, str(error))


#: Where a session keeps the folder of the predictor bundle it works with; '' for the default.
BUNDLE = "bundle.folder"


def bundle() -> Bundle:
    """The session's predictor bundle, default or chosen; BundleError if missing or damaged."""
    return _bundle(str(st.session_state.get(BUNDLE, "")))


@st.cache_resource(max_entries=4, show_spinner=False)
def _bundle(folder: str) -> Bundle:
    return load_bundle(Path(folder) if folder else None)


def _set_key(one: SetEntry | EvalSet) -> Hashable:
    info = one.info if isinstance(one, SetEntry) else one
    scores = info.path / "scores"
    return info.digest, str(info.path), scores.stat().st_mtime_ns if scores.is_dir() else 0


def _catalog_key(catalog: Catalog) -> Hashable:
    """What a replay takes of a catalog: a what-if keeps the digest and changes pool or policy."""
    profiles, model = catalog.success_profiles, catalog.outcome_model
    learned = profiles and profiles.sha256, model and model.sha256
    ids = tuple(model.id for model in catalog.models)
    return catalog.digest, ids, repr(catalog.policy), learned, date.today().toordinal()


def sweep_key(sweep: Sweep) -> Hashable:
    """What a sweep was made of: set, catalog, weights, prices, and what predicts success."""
    made_of = _set_key(sweep.evalset), _catalog_key(sweep.catalog), sweep.weights
    return *made_of, sweep.data.prices.value, sweep.predicted_by


#: How these are told apart in a cache: by what they were made of.
_KEYS: Final[dict[str | type, Callable[[Any], Hashable]]] = {
    SetEntry: _set_key,
    EvalSet: _set_key,
    Catalog: _catalog_key,
    Sweep: sweep_key,
    OutcomeModel: attrgetter("digest"),
}


def cached(
    entries: int, doing: str = ""
) -> Callable[[Callable[_Given, _Found]], Callable[_Given, _Found]]:
    """Keep the results of a function by what its arguments were made of.

    Args:
        entries: How many are kept.
        doing: What is said while it computes; '' for nothing.
    """
    return st.cache_resource(max_entries=entries, show_spinner=doing or False, hash_funcs=_KEYS)


@st.cache_resource(
    max_entries=8, show_spinner="Loading the eval set",
    hash_funcs={SetEntry: lambda one: (one.info.digest, str(one.info.path))},
)  # fmt: skip
def evalset(entry: SetEntry) -> EvalSet:
    """A loaded and checked eval set; EvalSetError where it is damaged."""
    return load_evalset(entry.info.path)


@cached(24, "Replaying")
def sweep(
    entry: SetEntry, catalog: Catalog, weights: tuple[float, ...], prices: Prices = Prices.TODAY
) -> Sweep:
    """The eval set replayed for every tau; HydraError says what to do where it does not fit."""
    loaded = evalset(entry)
    scores = catalog_scores(loaded, catalog)
    return sweep_catalog(loaded, catalog, scores, weights, today=date.today(), prices=prices)


def predictor() -> Predictor:
    """The session's predictor, ready to score; raises as `bundle`."""
    return _predictor(str(st.session_state.get(BUNDLE, "")))


@st.cache_resource(max_entries=2, show_spinner="Loading the predictor")
def _predictor(folder: str) -> Predictor:
    return Predictor(_bundle(folder))


def token_counter() -> TokenCounter:
    """Counts tokens with the tokenizer of the session's predictor; raises as `predictor`."""
    return _token_counter(str(st.session_state.get(BUNDLE, "")))


@st.cache_resource(max_entries=2, show_spinner=False)
def _token_counter(folder: str) -> TokenCounter:
    return TokenCounter(_bundle(folder))
