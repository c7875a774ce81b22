"""An upstream that writes exactly the bytes it is given, good HTTP or not.

What each model answers is a script: bytes to write, seconds to wait, `RESET` (TCP reset) or
`ENDLESS` (bytes without end, until the other side leaves).
"""

import asyncio
import contextlib
import json
import socket
import struct
import threading

RESET, ENDLESS = object(), object()
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
OK_TEXT = "All is well."


class RawUpstream:
    """A TCP server in a thread.

    `scripts` (model -> script, `*` for all), `usual` (streamed or not -> script of the others),
    `seen` (models asked).
    """

    def __init__(self):
        self.scripts, self.seen, self.url = {}, [], ""
        self.usual = ok
        self._started, self._tasks = threading.Event(), set()

    async def serve(self):
        """Serve until `stop` is set."""
        self.loop, self.stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._started.set()
        await self.stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answer(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._play(reader, writer)
        finally:
            writer.close()
            self._tasks.discard(asyncio.current_task())

    async def _play(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        asked = json.loads(await reader.readexactly(length))
        self.seen.append(asked["model"])
        script = self.scripts.get(asked["model"], self.scripts.get("*"))
        for step in self.usual(asked.get("stream", False)) if script is None else script:
            if step is RESET:
                linger = struct.pack("ii", 1, 0)
                found = writer.get_extra_info("socket")
                found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                writer.transport.abort()
                return
            if step is ENDLESS:
                while True:
                    writer.write(b"x" * 65_536)
                    await writer.drain()
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            else:
                await asyncio.sleep(step)


@contextlib.contextmanager
def raw_upstream():
    """A running raw upstream."""
    server = RawUpstream()
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    assert server._started.wait(20)
    try:
        yield server
    finally:
        server.loop.call_soon_threadsafe(server.stop.set)
        thread.join(20)


def http(status, body=b"", *headers, kind="application/json"):
    """A whole HTTP answer that says it is the last one of its connection."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Word", f"content-length: {len(raw)}", "connection: close"]
    lines += [f"content-type: {kind}"] if kind else []
    return "\r\n".join([*lines, *headers, "", ""]).encode("utf-8") + raw


def whole(**changes):
    """A good answer in one piece; `changes` replace keys, None takes one out."""
    message = {"role": "assistant", "content": OK_TEXT}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    found = {"id": "x", "object": "chat.completion", "choices": [choice], "usage": USAGE, **changes}
    return {key: value for key, value in found.items() if value is not None}


def chunked(*pieces, end=True):
    """A stream: its head, the pieces as HTTP chunks, and the last chunk unless it breaks off."""
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    )
    steps = [head]
    for piece in pieces:
        if isinstance(piece, bytes):
            piece = f"{len(piece):x}\r\n".encode() + piece + b"\r\n"
        steps.append(piece)
    return [*steps, b"0\r\n\r\n"] if end else steps


def event(value, blank=b"\n\n"):
    """One server-sent event."""
    return b"data: " + json.dumps(value).encode() + blank


def said(text, blank=b"\n\n", **more):
    """An event in which the model says something."""
    return event({"choices": [{"index": 0, "delta": {"content": text}}], **more}, blank)


def finish(reason="stop", blank=b"\n\n"):
    """The event that ends an answer."""
    return event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}, blank)


def usage_event(usage=USAGE):
    """The event that holds the tokens."""
    return event({"choices": [], "usage": usage})


ROLE = event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"


def ok(stream):
    """The script of a good answer."""
    if not stream:
        return [http(200, whole())]
    return chunked(ROLE, said(OK_TEXT), finish(), usage_event(), DONE)
