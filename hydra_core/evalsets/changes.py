"""Every change of an eval set: allowed by role, done whole, and recorded in the audit trail.

A set that is replaced or removed is kept in `.earlier/<name>/` beside the sets and can be brought
back. The copies are hard links: the files of a set are only ever replaced, never written into.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import pandas as pd

from hydra_core.base.digests import file_sha256
from hydra_core.base.errors import EvalSetError, StoreError
from hydra_core.base.types import Progress
from hydra_core.evalsets.evalset import EvalSet, load_evalset
from hydra_core.evalsets.folders import MANIFEST, replace_folder
from hydra_core.evalsets.scores import CHUNK, score_evalset, score_path
from hydra_core.store import Action, Actor, Store, require

if TYPE_CHECKING:
    from hydra_core.predictor.onnx_predictor import Predictor

T = TypeVar("T")
_EARLIER: Final = ".earlier"
_STAMP: Final = "%Y%m%dT%H%M%S.%fZ"
#: Earlier states kept of one set; the oldest are dropped.
MOST_KEPT: Final = 10


@dataclass(frozen=True, slots=True)
class Earlier:
    """A state of an eval set that was replaced or removed."""

    path: Path
    name: str
    until: datetime


def earlier(root: Path) -> tuple[Earlier, ...]:
    """The kept states of all sets under `root`, newest first."""
    found = []
    for manifest in root.glob(f"{_EARLIER}/*/*/{MANIFEST}"):
        folder = manifest.parent
        try:
            until = datetime.strptime(folder.name, _STAMP).replace(tzinfo=UTC)
        except ValueError:
            continue  # not made here
        found.append(Earlier(folder, folder.parent.name, until))
    return tuple(sorted(found, key=lambda one: one.until, reverse=True))


@dataclass(frozen=True, slots=True)
class EvalSetChanges:
    """What one actor does to eval sets.

    Attributes:
        store: Whose audit trail records it; None where the sets lie outside any workspace.
    """

    actor: Actor
    store: Store | None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def write(self, out: Path, make: Callable[[], T]) -> T:
        """Have `make` write a set at `out`; one that is there is kept.

        Raises:
            AccessError: The actor may not import, or not replace.
            EvalSetError: From `make`; nothing was changed.
            StoreError: It could not be recorded, so it was undone.
        """
        require(self.actor, Action.IMPORT)
        with _alone(out.parent):
            before = _digest(out)
            action = Action.REPLACE if before else Action.IMPORT
            require(self.actor, action)
            kept = self._keep(out) if before else None
            try:
                made = make()
            except BaseException:
                _drop(kept)
                raise
            self._record(action, f"eval set {out.name}", before, _digest(out), out, kept)
            self._drop_oldest(out)
        return made

    def score(
        self,
        evalset: EvalSet,
        predictor: Predictor,
        progress: Progress | None = None,
        chunk: int = CHUNK,
    ) -> pd.DataFrame:
        """`score_evalset`, allowed by role and recorded; scores that exist already are no change.

        Raises:
            AccessError: The actor may not score.
            EvalSetError: From `score_evalset`.
            StoreError: It could not be recorded, so the scores were removed again.
        """
        require(self.actor, Action.SCORE)
        file = score_path(evalset.path, predictor.bundle.fingerprint)
        before = _sha256(file)
        frame = score_evalset(evalset, predictor, progress, chunk)
        after, subject = _sha256(file), f"eval set {evalset.path.name}"
        if self.store is not None and after != before:
            try:
                self.store.record_event(
                    self.actor, Action.SCORE, subject, before=before, after=after
                )
            except StoreError:
                file.unlink(missing_ok=True)
                raise
        return frame

    def remove(self, path: Path) -> Earlier:
        """Take a set away; it is kept and can be brought back. Of a link, the link alone goes.

        Raises:
            AccessError: The actor may not.
            EvalSetError: There is none, or it cannot be moved; nothing was changed.
        """
        require(self.actor, Action.DELETE)
        with _alone(path.parent):
            before = _digest(path)
            if not before:
                raise EvalSetError.of(str(path), "is no eval set", "reload the page")
            kept = self._keep(path)
            _take_away(path)
            self._record(Action.DELETE, f"eval set {path.name} removed", before, "", path, kept)
            self._drop_oldest(path)
        return kept

    def bring_back(self, state: Earlier) -> Path:
        """Put a kept state in its place again; what stands there is kept in turn.

        Raises:
            AccessError: The actor may not.
            EvalSetError: The kept state is gone or damaged; nothing was changed.
        """
        require(self.actor, Action.REPLACE)
        load_evalset(state.path)
        out = state.path.parents[2] / state.name
        with _alone(out.parent):
            before, kept = _digest(out), self._keep(out) if _digest(out) else None
            replace_folder(out, lambda folder: _link_all(state.path, folder))
            subject = f"eval set {state.name} as it was until {state.until:%Y-%m-%d %H:%M:%S} UTC"
            self._record(Action.REPLACE, subject, before, _digest(out), out, kept)
        return out

    def _keep(self, path: Path) -> Earlier:
        until = self.clock()
        kept = path.parent / _EARLIER / path.name / until.astimezone(UTC).strftime(_STAMP)
        try:
            replace_folder(kept, lambda folder: _link_all(path, folder), replace=False)
        except OSError as error:
            message = f"cannot be kept: {error}"
            raise EvalSetError.of(str(path), message, "nothing was changed") from error
        return Earlier(kept, path.name, until)

    def _record(
        self, action: Action, subject: str, before: str, after: str, out: Path, kept: Earlier | None
    ) -> None:
        if self.store is None:
            return
        try:
            self.store.record_event(self.actor, action, subject, before=before, after=after)
        except StoreError:
            if kept is None:
                shutil.rmtree(out, ignore_errors=True)
            else:
                replace_folder(out, lambda folder: _link_all(kept.path, folder))
                _drop(kept)
            raise

    def _drop_oldest(self, path: Path) -> None:
        for state in [one for one in earlier(path.parent) if one.name == path.name][MOST_KEPT:]:
            _drop(state)


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """One change under `root` at a time: two at once would each keep what the other replaces."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        held = os.open(root, os.O_RDONLY)
    except OSError as error:
        message = f"cannot be opened: {error.strerror}"
        raise EvalSetError.of(str(root), message, "nothing was changed") from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX)  # a killed process lets go
        yield
    finally:
        os.close(held)


def _take_away(path: Path) -> None:
    try:
        path.unlink() if path.is_symlink() else shutil.rmtree(path)
    except OSError as error:
        message = f"cannot be removed: {error}"
        raise EvalSetError.of(str(path), message, "bring its kept state back") from error


def _digest(path: Path) -> str:
    """SHA-256 (hex) of a set's manifest, which names those of its parts; '' for no set."""
    return _sha256(path / MANIFEST)


def _sha256(file: Path) -> str:
    return file_sha256(file) if file.is_file() else ""


def _link_all(source: Path, target: Path) -> None:
    """The files of `source` in `target`, without those a job is still writing."""
    shutil.copytree(
        source,
        target,
        copy_function=_link,
        ignore=shutil.ignore_patterns(".*"),
        dirs_exist_ok=True,
    )


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)


def _drop(state: Earlier | None) -> None:
    if state is not None:
        shutil.rmtree(state.path, ignore_errors=True)
