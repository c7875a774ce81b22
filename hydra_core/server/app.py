"""The routes: what a client may ask, which answer each error becomes, and how a service stops."""

import asyncio
import logging
import math
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import FrameType
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from hydra_core.base.errors import AccessError, HydraError, Problem, ProblemsError, RoutingError
from hydra_core.base.shipped import VERSION, commit
from hydra_core.catalog import parse_catalog
from hydra_core.live.canary import CANARY, MAIN
from hydra_core.predictor.bundle import Bundle
from hydra_core.server.admission import OverloadedError, RefuseWhenFull
from hydra_core.server.answers import ClientGoneError, JsonAnswer, our_headers, until_gone
from hydra_core.server.callers import (
    BodyTooLargeError,
    BodyTooSlowError,
    CallerCheck,
    TooOftenError,
    UnknownCallerError,
    read_body,
)
from hydra_core.server.chat import (
    ChatRequest,
    RequestError,
    for_actor,
    parse_json,
    read_chat,
    require_whole,
)
from hydra_core.server.deciding import Decided, RefusedError, Result, UnknownModelError
from hydra_core.server.decision_ids import (
    MOST_BYTES,
    UnknownDecisionError,
    read_outcome,
    require_rater,
)
from hydra_core.server.live import checked
from hydra_core.server.questions import (
    Asked,
    decisions_answer,
    read_decisions,
    read_systemone,
    systemone_answer,
)
from hydra_core.server.service import Service
from hydra_core.server.settings import AUTO, Settings
from hydra_core.server.teams import BudgetSpentError
from hydra_core.server.upstream.calls import Caller
from hydra_core.server.upstream.failures import NotAnsweredError
from hydra_core.server.upstream.file import parse_upstreams
from hydra_core.server.wire import Form, form_of_path
from hydra_core.store.roles import Action, Actor

_LOG = logging.getLogger(__name__)
_CONVERSATION = "x-hydra-conversation-id"
#: Bodies beyond this are read beside the event loop.
_LARGE = 100_000


