"""Bare names on the command line: `mine` is what the workspace holds under this name.

A name has no folder in it (and a catalog's no `.yaml`); everything else is a path. What comes with
HyDRA can be read by name, too, where the workspace has nothing of that name.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hydra_core.base import shipped, workspace
from hydra_core.base.workspace import workspace_folder
from hydra_core.cli.output import CannotRunError, say

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog
    from hydra_core.store import Revision


def _is_name(text: str) -> bool:
    return not (text in ("", ".", "..") or "/" in text or os.sep in text or text.startswith("~"))


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of thing that the workspace holds.

    Attributes:
        folder: Where it lies in the workspace.
        suffix: How its names end.
        manifest: The file that every folder of this kind has.
        shipped: Where those lie that come with HyDRA.
    """

    noun: str
    folder: str
    suffix: str = ""
    manifest: str = ""
    shipped: Path | None = None

    @property
    def home(self) -> Path:
        """The folder in the workspace."""
        return workspace_folder() / self.folder

    def is_name(self, text: str) -> bool:
        """Whether it is a bare name, not a path."""
        return _is_name(text) and not (self.suffix and text.endswith((".yaml", ".yml")))

    def place(self, text: str) -> Path:
        """Where a bare name lies in the workspace; a path as it is."""
        return self.home / f"{text}{self.suffix}" if self.is_name(text) else Path(text)

    def find(self, text: str) -> Path:
        """The same for reading: what is shipped under a name that the workspace does not have."""
        own = self.place(text)
        if self.shipped is None or not self.is_name(text) or own.exists():
            return own
        other = self.shipped / own.name
        return other if other.exists() else own

    def name_of(self, path: Path) -> str:
        """The bare name of something in the workspace; '' of anything else."""
        inside = path.parent == self.home and path.name.endswith(self.suffix)
        return path.name.removesuffix(self.suffix) if inside else ""

    def names(self) -> list[str]:
        """What can be read by name: the workspace's, then what is shipped."""
        folders = [self.home, *([self.shipped] if self.shipped else [])]
        return [
            path.name.removesuffix(self.suffix)
            for folder in folders
            for path in sorted(folder.glob(f"*{self.suffix}"))
            if not path.name.startswith(".") and (path / self.manifest).exists()
        ]


EVALSET: Final = Kind(
    "eval set", workspace.EVALSETS, manifest="evalset.yaml", shipped=shipped.SAMPLE_DATA
)
CATALOG: Final = Kind("catalog", workspace.CATALOGS, ".yaml", shipped=shipped.CATALOGS)
OUTCOME_MODEL: Final = Kind(
    "outcome model", workspace.OUTCOME_MODELS, manifest="outcome_model.yaml"
)
LABELING_RUN: Final = Kind("labelling run", workspace.LABELS)
_KINDS: Final = (EVALSET, CATALOG, OUTCOME_MODEL, LABELING_RUN)


def log_folder(text: str) -> Path:
    """A decision log: `log` is the workspace's own, another bare name one of its `logs`."""
    if not _is_name(text):
        return Path(text)
    own = workspace.LOG if text == workspace.LOG else f"{workspace.LOGS}/{text}"
    return workspace_folder() / own


def shown(path: Path) -> str:
    """The shortest text that names a path to a verb."""
    return next((name for kind in _KINDS if (name := kind.name_of(path))), str(path))


def existing(path: Path) -> Path:
    """The path, if there is something.

    Raises:
        CannotRunError: There is nothing; names what the workspace has instead.
    """
    if path.exists():
        return path
    for kind in _KINDS:
        if name := kind.name_of(path):
            raise _unknown(kind, name, kind.names())
    raise CannotRunError(f"{path}: there is no such file or folder")


def _unknown(kind: Kind, name: str, names: Iterable[str]) -> CannotRunError:
    names = list(dict.fromkeys(names))
    close = difflib.get_close_matches(name, names, 1)
    advice = f"did you mean {close[0]}?" if close else f"there are: {', '.join(names) or 'none'}"
    here = f" For the path in this folder, write ./{name}." if Path(name).exists() else ""
    return CannotRunError(f"{kind.home} has no {kind.noun} {name!r}; {advice}{here}")


def find_any(text: str) -> Path:
    """A path, or the one thing in the workspace with this bare name.

    Raises:
        CannotRunError: There is nothing, or there are several things with this name.
    """
    if not CATALOG.is_name(text):
        return existing(Path(text))
    places = [path for kind in _KINDS[:3] if (path := kind.place(text)).exists()]
    if len(places) > 1:
        listed = " or ".join(map(str, places))
        raise CannotRunError(f"{text!r} names {len(places)} things; write {listed}")
    shipped_ones = [path for kind in _KINDS[:3] if (path := kind.find(text)).exists()]
    return existing(next(iter([*places, *shipped_ones]), EVALSET.place(text)))


def open_catalog(text: str) -> Catalog:
    """The catalog at a path, or the one that the console shows under a bare name.

    As in the console, a name stands for the newest published revision, else for the file.

    Raises:
        CannotRunError: There is none.
        CatalogError: It is not valid.
    """
    from hydra_core.catalog.schema import load_catalog, parse_catalog

    revision = _published(text)
    if revision is None:
        return load_catalog(existing(CATALOG.find(text)))
    say(f"note: catalog {text} is revision {revision.number}, the published one")
    return replace(parse_catalog(revision.yaml, text), folder=str(workspace_folder()))


def catalog_text(text: str) -> str:
    """The YAML of the same; raises as `open_catalog`."""
    from hydra_core.catalog.schema import read_catalog_text

    revision = _published(text)
    return read_catalog_text(existing(CATALOG.find(text))) if revision is None else revision.yaml


def catalog_source(text: str) -> str:
    """The same as what the router follows while it runs: a file, or `store:NAME`."""
    if text.startswith("store:"):
        return text
    revision = _published(text)
    return str(existing(CATALOG.find(text))) if revision is None else f"store:{revision.catalog}"


def _published(text: str) -> Revision | None:
    """The newest revision of a bare name in the workspace's store, if it has a store."""
    if not CATALOG.is_name(text):
        return None
    from hydra_core.store import open_store
    from hydra_core.store.database import sqlite_url

    folder = workspace_folder()
    file = sqlite_url(folder).database
    if not os.environ.get("HYDRA_DATABASE_URL") and not (file and Path(file).exists()):
        return None
    store = open_store(folder)
    try:
        # The console calls a file of the workspace my/NAME.
        own = CATALOG.place(text).exists()
        revision = store.newest(f"my/{text}" if own else text)
        if revision is None and not own and not CATALOG.find(text).exists():
            raise _unknown(CATALOG, text, [*CATALOG.names(), *store.catalogs()])
        return revision
    finally:
        store.close()
