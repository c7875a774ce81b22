"""Sticky sessions shared by several router processes through Redis.

Redis is never in the way of routing: while it cannot be reached the router goes on with sessions
of its own process, says so in every receipt, and tries Redis again after a pause.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from hydra_core.errors import ExtraError
from hydra_core.routing.sessions import MemorySessions

if TYPE_CHECKING:
    from redis import Redis

__all__ = ["RedisSessions"]

_LOG = logging.getLogger(__name__)


class RedisSessions:
    """Sessions in Redis, with an in-process fallback.

    Args:
        client: A `redis.Redis` with short timeouts (`from_url` makes one).
        fallback: Remembers models while Redis is away, and a copy of what goes to Redis.
        pause_s: Time without a try after Redis failed.
        clock: Seconds, monotonic.
        prefix: In front of every key.
    """

    def __init__(
        self,
        client: Redis,
        *,
        fallback: MemorySessions | None = None,
        pause_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
        prefix: str = "hydra:",
    ) -> None:
        self._client = client
        self._fallback = fallback or MemorySessions()
        self._pause_s = pause_s
        self._clock = clock
        self._prefix = prefix
        self._away_until = float("-inf")
        self._note = ""

    @classmethod
    def from_url(cls, url: str, *, timeout_s: float = 0.05) -> RedisSessions:
        """Connect to e.g. ``redis://localhost:6379/0``; nothing is sent before the first use."""
        try:
            from redis import Redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ModuleNotFoundError as error:
            raise ExtraError("stickiness in Redis", "redis") from error

        client = Redis.from_url(
            url,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),
        )
        return cls(client)

    def close(self) -> None:
        """Close the connections to Redis; the next use opens them again."""
        self._client.close()

    @property
    def note(self) -> str:
        """What a receipt should say about the store, '' when all is well."""
        return self._note

    def get(self, key: str) -> str | None:
        """The kept model, from Redis, else from this process."""
        if self._clock() >= self._away_until:
            try:
                found = self._client.get(self._prefix + key)
                self._healed()
                return found.decode() if isinstance(found, bytes) else None
            except self._errors() as error:
                self._failed(error)
        return self._fallback.get(key)

    def put(self, key: str, model: str, ttl_s: float) -> None:
        """Remember a model for `ttl_s` seconds from now, here and in Redis."""
        self._fallback.put(key, model, ttl_s)
        if self._clock() < self._away_until:
            return
        try:
            self._client.set(self._prefix + key, model, px=max(1, int(1000 * ttl_s)))
            self._healed()
        except self._errors() as error:
            self._failed(error)

    @staticmethod
    def _errors() -> tuple[type[Exception], ...]:
        from redis.exceptions import RedisError

        return (RedisError, OSError)

    def _failed(self, error: Exception) -> None:
        if not self._note:
            _LOG.warning("Redis cannot be reached, sessions stay in this process: %s", error)
        self._away_until = self._clock() + self._pause_s
        self._note = "session store unreachable: sessions are kept in this process only"

    def _healed(self) -> None:
        if self._note:
            _LOG.info("Redis is back")
        self._note = ""
