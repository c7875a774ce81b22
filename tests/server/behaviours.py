"""What upstreams do, as scripts, and what a client, log, health and metrics must make of it."""

import gzip
import json
from dataclasses import dataclass, replace

from tests.server.raw_upstream import (
    DONE,
    ENDLESS,
    OK_TEXT,
    PING,
    RESET,
    ROLE,
    USAGE,
    chunked,
    event,
    finish,
    http,
    said,
    usage_event,
    whole,
)


@dataclass
class Behaviour:
    """One way in which an upstream answers.

    Attributes:
        whole, stream: The scripts without and with `stream: true`.
        kind: Of the failure before any content, '' where it answers.
        last: What the client gets when every model does so.
        broken: Whether it breaks off after content.
        rejected: Whether the client's own request is at fault.
        usage: What the log says of the tokens where it answers.
        ill: Whether the model's health goes down.
        hasty: Whether it needs a service with little patience.
        asked: How many models are asked when all do so, 0 for every one.
    """

    whole: list
    stream: list
    kind: str = ""
    last: int = 502
    broken: bool = False
    rejected: int = 0
    usage: str = "counted"
    ill: bool = True
    hasty: bool = False
    asked: int = 0


def fails(script, kind, last=502, *, stream=None, ill=True):
    """It does not answer, and another model does."""
    return Behaviour(script, stream or script, kind, last, ill=ill)


def too_long(script, status):
    """The request is longer than the model's window: only larger ones are asked."""
    return Behaviour(script, script, "too_long", status, ill=False, asked=2)


def hasty(behaviour):
    """The same before a service that waits only for a moment."""
    return replace(behaviour, hasty=True)


def says(status, error, *headers):
    """An answer of one error."""
    return [http(status, {"error": error}, *headers)]


def usage_is(usage, expected):
    """A good answer whose tokens are said so."""
    told = [] if usage is None else [usage_event(usage)]
    stream = chunked(ROLE, said(OK_TEXT), finish(), *told, DONE)
    return Behaviour([http(200, whole(usage=usage))], stream, usage=expected, ill=False)


def streams(*pieces, end=True, usage="counted", answer=None):
    """It streams so, and answers in one piece as usual."""
    answer = answer or [http(200, whole())]
    return Behaviour(answer, chunked(*pieces, end=end), usage=usage, ill=False)


def breaks(*pieces, end=True, after=()):
    """It says something and breaks off; in one piece it is no answer at all."""
    half = http(200, whole())[:-40]
    stream = [*chunked(*pieces, end=end), *after]
    return Behaviour([half], stream, "connection", 502, broken=True)


def mistake(status, error, kind="application/json"):
    """The client's own request is at fault."""
    body = error if isinstance(error, bytes) else {"error": error}
    script = [http(status, body, kind=kind)]
    return Behaviour(script, script, rejected=status, ill=False)


ERROR = {"message": "no", "type": "x", "code": None}
TOO_LONG = {"message": "too long", "code": "context_length_exceeded"}
NO_MODEL = {"message": "The model `m` does not exist", "code": "model_not_found"}
GZIPPED = gzip.compress(json.dumps(whole()).encode())
SPLIT = b"".join([ROLE, said("Hällo €"), finish(), usage_event(), DONE])
HEAD_OUTSIDE_LATIN_1 = chunked()[0].replace(b"\r\n\r\n", "\r\nx-request-id: 日本\r\n\r\n".encode())
CRLF = b"\r\n\r\n"

