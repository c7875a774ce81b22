"""The service behind the routes: decide, pass through with fallbacks, and tell of it once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from starlette.requests import Request
from starlette.responses import Response

from hydra_core.decision_log.writer import LogWriter
from hydra_core.routing.conversations.economics import TurnTokens, billed_usd
from hydra_core.routing.gates import gate_of
from hydra_core.server.answers import (
    ClientGoneError,
    StreamedAnswer,
    WholeAnswer,
    error_event,
    error_response,
    our_headers,
    until_gone,
)
from hydra_core.server.chat import ChatRequest
from hydra_core.server.deciding import Decided, Decider, Result, record_of
from hydra_core.server.metrics import Metrics
from hydra_core.server.tracing import Tell, no_spans
from hydra_core.server.upstream.calls import Answer, BrokeOffError, Caller, NotAnsweredError
from hydra_core.server.upstream.usage import StreamTap, Usage, usage_of

#: A client closed its connection (as nginx logs it).
_GONE = 499


@dataclass(slots=True)
class _Attempts:
    """What was tried for one request."""

    started: float
    failed: list[str] = field(default_factory=list)
    last: NotAnsweredError | None = None


class Service:
    """One process of the router.

    Args:
        decider: Chooses.
        threads: Threads that choose beside the event loop.
        caller: Asks upstreams; None for decisions only.
        log: Where decisions go; None for nowhere.
        log_text: Whether messages go there as well.
        tell: Told of every finished request.
    """

    def __init__(
        self,
        decider: Decider,
        threads: int,
        metrics: Metrics,
        caller: Caller | None = None,
        log: LogWriter | None = None,
        *,
        log_text: bool = False,
        tell: Tell = no_spans,
    ) -> None:
        self.decider, self.metrics, self.caller, self.log = decider, metrics, caller, log
        self._log_text, self._tell = log_text, tell
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="decide")

    async def close(self) -> None:
        """Finish: connections, threads, log."""
        try:
            if self.caller is not None:
                await self.caller.close()
            self._threads.shutdown()
            self.decider.close()
        finally:
            if self.log is not None:
                await asyncio.to_thread(self.log.close)

    async def decide(self, chat: ChatRequest) -> Decided:
        """A decision, made beside the event loop.

        Raises:
            RoutingError: No model can serve the request.
        """
        loop = asyncio.get_running_loop()
        decided = await loop.run_in_executor(self._threads, self.decider.decide, chat)
        self._count(decided)
        return decided

    async def answer(self, request: Request, chat: ChatRequest, size: int) -> Response:
        """Decide, ask the model, fall back along the order, and pass the answer on.

        Args:
            size: Bytes of the request's body.

        Raises:
            RoutingError: No model can serve the request.
        """
        tried = _Attempts(time.perf_counter())
        decided = await self.decide(chat)
        model = decided.model
        try:
            model, answer = await until_gone(request.receive, self._asked(decided, tried, size))
        except NotAnsweredError as error:
            self.finish(decided, Result("failed", attempts=tried.failed), tried.started)
            return _nobody(decided, error, tried)
        except ClientGoneError:
            self.finish(decided, Result("cancelled", attempts=tried.failed), tried.started)
            return Response(status_code=_GONE)
        except BaseException as error:  # whatever it is, the log has every decision
            status = "cancelled" if isinstance(error, asyncio.CancelledError) else "failed"
            self.finish(decided, Result(status, attempts=tried.failed), tried.started)
            raise
        self.metrics.first_byte(model, time.perf_counter() - tried.started)
        headers = {**answer.headers, **our_headers(decided, model)}
        result = Result("answered", model, tried.failed)
        if answer.rest is None:
            return self._whole(decided, answer, headers, result, tried.started)
        return self._streamed(decided, answer, headers, result, tried.started)

    def finish(self, decided: Decided, result: Result, started: float) -> None:
        """Tell log, metrics and spans what became of a decision."""
        latency_ms = 1e3 * (time.perf_counter() - started)
        whole = replace(result, latency_ms=latency_ms)
        self.decider.spent(decided, whole.cost_usd)
        self.metrics.finished(whole.served or decided.model, whole.status)
        if self.log is not None:
            self.log.add(record_of(decided, whole, text=self._log_text))
        self._tell(decided, whole)

    async def _asked(self, decided: Decided, tried: _Attempts, size: int) -> tuple[str, Answer]:
        """The first model that answers, in order, and its answer."""
        assert self.caller is not None
        order = [decided.model]
        for model in order:
            try:
                answer = await self.caller.call(model, decided.request, size)
            except NotAnsweredError as error:
                self.decider.health.failed(model)
                self.metrics.failed(model, error.kind)
                tried.failed.append(f"{model}:{error.kind}")
                tried.last = error
                if len(order) == 1:
                    known = self.caller.upstreams.by_model
                    order += [name for name in decided.next_models() if name in known]
            else:
                self.decider.health.answered(model)
                if model != decided.model:  # not here: sessions may be in Redis
                    self._threads.submit(self.decider.moved, decided, model)
                return model, answer
        assert tried.last is not None
        raise tried.last

    def _whole(
        self,
        decided: Decided,
        answer: Answer,
        headers: dict[str, str],
        result: Result,
        started: float,
    ) -> WholeAnswer:
        answer.close()

        def closed(gone: bool) -> None:
            told = replace(result, status="cancelled") if gone else result
            self.finish(decided, self._billed(decided, told, usage_of(answer.first)), started)

        return WholeAnswer(answer.first, answer.status, headers, closed)

    def _streamed(
        self,
        decided: Decided,
        answer: Answer,
        headers: dict[str, str],
        result: Result,
        started: float,
    ) -> StreamedAnswer:
        tap = StreamTap(strip=not decided.request.wants_usage)
        broken: list[str] = []

        async def pieces() -> AsyncGenerator[bytes, None]:
            assert answer.rest is not None
            try:
                if ready := tap.feed(answer.first):
                    yield ready
                async for piece in answer.rest:
                    if ready := tap.feed(piece):
                        yield ready
            except BrokeOffError:
                self.decider.health.failed(result.served)
                broken.append(f"{result.served}:broke_off")
                yield error_event(f"{result.served} broke off in the middle of its answer")
                return
            if last := tap.rest():
                yield last

        def closed(gone: bool) -> None:
            answer.close()
            status = "cancelled" if gone else "failed" if broken else "answered"
            told = replace(result, status=status, attempts=(*result.attempts, *broken))
            self.finish(decided, self._billed(decided, told, tap.usage), started)

        return StreamedAnswer(answer.status, headers, pieces(), closed)

    def _billed(self, decided: Decided, result: Result, usage: Usage | None) -> Result:
        """The result with tokens and cost, by the catalog's prices; without where not reported."""
        if usage is None:
            return result
        spec = decided.serving.catalog.model(result.served)
        fresh = usage.input - usage.cached
        cost_usd = billed_usd(spec, TurnTokens(usage.cached, fresh, usage.output))
        self.metrics.billed(result.served, fresh, usage.cached, usage.output, cost_usd)
        return replace(
            result,
            input_tokens=usage.input,
            output_tokens=usage.output,
            cached_tokens=usage.cached,
            cost_usd=cost_usd,
        )

    def _count(self, decided: Decided) -> None:
        decision, catalog = decided.decision, decided.serving.catalog
        query = decision.query or decided.request.query
        gates = []
        for model in decision.gates:
            gate = gate_of(catalog.model(model), query)
            if gate is not None:
                gates.append((model, gate))
        self.metrics.decided(decision, gates, decided.decide_ms / 1e3)


def _nobody(decided: Decided, error: NotAnsweredError, tried: _Attempts) -> Response:
    """No model answered: the last upstream's own words where it had any."""
    headers = our_headers(decided, decided.model)
    if error.status is not None and error.kind != "refused_key":
        return Response(error.body, error.status, {**error.headers, **headers})
    status = 504 if error.kind == "timeout" else 502
    told = ", ".join(tried.failed)
    return error_response(status, f"no model answered: {told}", headers, code="no_model_answered")
