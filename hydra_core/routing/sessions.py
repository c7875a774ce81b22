"""Sticky sessions: which model a conversation keeps, and what its prompt cache is worth.

Paper section "Prompt-cache-preserving sticky routing". The router is asked on turn 1, after a
compaction, and when the kept model cannot serve; every other turn reuses the kept model, so that
the provider's prompt cache stays warm. In the adaptive mode every turn is scored, and the kept
model is left once it falls short by more than tau and a margin.

On the same model the history is billed at the cached input price, after a switch in full. Effort
levels that share the prompt cache of their base count as one model here.

Several router processes share sessions through Redis, which is never in the way of routing: while
it cannot be reached the router goes on with sessions of its own process, says so in every receipt,
and tries Redis again after a pause.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from hydra_core.base.errors import ExtraError
from hydra_core.base.tokens import text_tokens
from hydra_core.base.types import Catalog, ModelSpec, StickyMode
from hydra_core.routing.decision import Cause, Decision
from hydra_core.routing.query import Query

if TYPE_CHECKING:
    from redis import Redis


class Sessions(Protocol):
    """Where kept models are remembered. `note` says what is wrong, '' when nothing is."""

    def get(self, key: str) -> str | None:
        """The kept model, or None when there is none or it has expired."""

    def put(self, key: str, model: str, ttl_s: float) -> None:
        """Remember a model for `ttl_s` seconds from now."""

    @property
    def note(self) -> str: ...


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """Where to look for a kept model and where to remember this turn's, None for neither."""

    look_up: str | None
    remember: str | None


def session_keys(mode: StickyMode, query: Query) -> SessionKeys:
    """The keys of one turn.

    Per-session and adaptive: the conversation id. Per-content: the id and the SHA-256 of the user
    messages so far, so that an edited or forked history is routed anew. Per-request: none.
    """
    if mode is StickyMode.PER_REQUEST or query.conversation_id is None:
        return SessionKeys(None, None)
    if mode in (StickyMode.PER_SESSION, StickyMode.ADAPTIVE):
        key = f"session:{query.conversation_id}"
        return SessionKeys(key, key)
    before, after = query.prefix, (*query.prefix, query.text)
    remember = f"content:{query.conversation_id}:{_digest(after)}"
    if query.continues:  # the request before this one ended with the same message
        return SessionKeys(remember, remember)
    return SessionKeys(
        f"content:{query.conversation_id}:{_digest(before)}" if before else None, remember
    )


def missing_prefix(mode: StickyMode, query: Query | None) -> str:
    """What a receipt says where per-content stickiness cannot know a later turn; '' else."""
    if mode is not StickyMode.PER_CONTENT or query is None or query.conversation_id is None:
        return ""
    if query.turn == 1 or query.prefix:
        return ""
    return (
        f"turn {query.turn} came without the earlier user messages (prefix), so stickiness per "
        "content could not recognise the conversation and the turn was routed afresh"
    )


