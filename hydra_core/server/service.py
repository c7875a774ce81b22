"""The service behind the routes: decide, pass through with fallbacks, bill and record it once."""

import asyncio
import logging
import math
import secrets
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from hydra_core.base.digests import text_sha256
from hydra_core.decision_log.records import DecisionRecord
from hydra_core.decision_log.writer import LogWriter
from hydra_core.routing.gates import Gate, gate_of
from hydra_core.routing.query import Query
from hydra_core.server.admission import Admission
from hydra_core.server.alerts import Alerts, PromiseWatch
from hydra_core.server.answers import (
    ClientGoneError,
    JsonAnswer,
    StreamedAnswer,
    WholeAnswer,
    our_headers,
    until_gone,
)
from hydra_core.server.chat import ChatRequest
from hydra_core.server.deciding import (
    NAMED,
    Decided,
    Decider,
    RefusedError,
    Result,
    vetoed_choice,
)
from hydra_core.server.live import Serving
from hydra_core.server.settings import AUTO
from hydra_core.server.telemetry import Metrics, OnFinish
from hydra_core.server.upstream.calls import Answer, Caller
from hydra_core.server.upstream.failures import OF_REQUESTS, NotAnsweredError
from hydra_core.server.upstream.file import Upstreams
from hydra_core.server.upstream.reading import (
    BrokeOffError,
    Counted,
    Seen,
    estimate_of,
    usage_of,
)

_LOG = logging.getLogger(__name__)
_LONGEST_WHY = 1_000
#: A client closed its connection (as nginx logs it).
_GONE = 499
#: Failures whose answer says something that the client can act on.
_SHOWN = ("rate_limited", "server_error", "timeout", *OF_REQUESTS)
#: A client may send any number of tags, of any length.
_MOST_TAGS: Final = 20
_LONGEST_TAG: Final = 100
#: Failures that say nothing about the model's health.
_NOT_HEALTH: Final = (*OF_REQUESTS, "retry_later")


@dataclass(slots=True)
class _Attempts:
    """What was tried for one request.

    Attributes:
        failed: `model:kind` of each attempt that failed, in order.
        status: The HTTP status that the last upstream said, None where none said any.
        under_way: The model that is being asked, '' while none is.
        asked: When the last model was asked.
    """

    started: float = field(default_factory=time.perf_counter)
    failed: list[str] = field(default_factory=list)
    last: NotAnsweredError | None = None
    status: int | None = None
    under_way: str = ""
    asked: float = 0.0


