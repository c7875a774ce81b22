"""One call to an OpenAI-compatible server: back-off on refusals, and what a lost answer means."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from hydra_core.base.errors import HydraError, LabelError
from hydra_core.base.json_values import json_or_none
from hydra_core.base.tokens import cached_input, output_with_thinking
from hydra_core.lab.labeling.config import Server

if TYPE_CHECKING:
    import openai
    from openai import AsyncOpenAI


_TRIES: Final = 8
_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 60.0
_AT_ONCE_S: Final = 0.01
_TIMEOUT_S: Final = 300.0
#: One answer may have so many bytes.
_MOST_BYTES: Final = 16 << 20
#: Statuses that may be the fault of one message: too long for the model, or filtered.
_OF_ONE_MESSAGE: Final = (400, 413, 422)
_LENGTH, _NEW_LENGTH = "max_tokens", "max_completion_tokens"


class GivenUpError(HydraError):
    """The server refused a call for good; nothing was paid."""


class LostError(HydraError):
    """A call was sent and its answer was lost; it may have been paid."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that came.

    Attributes:
        tokens: (input, output); None where the server did not state them.
        cached: How many of the input tokens came from the cache.
        seconds: From sending to the whole answer; 0 where nobody measured it.
        ended: Why it ended, in the server's word, such as length; '' where it said nothing.
    """

    text: str
    tokens: tuple[int, int] | None
    cached: int = 0
    seconds: float = 0.0
    ended: str = ""


class Client:
    """Calls to one server.

    Args:
        answers: Whether it has answered before, so that its settings are right.

    Raises:
        LabelError: The key's environment variable is not set, or `openai` is not installed.
    """

    def __init__(self, server: Server, *, answers: bool = False) -> None:
        self.server, self._answers, self._length = server, answers, _LENGTH
        self._openai: AsyncOpenAI = _connect(server)
        self._slots = asyncio.Semaphore(server.concurrency)
        self._rng = random.Random(server.model)

    async def close(self) -> None:
        await self._openai.close()

    async def ask(
        self,
        body: Mapping[str, Any],
        key: str,
        *,
        before: Callable[[], Awaitable[None]],
        refused: Callable[[str], None],
    ) -> Reply:
        """Send one request until it is answered.

        Args:
            key: Idempotency key; the same for the same attempt of the same call.
            before: Awaited before each time the request is sent.
            refused: Told each time the server turned it down unpaid, with the reason.

        Raises:
            GivenUpError: Refused as often as is tried, or for what it asks.
            LostError: No answer came to a request that was sent.
            LabelError: The server does not know the key, the model or the request.
        """
        async with self._slots:
            for attempt in range(_TRIES):
                await before()
                try:
                    reply, reason, wait = await self._once(body, key)
                except (GivenUpError, LabelError) as error:
                    refused(str(error))
                    raise
                if reply is not None:
                    self._answers = True
                    return reply
                refused(reason)
                if attempt + 1 < _TRIES:
                    pause = min(_FIRST_WAIT_S * 2.0**attempt, _LONGEST_WAIT_S)
                    await asyncio.sleep(wait or pause * self._rng.uniform(0.5, 1.0))
        raise GivenUpError(f"{self.server.role}: {reason} {_TRIES} times in a row")

    async def _once(self, body: Mapping[str, Any], key: str) -> tuple[Reply | None, str, float]:
        """(reply, why it was turned down, seconds the server asks to wait)."""
        import openai

        began, length = time.monotonic(), self._length
        sent = {length if name == _LENGTH else name: value for name, value in body.items()}
        try:
            async with asyncio.timeout(_TIMEOUT_S):  # of the whole answer, however it drips
                raw = await self._openai.chat.completions.with_raw_response.create(
                    **sent, extra_headers={"Idempotency-Key": key}, timeout=_TIMEOUT_S
                )
        except openai.APIStatusError as error:
            if error.status_code not in (408, 409, 425, 429) and error.status_code < 500:
                if length == _LENGTH and _NEW_LENGTH in str(error):
                    self._length = _NEW_LENGTH  # all that newer models of OpenAI take
                    return None, f"asks for {_NEW_LENGTH}", _AT_ONCE_S
                raise self._not_taken(error) from error
            return None, f"answered {error.status_code}", _retry_after(error.response.headers)
        except _TooLongError as error:
            raise LostError(f"{self.server.role}: {error}; it may be paid") from error
        except (openai.APIConnectionError, TimeoutError) as error:
            if _never_sent(error):
                return None, "could not be reached", 0.0
            if self.server.honours_idempotency_key:
                return None, "lost the connection", 0.0
            raise LostError(f"{self.server.role}: no answer came; it may be paid") from error
        reply = reply_of(json_or_none(raw.content))
        return replace(reply, seconds=time.monotonic() - began), "", 0.0

    def _not_taken(self, error: openai.APIStatusError) -> GivenUpError | LabelError:
        """Why a request is not asked again: this one is at fault, or the server's settings are."""
        status, server = error.status_code, self.server
        if self._answers and status in _OF_ONE_MESSAGE:
            said = error.code or error.message[:100]
            return GivenUpError(f"{server.role}: answered {status} ({said})")
        key = f" and the key in ${server.api_key_env}" if server.api_key_env else ""
        return LabelError.of(
            f"{server.base_url} ({status})",
            f"answered {str(error)[:300]}",
            f"check its model, {server.model!r}, its base_url{key}",
            place=server.role,
        )


