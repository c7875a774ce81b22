"""The demos that run in this console: begun on a copy, found again by their token, deleted.

No streamlit. A demo lives in a hidden folder of the workspace that this process holds a lock on,
so whoever starts next can tell leftovers from what is in use. It holds links to the eval sets, a
copy of the store and the story's catalog. Files of eval sets are only ever replaced, never written
into, so hard links are copies; the store is copied row by row.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hydra_core.base.digests import file_sha256
from hydra_core.base.errors import HydraError, StoreError
from hydra_core.base.shipped import CATALOGS, SAMPLE_DATA
from hydra_core.base.types import Rule
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.identifiers import skeleton
from hydra_core.catalog.schema import parse_catalog, read_catalog_text
from hydra_core.console.tasks import Task, Tasks
from hydra_core.evalsets.folders import MANIFEST, sweep
from hydra_core.store.roles import Action, Actor, Role, require

if TYPE_CHECKING:
    from hydra_core.store.store import Store

#: Demos at once; each holds a copy of the store in the workspace.
MOST: Final = 8
#: Seconds a demo is kept after its last tab was closed: a reload comes back within a few.
GRACE_S: Final = 120.0
#: Seconds a demo is kept in a tab where nothing is done any more.
IDLE_S: Final = 4 * 3600.0
_LOOK_S: Final = 15.0
_WAIT_FOR_WORK_S: Final = 60.0
#: The samples of a demo, below its folder.
SAMPLES: Final = "samples"
#: The eval set and the catalog of the story, with real outcomes.
EVALSET: Final = "mixed_2024"
CATALOG: Final = "mixed_2024"
#: The pinned point that says where the story began, for comparing with it later.
BEFORE: Final = "before learning"
_NAME: Final = "demo"
_NOTE: Final = "Where the story begins: routed by profiles, nothing learned yet"


@dataclass(slots=True, eq=False)
class Demo:
    """One running demo.

    Attributes:
        token: Unguessable; whoever began it finds it again by it after a reload.
        folder: The workspace of the demo.
        store, tasks: Of this demo alone.
        owner: Who began it; acts in the copy as a publisher.
        catalog: The store's name of the story's catalog.
        sessions: Browser sessions that looked at it.
        used: When it was last used, in seconds of the clock.
        seen: When one of its sessions was last connected.
    """

    token: str
    folder: Path
    store: Store
    tasks: Tasks
    owner: Actor
    catalog: str
    used: float
    seen: float
    held: int
    sessions: set[str] = field(default_factory=set)


class Demos:
    """All demos of this process. Safe to share between threads."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        connected: Callable[[str], bool] = lambda session: True,
    ) -> None:
        self.connected = connected
        self._clock = clock
        self._demos: dict[str, Demo] = {}
        self._lock = threading.Lock()
        self._watching = False

    def begin(self, workspace: Path, store: Store, person: Actor) -> Demo:
        """Copy a workspace; leftovers of a console that was killed are removed first.

        Raises:
            AccessError: The person, with the role that the roles file gives, may not.
            StoreError: Too many run, or the copy cannot be made; nothing is left of it.
        """
        require(person, Action.DEMO)
        self.expire()
        if len(self._demos) >= MOST:
            raise StoreError(
                f"{MOST} demos are running: end one, or close its tab and try again in two minutes"
            )
        folder, held = _folder(workspace)
        owner = Actor(person.name, Role.PUBLISHER, person.proven)
        try:
            copy, catalog = fill(folder, workspace, store, owner)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(held)
            raise
        now, token = self._clock(), secrets.token_urlsafe(12)
        demo = Demo(token, folder, copy, Tasks(), owner, catalog, now, now, held)
        with self._lock:
            self._demos[token] = demo
        return demo

    def get(self, token: str) -> Demo | None:
        """The running demo with this token."""
        return self._demos.get(token)

    def join(self, token: str, session: str, person: Actor) -> Demo | None:
        """Let a browser session join a demo; None where it has ended or is another person's."""
        demo = self._demos.get(token)
        if demo is None or person.proven != demo.owner.proven:
            return None
        if demo.owner.proven and person.name != demo.owner.name:
            return None
        with self._lock:
            demo.sessions.add(session)
        demo.used = demo.seen = self._clock()
        return demo

    def end(self, token: str) -> None:
        """Delete a demo: at once, or as soon as the work in it has stopped."""
        with self._lock:
            demo = self._demos.pop(token, None)
        if demo is None:
            return
        running = demo.tasks.halt()
        if running:
            threading.Thread(target=_throw_away, args=(demo, running), daemon=True).start()
        else:
            _throw_away(demo, ())

    def end_all(self) -> None:
        """Delete all demos, as the console stops."""
        for token in list(self._demos):
            demo = self._demos.pop(token)
            demo.tasks.halt()
            _throw_away(demo, ())

    def expire(self) -> None:
        """Delete the demos that nobody uses any more."""
        now = self._clock()
        for demo in list(self._demos.values()):
            if any(self.connected(session) for session in tuple(demo.sessions)):
                demo.seen = now
            if now - demo.seen > GRACE_S or now - demo.used > IDLE_S:
                self.end(demo.token)

    def watch(self) -> None:
        """Check every few seconds, as long as any demo runs."""
        with self._lock:
            if self._watching:
                return
            self._watching = True
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOK_S)
            self.expire()
            with self._lock:
                if not self._demos:
                    self._watching = False
                    return


