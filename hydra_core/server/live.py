"""The catalog in use: watched in the background, replaced whole, kept when the new one is bad.

A request reads `LiveCatalog.now` once and goes on with that state to its end, so a reload never
reaches into a request and no request waits for one. A dry run says what a configuration would do.
"""

import json
import logging
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, Final, Protocol

from hydra_core.base.digests import text_sha256
from hydra_core.base.errors import HydraError, StoreError
from hydra_core.base.types import Catalog
from hydra_core.catalog import load_catalog, parse_catalog, pool, require_bundle
from hydra_core.predictor.bundle import Bundle
from hydra_core.routing.reload import file_stamp
from hydra_core.routing.router import Router
from hydra_core.server.settings import Settings
from hydra_core.server.upstream.file import Upstreams, load_upstreams
from hydra_core.server.wire import Form
from hydra_core.store.store import Store

_LOG = logging.getLogger(__name__)


class Watch(ABC):
    """Looks until it is closed; what goes wrong is logged, and it looks again.

    Args:
        name: Of the thread.
        trouble: What a failure means, in words.
        every_s: Least time between two looks.
        rest: The same in multiples of what a look takes.
    """

    def __init__(self, name: str, trouble: str, every_s: float, rest: float = 0.0) -> None:
        self._trouble, self._every_s, self._rest = trouble, every_s, rest
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()

    @abstractmethod
    def look(self) -> None:
        """Look once."""

    def _failed(self, error: Exception) -> None:
        if isinstance(error, HydraError | OSError):
            _LOG.error("%s: %s", self._trouble, error)
        else:
            _LOG.error("%s", self._trouble, exc_info=error)

    def _turn(self) -> None:
        self.look()

    def _watch(self) -> None:
        pause_s = 0.0
        while not self._stop.wait(pause_s):
            start = time.monotonic()
            try:
                self._turn()
            except Exception as error:  # whatever it was, the next look may work
                self._failed(error)
            pause_s = max(self._every_s, self._rest * (time.monotonic() - start))


_STORE: Final = "store:"