class Service:
    """One process of the router.

    Args:
        admission: Lets decisions run beside the event loop, and so many wait.
        caller: Asks upstreams; None for decisions only.
        log: Where decisions go, with `log_text` the messages as well; None for nowhere.
        on_finish: Called for every finished request.
        promise: None without a log.
        alerts: Tells somebody of what goes wrong; None for nobody.
    """

    def __init__(
        self,
        decider: Decider,
        admission: Admission,
        metrics: Metrics,
        caller: Caller | None = None,
        log: LogWriter | None = None,
        *,
        log_text: bool = False,
        on_finish: OnFinish | None = None,
        promise: PromiseWatch | None = None,
        alerts: Alerts | None = None,
    ) -> None:
        self.decider, self.metrics, self.caller, self.log = decider, metrics, caller, log
        self._log_text, self._on_finish, self._promise = log_text, on_finish, promise
        self.admission = admission
        self._watches = [watch for watch in (promise, alerts) if watch is not None]
        for watch in self._watches:
            watch.start()

    @property
    def promise_ended(self) -> str:
        """Why the catalog's promise no longer covers its traffic; '' while it does."""
        return "" if self._promise is None else self._promise.ended

    async def close(self) -> None:
        """Finish: connections, threads, log."""
        for watch in self._watches:
            watch.close()
        try:
            if self.caller is not None:
                await self.caller.close()
            self.admission.pool.shutdown()
            self.decider.close()
            if self.decider.teams.ledger is not None:
                self.decider.teams.ledger.close()
        finally:
            if self.log is not None:
                await asyncio.to_thread(self.log.close)

    async def decide(
        self, chat: ChatRequest, receive: Receive, *, remember: bool = True
    ) -> Decided:
        """A decision, made beside the event loop.

        Args:
            remember: Whether the conversation is on the model from now on.

        Raises:
            RoutingError: No model can serve the request.
            OverloadedError: Too many requests wait.
            ClientGoneError: The client left before its turn, as `receive` says.
        """
        decide = partial(self.decider.decide, chat, remember=remember)
        try:
            decided, wait_s = await self.admission.run(decide, receive)
        except RefusedError as refused:
            self._refused(chat, refused)
            raise refused.error from None
        decision = decided.decision
        ruled_out = decision.gates and chat.model == AUTO  # a client that names one rules out none
        gates = _gates(decided.serving, decision.query or chat.query) if ruled_out else ()
        self.metrics.decided(decided, gates, wait_s + decided.decide_ms / 1e3)
        return decided

    async def answer(self, request: Request, chat: ChatRequest) -> Response:
        """Decide, ask the model, fall back along the order, and pass the answer on.

        Raises:
            RoutingError: No model can serve the request.
        """
        tried = _Attempts()
        decided = await self.decide(chat, request.receive)
        try:
            asked = self._first_answer(decided, tried)
            model, answer = await until_gone(request.receive, asked)
        except NotAnsweredError as error:
            status = "rejected" if error.kind in OF_REQUESTS else "failed"
            self._ended(decided, tried, status)
            return _nobody(decided, error, tried, self._soonest_s(decided))
        except ClientGoneError:
            self._ended(decided, tried, "cancelled")
            return Response(status_code=_GONE)
        except BaseException as error:  # whatever it is, the log has every decision
            cancelled = isinstance(error, asyncio.CancelledError)
            self._ended(decided, tried, "cancelled" if cancelled else "failed")
            raise
        now = time.perf_counter()
        self.metrics.first_byte(model, now - tried.started)
        if answer.rest is not None:
            self.decider.expected.began(model, now - tried.asked)
        return self._pass_on(decided, tried, model, answer)

    async def _first_answer(self, decided: Decided, tried: _Attempts) -> tuple[str, Answer]:
        """The first model that answers, in the decision's order, else the newest failure."""
        catalog, upstreams = decided.serving.catalog, decided.serving.upstreams
        assert upstreams is not None
        order = [decided.model]
        while order:
            model = order.pop(0)
            try:
                return model, await self._ask(decided, upstreams, model, tried)
            except NotAnsweredError as error:
                if tried.last is None:
                    order = [name for name in decided.next_models() if name in upstreams.by_model]
                self._note(model, error, tried)
                if error.kind == "too_long":
                    window = catalog.model(model).context_window
                    order = [name for name in order if catalog.model(name).context_window > window]
        assert tried.last is not None
        raise tried.last

    async def _ask(
        self, decided: Decided, upstreams: Upstreams, model: str, tried: _Attempts
    ) -> Answer:
        assert self.caller is not None
        wait_s = self.decider.health.wait_s(model)
        if wait_s > 0:
            raise NotAnsweredError("retry_later", wait_s=wait_s)
        tried.under_way, tried.asked = model, time.perf_counter()
        answer = await self.caller.call(upstreams, model, decided.request)
        tried.under_way, tried.status = "", answer.status
        self.metrics.responded(model, answer.status)
        if not answer.rejected:
            self.decider.health.answered(model)
        if model != decided.model:  # moved beside the event loop: sessions may be in Redis
            self.admission.pool.submit(self.decider.moved, decided, model)
        return answer

    def _soonest_s(self, decided: Decided) -> float:
        """Seconds until a model that may serve the request can be asked; 0 where none waits."""
        gates, ids = decided.decision.gates, decided.decision.pool.ids
        waits = (self.decider.health.wait_s(name) for name in ids if name not in gates)
        return min((wait_s for wait_s in waits if wait_s > 0), default=0.0)

    def _note(self, model: str, error: NotAnsweredError, tried: _Attempts) -> None:
        """Take a failure down: for the log, the metrics and the model's health."""
        tried.under_way, tried.last = "", error
        tried.failed.append(f"{model}:{error.kind}")
        tried.status = error.status or tried.status
        self.metrics.failed(model, error.kind)
        self.metrics.responded(model, error.status)
        if error.kind in _NOT_HEALTH:
            return
        if self.decider.health.failed(model, error.wait_s) or error.wait_s:
            extra: dict[str, object] = {"model": model, "kind": error.kind, "status": error.status}
            extra |= {"event": "upstream_marked", "wait_s": error.wait_s or None}
            _LOG.warning("a model does not answer", extra=extra)

    def finish(self, decided: Decided, result: Result, started: float) -> None:
        """Record in log, metrics and spans what became of a decision."""
        latency_ms = 1e3 * (time.perf_counter() - started)
        whole = replace(result, latency_ms=latency_ms)
        self.decider.spent(decided, whole.cost_usd or whole.about_usd)
        if decided.share is not None:
            self._settle(decided, whole)
        self.metrics.finished(whole.served or decided.model, whole.status)
        if decided.arm:
            failed = whole.status == "failed" or bool(whole.attempts)
            self.metrics.armed(decided.arm, whole.status, first_failed=failed)
        if self.log is not None:
            self._write(self.log, record_of(decided, whole, text=self._log_text))
        if self._on_finish is not None:
            self._on_finish(decided, whole)

    def _write(self, log: LogWriter, record: DecisionRecord) -> None:
        log.add(record)
        self.metrics.given_up.set(log.given_up)

    def _settle(self, decided: Decided, result: Result) -> None:
        """Count what a team's request cost, beside the event loop: it is written to a file.

        A request that no model took costs nothing; where an answer's tokens are not known, what
        they cost about counts.
        """
        cost = result.cost_usd or result.about_usd
        unspent = not result.served or result.status == "rejected"
        cost = 0.0 if cost is None and unspent else cost
        self.admission.pool.submit(self.decider.teams.settle, decided.share, cost)

    def _ended(self, decided: Decided, tried: _Attempts, status: str) -> None:
        """Finish a request to which no model's answer was given."""
        result = Result(status, attempts=tuple(tried.failed), upstream_status=tried.status)
        if status == "cancelled" and tried.under_way:  # that model has read the request
            result = billed(decided, result, Seen(), self.metrics, tried.under_way)
        self.finish(decided, result, tried.started)

    def _refused(self, chat: ChatRequest, refused: RefusedError) -> None:
        """Record in log and metrics a request that no model may serve."""
        serving, error = refused.serving, refused.error
        known = chat.model in {spec.id for spec in serving.catalog.models}
        if known or chat.model == AUTO:
            self.metrics.gated(_gates(serving, chat.query))
        self.metrics.finished(chat.model if known else "", "refused")
        if refused.arm:
            self.metrics.armed(refused.arm, "refused", first_failed=False)
        extra = {"event": "request_refused", "status": error.http_status}
        revision = {"catalog": serving.catalog.name, "revision": serving.label}
        _LOG.info("%s", str(error)[:_LONGEST_WHY], extra={**extra, **revision})
        if self.log is not None:
            record = refusal_record(
                serving, chat, str(error), datetime.now(UTC), text=self._log_text
            )
            self._write(self.log, replace(record, arm=refused.arm))

    def _pass_on(self, decided: Decided, tried: _Attempts, model: str, answer: Answer) -> Response:
        """The answer for the client; the request is finished once it has it, or is gone."""
        headers = {**answer.headers, **our_headers(decided, model)}
        broken: list[str] = []

        async def pieces() -> AsyncGenerator[bytes, None]:
            assert answer.rest is not None
            yield answer.first
            try:
                async for piece in answer.rest:
                    yield piece
            except BrokeOffError as broke:
                said = broke.rejected
                if said is not None:
                    answer.status = said.status or 400
                else:
                    self.decider.health.failed(model)
                    self.metrics.failed(model, "broke_off")
                    broken.append(f"{model}:broke_off")
                message = f"{model} broke off in the middle of its answer"
                yield decided.request.form.error_event(message, said.body if said else b"")

        def closed(gone: bool) -> None:
            answer.close()
            # clients hang up once they have the last event, or an error
            left = gone and not (answer.seen.done or broken or answer.rejected)
            status = "rejected" if answer.rejected else "failed" if broken else "answered"
            status = "cancelled" if left else status
            attempts = (*tried.failed, *broken)
            ended = Result(status, model, attempts, upstream_status=answer.status)
            ended = billed(decided, ended, answer.seen, self.metrics)
            if status == "answered" and ended.output_tokens:
                took_s = time.perf_counter() - tried.asked  # of this model alone
                self.decider.expected.answered(model, took_s, ended.output_tokens)
            self.finish(decided, ended, tried.started)

        if answer.rest is None:
            answer.close()
            return WholeAnswer(answer.first, answer.status, headers, closed)
        return StreamedAnswer(answer.status, headers, pieces(), closed)