def _folder(workspace: Path) -> tuple[Path, int]:
    """Make a hidden folder that `sweep` removes once this process is gone."""
    try:
        workspace.mkdir(parents=True, exist_ok=True)
        sweep(workspace)
        folder = Path(tempfile.mkdtemp(prefix=".demo.", dir=workspace))
        held = os.open(folder, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
    except OSError as error:
        raise StoreError(f"{workspace} has no room for a demo: {error.strerror}") from error
    return folder, held


def _throw_away(demo: Demo, running: Iterable[Task]) -> None:
    until = time.monotonic() + _WAIT_FOR_WORK_S
    while any(task.running for task in running) and time.monotonic() < until:
        time.sleep(0.1)
    demo.store.close()
    shutil.rmtree(demo.folder, ignore_errors=True)
    os.close(demo.held)


#: Those of this console.
DEMOS: Final = Demos()
atexit.register(DEMOS.end_all)


def fill(folder: Path, workspace: Path, store: Store, actor: Actor) -> tuple[Store, str]:
    """Copy a workspace into an empty folder and publish the story's catalog there, by a publisher.

    Roles, logs and what others have learned stay where they are. Returns the copy's store and its
    name for the catalog. HydraError where the workspace cannot be read, or there is no room.
    """
    try:
        for source, target in ((SAMPLE_DATA, SAMPLES), (workspace / "evalsets", "evalsets")):
            _link_sets(source, folder / target)
        for file in sorted((workspace / "catalogs").glob("*.yaml")):
            (folder / "catalogs").mkdir(exist_ok=True)
            shutil.copy2(file, folder / "catalogs")
    except OSError as error:
        raise StoreError(f"the workspace cannot be copied for a demo: {error}") from error
    copy = store.copied_to(folder)
    try:
        text = untaught(read_catalog_text(CATALOGS / f"{CATALOG}.yaml"))
        known = [*copy.catalogs(), *(file.stem for file in CATALOGS.glob("*.yaml"))]
        taken = {skeleton(one) for one in known}
        names = (_NAME, *(f"{_NAME}_{number}" for number in range(2, len(taken) + 3)))
        name = next(one for one in names if skeleton(one) not in taken)
        copy.publish(name, text, actor=actor, base_revision=0, note=_NOTE)
        policy = parse_catalog(text, source=name).policy
        copy.points.pin(
            name, BEFORE, revision=1, tau=policy.tau, weights=policy.weights, actor=actor,
            evalset_digest=file_sha256(folder / SAMPLES / EVALSET / MANIFEST),
        )  # fmt: skip
    except HydraError:
        copy.close()
        raise
    return copy, name


def untaught(text: str) -> str:
    """A catalog's text without what predicts, and V; CatalogError where it has nothing of that."""
    document = CatalogDocument.parse(text, CATALOG)
    for name in ("outcome_model", "success_profiles"):
        document.remove(name)
    for name in ("value_usd", "success_from"):
        document.remove("policy", name)
    document.set("policy", "rule", Rule.SHORTFALL.value)
    return document.text()


def _link_sets(root: Path, target: Path) -> None:
    """Link the files of every set under `root`; of a linked folder, what it points to."""
    for path in sorted(root.glob("*")) if root.is_dir() else ():
        if not path.name.startswith(".") and (path / MANIFEST).is_file():
            unfinished = shutil.ignore_patterns(".*")
            shutil.copytree(path, target / path.name, copy_function=_link, ignore=unfinished)


def _link(source: str, target: str) -> None:
    try:
        os.link(os.path.realpath(source), target)
    except OSError:  # another disk, or a file system without hard links
        shutil.copy2(source, target)
