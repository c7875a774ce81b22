"""How many requests may wait to be decided, and for how long; the rest is refused at once.

Without a bound every request after a burst waits for decisions that nobody is waiting for any more.
"""

import asyncio
import json
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from starlette.types import ASGIApp, Receive, Scope, Send

from hydra_core.base.errors import HydraError
from hydra_core.server.answers import ClientGoneError, until_gone
from hydra_core.server.telemetry import Metrics
from hydra_core.server.wire import form_of_path

_T = TypeVar("_T")
#: Weight of the newest decision in the mean of how long one takes.
_NEWEST: Final = 0.05


class OverloadedError(HydraError):
    """There are more requests than can be decided (503); ask again after `wait_s`."""

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s
        super().__init__("more requests came than can be decided; ask again")


class Admission:
    """Runs decisions beside the event loop, `threads` at once, and lets `most_waiting` others wait.

    Args:
        most_wait_s: What has waited longer is dropped.

    Attributes:
        waiting: Requests that wait to be decided.
    """

    def __init__(
        self, threads: int, metrics: Metrics, most_waiting: int = 64, most_wait_s: float = 1.0
    ) -> None:
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="decide")
        self._threads, self._metrics = threads, metrics
        self._most_waiting, self._most_wait_s = most_waiting, most_wait_s
        self._free = asyncio.Semaphore(threads)
        self.waiting, self._mean_s = 0, 0.01

    @property
    def full(self) -> bool:
        """Whether another request would be refused."""
        return self.waiting >= self._most_waiting

    def refused(self) -> OverloadedError:
        """Count a request for which there is no room, and say when to ask again."""
        self._metrics.drops.labels("full").inc()
        return OverloadedError(self._queue_s())

    async def run(self, work: Callable[[], _T], receive: Receive) -> tuple[_T, float]:
        """The result of `work` and how long it waited for its turn, in seconds.

        Raises:
            OverloadedError: As many wait as may, or this one has waited too long.
            ClientGoneError: The client left before its turn, as `receive` says.
        """
        came = time.perf_counter()
        if self._free.locked():
            if self.full:
                raise self.refused()
            await self._turn(receive)
        else:
            await self._free.acquire()
        began = time.perf_counter()
        self._metrics.wait.observe(began - came)
        result = asyncio.get_running_loop().run_in_executor(self.pool, work)
        result.add_done_callback(lambda _: self._done(began))
        return await asyncio.shield(result), began - came

    async def _turn(self, receive: Receive) -> None:
        self._wait(1)
        try:
            async with asyncio.timeout(self._most_wait_s):
                await until_gone(receive, self._free.acquire())
        except TimeoutError as error:
            self._metrics.drops.labels("late").inc()
            raise OverloadedError(self._queue_s()) from error
        except ClientGoneError:
            self._metrics.drops.labels("gone").inc()
            raise
        finally:
            self._wait(-1)

    def _wait(self, more: int) -> None:
        self.waiting += more
        self._metrics.depth.set(self.waiting)

    def _done(self, began: float) -> None:
        took_s = time.perf_counter() - began
        self._mean_s += _NEWEST * (took_s - self._mean_s)
        self._free.release()

    def _queue_s(self) -> float:
        return max(1.0, math.ceil(self.waiting * self._mean_s / self._threads))


class RefuseWhenFull:
    """Refuses what would be decided on `paths` while the queue is full, before anything is read.

    Refusing must cost next to nothing: what it takes is taken from the requests that are served.
    """

    def __init__(self, app: ASGIApp, admission: Admission, paths: frozenset[str]) -> None:
        self._app, self._admission = app, admission
        why = str(OverloadedError(1.0))
        said = {path: form_of_path(path).error(503, why) for path in paths}
        self._bodies = {p: json.dumps(e, separators=(",", ":")).encode() for p, e in said.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = self._bodies.get(scope["path"]) if scope["type"] == "http" else None
        if body is None or not self._admission.full:
            await self._app(scope, receive, send)
            return
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"retry-after", b"%d" % self._admission.refused().wait_s),
        ]
        await send({"type": "http.response.start", "status": 503, "headers": headers})
        await send({"type": "http.response.body", "body": body})