def application(
    service: Service, callers: CallerCheck, bundle: Bundle, settings: Settings
) -> Starlette:
    """The ASGI application of one process; catalogs of a dry run must belong to `bundle`."""
    routes = _Routes(service, callers, bundle, settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service.decider.start()
        routes.start()
        yield
        await service.close()

    ask = routes.questions
    decisions = partial(ask, read=read_decisions, answer=decisions_answer)
    systemone = partial(ask, read=read_systemone, answer=systemone_answer)
    deciding = [
        *(Route(f"/v1{form.path}", routes.chat, methods=["POST"]) for form in Form),
        Route("/v1/messages/count_tokens", routes.count_tokens, methods=["POST"]),
        Route("/v1/decision", routes.decision, methods=["POST"]),
        Route("/v1/decisions", decisions, methods=["POST"]),
        Route("/v1/systemone", systemone, methods=["POST"]),
    ]
    paths = frozenset(route.path for route in deciding)
    return Starlette(
        routes=[
            *deciding,
            Route("/v1/outcomes", routes.outcome, methods=["POST"]),
            Route("/v1/dry-run", routes.dry_run, methods=["POST"]),
            Route("/v1/models", routes.models),
            Route("/v1/models/{ID:path}", routes.model),
            Route("/health/live", routes.live),
            Route("/health", routes.ready),
            Route("/health/ready", routes.ready),
            Route("/metrics", routes.metrics),
        ],
        lifespan=lifespan,
        middleware=[Middleware(RefuseWhenFull, admission=service.admission, paths=paths)],
        exception_handlers=HANDLERS,
    )


class _Routes:
    def __init__(
        self, service: Service, callers: CallerCheck, bundle: Bundle, settings: Settings
    ) -> None:
        self._service, self._callers, self._bundle = service, callers, bundle
        self._settings, self._most_bytes = settings, int(settings.max_body_mb * 1e6)
        self._since = int(time.time())
        self._draining = Draining(settings.not_ready_s)

    def start(self) -> None:
        """Be not ready for a while once told to stop; log the revision that is served at first."""
        self._draining.follow_signals()
        now = self._service.decider.live.now
        extra = {"event": "start", "catalog": now.catalog.name, "revision": now.label}
        _LOG.info("serving with version %s", VERSION, extra=extra)

    async def decision(self, request: Request) -> Response:
        """Which model, and why; nothing is spent."""
        actor = self._callers.admit(request, Action.READ)
        started = time.perf_counter()
        chat = await self._chat(request, actor)
        decided = await self._service.decide(chat, request.receive, remember=False)
        self._service.finish(decided, Result("decided"), started)
        return JsonAnswer(_decision(decided), headers=our_headers(decided, decided.model))

    async def questions(
        self,
        request: Request,
        read: Callable[[Mapping[str, Any]], Asked],
        answer: Callable[[Asked, Mapping[int, Decided]], dict[str, Any]],
    ) -> Response:
        """Choices among models or tiers, one decision each; nothing is spent or remembered."""
        actor = self._callers.admit(request, Action.READ)
        body = await read_body(request, self._most_bytes)
        asked = await asyncio.to_thread(lambda: read(parse_json(body)))
        known = {spec.id for spec in self._service.decider.live.now.catalog.models}
        decided: dict[int, Decided] = {}
        for place, question in enumerate(asked.questions):
            if question.options is None:
                continue
            models, started = question.models(known), time.perf_counter()
            found = {"messages": asked.messages, "hydra": {"allow": list(models or known)}}
            chat = read_chat(found, size=len(body), caller=self._caller(actor))
            one = await self._service.decide(
                for_actor(chat, actor), request.receive, remember=False
            )
            self._service.finish(one, Result("decided"), started)
            decided[place] = one
        return JsonAnswer(answer(asked, decided))

    async def chat(self, request: Request) -> Response:
        actor = self._callers.admit(request, Action.DRAFT)
        _require_caller(self._service.caller)
        return await self._service.answer(request, await self._chat(request, actor))

    async def count_tokens(self, request: Request) -> Response:
        """A request's tokens, as the upstream of its model counts them: no decision, no cost."""
        actor = self._callers.admit(request, Action.DRAFT)
        caller = _require_caller(self._service.caller)
        chat = replace(await self._chat(request, actor), counts=True)
        decide = partial(self._service.decider.decide, chat, remember=False)
        try:
            decided, _ = await self._service.admission.run(decide, request.receive)
            upstreams = decided.serving.upstreams
            assert upstreams is not None
            asked = caller.call(upstreams, decided.model, decided.request)
            answer = await until_gone(request.receive, asked)
        except RefusedError as refused:
            raise refused.error from None
        except NotAnsweredError as error:
            message = f"the upstream of {decided.model} does not count tokens ({error.kind})"
            raise UnknownModelError(message, http_status=404) from error
        answer.close()
        named = our_headers(decided, decided.model)["x-hydra-model"]
        return Response(answer.first, answer.status, {**answer.headers, "x-hydra-model": named})

    async def _chat(self, request: Request, actor: Actor) -> ChatRequest:
        """The chat request of a caller; a large one is read beside the event loop."""
        body = await read_body(request, self._most_bytes)

        def read() -> ChatRequest:
            found, form = parse_json(body), form_of_path(request.scope["path"])
            upstreams = self._service.decider.live.now.upstreams
            shared = upstreams is None or upstreams.stores(form) <= 1
            require_whole(found, form, shared=shared)
            return read_chat(
                found,
                request.headers.get(_CONVERSATION),
                size=len(body),
                caller=self._caller(actor),
                headers=request.headers,
                form=form,
            )

        chat = await asyncio.to_thread(read) if len(body) > _LARGE else read()
        return for_actor(chat, actor)

    async def outcome(self, request: Request) -> Response:
        actor = self._callers.admit(request, Action.NOTE)
        if self._service.log is None:
            raise HydraError("this service was started without --log: there is nowhere to keep it")
        found = parse_json(await read_body(request, min(MOST_BYTES, self._most_bytes)))
        caller = self._caller(actor)
        record = read_outcome(found, caller)
        require_rater(self._service.decider.ids, record.decision_id, actor, caller)
        self._service.log.add(record)
        return JsonAnswer({"decision_id": record.decision_id, "accepted": True}, 202)

    def _caller(self, actor: Actor) -> str:
        """Whose conversations and decisions they are, '' where nobody has to say who they are."""
        return actor.name if self._callers.tokens else ""

    async def dry_run(self, request: Request) -> Response:
        """Whether a catalog would be taken, by the upstreams in use or others; nothing changes."""
        self._callers.admit(request, Action.READ)
        body = await read_body(request, self._most_bytes)
        return JsonAnswer(await asyncio.to_thread(self._dry_run, body))

    def _dry_run(self, body: bytes) -> dict[str, Any]:
        found = parse_json(body)
        if not isinstance(found.get("catalog"), str):
            problem = Problem("catalog", "is missing", "send the YAML text")
            raise RequestError("request", [problem])
        try:
            catalog = parse_catalog(found["catalog"])
            given = found.get("upstreams")
            in_use = self._service.decider.live.now.upstreams
            upstreams = parse_upstreams(given) if isinstance(given, str) else in_use
            report = checked(catalog, self._bundle, upstreams, self._settings)
            return {"valid": True, **report}
        except ProblemsError as error:
            return {"valid": False, "problems": [str(one) for one in error.problems]}
        except HydraError as error:
            return {"valid": False, "problems": [str(error)]}

    async def models(self, request: Request) -> Response:
        """`auto`, and every model that the caller may ask for by name."""
        data = self._offered(request)
        ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"], "has_more": False}
        return JsonAnswer({"object": "list", "data": data, **ends})

    async def model(self, request: Request) -> Response:
        """One of the models; 404 for those that do not exist and those of others alike."""
        name, offered = str(request.path_params["ID"]), self._offered(request)
        for one in offered:
            if one["id"] == name:
                return JsonAnswer(one)
        known = ", ".join(str(one["id"]) for one in offered)
        message = f"there is no model {name[:100]!r}; there are {known}"
        raise UnknownModelError(message, http_status=404)

    def _offered(self, request: Request) -> list[dict[str, object]]:
        actor = self._callers.admit(request, Action.READ)
        now = self._service.decider.live.now
        team = now.catalog.policy.teams.get(actor.team)
        own = None if team is None else team.models
        served = (
            (spec.id, spec.provider)
            for spec in now.router.models
            if (own is None or spec.id in own) and actor.require <= spec.tags
        )
        listed = [(AUTO, "hydra"), *served]
        since = datetime.fromtimestamp(self._since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return [
            {"id": name, "object": "model", "created": self._since, "owned_by": owner,
             "type": "model", "display_name": name, "created_at": since}
            for name, owner in listed
        ]  # fmt: skip

    async def live(self, request: Request) -> Response:
        return JsonAnswer({"status": "live", "version": VERSION, "commit": commit()})

    async def ready(self, request: Request) -> Response:
        """Requests can be routed; what does not work as it should is named."""
        decider, log = self._service.decider, self._service.log
        found = (*decider.problems, log.problem if log else "", self._service.promise_ended)
        notes = [note for note in found if note]
        now, status = decider.live.now, "ready"
        if self._draining.on:
            status = "stopping"
        elif self._service.admission.full:
            status = "overloaded"
        said = {"status": status, "catalog": now.catalog.name, "revision": now.label}
        build = {"version": VERSION, "commit": commit()}
        return JsonAnswer({**said, **build, "notes": notes}, 200 if status == "ready" else 503)

    async def metrics(self, request: Request) -> Response:
        service, metrics = self._service, self._service.metrics
        decider, now = service.decider, service.decider.live.now
        metrics.seed(model.id for model in now.catalog.models)
        metrics.serving(MAIN, now.catalog.name, now.label)
        canary = decider.canary
        stopped = canary is not None and bool(canary.stopped)
        if canary is None or stopped:
            metrics.serving(CANARY)
        if canary is not None:
            then = canary.live.now
            metrics.seed(model.id for model in then.catalog.models)
            metrics.seed_arms()
            if not stopped:
                metrics.serving(CANARY, then.catalog.name, then.label)
        metrics.budgets(decider.budgets_used())
        text = metrics.text(
            problem=bool(decider.live.problem),
            stopped=stopped,
            promise_ended=bool(service.promise_ended),
        )
        return Response(text, media_type=CONTENT_TYPE_LATEST)


def _require_caller(caller: Caller | None) -> Caller:
    if caller is None:
        raise AccessError("this service was started without --upstreams: it only decides")
    return caller


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
        "cause": decided.cause,
        "reason": decided.reason,
        "requirements": dict(known) if decision.scored else None,
        "predicted_success": valued and dict(zip(ids, valued.success.tolist(), strict=True)),
        "predicted_cost_usd": valued and dict(zip(ids, valued.cost_usd.tolist(), strict=True)),
        "catalog_revision": decided.serving.label,
    }
    if decided.share is not None:
        share = decided.share
        answer["team"] = {"name": decided.request.team, "used": share.used, "note": share.note}
    return {**answer, "receipt": decision.receipt()} if decided.request.receipt else answer


class Draining:
    """Whether this process stops soon (`on`): it is not ready then, so that no new requests come.

    For `not_ready_s` it answers all the same, then it takes no more requests.
    """

    def __init__(self, not_ready_s: float) -> None:
        self._not_ready_s, self.on = not_ready_s, False

    def follow_signals(self) -> None:
        """Stand before the server's own handler of SIGTERM; a second signal goes to it at once."""
        before = signal.getsignal(signal.SIGTERM)
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or not callable(before) or self._not_ready_s <= 0:
            return
        stop, loop = before, asyncio.get_running_loop()

        def on_signal(number: int, frame: FrameType | None) -> None:
            if self.on:
                stop(number, frame)
                return
            self.on = True
            loop.call_soon_threadsafe(loop.call_later, self._not_ready_s, stop, number, None)

        signal.signal(signal.SIGTERM, on_signal)


async def _refused(request: Request, error: Exception) -> Response:
    status = next(code for kind, code in _STATUS if isinstance(error, kind))
    headers = {}
    if isinstance(error, BodyTooLargeError | BodyTooSlowError):
        headers["connection"] = "close"  # what is left of the body is not read
    if isinstance(error, RoutingError):
        status = error.http_status
    if isinstance(error, TooOftenError | OverloadedError | BudgetSpentError):
        headers["retry-after"] = str(max(1, math.ceil(error.wait_s)))
    if isinstance(error, UnknownCallerError):
        headers["www-authenticate"] = "Bearer"
    if status >= 500 and not isinstance(error, OverloadedError):
        _LOG.error("%s", error)
    said = form_of_path(request.url.path).error(status, str(error))
    return JsonAnswer(said, status, headers)


async def _unserved(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path[:100]
    served = ", ".join(route.path_format for route in request.app.routes)
    message = f"{request.method} {path} is not served; served are {served}"
    if allowed := (error.headers or {}).get("Allow"):
        message = f"{path} does not take {request.method}, but {allowed}"
    said = form_of_path(path).error(error.status_code, message)
    return JsonAnswer(said, error.status_code, error.headers)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=499)


async def _fault(request: Request, error: Exception) -> Response:
    message = "the router failed on this request; its log says why"
    return JsonAnswer(form_of_path(request.url.path).error(500, message), 500)


_STATUS = (
    (BodyTooLargeError, 413),
    (BodyTooSlowError, 408),
    (OverloadedError, 503),
    (TooOftenError, 429),
    (UnknownCallerError, 401),
    (AccessError, 403),
    (ProblemsError, 400),
    (UnknownDecisionError, 404),
    (RoutingError, 500),
    (HydraError, 409),
)
HANDLERS: dict[Any, Any] = {
    HTTPException: _unserved,
    HydraError: _refused,
    ClientDisconnect: _gone,
    ClientGoneError: _gone,
    Exception: _fault,
}