def _gates(serving: Serving, query: Query) -> list[tuple[str, Gate]]:
    found = ((spec.id, gate_of(spec, query)) for spec in serving.router.models)
    return [(model, gate) for model, gate in found if gate is not None]


def _nobody(
    decided: Decided, error: NotAnsweredError, tried: _Attempts, soonest_s: float
) -> Response:
    """No model answered: the last upstream's own words where the client can act on them."""
    headers = our_headers(decided, decided.model)
    if error.kind == "retry_later" or (soonest_s and "retry-after" in error.headers):
        headers["retry-after"] = str(max(1, math.ceil(soonest_s)))
    if error.kind in _SHOWN and error.body and 400 <= (error.status or 0) < 600:
        return Response(error.body, int(error.status or 0), {**error.headers, **headers})
    failed = ", ".join(tried.failed)
    status = 504 if error.kind == "timeout" else 502
    status = 429 if error.kind == "retry_later" else status
    message, form = f"no model answered: {failed}", decided.request.form
    return JsonAnswer(form.error(status, message, "no_model_answered"), status, headers)


def billed(
    decided: Decided, result: Result, seen: Seen, metrics: Metrics, asked: str = ""
) -> Result:
    """The result with tokens and cost, by the catalog's prices, counted in the metrics.

    A whole answer without counts that can be true has no cost, only `about_usd`; of a stream that
    broke off, or was cancelled or rejected in its middle, the tokens are estimated. What such a
    stream said of its tokens at its start, as the Messages form does, counts for those that were
    read alone.

    Args:
        asked: The model that has not answered yet; '' for the one that did.
    """
    if result.status == "rejected" and not seen.written:
        return result
    model = asked or result.served
    spec = decided.serving.catalog.model(model)
    usage, price = usage_of(seen.usage, decided.request, spec), spec.price
    kind = Counted.COUNTED
    if usage is None:
        usage = estimate_of(decided.request, seen.written)
        kind = Counted.UNKNOWN if result.status == "answered" else Counted.ESTIMATED
    elif not seen.whole:
        written = estimate_of(decided.request, seen.written).output
        usage, kind = replace(usage, output=max(usage.output, written)), Counted.ESTIMATED
    cost_usd = price.usd_of_one(usage.input, usage.output, usage.cached, size=usage.size)
    if kind is Counted.COUNTED:
        fresh = usage.input - usage.cached
        metrics.billed(model, fresh, usage.cached, usage.output, cost_usd)
    else:
        metrics.uncounted(model, kind, cost_usd)
        result = replace(result, about_usd=cost_usd)
    if kind is Counted.UNKNOWN:
        return replace(result, usage=kind.value)
    return replace(
        result,
        input_tokens=usage.input,
        output_tokens=usage.output,
        cached_tokens=usage.cached,
        cost_usd=cost_usd,
        usage=kind.value,
    )