def _digest(messages: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for message in messages:
        raw = message.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return digest.hexdigest()


class MemorySessions:
    """Sessions of one process: bounded, expiring, safe between threads.

    Oldest-used conversations are forgotten beyond `max_sessions`.
    """

    note = ""

    def __init__(
        self, max_sessions: int = 100_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max, self._clock = max_sessions, clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: str) -> str | None:
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            model, expires = found
            if expires <= self._clock():
                del self._kept[key]
                return None
            self._kept.move_to_end(key)
            return model

    def put(self, key: str, model: str, ttl_s: float) -> None:
        with self._lock:
            self._kept[key] = (model, self._clock() + ttl_s)
            self._kept.move_to_end(key)
            while len(self._kept) > self._max:
                self._kept.popitem(last=False)


_LOG = logging.getLogger(__name__)
#: Conversations that are remembered for Redis while it is away; the oldest are dropped.
_MOST_UNSENT: Final = 100_000
_PREFIX: Final = "hydra:"
_WRITTEN: Final = re.compile(rb"([0-9]{1,15}) ([0-9]{1,15}) (\S{1,512})")


class _Kept(NamedTuple):
    """A remembered model, as Redis holds it: `moment lifetime model`, both in milliseconds."""

    at_ms: int
    ttl_ms: int
    model: str

    @property
    def until_ms(self) -> int:
        return self.at_ms + self.ttl_ms

    def __str__(self) -> str:
        return f"{self.at_ms} {self.ttl_ms} {self.model}"


def redis_client(url: str, timeout_s: float = 0.05) -> Redis:
    """A client that gives up soon, so that Redis is never in the way; nothing is sent yet.

    Raises:
        ExtraError: The package redis is not installed.
    """
    try:
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ModuleNotFoundError as error:
        raise ExtraError("sharing between workers through Redis", "redis") from error

    return Redis.from_url(
        url,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=Retry(NoBackoff(), 0),
    )


class RedisSessions:
    """Sessions in Redis, with an in-process fallback.

    Args:
        client: A `redis.Redis` with short timeouts (`from_url` makes one).
        pause_s: Time without a try after Redis failed.
        clock: Seconds, monotonic.
        now: Seconds since 1970, to tell which of two processes remembered last.
    """

    def __init__(
        self,
        client: Redis,
        *,
        pause_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client, self._pause_s, self._clock, self._now = client, pause_s, clock, now
        self._lock = threading.Lock()  # of what is not sent yet
        self._unsent: OrderedDict[str, _Kept] = OrderedDict()
        self._fallback = MemorySessions()  # while Redis is away; a copy of what goes to it
        self._away_until, self.note = float("-inf"), ""

    @classmethod
    def from_url(cls, url: str, *, timeout_s: float = 0.05) -> RedisSessions:
        """Connect to e.g. ``redis://localhost:6379/0``; nothing is sent before the first use."""
        return cls(redis_client(url, timeout_s))

    def close(self) -> None:
        """Close the connections to Redis; the next use opens them again."""
        self._client.close()

    def get(self, key: str) -> str | None:
        if self._clock() >= self._away_until:
            try:
                found = _read(self._client.get(_PREFIX + key), key)
                self._healed()
                return self._newer(key, found)
            except self._errors() as error:
                self._failed(error)
        return self._fallback.get(key)

    def put(self, key: str, model: str, ttl_s: float) -> None:
        kept = _Kept(int(1000 * self._now()), int(1000 * ttl_s), model)
        self._fallback.put(key, model, ttl_s)
        with self._lock:
            self._unsent[key] = kept
            self._unsent.move_to_end(key)
            if len(self._unsent) > _MOST_UNSENT:
                self._unsent.popitem(last=False)
        if self._clock() < self._away_until:
            return
        try:
            self._send(key, kept)
            self._healed()
        except self._errors() as error:
            self._failed(error)

    def _newer(self, key: str, found: _Kept | None) -> str | None:
        """What Redis has, or what was remembered here since while it was away."""
        mine, now_ms = self._unsent.get(key), int(1000 * self._now())
        if mine is not None:
            alive = mine.until_ms > now_ms
            if alive and (found is None or mine.at_ms >= found.at_ms):
                self._send(key, mine)
                return mine.model
            self._sent(key, mine)
        if found is None:
            return None
        self._fallback.put(key, found.model, (found.until_ms - now_ms) / 1000)
        return found.model

    def _send(self, key: str, kept: _Kept) -> None:
        left_ms = kept.until_ms - int(1000 * self._now())
        self._client.set(_PREFIX + key, str(kept), px=max(1, left_ms))
        self._sent(key, kept)

    def _sent(self, key: str, kept: _Kept) -> None:
        """Nothing waits for Redis any more, but what another thread has remembered since."""
        with self._lock:
            if self._unsent.get(key) is kept:
                del self._unsent[key]

    @staticmethod
    def _errors() -> tuple[type[Exception], ...]:
        from redis.exceptions import RedisError

        return (RedisError, OSError)

    def _failed(self, error: Exception) -> None:
        if not self.note:
            _LOG.warning("Redis cannot be reached, sessions stay in this process: %s", error)
        self._away_until = self._clock() + self._pause_s
        self.note = "session store unreachable: sessions are kept in this process only"

    def _healed(self) -> None:
        if self.note:
            _LOG.info("Redis is back")
        self.note = ""


def _read(value: object, key: str) -> _Kept | None:
    """What Redis holds; something else than we wrote is told and not used."""
    if value is None:
        return None
    found = _WRITTEN.fullmatch(value) if isinstance(value, bytes) else None
    try:
        if found is not None:
            return _Kept(int(found[1]), int(found[2]), found[3].decode())
    except UnicodeDecodeError:
        pass
    _LOG.warning("Redis holds a damaged value for %s; the turn is routed afresh", ascii(key[:80]))
    return None


def kept_because(
    decision: Decision, current: str, catalog: Catalog, *, fresh: bool
) -> Cause | None:
    """Why this turn stays on `current`, None when it goes where the rule says (`decision`).

    Below the sticky threshold it stays (the paper's gamma). In the mode adaptive it also stays
    while the shortfall is within tau and the margin, or, under the value rule, while the other
    model is not worth more than the prompt cache that is lost, at the catalog's prices. A `fresh`
    history was rewritten, so there is no prompt cache to lose.
    """
    sticky = catalog.policy.sticky
    asked = decision.requirements[: -1 if decision.pool.level else None]  # no query asks the level
    if float(asked.max()) < sticky.threshold:
        return Cause.KEPT_BELOW_THRESHOLD
    if sticky.mode is not StickyMode.ADAPTIVE or fresh:
        return None
    i = decision.pool.ids.index(current)
    if decision.valuation is None:
        near = float(decision.shortfalls[i]) <= decision.tau + sticky.margin
    else:
        net, lost_usd = decision.valuation.net, _cache_usd(decision, current, catalog)
        gain = float(net[decision.index] - net[i])
        near = gain <= lost_usd / decision.valuation.value_usd
    return Cause.KEPT_WITHIN_MARGIN if near else None


def _cache_usd(decision: Decision, current: str, catalog: Catalog) -> float:
    """What reading the history anew costs on the decision's model, above the cache of `current`."""
    if decision.query is None or decision.reading is None:
        return 0.0
    reading = decision.reading  # of a long message the predictor has seen the first tokens alone
    message = text_tokens(decision.query.text) if reading.truncated else reading.tokens
    history = max(0, round(decision.query.context_tokens - message))
    kept, other = catalog.model(current), catalog.model(decision.model)
    whole = decision.query.input_tokens
    return switch_cost_usd(kept, other, TurnTokens(history, 0, 0), size=whole)


@dataclass(frozen=True, slots=True)
class TurnTokens:
    """Tokens of one turn: history before it, the new message, and the answer."""

    history: int
    message: int
    answer: int


@dataclass(frozen=True, slots=True)
class TurnCost:
    """USD of one turn.

    Attributes:
        cached: Whether the history was billed at the cached price.
        lost_usd: What a warm cache would have saved on this turn, 0 where it was warm.
    """

    model: str
    cached: bool
    cost_usd: float
    lost_usd: float


def conversation_cost(
    models: Mapping[str, ModelSpec],
    routed: Sequence[str],
    turns: Sequence[TurnTokens],
    compacted: Sequence[bool] | None = None,
) -> tuple[TurnCost, ...]:
    """Cost of each turn of a conversation.

    Args:
        routed: (t,) the model of each turn.
        turns: (t,) tokens of each turn.
        compacted: (t,) whether the history was rewritten before this turn (no cache survives).
    """
    rewritten = compacted or [False] * len(routed)
    costs: list[TurnCost] = []
    warm: str | None = None
    for name, tokens, fresh in zip(routed, turns, rewritten, strict=True):
        spec = models[name]
        cached = spec.cache_key == warm and not fresh and spec.cached_input_usd_per_mtok is not None
        full, kept = _turn_usd(spec, tokens, cached=False), _turn_usd(spec, tokens, cached=True)
        costs.append(
            TurnCost(name, cached, kept if cached else full, 0.0 if cached else full - kept)
        )
        warm = spec.cache_key
    return tuple(costs)


def switch_cost_usd(
    current: ModelSpec, other: ModelSpec, tokens: TurnTokens, *, size: float | None = None
) -> float:
    """How much dearer (> 0) or cheaper this turn is on `other`, cold, than on `current`, warm.

    `other` is warm where it reads the same prompt cache. `size` has the input tokens of the whole
    request where `tokens` is a part of it.
    """
    warm = other.cache_key == current.cache_key
    on_other = _turn_usd(other, tokens, cached=warm, size=size)
    return on_other - _turn_usd(current, tokens, cached=True, size=size)


def assumed_cache(catalog: Catalog, share: float) -> Catalog:
    """The catalog with a cached input price of `share` x the input price where it names none."""
    models = tuple(
        model
        if model.cached_input_usd_per_mtok is not None
        else replace(model, cached_input_usd_per_mtok=model.input_usd_per_mtok * share)
        for model in catalog.models
    )
    return replace(catalog, models=models)


def _turn_usd(
    spec: ModelSpec, tokens: TurnTokens, *, cached: bool, size: float | None = None
) -> float:
    """A model without a cached price bills the history in full either way."""
    warm = tokens.history if cached else 0
    read = tokens.history + tokens.message
    return spec.price.usd_of_one(read, tokens.answer, warm, size=size)
