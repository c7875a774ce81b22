"""Asking models in order until one answers, and what each failure means for the next."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from hydra_core.server.deciding import Decided
from hydra_core.server.metrics import Metrics
from hydra_core.server.upstream.calls import Answer, Caller
from hydra_core.server.upstream.failures import NotAnsweredError
from hydra_core.server.upstream.file import Upstreams
from hydra_core.server.upstream.health import Health

_LOG = logging.getLogger(__name__)
#: Failures that say nothing about the model's health.
_NOT_HEALTH: Final = ("too_long", "retry_later")


@dataclass(slots=True)
class Attempts:
    """What was tried for one request.

    Attributes:
        failed: `model:kind` of each attempt that failed, in order.
        status: The HTTP status that the last upstream said, None where none said any.
        under_way: The model that is being asked, '' while none is.
    """

    started: float = field(default_factory=time.perf_counter)
    failed: list[str] = field(default_factory=list)
    last: NotAnsweredError | None = None
    status: int | None = None
    under_way: str = ""


@dataclass(frozen=True, slots=True)
class Asking:
    """Asks models of one process; `moved` is called with a decision and whoever else answered."""

    caller: Caller
    health: Health
    metrics: Metrics
    moved: Callable[[Decided, str], object]

    async def first_answer(self, decided: Decided, tried: Attempts) -> tuple[str, Answer]:
        """The first model that answers, in the decision's order, and its answer.

        Raises:
            NotAnsweredError: No model did: the newest failure.
        """
        catalog, upstreams = decided.serving.catalog, decided.serving.upstreams
        assert upstreams is not None
        order = [decided.model]
        while order:
            model = order.pop(0)
            try:
                return model, await self._answer(decided, upstreams, model, tried)
            except NotAnsweredError as error:
                if tried.last is None:
                    order = [name for name in decided.next_models() if name in upstreams.by_model]
                self._note(model, error, tried)
                if error.kind == "too_long":
                    window = catalog.model(model).context_window
                    order = [name for name in order if catalog.model(name).context_window > window]
        assert tried.last is not None
        raise tried.last

    async def _answer(
        self, decided: Decided, upstreams: Upstreams, model: str, tried: Attempts
    ) -> Answer:
        wait_s = self.health.wait_s(model)
        if wait_s > 0:
            raise NotAnsweredError("retry_later", wait_s=wait_s)
        tried.under_way = model
        answer = await self.caller.call(upstreams, model, decided.request)
        tried.under_way = ""
        tried.status = answer.status
        self.metrics.responded(model, answer.status)
        if not answer.rejected:
            self.health.answered(model)
        if model != decided.model:
            self.moved(decided, model)
        return answer

    def _note(self, model: str, error: NotAnsweredError, tried: Attempts) -> None:
        """Take a failure down: for the log, the metrics and the model's health."""
        tried.under_way = ""
        tried.failed.append(f"{model}:{error.kind}")
        tried.last = error
        tried.status = error.status or tried.status
        self.metrics.failed(model, error.kind)
        self.metrics.responded(model, error.status)
        if error.kind in _NOT_HEALTH:
            return
        if self.health.failed(model, error.wait_s) or error.wait_s:
            extra: dict[str, object] = {"model": model, "kind": error.kind, "status": error.status}
            extra |= {"event": "upstream_marked", "wait_s": error.wait_s or None}
            _LOG.warning("a model does not answer", extra=extra)