BEHAVIOURS = {
    # a success line above something that is no answer
    "200 with an error": fails(says(200, ERROR), "bad_answer"),
    "200 with an error of 429": fails(says(200, {"code": 429}), "rate_limited", 429),
    "200 with an error of 502": fails(says(200, {"code": "502"}), "server_error", 502),
    "200 with an error as text": fails([http(200, {"error": "overloaded"})], "bad_answer"),
    "200 with an error in a choice": fails(
        [http(200, {"choices": [{"error": {"code": 502, "message": "x"}}]})], "server_error", 502
    ),
    "200 with HTML": fails([http(200, b"<html>Sign in</html>", kind="text/html")], "bad_answer"),
    "200 with HTML as JSON": fails([http(200, b"<html></html>")], "bad_answer"),
    "200 with nothing": fails([http(200)], "bad_answer"),
    "200 with half of JSON": fails([http(200, b'{"choices": [{"mess')], "bad_answer"),
    "200 with a list": fails([http(200, b"[]")], "bad_answer"),
    "200 with null": fails([http(200, b"null")], "bad_answer"),
    "200 without choices": fails([http(200, {"choices": []})], "bad_answer"),
    "200 with choices of null": fails([http(200, {"choices": None})], "bad_answer"),
    "200 with a choice without message": fails([http(200, {"choices": [{}]})], "bad_answer"),
    "200 nested without end": fails([http(200, b"[" * 100_000)], "bad_answer"),
    "204": fails([b"HTTP/1.1 204 No\r\nconnection: close\r\n\r\n"], "bad_answer"),
    "302": fails([http(302, b"", "location: http://127.0.0.1:1/")], "bad_answer"),
    "304": fails([b"HTTP/1.1 304 No\r\nconnection: close\r\n\r\n"], "bad_answer"),
    "101": fails([b"HTTP/1.1 101 Go\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"], "bad_answer"),
    "999": fails([http(999, b"no")], "bad_answer"),
    "600": fails([http(600, b"no")], "bad_answer"),
    # failures that are ours or the upstream's
    "401": fails(says(401, ERROR), "refused_key"),
    "402": fails(says(402, ERROR), "no_credit"),
    "403": fails(says(403, ERROR), "forbidden"),
    "404": fails(says(404, NO_MODEL), "unknown_model"),
    "404 of a wrong address": fails([http(404, b"nginx", kind="text/html")], "unknown_model"),
    "405": fails(says(405, ERROR), "unknown_model"),
    "410": fails(says(410, ERROR), "unknown_model"),
    "400 model_not_found": fails(says(400, NO_MODEL), "unknown_model"),
    "400 invalid key": fails(says(400, {"message": "API key not valid"}), "refused_key"),
    "408": fails(says(408, ERROR), "timeout", 408),
    "425": fails(says(425, ERROR), "rate_limited", 425),
    "429": fails(says(429, ERROR), "rate_limited", 429),
    "429 without quota": fails(says(429, {"code": "insufficient_quota"}), "no_credit"),
    "500": fails(says(500, ERROR), "server_error", 500),
    "500 with HTML": fails([http(500, b"<h1>", kind="text/html")], "server_error", 500),
    "529": fails(says(529, ERROR), "server_error", 529),
    "400 too long": too_long(says(400, TOO_LONG), 400),
    "413": too_long(says(413, ERROR), 413),
    # the connection
    "reset at once": fails([RESET], "connection"),
    "closed at once": fails([b""], "connection"),
    "no HTTP": fails([b"220 mail.example ESMTP\r\n"], "connection"),
    "half a head": fails([b"HTTP/1.1 200 OK\r\ncontent-ty"], "connection"),
    "says nothing": hasty(fails([5.0], "timeout", 504)),
    "half an answer": fails([http(200, whole())[:-20]], "connection"),
    "endless body": fails(
        [b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", ENDLESS], "bad_answer"
    ),
    "endless head": fails([b"HTTP/1.1 200 OK\r\nx: ", ENDLESS], "connection"),
    "endless error": fails(
        [b"HTTP/1.1 500 No\r\nconnection: close\r\n\r\n", ENDLESS], "server_error", 500
    ),
    # streams that say nothing
    "first event an error": fails(
        says(200, ERROR), "bad_answer", stream=chunked(event({"error": ERROR}))
    ),
    "error after the role": fails(
        says(200, ERROR), "bad_answer", stream=chunked(ROLE, event({"error": ERROR}))
    ),
    "an event named error": fails(
        says(200, ERROR), "bad_answer", stream=chunked(b'event: error\ndata: {"message":"x"}\n\n')
    ),
    "endless pings": hasty(fails([5.0], "timeout", 504, stream=chunked(*[PING, 0.05] * 60))),
    "empty stream": fails([http(200)], "bad_answer", stream=chunked()),
    "role and end": fails([http(200)], "bad_answer", stream=chunked(ROLE)),
    "nothing but done": fails([http(200)], "bad_answer", stream=chunked(DONE)),
    "garbage in data": fails([http(200, b"{")], "bad_answer", stream=chunked(b"data: {x\n\n")),
    # streams that break off
    "ends without finish": breaks(ROLE, said("All ")),
    "ends in an event": breaks(said("All "), b'data: {"choi'),
    "reset after content": breaks(said("All "), 0.05, end=False, after=[RESET]),
    "closed after content": breaks(said("All "), end=False),
    "error after content": breaks(said("All "), event({"error": ERROR})),
    "garbage after content": breaks(said("All "), b"data: <html>\n\n"),
    "pings after content": hasty(breaks(said("All "), *[PING, 0.05] * 60)),
    "stalls after content": hasty(breaks(said("All "), 5.0)),
    # the client's own mistakes
    "400": mistake(400, {"message": "temperature must be <= 2"}),
    "409": mistake(409, ERROR),
    "415": mistake(415, ERROR),
    "422": mistake(422, ERROR),
    "418": mistake(418, ERROR),
    "400 with HTML": mistake(400, b"<html>", "text/html"),
    # tokens
    "usage missing": usage_is(None, "unknown"),
    "usage 0/0": usage_is({"prompt_tokens": 0, "completion_tokens": 0}, "unknown"),
    "usage as text": usage_is({"prompt_tokens": "100", "completion_tokens": "20"}, "unknown"),
    "usage negative": usage_is({"prompt_tokens": -5, "completion_tokens": 20}, "unknown"),
    "usage beyond reason": usage_is(
        {"prompt_tokens": 2**53 - 1, "completion_tokens": 20}, "unknown"
    ),
    "usage beyond the window": usage_is(
        {"prompt_tokens": 100, "completion_tokens": 10**8}, "unknown"
    ),
    "usage half": usage_is({"prompt_tokens": 100}, "unknown"),
    "usage as a list": usage_is([1], "unknown"),
    "more cached than read": usage_is(
        {**USAGE, "prompt_tokens_details": {"cached_tokens": 101}}, "unknown"
    ),
    "no details": usage_is({**USAGE, "prompt_tokens_details": None}, "counted"),
    # odd, but answers
    "carriage returns": streams(
        said("All is ", CRLF), said("well.", CRLF), finish(blank=CRLF), usage_event(), DONE
    ),
    "cut anywhere": streams(*[SPLIT[i : i + 1] for i in range(len(SPLIT))]),
    "pings between": streams(PING, ROLE, PING, said(OK_TEXT), PING, finish(), usage_event(), DONE),
    "slow pings, then content": streams(
        PING, 0.1, PING, 0.1, said(OK_TEXT), finish(), usage_event(), DONE
    ),
    "finish without done": streams(said(OK_TEXT), finish(), usage_event()),
    "done without finish": streams(said(OK_TEXT), usage_event(), DONE),
    "done without a blank line": streams(said(OK_TEXT), finish(), usage_event(), b"data: [DONE]"),
    "open after done": streams(said(OK_TEXT), finish(), usage_event(), DONE, 5.0),
    "error of null": streams(
        said(OK_TEXT, error=None), finish(), usage_event(), DONE,
        answer=[http(200, whole(), "x-y: z")],
    ),
    "a filter's first event": streams(
        event({"choices": [], "prompt_filter_results": []}), said(OK_TEXT), finish(),
        usage_event(), DONE,
    ),
    "a tool call": streams(
        event({"choices": [{"delta": {"tool_calls": [{"function": {"name": "f"}}]}}]}),
        finish("tool_calls"), usage_event(), DONE,
    ),
    "an answer cut by a filter": streams(finish("content_filter"), usage_event(), DONE),
    "gzip": streams(
        said(OK_TEXT), finish(), usage_event(), DONE,
        answer=[http(200, GZIPPED, "content-encoding: gzip")],
    ),
    "headers outside latin-1": Behaviour(
        [http(200, whole(), "x-request-id: 日本")],
        [HEAD_OUTSIDE_LATIN_1, *chunked(said(OK_TEXT), finish(), usage_event(), DONE)[1:]],
        ill=False,
    ),
    "JSON for a stream": Behaviour([http(200, whole())], [http(200, whole())], ill=False),
    "201": Behaviour([http(201, whole())], chunked(said(OK_TEXT), finish(), usage_event(), DONE),
                     ill=False),
}  # fmt: skip
