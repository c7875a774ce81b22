"""The workspace on the command line: what a bare name stands for, and who acts in it.

A name has no folder in it (and a catalog's no `.yaml`); everything else is a path. What comes with
HyDRA can be read by name, too, where the workspace has nothing of that name. A verb is run by the
account of this machine, with the role that the roles file gives it.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from hydra_core.base import shipped, workspace
from hydra_core.base.digests import file_sha256
from hydra_core.base.errors import CatalogError
from hydra_core.base.workspace import workspace_folder
from hydra_core.cli.output import CannotRunError, say

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog
    from hydra_core.evalsets.changes import EvalSetChanges
    from hydra_core.evalsets.evalset import EvalSet
    from hydra_core.store import Actor, Revision, Store


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
        return workspace_folder() / self.folder

    def is_name(self, text: str) -> bool:
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
        here = path.parent.resolve() == self.home.resolve()
        inside = here and path.name.endswith(self.suffix)
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
_STORE: Final = "store:"
_KINDS: Final = (EVALSET, CATALOG, OUTCOME_MODEL, LABELING_RUN)


def log_folder(text: str) -> Path:
    """A decision log: `log` is the workspace's own, another bare name one of its `logs`."""
    if not _is_name(text):
        return Path(text)
    own = workspace.LOG if text == workspace.LOG else f"{workspace.LOGS}/{text}"
    return workspace_folder() / own


def shown(path: Path) -> str:
    """The shortest text that names a path to a verb in a shell."""
    return quote(next((name for kind in _KINDS if (name := kind.name_of(path))), str(path)))


def existing(path: Path) -> Path:
    """The path, if there is something; else CannotRunError names what the workspace has."""
    if path.exists():
        return path
    for kind in _KINDS:
        if name := kind.name_of(path):
            raise _unknown(kind.home, kind.noun, name, kind.names())
    raise CannotRunError(f"{path}: there is no such file or folder")


def _unknown(home: Path, noun: str, name: str, names: Iterable[str]) -> CannotRunError:
    names = list(dict.fromkeys(names))
    close = difflib.get_close_matches(name, names, 1)
    advice = f"did you mean {close[0]}?" if close else f"there are: {', '.join(names) or 'none'}"
    if name in names:
        advice = "the one that comes with HyDRA is not changed; copy it into the workspace first"
    here = f" For the path in this folder, write ./{name}." if Path(name).exists() else ""
    return CannotRunError(f"{home} has no {noun} {name!r}; {advice}{here}")


def find_any(text: str) -> Path:
    """A path, or the one thing in the workspace with this bare name; else CannotRunError."""
    if not CATALOG.is_name(text):
        return existing(Path(text))
    places = [path for kind in _KINDS[:3] if (path := kind.place(text)).exists()]
    if len(places) > 1:
        listed = " or ".join(map(str, places))
        raise CannotRunError(f"{text!r} names {len(places)} things; write {listed}")
    shipped_ones = [path for kind in _KINDS[:3] if (path := kind.find(text)).exists()]
    for path in (*places, *shipped_ones):
        return path
    names = [name for kind in _KINDS[:3] for name in kind.names()]
    raise _unknown(workspace_folder(), "catalog, eval set or outcome model", text, names)


def open_evalset(path: Path) -> EvalSet:
    """The eval set in a folder.

    Raises:
        CannotRunError: There is none.
        EvalSetError: It is not valid.
    """
    from hydra_core.evalsets.evalset import load_evalset

    return load_evalset(existing(path))


