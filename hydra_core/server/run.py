"""Putting a service together, and running it in one process or several."""

import asyncio
import gc
import json
import logging
import math
import os
import resource
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog, StickyMode
from hydra_core.decision_log.canaries_and_alerts import CanaryOrder
from hydra_core.decision_log.writer import LogWriter
from hydra_core.predictor.bundle import load_bundle
from hydra_core.predictor.onnx_predictor import Predictor, cores, default_predictor
from hydra_core.routing.conversations.harness import rules
from hydra_core.routing.router import Router
from hydra_core.routing.sessions import MemorySessions, Sessions
from hydra_core.server.admission import Admission
from hydra_core.server.alerts import Alerts, PromiseWatch, Webhook, webhook_address
from hydra_core.server.app import application
from hydra_core.server.callers import CallerCheck, RateLimit, TokenFile, load_tokens
from hydra_core.server.canary import Canaries, Canary
from hydra_core.server.deciding import Decider
from hydra_core.server.decision_ids import ids_of
from hydra_core.server.exploration import Exploration
from hydra_core.server.live import LiveCatalog, Source, WithUpstreams, checked, source_of
from hydra_core.server.service import Service
from hydra_core.server.settings import (
    VARIABLE,
    Settings,
    from_environment,
    require_safe_address,
    to_text,
)
from hydra_core.server.teams import TeamBudgets, Teams
from hydra_core.server.telemetry import Metrics, spans
from hydra_core.server.upstream.calls import Caller
from hydra_core.server.upstream.failures import Health
from hydra_core.server.upstream.file import load_upstreams

_LOG = logging.getLogger(__name__)
_MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
#: Fields that an event may give with `extra`.
EXTRA: Final = ("catalog", "revision", "model", "kind", "status", "wait_s")
LEVELS: Final = ("debug", "info", "warning", "error")
#: Descriptors that are kept for upstreams, the log and the catalog.
_RESERVED: Final = 128
#: A worker that says nothing for so long hangs: on a busy machine it takes a while to begin.
_HANGS_S: Final = 60
#: Most bytes on the wire of a byte in a body: a chunk of its own.
_CHUNKED: Final = 7
_END: Final = b"content-length: 0\r\nconnection: close\r\n\r\n"
_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _END
_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\n" + _END


def build(settings: Settings) -> Starlette:
    """The application of one process; HydraError where the configuration is not valid."""
    require_safe_address(settings)
    tokens = TokenFile(Path(settings.tokens)) if settings.tokens else None
    predictor = _predictor(settings)
    sessions = _sessions(settings)

    folder = Path(settings.log) if settings.log else None

    def router_of(catalog: Catalog) -> Router:
        checked(catalog, predictor.bundle, None, settings)
        return Router(catalog, predictor, sessions=sessions)

    live = LiveCatalog(_source(settings.catalog, settings), router_of, settings.reload_s)
    canaries = _canaries(settings, folder, router_of)
    exploration = Exploration(
        settings.explore_share,
        settings.explore_floor,
        settings.explore_budget_usd / (1 if folder else settings.workers),
        folder=folder,
        every=settings.explore_all,
    )
    threads = max(1, cores() // settings.workers)
    metrics = Metrics(model.id for model in live.now.catalog.models)
    decider = Decider(
        live,
        Health(),
        exploration,
        sessions,
        canaries=canaries,
        ids=ids_of(folder),
        teams=Teams(None if folder is None else _ledger(folder, settings)),
    )
    promise = PromiseWatch(live, folder, settings.canary_look_s) if folder else None
    url, alerts = webhook_address(os.environ), None
    if url:
        alerts = Alerts(
            decider, metrics, promise, Webhook(url, metrics.alerted), folder, settings.canary_look_s
        )
    service = Service(
        decider,
        Admission(threads, metrics, settings.queue, settings.queue_s),
        metrics,
        Caller() if settings.upstreams else None,
        LogWriter(folder) if folder else None,
        log_text=settings.log_text,
        on_finish=spans() if settings.spans else None,
        promise=promise,
        alerts=alerts,
    )
    callers = CallerCheck(settings, tokens, RateLimit(settings.rate))
    return application(service, callers, predictor.bundle, settings)


def app_from_environment() -> Starlette:
    """The application of one worker, as HYDRA_SERVE says."""
    settings = from_environment()
    log_json(settings.log_level)
    raise_limits()
    app = build(settings)
    gc.collect()
    gc.freeze()  # what was loaded stays: it is not looked through again and again between requests
    return app


def check(settings: Settings) -> dict[str, object]:
    """What `serve` would do with these settings; HydraError where they are not valid."""
    require_safe_address(settings)
    webhook_address(os.environ)
    rules()
    if settings.tokens:
        load_tokens(Path(settings.tokens))
    bundle = _predictor(settings).bundle
    upstreams = load_upstreams(Path(settings.upstreams)) if settings.upstreams else None
    catalog = source_of(settings.catalog).load().catalog
    report = checked(catalog, bundle, upstreams, settings)
    if settings.canary:
        _require_log(settings)
        second = checked(source_of(settings.canary).load().catalog, bundle, upstreams, settings)
        report["canary"] = {"share": settings.canary_share, **second}
    warnings = _warnings(settings, str(report["sticky"]))
    return {**report, "warnings": warnings} if warnings else report


def _warnings(settings: Settings, sticky: str) -> list[str]:
    """What would run, but not as it is probably meant."""
    found = []
    apart = settings.workers > 1 and not settings.redis
    if apart and settings.upstreams and sticky != StickyMode.PER_REQUEST.value:
        found.append(
            f"{settings.workers} workers without --redis do not know each other's conversations: "
            f"a conversation keeps its model ({sticky}) only while the same worker answers; give "
            "--redis"
        )
    share = {"--explore": settings.explore_share, "--explore-all": settings.explore_all}
    explores = " and ".join(option for option, part in share.items() if part > 0)
    if explores and not settings.log:
        found.append(
            f"{explores} without --log: nothing can be learned from what is tried, each worker has "
            "its own part of the budget, and a restart begins it anew; give --log"
        )
    return found


def serve(settings: Settings, checked: Callable[[], None]) -> None:
    """Run until told to stop.

    Args:
        checked: Called once the configuration is known to be valid.

    Raises:
        HydraError: The configuration is not valid.
    """
    report = check(settings)
    checked()
    log_json(settings.log_level)
    for warning in _warnings(settings, str(report["sticky"])):
        _LOG.warning("%s", warning, extra={"event": "warning"})
    os.environ[VARIABLE] = to_text(settings)
    made = ""
    if settings.workers > 1 and _MULTIPROCESS not in os.environ:
        made = os.environ[_MULTIPROCESS] = tempfile.mkdtemp(prefix="hydra-metrics-")
    try:
        uvicorn.run(
            "hydra_core.server.run:app_from_environment",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            http=GuardedProtocol,
            ws="none",
            proxy_headers=False,  # else whoever comes through this machine names its own address
            access_log=False,
            server_header=False,
            log_config=None,
            timeout_graceful_shutdown=settings.stop_s,
            timeout_worker_healthcheck=_HANGS_S,
        )
    finally:
        if made:
            shutil.rmtree(made, ignore_errors=True)


def _canaries(
    settings: Settings, folder: Path | None, router_of: Callable[[Catalog], Router]
) -> Canaries | None:
    """The canary of the command line or of the log folder; none without a log."""
    if settings.canary:
        _require_log(settings)
    if folder is None:
        return None

    def make(order: CanaryOrder) -> Canary:
        live = LiveCatalog(_source(order.catalog, settings), router_of, settings.reload_s)
        return Canary(live, order.share, folder, settings.canary_look_s, limit=order.limit)

    first = CanaryOrder(settings.canary, settings.canary_share, settings.canary_limit)
    return Canaries(folder, make, first)


def _require_log(settings: Settings) -> None:
    if not settings.log:
        raise HydraError("a canary needs --log DIR: it is measured, and stopped, by its log")


def _ledger(folder: Path, settings: Settings) -> TeamBudgets:
    if not settings.redis:
        return TeamBudgets(folder)
    from hydra_core.routing.sessions import redis_client

    return TeamBudgets(folder, redis_client(settings.redis))


def _source(catalog: str, settings: Settings) -> Source:
    source = source_of(catalog)
    return WithUpstreams(source, Path(settings.upstreams)) if settings.upstreams else source


def _predictor(settings: Settings) -> Predictor:
    return Predictor(load_bundle(Path(settings.bundle))) if settings.bundle else default_predictor()


def _sessions(settings: Settings) -> Sessions:
    if not settings.redis:
        return MemorySessions()
    from hydra_core.routing.sessions import RedisSessions

    return RedisSessions.from_url(settings.redis)


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON with all fields; one that has nothing to say is null."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if record.exc_info:
            message = f"{message}\n{self.formatException(record.exc_info)}"
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", "note"),
            "message": message,
            **{name: getattr(record, name, None) for name in EXTRA},
            "pid": os.getpid(),
        }
        return json.dumps(line, default=str)


