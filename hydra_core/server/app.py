"""The routes: what a client may ask, and which answer each error becomes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from hydra_core.catalog import parse_catalog
from hydra_core.decision_log.records import OutcomeRecord
from hydra_core.errors import AccessError, HydraError, Problem, ProblemsError, RoutingError
from hydra_core.predictor.bundle import Bundle
from hydra_core.server.access.admission import OverloadedError
from hydra_core.server.access.doors import Doors, StrangerError, TooOftenError
from hydra_core.server.access.draining import Draining
from hydra_core.server.access.limits import BodyTooLargeError, read_body
from hydra_core.server.answers import ClientGoneError, JsonAnswer, error_response, our_headers
from hydra_core.server.chat import ChatRequest, RequestError, parse_json, read_chat
from hydra_core.server.checking import checked
from hydra_core.server.deciding import Decided, Result
from hydra_core.server.metrics import CONTENT_TYPE_LATEST
from hydra_core.server.service import Service
from hydra_core.server.settings import AUTO, Settings
from hydra_core.server.upstream.file import parse_upstreams
from hydra_core.store.roles import Action, Actor

__all__ = ["application"]

_LOG = logging.getLogger(__name__)
_CONVERSATION = "x-hydra-conversation-id"
#: Bodies beyond this are read beside the event loop.
_LARGE = 100_000


def application(service: Service, doors: Doors, bundle: Bundle, settings: Settings) -> Starlette:
    """The ASGI application of one process.

    Args:
        service: Decides and passes through.
        doors: Lets callers in.
        bundle: The predictor's bundle, which catalogs of a dry run must belong to.
    """
    routes = _Routes(service, doors, bundle, settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service.decider.start()
        routes.follow_signals()
        yield
        await service.close()

    return Starlette(
        routes=[
            Route("/v1/chat/completions", routes.chat, methods=["POST"]),
            Route("/v1/decision", routes.decision, methods=["POST"]),
            Route("/v1/outcomes", routes.outcome, methods=["POST"]),
            Route("/v1/dry-run", routes.dry_run, methods=["POST"]),
            Route("/v1/models", routes.models),
            Route("/health/live", routes.live),
            Route("/health/ready", routes.ready),
            Route("/metrics", routes.metrics),
        ],
        lifespan=lifespan,
        exception_handlers=_HANDLERS,
    )


class _Routes:
    def __init__(self, service: Service, doors: Doors, bundle: Bundle, settings: Settings) -> None:
        self._service, self._doors, self._bundle = service, doors, bundle
        self._settings = settings
        self._most_bytes = int(settings.max_body_mb * 1e6)
        self._since = int(time.time())
        self._draining = Draining(settings.not_ready_s)

    def follow_signals(self) -> None:
        """Be not ready for a while once the process is told to stop."""
        self._draining.follow_signals()

    async def decision(self, request: Request) -> Response:
        """Which model, and why; nothing is spent."""
        actor = self._doors.enter(request, Action.READ)
        started = time.perf_counter()
        chat = await self._chat(request, actor)
        decided = await self._service.decide(chat, request.receive, remember=False)
        self._service.finish(decided, Result("decided"), started)
        return JsonAnswer(_decision(decided), headers=our_headers(decided, decided.model))

    async def chat(self, request: Request) -> Response:
        """Decide, and pass the request on."""
        actor = self._doors.enter(request, Action.DRAFT)
        if self._service.caller is None:
            raise AccessError("this service was started without --upstreams: it only decides")
        return await self._service.answer(request, await self._chat(request, actor))

    async def _chat(self, request: Request, actor: Actor) -> ChatRequest:
        """The chat request of a caller; a large one is read beside the event loop.

        Raises:
            OverloadedError: Too many requests wait; nothing of this one is read.
        """
        self._service.admission.require_room()
        body = await read_body(request, self._most_bytes)
        named = request.headers.get(_CONVERSATION)
        caller = actor.name if self._doors.tokens else ""
        if len(body) > _LARGE:
            return await asyncio.to_thread(_read, body, named, caller)
        return _read(body, named, caller)

    async def outcome(self, request: Request) -> Response:
        """Bind feedback to a decision."""
        self._doors.enter(request, Action.NOTE)
        if self._service.log is None:
            raise HydraError("this service was started without --log: there is nowhere to keep it")
        found = parse_json(await read_body(request, self._most_bytes))
        record = _outcome(found)
        self._service.log.add(record)
        return JsonAnswer({"decision_id": record.decision_id, "accepted": True}, 202)

    async def dry_run(self, request: Request) -> Response:
        """Whether a catalog, and upstreams for it, would be taken; nothing changes."""
        self._doors.enter(request, Action.READ)
        found = parse_json(await read_body(request, self._most_bytes))
        if not isinstance(found.get("catalog"), str):
            problem = Problem("catalog", "is missing", "send the YAML text")
            raise RequestError("request", [problem])
        try:
            catalog = parse_catalog(found["catalog"])
            given = found.get("upstreams")
            upstreams = parse_upstreams(given) if isinstance(given, str) else None
            report = checked(catalog, self._bundle, upstreams)
        except ProblemsError as error:
            return JsonAnswer({"valid": False, "problems": [str(one) for one in error.problems]})
        except HydraError as error:
            return JsonAnswer({"valid": False, "problems": [str(error)]})
        return JsonAnswer({"valid": True, **report})

    async def models(self, request: Request) -> Response:
        """`auto`, and every model by name."""
        self._doors.enter(request, Action.READ)
        catalog = self._service.decider.live.now.catalog
        listed = [(AUTO, "hydra"), *((spec.id, spec.provider) for spec in catalog.models)]
        data = [
            {"id": name, "object": "model", "created": self._since, "owned_by": owner}
            for name, owner in listed
        ]
        return JsonAnswer({"object": "list", "data": data})

    async def live(self, request: Request) -> Response:
        """The process answers."""
        return JsonAnswer({"status": "live"})

    async def ready(self, request: Request) -> Response:
        """Requests can be routed; what does not work as it should is named."""
        decider, log = self._service.decider, self._service.log
        notes = [*decider.problems, *([log.problem] if log and log.problem else [])]
        now, status = decider.live.now, "ready"
        if self._draining.on:
            status = "stopping"
        elif self._service.admission.full:
            status = "overloaded"
        found = {"status": status, "catalog": now.catalog.name, "revision": now.label}
        return JsonAnswer({**found, "notes": notes}, 200 if status == "ready" else 503)

    async def metrics(self, request: Request) -> Response:
        """Counters, for Prometheus."""
        service = self._service
        service.metrics.seed(model.id for model in service.decider.live.now.catalog.models)
        given_up = service.log.given_up if service.log else 0
        canary, problem = service.decider.canary, bool(service.decider.live.problem)
        stopped = canary is not None and bool(canary.stopped)
        waiting = service.admission.waiting
        text = service.metrics.text(
            problem=problem, given_up=given_up, stopped=stopped, waiting=waiting
        )
        return Response(text, media_type=CONTENT_TYPE_LATEST)


def _read(body: bytes, conversation_id: str | None, caller: str) -> ChatRequest:
    return read_chat(parse_json(body), conversation_id, size=len(body), caller=caller)


def _decision(decided: Decided) -> dict[str, Any]:
    decision = decided.decision
    known = zip(decision.dimensions, decision.requirements.tolist(), strict=True)
    ids, valued = decision.pool.ids, decision.valuation
    answer: dict[str, Any] = {
        "model": decided.model,
        "fallbacks": list(decided.next_models()),
        "decision_id": decided.id,
        "rule": decided.rule,
        "knob": decided.knob,
        "cause": decision.cause.value,
        "reason": decided.reason,
        "requirements": dict(known) if decision.scored else None,
        "predicted_success": valued and dict(zip(ids, valued.success.tolist(), strict=True)),
        "predicted_cost_usd": valued and dict(zip(ids, valued.cost_usd.tolist(), strict=True)),
        "catalog_revision": decided.serving.label,
    }
    return {**answer, "receipt": decision.receipt()} if decided.request.receipt else answer


def _outcome(found: dict[str, Any]) -> OutcomeRecord:
    problems = [
        Problem(name, "is not known", "known: decision_id, quality, source, comment")
        for name in found
        if name not in ("decision_id", "quality", "source", "comment")
    ]
    decision_id, quality = found.get("decision_id"), found.get("quality")
    if not isinstance(decision_id, str) or not 0 < len(decision_id) <= 100:
        problems.append(Problem("decision_id", "is missing", "x-hydra-decision-id has it"))
    if isinstance(quality, bool) or not isinstance(quality, int | float) or not 0 <= quality <= 1:
        problems.append(Problem("quality", f"must be a number in [0, 1], got {quality!r:.60}"))
        quality = 0.0
    texts = {name: found.get(name, "") for name in ("source", "comment")}
    for name, text in texts.items():
        if not isinstance(text, str) or len(text) > 10_000:
            problems.append(Problem(name, "must be a text of at most 10,000 characters"))
    if problems:
        raise RequestError("request", problems)
    return OutcomeRecord(str(decision_id), datetime.now(UTC), float(quality), **texts)


async def _refused(request: Request, error: Exception) -> Response:
    status = next(code for kind, code in _STATUS if isinstance(error, kind))
    headers = {}
    if isinstance(error, RoutingError):
        status = error.http_status
    if isinstance(error, TooOftenError | OverloadedError):
        headers["retry-after"] = str(max(1, round(error.wait_s)))
    if isinstance(error, StrangerError):
        headers["www-authenticate"] = "Bearer"
    if status >= 500 and not isinstance(error, OverloadedError):
        _LOG.error("%s", error)
    return error_response(status, str(error), headers)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=499)


async def _fault(request: Request, error: Exception) -> Response:
    return error_response(500, "the router failed on this request; its log says why")


_STATUS = (
    (BodyTooLargeError, 413),
    (OverloadedError, 503),
    (TooOftenError, 429),
    (StrangerError, 401),
    (AccessError, 403),
    (ProblemsError, 400),
    (RoutingError, 500),
    (HydraError, 409),
)
_HANDLERS: dict[Any, Any] = {
    HydraError: _refused,
    ClientDisconnect: _gone,
    ClientGoneError: _gone,
    Exception: _fault,
}