def record_of(decided: Decided, result: Result, *, text: bool) -> DecisionRecord:
    """The log's record of a decision and what became of it; the message itself only with `text`."""
    decision, serving = decided.decision, decided.serving
    fell_back = bool(result.served) and result.served != decided.model
    place, valued = decision.pool.ids.index(decided.model), decision.valuation
    return DecisionRecord(
        decision_id=decided.id,
        at=decided.at,
        rule=decided.rule,
        knob=decided.knob,
        dimensions=decision.dimensions,
        requirements=tuple(decision.requirements.tolist()) if decision.scored else None,
        candidates=decision.pool.ids,
        shortfalls=tuple(decision.shortfalls.tolist()) if decision.scored else None,
        predicted_success=None if valued is None else tuple(valued.success.tolist()),
        predicted_cost_usd=None if valued is None else tuple(valued.cost_usd.tolist()),
        valued_by=None if valued is None else valued.valuer.digest,
        chosen=decided.model,
        cause=decided.cause,
        propensity=None if fell_back else decided.propensities[place],
        propensities=None if fell_back else decided.propensities,
        keep_probability=1.0 if decision.cause.keeps else 0.0,
        decide_ms=decided.decide_ms,
        distance=None if decision.reading is None else decision.reading.distance,
        arm=decided.arm,
        vetoed=vetoed_choice(decision),
        **{name: getattr(result, name) for name in Result.__slots__},
        **_asked(serving, decided.request, text=text),
    )