def log_json(level: str) -> None:
    """Log from now on as JSON lines, of one of `LEVELS` and what is more important."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("asyncio").setLevel(logging.WARNING)


class GuardedProtocol(HttpToolsProtocol):
    """One connection, before anything of a request is understood.

    Whoever has no token can still open connections. A head (request line and headers) has a size
    and a time, and what comes around a body (trailers, extensions of chunks) a size. Beyond so many
    connections the oldest that has not sent a head yet makes room.
    """

    most_head_bytes = 64_000
    head_s = 10.0
    most_connections = 4_000

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 (uvicorn's own)
        super().__init__(*given, **named)
        self._head_bytes = self._body_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a head, and make room for it."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            self._make_room()
        self._begin()

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a head, and refuse one that is too large."""
        before = self.cycle
        in_body = before is not None and before.more_body
        if not in_body:
            if self._timer is None:
                self._begin()
            self._head_bytes += len(data)
        super().data_received(data)
        if in_body:
            self._body_bytes -= len(data)
            if self._body_bytes < -self.most_head_bytes:
                self._refuse(_TOO_LARGE)
                return
        if self.cycle is not before or in_body:
            self._end()
        elif self._head_bytes > self.most_head_bytes:
            self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Begin to count anew what comes with a body and is none of it."""
        self._body_bytes = 0
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        """Allow for what chunks take beside what they hold, were each a single byte."""
        self._body_bytes += _CHUNKED * len(body)
        super().on_body(body)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    @property
    def waited_until(self) -> float:
        """When its head must be there, on the loop's clock; infinity where it is."""
        return math.inf if self._timer is None else self._timer.when()

    def _begin(self) -> None:
        self._timer = self.loop.call_later(self.head_s, self._refuse, _TOO_SLOW)

    def _end(self) -> None:
        self._head_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, answer: bytes) -> None:
        self._end()
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()

    def _make_room(self) -> None:
        others = [one for one in self.connections if isinstance(one, GuardedProtocol)]
        oldest = min(others, key=lambda one: one.waited_until, default=self)
        (self if oldest.waited_until == math.inf else oldest).transport.abort()


def raise_limits() -> None:
    """Take as many descriptors as the system gives, and no more connections than they serve."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most = max(16, (hard - _RESERVED) // 2)
    if hard != resource.RLIM_INFINITY:
        GuardedProtocol.most_connections = min(GuardedProtocol.most_connections, most)
