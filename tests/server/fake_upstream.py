"""A local server of all three forms that answers, refuses, hangs or breaks off as it is told.

    python -m tests.server.fake_upstream PORT

`POST /behave {"model": "m", "as": "429"}` sets how a model (or "*") behaves from then on; `GET
/seen` lists the requests that came in, `POST /forget` empties the list.
"""

import asyncio
import gzip
import json
import sys

import uvicorn

PIECES = ("All ", "is ", "well.")
ALL_TEXT = "".join(PIECES)
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
        elif scope["path"].endswith(("/messages", "/responses", "/count_tokens")):
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            seen = {"body": json.loads(body), "headers": headers, "path": scope["path"]}
            self.seen.append(seen)
            await self._other_form(seen["body"], scope["path"].rpartition("/")[2], send)
        else:
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            await self._chat(json.loads(body), headers, receive, send, scope["client"])

    async def _chat(self, asked, headers, receive, send, client):
        if self._keep:
            self.seen.append({"body": asked, "headers": headers, "client": client})
        how = self.behaviour.get(asked["model"], self.behaviour.get("*", "ok"))
        if how.isdigit():
            await _json(send, int(how), {"error": {"message": f"told to say {how}"}})
        elif how.startswith("strict") and "stream_options" in asked:
            error = {"loc": ["body", "stream_options"], "msg": how}
            await _json(send, 422, {"detail": [error]})
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
        elif how == "uncounted":
            await _json(send, 200, {**_answer(asked["model"]), "usage": None})
        elif asked.get("stream"):
            await self._stream(asked, send, receive, how)
        else:
            await _json(send, 200, _answer(asked["model"]))

    async def _other_form(self, asked, form, send):
        how = self.behaviour.get(asked["model"], self.behaviour.get("*", "ok"))
        if how.isdigit():
            await _json(send, int(how), error_in_form(form, "api_error", f"told to say {how}"))
        elif form == "count_tokens":
            await _json(send, 200, {"input_tokens": 42})
        elif not asked.get("stream") or how == "whole":
            await _json(send, 200, whole_in_form(form, asked["model"]))
        else:
            kind = [(b"content-type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": kind})
            for found in events_in_form(form, asked["model"], how):
                raw = f"event: {found['type']}\ndata: {json.dumps(found)}\n\n".encode()
                await send({"type": "http.response.body", "body": raw, "more_body": True})
            if how == "break":
                raise RuntimeError("told to break off")
            await send({"type": "http.response.body", "body": b""})

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


#: The same tokens as in USAGE, as each form says them.
MESSAGES_USAGE = {"input_tokens": 55, "cache_read_input_tokens": 40,
                  "cache_creation_input_tokens": 5, "output_tokens": 20}  # fmt: skip
RESPONSES_USAGE = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 40},
                   "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 0},
                   "total_tokens": 120}  # fmt: skip


def error_in_form(form, kind, message):
    """An error as an upstream of the form says it."""
    if form == "messages":
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"type": kind, "message": message, "code": None, "param": None}}


def whole_in_form(form, model, text=ALL_TEXT):
    """An answer of the form in one piece."""
    if form == "messages":
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": model,
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
            "stop_sequence": None, "usage": MESSAGES_USAGE,
        }  # fmt: skip
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"id": "item_1", "type": "message", "role": "assistant", "status": "completed",
            "content": [part]}  # fmt: skip
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "status": "completed",
        "model": model, "output": [item], "error": None, "incomplete_details": None,
        "instructions": None, "metadata": {}, "parallel_tool_calls": True, "temperature": 1.0,
        "tool_choice": "auto", "tools": [], "top_p": 1.0, "usage": RESPONSES_USAGE,
    }  # fmt: skip


def events_in_form(form, model, how):
    """The events of a streamed answer; `overloaded` at once, or cut off by a `break`."""
    if form == "messages":
        first = {**MESSAGES_USAGE, "output_tokens": 1}
        message = {**whole_in_form(form, model), "content": [], "stop_reason": None, "usage": first}
        head = [{"type": "message_start", "message": message}, {"type": "ping"}]
        failed = error_in_form(form, "overloaded_error", "Overloaded")
        block = {"type": "text", "text": ""}
        begin = {"type": "content_block_start", "index": 0, "content_block": block}
        deltas = [{"type": "content_block_delta", "index": 0,
                   "delta": {"type": "text_delta", "text": piece}} for piece in PIECES]  # fmt: skip
        stop = {"stop_reason": "end_turn", "stop_sequence": None}
        tail = [{"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 20}},
                {"type": "message_stop"}]  # fmt: skip
    else:
        response = whole_in_form(form, model)
        begun = {**response, "status": "in_progress", "output": [], "usage": None}
        place = {"item_id": "item_1", "output_index": 0, "content_index": 0}
        head = [{"type": "response.created", "response": begun}]
        error = {"code": "server_error", "message": "Overloaded"}
        failed = {"type": "response.failed", "response": {**begun, "status": "failed",
                                                          "error": error}}  # fmt: skip
        item = {**response["output"][0], "status": "in_progress", "content": []}
        part = {"type": "output_text", "text": "", "annotations": []}
        head += [{"type": "response.output_item.added", "output_index": 0, "item": item}]
        begin = {"type": "response.content_part.added", **place, "part": part}
        deltas = [{"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
                  for piece in PIECES]  # fmt: skip
        tail = [{"type": "response.completed", "response": response}]
    found = [*head, failed] if how == "overloaded" else [*head, begin, *deltas, *tail]
    cut = found[: len(head) + 2] if how == "break" else found
    return [{**one, "sequence_number": number} for number, one in enumerate(cut)]


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