def open_catalog(text: str) -> Catalog:
    """The catalog at a path, or the one that the console shows under a bare name.

    As in the console, a name stands for the newest published revision, else for the file;
    `store:NAME`, as `serve` follows it, for the revision alone.

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
    if text.startswith(_STORE):
        return text
    revision = _published(text)
    return str(existing(CATALOG.find(text))) if revision is None else f"{_STORE}{revision.catalog}"


def _published(text: str) -> Revision | None:
    """The newest revision of a bare name in the workspace's store, if it has a store."""
    name, only = text.removeprefix(_STORE), text.startswith(_STORE)
    if not only and not CATALOG.is_name(name):
        return None
    from hydra_core.store import open_store

    revision: Revision | None = None
    published: Mapping[str, int] = {}
    if has_store():
        with closing(open_store()) as store:
            # The console calls a file of the workspace my/NAME.
            own, published = not only and CATALOG.place(name).exists(), store.catalogs()
            revision = store.newest(f"my/{name}" if own else name)
            if only:
                revision = revision or store.newest(f"my/{name}")
            elif revision is None and not own and not CATALOG.find(name).exists():
                listed = [*CATALOG.names(), *published]
                raise _unknown(CATALOG.home, CATALOG.noun, name, listed)
    if only and revision is None:
        names = ", ".join(published) or "none"
        raise CannotRunError(f"{text} was never published; published are: {names}")
    return revision


def has_store() -> bool:
    """Whether the workspace has a store already, or a database is named."""
    file = workspace_folder() / workspace.DATABASE
    return bool(os.environ.get("HYDRA_DATABASE_URL")) or file.is_file()


def acting() -> Actor:
    """The account, by its number: variables such as USER can say anything.

    Raises:
        AccessError: The roles file cannot be read or is missing though HYDRA_ROLES names one.
    """
    import pwd

    from hydra_core.store import roles_of

    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        name = str(os.geteuid())
    return roles_of(workspace_folder()).account(name)


def require_account(asks: str) -> None:
    """Make sure that the account may do what a verb is about to do.

    Args:
        asks: Name of an `Action`, '' for verbs that only read.

    Raises:
        AccessError: It may not.
    """
    if asks:
        from hydra_core.store import Action, require

        require(acting(), Action[asks])


def require_new_catalog(path: Path, *, force: bool) -> None:
    """Refuse to write a catalog over a file unless that is wanted and allowed.

    Raises:
        CatalogError: The file is there and `force` is off, or its name in the workspace is none
            that could be published.
        AccessError: The account may not replace a catalog.
    """
    if not path.exists():
        from hydra_core.catalog.identifiers import id_problem

        problem = id_problem(name) if (name := CATALOG.name_of(path)) else None
        if problem is not None:
            raise CatalogError.of(str(path), *problem, place="--out")
        return
    if not force:
        raise CatalogError.of(
            str(path), "exists already; nothing was written", "add --force", place="--out"
        )
    require_account("REPLACE_CATALOG")


def write_catalog(path: Path, text: str, asks: str = "") -> None:
    """Write a catalog file; in the workspace, with a line of the audit trail.

    Args:
        asks: Name of the `Action` that it is; '' for making or replacing it.

    Raises:
        CatalogError: `text` is not a valid catalog; nothing was written.
        StoreError: It could not be written, or not be recorded.
    """
    from hydra_core.export.release import write_release
    from hydra_core.store import Action

    before = file_sha256(path) if path.is_file() else ""
    action = asks or ("REPLACE_CATALOG" if before else "MAKE_CATALOG")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_release(path, text)
    if (store := store_of(path)) is not None:
        subject, after = f"catalog file {path.name}", file_sha256(path)
        with closing(store):
            store.record_event(acting(), Action[action], subject, before=before, after=after)


def store_of(*paths: Path) -> Store | None:
    """The workspace's store if one of `paths` lies in the workspace, else None.

    A link from the workspace to elsewhere counts as inside, and so does one into the workspace.
    """
    from hydra_core.store import open_store

    folder = workspace_folder().resolve()
    named = [path.parent.resolve() / path.name for path in paths]
    inside = any(place.is_relative_to(folder) for p in named for place in (p, p.resolve()))
    return open_store(folder) if inside else None


def changes(path: Path) -> EvalSetChanges:
    """How the account changes the eval set at `path`."""
    from hydra_core.evalsets.changes import EvalSetChanges

    return EvalSetChanges(acting(), store_of(path))