@dataclass(frozen=True, slots=True)
class Published:
    """A catalog, the store's number of its revision ('' for a file), and its upstreams."""

    catalog: Catalog
    revision: str = ""
    upstreams: Upstreams | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Serving:
    """One revision, ready to route with; `not_speaking` has the models that a form cannot ask."""

    router: Router
    catalog: Catalog
    revision: str
    policy_digest: str
    upstreams: Upstreams | None = None
    not_speaking: Mapping[Form, frozenset[str]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """How headers name the revision: its number, else the beginning of its digest."""
        return self.revision or self.catalog.digest[:12]


class Source(Protocol):
    def stamp(self) -> object:
        """Something that differs when there is a new one."""

    def load(self) -> Published:
        """The newest catalog."""


class FileSource:
    def __init__(self, path: Path) -> None:
        self._path = path

    def stamp(self) -> object:
        return file_stamp(self._path)

    def load(self) -> Published:
        return Published(load_catalog(self._path))


class StoreSource:
    """The newest published revision of a catalog in the workspace store.

    `mine` is also the name of what the workspace's own file was published as, my/mine.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name

    def stamp(self) -> object:
        """The number of the newest revision, under either name."""
        catalogs = self._store.catalogs()
        return catalogs.get(self._name), catalogs.get(f"my/{self._name}")

    def load(self) -> Published:
        """The newest revision.

        Raises:
            StoreError: Nothing is published under this name.
        """
        newest = self._store.newest(self._name) or self._store.newest(f"my/{self._name}")
        if newest is None:
            listed = ", ".join(self._store.catalogs()) or "nothing yet"
            raise StoreError(f"{self._name} was never published; the store has {listed}")
        source = f"{newest.catalog} revision {newest.number}"
        return Published(parse_catalog(newest.yaml, source), str(newest.number))


class WithUpstreams:
    """A catalog together with the upstreams file that serves its models; both are followed."""

    def __init__(self, source: Source, path: Path) -> None:
        self._source, self._path = source, path

    def stamp(self) -> object:
        return self._source.stamp(), file_stamp(self._path)

    def load(self) -> Published:
        """The newest catalog with the upstreams as the file has them now.

        Raises:
            UpstreamsError: The file is not valid, or a model has no upstream in it.
        """
        published, upstreams = self._source.load(), load_upstreams(self._path)
        upstreams.require(pool(published.catalog, today=date.today()).ids, os.environ)
        return replace(published, upstreams=upstreams)


def source_of(name: str) -> Source:
    """The source of `--catalog`: a file, or `store:NAME`; StoreError for no store."""
    if not name.startswith(_STORE):
        return FileSource(Path(name))
    from hydra_core.store.store import open_store

    return StoreSource(open_store(), name.removeprefix(_STORE))


class LiveCatalog(Watch):
    """The newest valid revision of a source, which is looked at in the background.

    Args:
        router_of: Makes a router; raises HydraError to refuse a revision.

    Raises:
        HydraError: The first revision is not valid.
    """

    def __init__(
        self, source: Source, router_of: Callable[[Catalog], Router], every_s: float = 0.5
    ) -> None:
        super().__init__("catalog-reload", "the catalog was not looked at", every_s)
        self._source, self._router_of = source, router_of
        self._stamp = source.stamp()
        #: The revision in use; the last good one while the newest is not valid.
        self.now = self._build()
        self._problem, self._away = "", ""

    @property
    def problem(self) -> str:
        """Why the newest revision is not in use, '' when it is."""
        return self._away or self._problem

    def look(self) -> None:
        """Take a new revision if there is one; a bad one changes nothing but `problem`."""
        try:
            stamp = self._source.stamp()
            if stamp != self._stamp:
                self._take()
            self._stamp, self._away = stamp, ""
        except Exception as error:  # whatever it was, it is looked at again
            self._away = self._refused(self._away, f"cannot be looked at: {error}")

    def _take(self) -> None:
        try:
            self.now = self._build()
        except StoreError:
            raise
        except HydraError as error:
            self._problem = self._refused(self._problem, f"not taken: {error}")
        else:
            self._problem = ""
            extra = {"catalog": self.now.catalog.name, "revision": self.now.label}
            _LOG.info("a revision is in use", extra={"event": "revision_taken", **extra})

    def _refused(self, before: str, what: str) -> str:
        text = f"{self.now.label} stays in use, the newest revision {what}"
        if text != before:
            _LOG.error("%s", text, extra={"event": "revision_refused"})
        return text

    def _build(self) -> Serving:
        published = self._source.load()
        catalog = published.catalog
        policy = json.dumps(asdict(catalog.policy), sort_keys=True, default=str)
        digest = text_sha256(policy)
        router = self._router_of(catalog)
        upstreams = published.upstreams
        silent = {form: upstreams.not_speaking(form) for form in Form} if upstreams else {}
        return Serving(router, catalog, published.revision, digest, upstreams, silent)


def checked(
    catalog: Catalog, bundle: Bundle, upstreams: Upstreams | None, settings: Settings
) -> dict[str, Any]:
    """What a service with these settings would say about itself with this configuration.

    Raises:
        HydraError: The catalog does not fit the bundle, a model cannot be asked, nothing would
            keep the budgets of teams, or no token can name them.
    """
    require_bundle(catalog, bundle.fingerprint)
    teams = catalog.policy.teams
    if any(team.budget is not None for team in teams.values()) and not settings.log:
        raise HydraError("the policy has budgets of teams, which need --log DIR to be kept in")
    if teams and not settings.tokens:
        raise HydraError("the policy names teams, which need --tokens FILE: tokens carry the team")
    Router(catalog)
    models = pool(catalog, today=date.today()).ids
    report: dict[str, Any] = {
        "catalog": catalog.name,
        "digest": catalog.digest,
        "models": list(models),
        "rule": catalog.policy.rule.value,
        "knob": catalog.policy.knob,
        "sticky": catalog.policy.sticky.mode.value,
    }
    if upstreams is not None:
        upstreams.require(models, os.environ)
        report["upstreams"] = {name: upstreams.by_model[name].name for name in models}
    return report
