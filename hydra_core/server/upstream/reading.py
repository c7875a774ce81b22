"""What an answer of an upstream holds: its events, what the model wrote, its tokens.

A stream is held until its first content, then passed on as it comes, unchanged. A comment
(`: ping`) is no content, nor is a first event that names the role alone: until there is content,
another model may still be asked. Reported tokens are believed only where they can be true: what is
more than the request and the model allow is no count, and the cost is then unknown, never $0.
"""

import asyncio
import contextlib
import json
import re
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import aiohttp

from hydra_core.base.json_values import objects
from hydra_core.base.tokens import BYTES_PER_TOKEN
from hydra_core.base.types import Ability, ModelSpec
from hydra_core.routing.query import is_count
from hydra_core.server.chat import ChatRequest
from hydra_core.server.upstream.failures import (
    OF_REQUESTS,
    NotAnsweredError,
    error_in,
    shown_error,
)
from hydra_core.server.wire import STATE, Form, counts_of, said_in

#: Bytes of events without content that are kept until there is some.
_MOST_HELD: Final = 1 << 20
#: After its last event a stream has this long to end.
_DRAIN_S: Final = 0.2
#: One event and one whole answer may have so many bytes.
MOST_BYTES: Final = 32 << 20
_BLANK_LINE: Final = re.compile(rb"\r\n\r\n|\n\r?\n|\r\r")
_BLANK_LOOK_BACK: Final = 3
_DONE: Final = b"[DONE]"
#: Keys of a message that are not what the model wrote.
_NAMES: Final = ("role", "id", "type", "index", "tool_call_id")


class BrokeOffError(Exception):
    """An answer ended in the middle.

    Args:
        rejected: The upstream's word that the request itself is wrong, with what the client may
            see of it; None where the answer ended for another reason.
    """

    def __init__(self, rejected: NotAnsweredError | None = None) -> None:
        self.rejected = rejected
        super().__init__()


