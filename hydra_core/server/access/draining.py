"""Stopping in two steps: not ready first, so that no new requests come, then what is on its way."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from types import FrameType


class Draining:
    """Whether this process was told to stop.

    Args:
        not_ready_s: How long it is not ready, but answers, before it takes no more requests.
    """

    def __init__(self, not_ready_s: float) -> None:
        self._not_ready_s, self._on = not_ready_s, False

    @property
    def on(self) -> bool:
        """Whether the process stops soon."""
        return self._on

    def follow_signals(self) -> None:
        """Stand before the server's own handler of SIGTERM; a second signal goes to it at once."""
        before = signal.getsignal(signal.SIGTERM)
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or not callable(before) or self._not_ready_s <= 0:
            return
        signal.signal(signal.SIGTERM, self._handler(before, asyncio.get_running_loop()))

    def _handler(
        self, stop: Callable[[int, FrameType | None], object], loop: asyncio.AbstractEventLoop
    ) -> Callable[[int, FrameType | None], None]:
        def on_signal(number: int, frame: FrameType | None) -> None:
            if self._on:
                stop(number, frame)
                return
            self._on = True
            loop.call_soon_threadsafe(loop.call_later, self._not_ready_s, stop, number, None)

        return on_signal
