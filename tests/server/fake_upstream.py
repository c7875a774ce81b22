"""A local OpenAI-compatible server that answers, refuses, hangs or breaks off as it is told.

    python -m tests.server.fake_upstream PORT

`POST /behave {"model": "m", "as": "429"}` sets how a model (or "*") behaves from then on; `GET
/seen` lists the requests that came in, `POST /forget` empties the list.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys

import uvicorn

PIECES = ("All ", "is ", "well.")
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 40},
}


class FakeUpstream:
    """The ASGI application; `behaviour` and `seen` may be used directly in the same process."""

    def __init__(self, keep=True):
        self.behaviour, self.seen, self.cancelled, self._keep = {}, [], 0, keep

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        body = await _body(receive)
        if scope["path"] == "/behave":
            told = json.loads(body)
            self.behaviour[told["model"]] = told["as"]
            await _json(send, 200, {})
        elif scope["path"] == "/seen":
            await _json(send, 200, {"seen": self.seen, "cancelled": self.cancelled})
        elif scope["path"] == "/forget":
            self.seen.clear()
            await _json(send, 200, {})
        else:
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            await self._chat(json.loads(body), headers, receive, send, scope["client"])

    async def _chat(self, asked, headers, receive, send, client):
        if self._keep:
            self.seen.append({"body": asked, "headers": headers, "client": client})
        how = self.behaviour.get(asked["model"], self.behaviour.get("*", "ok"))
        if how.isdigit():
            await _json(send, int(how), {"error": {"message": f"told to say {how}"}})
        elif how == "hang":
            await self._hang(receive)
        elif how == "drop":
            start = {"type": "http.response.start", "status": 200}
            await send({**start, "headers": [(b"content-length", b"100")]})
            await send({"type": "http.response.body", "body": b"", "more_body": True})
            raise RuntimeError("told to drop the connection")
        elif how == "zip":
            body = gzip.compress(json.dumps(_answer(asked["model"])).encode())
            kind = [(b"content-type", b"application/json"), (b"content-encoding", b"gzip")]
            await send({"type": "http.response.start", "status": 200, "headers": kind})
            await send({"type": "http.response.body", "body": body})
        elif asked.get("stream"):
            await self._stream(asked, send, receive, how)
        else:
            await _json(send, 200, _answer(asked["model"]))

    async def _hang(self, receive):
        while (await receive())["type"] != "http.disconnect":
            pass
        self.cancelled += 1

    async def _stream(self, asked, send, receive, how):
        kind = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": kind})
        for number, piece in enumerate(PIECES):
            if how == "break" and number == 1:
                raise RuntimeError("told to break off")
            if how == "slow" and number == 1:
                await self._hang(receive)
                return
            delta = {"choices": [{"index": 0, "delta": {"content": piece}}]}
            await _event(send, {"model": asked["model"], **delta})
        if asked.get("stream_options", {}).get("include_usage"):
            await _event(send, {"choices": [], "usage": USAGE})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


def _answer(model):
    message = {"role": "assistant", "content": "".join(PIECES)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": "x",
        "object": "chat.completion",
        "model": model,
        "choices": [choice],
        "usage": USAGE,
    }


async def _event(send, value):
    body = b"data: " + json.dumps(value).encode() + b"\n\n"
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _json(send, status, value):
    kind = [(b"content-type", b"application/json"), (b"x-request-id", b"fake-1")]
    await send({"type": "http.response.start", "status": status, "headers": kind})
    await send({"type": "http.response.body", "body": json.dumps(value).encode()})


async def _body(receive):
    pieces = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)


async def _lifespan(receive, send):
    while (message := await receive())["type"] != "lifespan.shutdown":
        await send({"type": f"{message['type']}.complete"})
    await send({"type": "lifespan.shutdown.complete"})


if __name__ == "__main__":
    app = FakeUpstream(keep="--keep" in sys.argv)
    config = uvicorn.Config(app, port=int(sys.argv[1]), access_log=False, log_level="critical")
    asyncio.run(uvicorn.Server(config).serve())