def _connect(server: Server) -> AsyncOpenAI:
    try:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient
    except ImportError as error:
        remedy = "pip install 'hydra-console[label]'"
        raise LabelError.of("label", "needs the package openai", remedy) from error
    key = os.environ.get(server.api_key_env, "") if server.api_key_env else "none"
    if not key:
        raise LabelError.of(
            "environment",
            f"${server.api_key_env} is not set",
            "export it, or leave api_key_env out for a server without keys",
            place=f"servers.{server.role}.api_key_env",
        )

    async def name_key(request: Any) -> None:  # noqa: ANN401 (of the HTTP client that `openai` uses)
        if server.key_header not in ("", "authorization"):
            del request.headers["authorization"]
            request.headers[server.key_header] = key

    bounded = DefaultAsyncHttpxClient(
        event_hooks={"request": [name_key], "response": [_bound]},
        headers={"accept-encoding": "identity"},
    )
    return AsyncOpenAI(api_key=key, base_url=server.base_url, max_retries=0, http_client=bounded)


class _TooLongError(Exception):
    """An answer goes on and on."""


async def _bound(response: Any) -> None:  # noqa: ANN401 (of the HTTP client that `openai` uses)
    """Read no more of an answer than one can have; nothing packed is unpacked."""
    response.headers.pop("content-encoding", None)
    whole = response.aiter_raw

    async def bounded(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        size = 0
        async for piece in whole(chunk_size):
            size += len(piece)
            if size > _MOST_BYTES:
                raise _TooLongError(f"the answer has over {_MOST_BYTES:,} bytes")
            yield piece

    response.aiter_raw = bounded


def _never_sent(error: Exception) -> bool:
    """Whether the connection was never made, so that nothing can have been paid."""
    cause = error.__cause__
    return cause is not None and type(cause).__name__ in ("ConnectError", "ConnectTimeout")


def _retry_after(headers: Mapping[str, str]) -> float:
    try:
        return min(max(float(headers.get("retry-after", "0")), 0.0), _LONGEST_WAIT_S)
    except ValueError:
        return 0.0


def reply_of(found: object) -> Reply:
    """A chat completion as a reply; empty text where it is not what was agreed."""
    usage: Any = None
    try:
        usage = found["usage"] or {}  # type: ignore[index]
        tokens = usage.get("prompt_tokens"), usage.get("completion_tokens")
    except (KeyError, TypeError, AttributeError):
        tokens = None, None
    text, ended = _said(found)
    if not all(_is_count(count) for count in tokens):
        return Reply(text, None, ended=ended)
    cached: Any = cached_input(usage, "prompt_tokens_details")
    cached = cached if _is_count(cached) and cached <= tokens[0] else 0
    total = usage.get("total_tokens")
    written = output_with_thinking(*tokens, total if _is_count(total) else None, cached)
    return Reply(text, (tokens[0], written), cached, ended=ended)


def _said(found: object) -> tuple[str, str]:
    """The text of the first choice, of its parts where it has some, and why it ended."""
    try:
        choice: Any = found["choices"][0]  # type: ignore[index]
        text, ended = choice["message"]["content"], choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError):
        return "", ""
    if isinstance(text, list):
        parts = [one.get("text") for one in text if isinstance(one, dict)]
        text = "".join(one for one in parts if isinstance(one, str))
    # half a character (a lone surrogate) can neither be sent on nor kept in a file
    whole = text.encode("utf-8", "replace").decode() if isinstance(text, str) else ""
    return whole, str(ended)[:40] if isinstance(ended, str) else ""


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9