def refusal_record(
    serving: Serving, request: ChatRequest, why: str, at: datetime, *, text: bool
) -> DecisionRecord:
    """The log's record of a request that no model may serve."""
    policy = serving.catalog.policy
    team = policy.teams.get(request.team)
    return DecisionRecord(
        decision_id=secrets.token_hex(12),
        at=at,
        rule=NAMED if request.model != AUTO else policy.rule.value,
        knob=policy.knob if team is None else team.knob(policy),
        dimensions=serving.catalog.dimensions,
        status="refused",
        refusal=why[:1_000],
        **_asked(serving, request, text=text),
    )


def _asked(serving: Serving, request: ChatRequest, *, text: bool) -> dict[str, Any]:
    """The fields that say who asked what, of which catalog."""
    query, catalog = request.query, serving.catalog
    return {
        "catalog": catalog.name,
        "catalog_digest": catalog.digest,
        "revision": serving.revision,
        "policy_digest": serving.policy_digest,
        "conversation_id": query.conversation_id,
        "turn": query.turn,
        "text_sha256": text_sha256(query.text),
        "text": query.text if text else None,
        "context": query.context or None if text else None,
        "predictor": catalog.predictor_fingerprint,
        "has_image": query.has_image,
        "needs_tools": query.needs_tools,
        "context_tokens": query.window_tokens,
        "allow": _listed(serving, query.allow),
        "deny": _listed(serving, query.deny) or (),
        "caller": request.caller,
        "team": request.team,
        "harness_tokens": query.harness_tokens,
        "stalled": query.stalled,
        "needs": tuple(sorted(query.needs)),
        "require": tuple(tag[:_LONGEST_TAG] for tag in sorted(query.require)[:_MOST_TAGS]),
    }


def _listed(serving: Serving, names: frozenset[str] | None) -> tuple[str, ...] | None:
    """Those of the names that the catalog knows: a client may send any number of others."""
    if names is None:
        return None
    return tuple(sorted(spec.id for spec in serving.catalog.models if spec.id in names))