class EventStream:
    """A stream of events from an upstream, as the answer to `chat`.

    The event that holds nothing but the usage is taken out where HyDRA asked for it and the client
    did not. `begun` is what was read of it already.
    """

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        idle_s: float,
        chat: ChatRequest,
        key: str,
        begun: bytes,
    ) -> None:
        self.seen = Seen()
        self._response, self._idle_s, self._strip = response, idle_s, not chat.wants_usage
        self._reader, self._key = EventReader(chat.form, chat.body), key
        self._error: NotAnsweredError | None = None
        self._begun, self._ended = begun, False

    async def first(self, limit: asyncio.Timeout) -> bytes:
        """The events up to the first that has content.

        Args:
            limit: Of the first byte; moved once, by the first event that is no comment.

        Raises:
            NotAnsweredError: The stream held no content, or an error came before it.
        """
        held, size, begun = [], 0, False
        while True:
            data, content, ready = await self._next()
            if data and not begun:
                begun = True
                limit.reschedule(asyncio.get_running_loop().time() + self._idle_s)
            if begun:  # comments before the first event are of no use to anybody
                held.append(ready)
                size += len(ready)
            if content or size > _MOST_HELD:
                return b"".join(held)
            if self._error is not None:
                raise self._error
            if self._ended:
                raise NotAnsweredError("bad_answer", self._response.status)

    async def rest(self) -> AsyncGenerator[bytes, None]:
        """The events after the first content, as they come; BrokeOffError where they stop short."""
        left_s = self._idle_s
        try:
            while self._error is None and not self._ended:
                began = time.monotonic()
                async with asyncio.timeout(max(left_s, 0.0)):
                    _, content, ready = await self._next()
                left_s = self._idle_s if content else left_s - (time.monotonic() - began)
                if ready:
                    yield ready
        except (aiohttp.ClientError, TimeoutError) as error:
            if self.seen.whole:
                return
            raise BrokeOffError from error
        said = self._error
        if said is not None and said.kind in OF_REQUESTS:
            said.body = shown_error(said.status, said.body, self._key, self._reader.form)
            raise BrokeOffError(said)
        if said is not None or not self.seen.whole:
            raise BrokeOffError
        await self._drain()

    async def _next(self) -> tuple[bool, bool, bytes]:
        """Whether the next piece had data, whether it had content, and what of it goes on."""
        piece, self._begun = self._begun or await self._response.content.readany(), b""
        data = content = False
        ready = []
        for event in self._reader.feed(piece) if piece else self._reader.end():
            self.seen.note(event)
            if event.error is not None:
                self._error = event.error
                break
            data |= event.data
            content |= event.content
            if not (self._strip and event.bare_usage):
                ready.append(event.raw)
            if event.done:
                break
        self._ended = not piece or self.seen.done
        return data, content, b"".join(ready)

    async def _drain(self) -> None:
        """Read to the end, so that the connection can be used again; not for long."""
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                while await self._response.content.readany():
                    pass


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream.

    Attributes:
        raw: Its bytes, with the blank line after it.
        data: Whether it has any; a comment has none.
        written: Bytes of what the model wrote.
        finished: Whether it ends a choice.
        done: Whether nothing comes after it, such as `[DONE]`.
        bare_usage: Whether it holds nothing but the usage.
        begun, ended: As in `Said`.
        error: Why it is no part of an answer, None where it is one.
    """

    raw: bytes
    data: bool = False
    written: int = 0
    finished: bool = False
    done: bool = False
    usage: Mapping[str, Any] | None = None
    bare_usage: bool = False
    begun: frozenset[int] = frozenset()
    ended: frozenset[int] = frozenset()
    error: NotAnsweredError | None = None

    @property
    def content(self) -> bool:
        """Whether the model said something with it."""
        return self.written > 0 or self.finished


@dataclass(slots=True)
class Seen:
    """What an answer has held so far."""

    written: int = 0
    finished: bool = False
    done: bool = False
    usage: Mapping[str, Any] | None = None
    begun: frozenset[int] = frozenset()
    ended: frozenset[int] = frozenset()

    @property
    def whole(self) -> bool:
        """Whether the answer came to its end, with all the choices that it has begun."""
        return self.done or (self.finished and self.begun <= self.ended)

    def note(self, event: Event) -> None:
        self.written += event.written
        self.finished |= event.finished
        self.done |= event.done
        self.begun |= event.begun
        self.ended |= event.ended
        if event.usage:  # the Messages form says it in parts, what did not change as null
            said = {name: count for name, count in event.usage.items() if count is not None}
            self.usage = {**(self.usage or {}), **said}


@dataclass(slots=True)
class EventReader:
    """Cuts events out of the pieces of a stream that answers the request `asked`."""

    form: Form = Form.CHAT
    asked: Mapping[str, Any] | None = None
    _pieces: list[bytes] = field(default_factory=list)
    _size: int = 0
    _tail: bytes = b""

    def feed(self, piece: bytes) -> Iterator[Event]:
        """The events that are whole by now."""
        near, self._tail = self._tail + piece, (self._tail + piece)[-_BLANK_LOOK_BACK:]
        ends = b"\n" in near or b"\r" in near  # cheap to see, unlike a blank line
        if not ends or _BLANK_LINE.search(near) is None:
            self._pieces.append(piece)
            self._size += len(piece)
            if self._size > MOST_BYTES:
                yield Event(b"", data=True, error=NotAnsweredError("bad_answer"))
            return
        waiting, start = b"".join((*self._pieces, piece)), 0
        for blank in _BLANK_LINE.finditer(waiting):
            yield event_of(waiting[start : blank.end()], self.form, self.asked)
            start = blank.end()
        rest = waiting[start:]
        self._pieces, self._size = ([rest] if rest else []), len(rest)
        self._tail = rest[-_BLANK_LOOK_BACK:]

    def end(self) -> Iterator[Event]:
        """The event that the stream ended in, if it did."""
        rest = b"".join(self._pieces)
        if rest.strip():
            yield event_of(rest, self.form, self.asked)


def event_of(raw: bytes, form: Form, asked: Mapping[str, Any] | None) -> Event:
    """What an event is, in the answer to the request `asked`."""
    lines = raw.splitlines()
    data = b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))
    named_error = any(line[6:].strip() == b"error" for line in lines if line.startswith(b"event:"))
    if not data:
        return Event(raw)
    if data == _DONE:
        return Event(raw, data=True, done=True)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return Event(raw, data=True, error=NotAnsweredError("bad_answer"))
    said = said_in(found, form)
    error = error_in({"error": said.error} if said.error else found, asked)
    if error is None and form is Form.CHAT and named_error:
        error = NotAnsweredError("bad_answer")
    if error is None and said.failed:
        error = NotAnsweredError("server_error")
    usage = said.usage if isinstance(said.usage, dict) else None
    return Event(
        raw,
        data=True,
        written=written_in(said.content),
        finished=said.finished,
        done=said.done,
        usage=usage,
        bare_usage=usage is not None and found.get("choices") == [],
        begun=said.begun,
        ended=said.ended,
        error=error,
    )


def written_in(message: object, depth: int = 0) -> int:
    """Bytes of what the model wrote in a message; its role and ids are not counted."""
    if isinstance(message, str):
        return len(message.encode("utf-8", "replace"))
    if depth > 6:
        return 1
    if isinstance(message, Mapping):
        return sum(written_in(one, depth + 1) for key, one in message.items() if key not in _NAMES)
    if isinstance(message, list):
        return sum(written_in(one, depth + 1) for one in message)
    return 0


#: Tokens that providers add to a request of their own accord (templates, results of their tools).
_ADDED_TOKENS: Final = 20_000
#: Keys of what a request names and does not hold: stored turns, templates, files, servers.
_NAMES_MORE: Final = (*STATE, "prompt", "file_id", "file_url", "url")
#: Keys that have an upstream search for itself, whatever they hold.
_SEARCHES: Final = ("web_search_options", "plugins", "mcp_servers")
#: A round in which Messages sums up a conversation.
_SUMS_UP: Final = "compaction"
#: So many times an upstream's own tools may have it read a request: it counts each of them.
_MOST_ROUNDS: Final = 100


class Counted(StrEnum):
    """How a request's tokens are known."""

    COUNTED = "counted"
    ESTIMATED = "estimated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer.

    Attributes:
        cached: Those of `input` that came from the prompt cache.
        size: Those that choose the price of a long request: an upstream whose own tools have it
            read a request several times says the sum, and bills each time by its own length.
    """

    input: int
    cached: int
    output: int
    size: int


def usage_of(said: object, chat: ChatRequest, spec: ModelSpec) -> Usage | None:
    """The tokens that an answer's decoded `usage` reports, None where none can be true.

    Messages counts beside the answer what it took to sum up a long conversation first.
    """
    if not isinstance(said, Mapping):
        return None
    rounds = said.get("iterations") if chat.form is Form.MESSAGES else None
    listed = rounds if isinstance(rounds, list) else []
    summing_up = [one for one in listed if isinstance(one, Mapping) and one.get("type") == _SUMS_UP]
    parts = [_possible(said, chat, spec, _most_output(chat, spec))]
    parts += [_possible(one, chat, spec, spec.context_window) for one in summing_up]
    known = [one for one in parts if one is not None]
    if len(known) < len(parts):
        return None
    return Usage(
        sum(one.input for one in known),
        sum(one.cached for one in known),
        sum(one.output for one in known),
        max(one.size for one in known),
    )


def _possible(
    said: Mapping[str, Any], chat: ChatRequest, spec: ModelSpec, most_output: int
) -> Usage | None:
    given, cached, output = map(_count, counts_of(said, chat.form))
    if given is None or output is None or cached is None:
        return None
    size = min(given, chat.input_tokens) if _uses_own_tools(chat.body) else given
    possible = _may_have_read(given, chat, spec) and output <= most_output and cached <= given
    return Usage(given, cached, output, size) if possible else None


def estimate_of(chat: ChatRequest, written: int) -> Usage:
    """About how many tokens a request took whose answer has so many bytes."""
    read = max(1, chat.input_tokens)
    return Usage(read, 0, round(written / BYTES_PER_TOKEN), read)


def _may_have_read(given: int, chat: ChatRequest, spec: ModelSpec) -> bool:
    """Whether so many tokens can be: one has at least a byte, unless more is behind the request."""
    believed = max(chat.size, chat.input_tokens) + _ADDED_TOKENS
    if 0 < given <= min(believed, spec.context_window):
        return True
    works = _uses_own_tools(chat.body)
    most = spec.context_window * (_MOST_ROUNDS if works else 1)
    return 0 < given <= most and (not chat.size or works or _reads_more(chat))


def _uses_own_tools(body: Mapping[str, Any]) -> bool:
    """Whether the upstream may call tools by itself, such as a search, and read their results."""
    hosted = any(
        one.get("type") not in (None, "function", "custom") for one in objects(body.get("tools"))
    )
    return hosted or any(body.get(name) is not None for name in _SEARCHES)


def _reads_more(chat: ChatRequest) -> bool:
    media = chat.query.has_image or chat.query.needs & {Ability.PDF, Ability.AUDIO}
    return bool(media) or _names_more(chat.body)


def _names_more(body: Mapping[str, Any]) -> bool:
    waiting: list[object] = [body]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            if one.get("type") == "item_reference" or any(map(one.get, _NAMES_MORE)):
                return True
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return False


def _most_output(chat: ChatRequest, spec: ModelSpec) -> int:
    limit = chat.query.output_tokens or spec.context_window
    return min(limit, spec.context_window) * chat.choices


def _count(value: Any) -> int | None:  # noqa: ANN401 (decoded JSON)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if is_count(value) else None
