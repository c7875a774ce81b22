"""One call to an OpenAI-compatible server: back-off on refusals, and what a lost answer means."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from hydra_core.base.errors import HydraError, LabelError
from hydra_core.base.tokens import cached_input, output_with_thinking
from hydra_core.lab.labeling.config import Server

if TYPE_CHECKING:
    from openai import AsyncOpenAI


_TRIES: Final = 8
_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 60.0
_TIMEOUT_S: Final = 300.0
#: One answer may have so many bytes.
_MOST_BYTES: Final = 16 << 20


class GivenUpError(HydraError):
    """The server refused a call again and again; nothing was paid."""


class LostError(HydraError):
    """A call was sent and its answer was lost; it may have been paid."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that came.

    Attributes:
        tokens: (input, output); None where the server did not state them.
        cached: How many of the input tokens came from the cache.
        seconds: From sending to the whole answer.
    """

    text: str
    tokens: tuple[int, int] | None
    cached: int = 0
    seconds: float = 0.0


class Client:
    """Calls to one server.

    Args:
        sleep: Waits that many seconds; an argument so that tests need not.
        rng: Jitter of the waits.

    Raises:
        LabelError: The key's environment variable is not set, or `openai` is not installed.
    """

    def __init__(
        self,
        server: Server,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self.server = server
        self._openai: AsyncOpenAI = _connect(server)
        self._slots = asyncio.Semaphore(server.concurrency)
        self._sleep, self._rng = sleep, rng or random.Random(server.model)

    async def close(self) -> None:
        """Close the connections."""
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
            GivenUpError: Refused as often as is tried.
            LostError: No answer came to a request that was sent.
            LabelError: The server does not know the key, the model or the request.
        """
        async with self._slots:
            for attempt in range(_TRIES):
                await before()
                reply, reason, wait = await self._once(body, key)
                if reply is not None:
                    return reply
                refused(reason)
                if attempt + 1 < _TRIES:
                    pause = min(_FIRST_WAIT_S * 2.0**attempt, _LONGEST_WAIT_S)
                    await self._sleep(wait or pause * self._rng.uniform(0.5, 1.0))
        raise GivenUpError(f"{self.server.role}: {reason} {_TRIES} times in a row")

    async def _once(self, body: Mapping[str, Any], key: str) -> tuple[Reply | None, str, float]:
        """(reply, why it was turned down, seconds the server asks to wait)."""
        import openai

        began = time.monotonic()
        try:
            async with asyncio.timeout(_TIMEOUT_S):  # of the whole answer, however it drips
                raw = await self._openai.chat.completions.with_raw_response.create(
                    **body, extra_headers={"Idempotency-Key": key}, timeout=_TIMEOUT_S
                )
        except openai.APIStatusError as error:
            if error.status_code not in (408, 409, 425, 429) and error.status_code < 500:
                raise self._misconfigured(error.status_code, str(error)) from error
            return None, f"answered {error.status_code}", _retry_after(error.response.headers)
        except _TooLongError as error:
            raise LostError(f"{self.server.role}: {error}; it may be paid") from error
        except (openai.APIConnectionError, TimeoutError) as error:
            if _never_sent(error):
                return None, "could not be reached", 0.0
            if self.server.honours_idempotency_key:
                return None, "lost the connection", 0.0
            raise LostError(f"{self.server.role}: no answer came; it may be paid") from error
        reply = reply_of(_parsed(raw.content))
        return replace(reply, seconds=time.monotonic() - began), "", 0.0

    def _misconfigured(self, status: int, message: str) -> LabelError:
        remedy = f"check model, base_url and ${self.server.api_key_env or 'no key'} in label.yaml"
        return LabelError.of(
            f"{self.server.base_url} ({status})",
            f"answered {message[:300]}",
            remedy,
            place=f"servers.{self.server.role}",
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
    bounded = DefaultAsyncHttpxClient(
        event_hooks={"response": [_bound]}, headers={"accept-encoding": "identity"}
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
    try:
        text = found["choices"][0]["message"]["content"]  # type: ignore[index]
    except (KeyError, IndexError, TypeError):
        text = ""
    # half a character (a lone surrogate) can neither be sent on nor kept in a file
    text = text.encode("utf-8", "replace").decode() if isinstance(text, str) else ""
    if not all(_is_count(count) for count in tokens):
        return Reply(text, None)
    cached: Any = cached_input(usage, "prompt_tokens_details")
    cached = cached if _is_count(cached) and cached <= tokens[0] else 0
    total = usage.get("total_tokens")
    written = output_with_thinking(*tokens, total if _is_count(total) else None, cached)
    return Reply(text, (tokens[0], written), cached)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9


def _parsed(raw: bytes) -> object:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
