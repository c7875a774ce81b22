"""What upstreams do, as scripts, and what a client, log, health and metrics must make of it."""

import gzip
import json
from dataclasses import dataclass, replace

from hydra_core.server.wire import Form
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
)  # fmt: skip
from tests.server.wires import CHAT, MESSAGES, RESPONSES


@dataclass
class Behaviour:
    """One way in which an upstream answers.

    Attributes:
        whole, stream: The scripts without and with `stream: true`.
        kind: Of the failure before any content, '' where it answers.
        last: What the client gets when every model does so.
        broken: Whether it breaks off after content.
        rejected: The status with which it says that the client's own request is at fault, else 0.
        usage: What the log says of the tokens where it answers.
        ill: Whether the model's health goes down.
        hasty: Whether it needs a service with little patience.
        asked: How many models are asked when all do so, 0 for every one.
        once: Where forms other than chat try it in one way: `whole` or `stream`.
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
    once: str = ""


def fails(script, kind, last=502, *, stream=None, ill=True):
    """It does not answer, and another model does."""
    once = "" if stream is None else "stream"
    return Behaviour(script, stream or script, kind, last, ill=ill, once=once)


def too_long(script, status):
    """The request is longer than the model's window: only larger ones are asked."""
    return Behaviour(script, script, "too_long", status, ill=False, asked=2)


def hasty(behaviour):
    """The same before a service that waits only for a moment."""
    return replace(behaviour, hasty=True)


def unended(script):
    """The same, of a body that says that it is longer."""
    return [script[0].replace(b"content-length: ", b"content-length: 9")]


def says(w, status, error, *headers):
    """An answer of one error."""
    return [http(status, w.error(error), *headers)]


def usage_is(w, usage, expected):
    """A good answer whose tokens are said so."""
    stream = chunked(w.opening, w.said(OK_TEXT), *w.end(usage))
    return Behaviour([http(200, w.whole(usage=usage))], stream, usage=expected, ill=False)


def streams(w, *pieces, end=True, usage="counted", answer=None):
    """It streams so, and answers in one piece as usual."""
    answer = answer or [http(200, w.whole())]
    return Behaviour(answer, chunked(*pieces, end=end), usage=usage, ill=False, once="stream")


def breaks(w, *pieces, end=True, after=()):
    """It says something and breaks off; in one piece it is no answer at all."""
    half = http(200, w.whole())[:-40]
    stream = [*chunked(*pieces, end=end), *after]
    return Behaviour([half], stream, "connection", 502, broken=True, once="stream")


def mistake(status, error, kind="application/json"):
    """The client's own request is at fault."""
    body = error if isinstance(error, bytes) else {"error": error}
    script = [http(status, body, kind=kind)]
    return Behaviour(script, script, rejected=status, ill=False)


def hidden(w, error, status=400):
    """The client's own request is at fault, which a success line stands above."""
    stream = chunked(w.opening, w.error_event(error))
    return Behaviour(says(w, 200, error), stream, rejected=status, ill=False)


def late(w, error):
    """The client's own request is at fault, which the upstream says after content."""
    stream = chunked(w.opening, w.said("All "), w.error_event(error))
    whole = says(w, 200, {"code": "invalid_prompt", "message": "no"})
    return Behaviour(whole, stream, rejected=400, broken=True, ill=False, once="stream")


ERROR = {"message": "no", "type": "x", "code": None}
TOO_LONG = {"message": "prompt is too long: 9 > 8", "code": "context_length_exceeded"}
FLAGGED = {"code": 403, "message": "The model requires moderation and your input was flagged"}
NO_MODEL = {"message": "The model `m` does not exist", "code": "model_not_found"}
SECOND = event({"choices": [{"index": 1, "delta": {"content": ""}}]})
SPLIT = b"".join([ROLE, said("Hällo €"), finish(), usage_event(), DONE])
CRLF = b"\r\n\r\n"


def spoken(w):
    """What an upstream can do in every form, in the form of `w`."""
    usage, count = w.usage, w.counted
    head = chunked()[0].replace(CRLF, "\r\nx-request-id: 日本\r\n\r\n".encode())
    as_json = chunked()[0].replace(b"text/event-stream", b"application/json")
    stopped = chunked(w.said(OK_TEXT), *w.end()[:-1] or w.end(), 0.05, end=False)
    zipped = gzip.compress(json.dumps(w.whole()).encode())
    return {
        # a success line above something that is no answer
        "200 with an error": fails(says(w, 200, ERROR), "bad_answer"),
        "200 with an error of 429": fails(says(w, 200, {"code": 429}), "rate_limited", 429),
        "200 with an error of 502": fails(says(w, 200, {"code": "502"}), "server_error", 502),
        "200 with an error of 400": hidden(w, {"code": 400, "message": "no"}),
        "200 with an error of 422": hidden(w, {"code": "422", "message": "no"}, 422),
        "200 with a refused prompt": hidden(w, {"code": "invalid_prompt", "message": "no"}),
        "refused after content": late(w, {"code": "invalid_prompt", "message": "no"}),
        "too long after content": late(w, TOO_LONG),
        "200 with an error as text": fails([http(200, w.error("overloaded"))], "bad_answer"),
        "200 with HTML": fails([http(200, b"<html>Sign in</html>", kind="text/html")],
                               "bad_answer"),
        "200 with HTML as JSON": fails([http(200, b"<html></html>")], "bad_answer"),
        "200 with nothing": fails([http(200)], "bad_answer"),
        "200 with half of JSON": fails([http(200, b'{"choices": [{"mess')], "bad_answer"),
        "200 with a list": fails([http(200, b"[]")], "bad_answer"),
        "200 with null": fails([http(200, b"null")], "bad_answer"),
        "200 nested without end": fails([http(200, b"[" * 100_000)], "bad_answer"),
        # failures that are ours or the upstream's
        "401": fails(says(w, 401, ERROR), "refused_key"),
        "402": fails(says(w, 402, ERROR), "no_credit"),
        "403": fails(says(w, 403, ERROR), "forbidden"),
        "403 for what the client wrote": fails(says(w, 403, FLAGGED), "flagged", 403, ill=False),
        "400 for what this model cannot": fails(
            says(w, 400, {"message": "max_tokens is not supported with this model"}),
            "unsupported", 400, ill=False,
        ),
        "404": fails(says(w, 404, NO_MODEL), "unknown_model"),
        "404 of a wrong address": fails([http(404, b"nginx", kind="text/html")], "unknown_model"),
        "400 model_not_found": fails(says(w, 400, NO_MODEL), "unknown_model"),
        "400 invalid key": fails(says(w, 400, {"message": "API key not valid"}), "refused_key"),
        "429": fails(says(w, 429, ERROR), "rate_limited", 429),
        "429 without quota": fails(says(w, 429, {"code": "insufficient_quota"}), "no_credit"),
        "500": fails(says(w, 500, ERROR), "server_error", 500),
        "500 with HTML": fails([http(500, b"<h1>", kind="text/html")], "server_error", 500),
        "529": fails(says(w, 529, ERROR), "server_error", 529),
        "400 too long": too_long(says(w, 400, TOO_LONG), 400),
        "200 with an error of too long": too_long(says(w, 200, TOO_LONG), 400),
        "413": too_long(says(w, 413, ERROR), 413),
        "half an answer": fails([http(200, w.whole())[:-20]], "connection"),
        # streams that say nothing
        "first event an error": fails(
            says(w, 200, ERROR), "bad_answer", stream=chunked(w.error_event(ERROR))
        ),
        "error after the role": fails(
            says(w, 200, ERROR), "bad_answer", stream=chunked(w.opening, w.error_event(ERROR))
        ),
        "an event named error": fails(
            says(w, 200, ERROR), "bad_answer",
            stream=chunked(b'event: error\ndata: {"message":"x"}\n\n'),
        ),
        "endless pings": hasty(
            fails([5.0], "timeout", 504, stream=chunked(*[PING, 0.05] * 60))
        ),
        "empty stream": fails([http(200)], "bad_answer", stream=chunked()),
        "role and end": fails([http(200)], "bad_answer", stream=chunked(w.opening)),
        "garbage in data": fails([http(200, b"{")], "bad_answer", stream=chunked(b"data: {x\n\n")),
        # streams that break off
        "ends without finish": breaks(w, w.opening, w.said("All ")),
        "ends in an event": breaks(w, w.said("All "), w.said("is")[:-9]),
        "reset after content": breaks(w, w.said("All "), 0.05, end=False, after=[RESET]),
        "closed after content": breaks(w, w.said("All "), end=False),
        "error after content": breaks(w, w.said("All "), w.error_event(ERROR)),
        "garbage after content": breaks(w, w.said("All "), b"data: <html>\n\n"),
        "pings after content": hasty(breaks(w, w.said("All "), *[PING, 0.05] * 60)),
        "stalls after content": hasty(breaks(w, w.said("All "), 5.0)),
        # the client's own mistakes
        "400": mistake(400, {"message": "temperature must be <= 2"}),
        "422": mistake(422, ERROR),
        "400 with HTML": mistake(400, b"<html>", "text/html"),
        # tokens
        "usage missing": usage_is(w, None, "unknown"),
        "usage 0/0": usage_is(w, count(0, 0), "unknown"),
        "usage as text": usage_is(w, count("100", "20"), "unknown"),
        "usage negative": usage_is(w, count(-5, 20), "unknown"),
        "usage beyond reason": usage_is(w, count(2**53 - 1, 20), "unknown"),
        "usage beyond the window": usage_is(w, count(100, 10**8), "unknown"),
        "usage half": usage_is(w, dict([*count(100, 20).items()][:1]), "unknown"),
        "usage as a list": usage_is(w, [1], "unknown"),
        # odd, but answers
        "carriage returns": streams(
            w, w.said("All is ", CRLF), w.said("well.", CRLF), *w.end(blank=CRLF)
        ),
        "pings between": streams(
            w, PING, w.opening, PING, w.said(OK_TEXT), PING, *w.end()
        ),
        "slow pings, then content": streams(w, PING, 0.1, PING, 0.1, w.said(OK_TEXT), *w.end()),
        "open after done": streams(w, w.said(OK_TEXT), *w.end(), 5.0),
        "gzip": replace(
            streams(w, w.said(OK_TEXT), *w.end(),
                    answer=[http(200, zipped, "content-encoding: gzip")]),
            once="whole",
        ),
        "headers outside latin-1": Behaviour(
            [http(200, w.whole(usage=usage), "x-request-id: 日本")],
            [head, *chunked(w.said(OK_TEXT), *w.end())[1:]],
            ill=False,
        ),
        "wrong types": Behaviour(
            [http(200, w.whole(), kind="text/html")],
            [as_json, *chunked(w.said(OK_TEXT), *w.end())[1:]],
            ill=False,
        ),
        "no end, reset after the last event": Behaviour(
            unended([http(200, w.whole())]), [*stopped, RESET], ill=False
        ),
        "429 without an end": fails(unended(says(w, 429, ERROR)), "rate_limited", 429),
        "201": Behaviour([http(201, w.whole())], chunked(w.said(OK_TEXT), *w.end()), ill=False),
    }  # fmt: skip


#: What only Chat Completions can do, and what happens below every form.
BEHAVIOURS = spoken(CHAT) | {
    "200 with an error in a choice": fails(
        [http(200, {"choices": [{"error": {"code": 502, "message": "x"}}]})], "server_error", 502
    ),
    "200 with a choice that failed": fails(
        [http(200, {"choices": [{"message": {}, "finish_reason": "error"}]})], "bad_answer"
    ),
    "200 without choices": fails([http(200, {"choices": []})], "bad_answer"),
    "200 with choices of null": fails([http(200, {"choices": None})], "bad_answer"),
    "200 with a choice without message": fails([http(200, {"choices": [{}]})], "bad_answer"),
    "204": fails([b"HTTP/1.1 204 No\r\nconnection: close\r\n\r\n"], "bad_answer"),
    "302": fails([http(302, b"", "location: http://127.0.0.1:1/")], "bad_answer"),
    "304": fails([b"HTTP/1.1 304 No\r\nconnection: close\r\n\r\n"], "bad_answer"),
    "101": fails([b"HTTP/1.1 101 Go\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"], "bad_answer"),
    "999": fails([http(999, b"no")], "bad_answer"),
    "600": fails([http(600, b"no")], "bad_answer"),
    "405": fails(says(CHAT, 405, ERROR), "unknown_model"),
    "410": fails(says(CHAT, 410, ERROR), "unknown_model"),
    "408": fails(says(CHAT, 408, ERROR), "timeout", 408),
    "425": fails(says(CHAT, 425, ERROR), "rate_limited", 425),
    # the connection
    "reset at once": fails([RESET], "connection"),
    "closed at once": fails([b""], "connection"),
    "no HTTP": fails([b"220 mail.example ESMTP\r\n"], "connection"),
    "half a head": fails([b"HTTP/1.1 200 OK\r\ncontent-ty"], "connection"),
    "says nothing": hasty(fails([5.0], "timeout", 504)),
    "endless body": fails(
        [b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", ENDLESS], "bad_answer"
    ),
    "endless head": fails([b"HTTP/1.1 200 OK\r\nx: ", ENDLESS], "connection"),
    "endless error": fails(
        [b"HTTP/1.1 500 No\r\nconnection: close\r\n\r\n", ENDLESS], "server_error", 500
    ),
    "nothing but done": fails([http(200)], "bad_answer", stream=chunked(DONE)),
    "409": mistake(409, ERROR),
    "415": mistake(415, ERROR),
    "418": mistake(418, ERROR),
    "more cached than read": usage_is(
        CHAT, {**USAGE, "prompt_tokens_details": {"cached_tokens": 101}}, "unknown"
    ),
    "no details": usage_is(CHAT, {**USAGE, "prompt_tokens_details": None}, "counted"),
    "cut anywhere": streams(CHAT, *[SPLIT[i : i + 1] for i in range(len(SPLIT))]),
    "finish without done": streams(CHAT, said(OK_TEXT), finish(), usage_event()),
    "the second choice breaks off": breaks(CHAT, CHAT.said("All "), SECOND, finish()),
    "usage after the end": streams(CHAT, said(OK_TEXT), finish(), said("", usage=USAGE)),
    "done without finish": streams(CHAT, said(OK_TEXT), usage_event(), DONE),
    "done without a blank line": streams(
        CHAT, said(OK_TEXT), finish(), usage_event(), b"data: [DONE]"
    ),
    "error of null": streams(
        CHAT, said(OK_TEXT, error=None), finish(), usage_event(), DONE,
        answer=[http(200, CHAT.whole(), "x-y: z")],
    ),
    "a filter's first event": streams(
        CHAT, event({"choices": [], "prompt_filter_results": []}), said(OK_TEXT), finish(),
        usage_event(), DONE,
    ),
    "a tool call": streams(
        CHAT, event({"choices": [{"delta": {"tool_calls": [{"function": {"name": "f"}}]}}]}),
        finish("tool_calls"), usage_event(), DONE,
    ),
    "an answer cut by a filter": streams(CHAT, finish("content_filter"), usage_event(), DONE),
    "JSON for a stream": Behaviour(
        [http(200, CHAT.whole())], [http(200, CHAT.whole(), kind="text/plain")], ill=False
    ),
}  # fmt: skip


def others(w):
    """What the other forms do: as above, and what only they can."""
    start = {"type": "content_block_start", "content_block": {"type": "tool_use", "name": "f"}}
    mistaken = {"type": "invalid_request_error", "message": "no"}
    item = {"type": "response.output_item.added", "item": {"type": "function_call", "name": "f"}}
    failed = {"type": "response.failed", "response": {"error": {"code": "server_error"}}}
    refused = {"type": "response.failed", "response": {"error": {"code": "invalid_prompt"}}}
    alone = {
        Form.MESSAGES: {
            "200 without content": fails([http(200, w.whole(content=None))], "bad_answer"),
            "200 with content as text": fails([http(200, w.whole(content="x"))], "bad_answer"),
            "200 without a type": fails([http(200, w.whole(type=None))], "bad_answer"),
            "overloaded in a stream": fails(
                [http(529, w.error({"type": "overloaded_error"}))], "server_error", 529,
                stream=chunked(w.opening, w.error_event({"type": "overloaded_error"})),
            ),
            "more cached than a window": usage_is(
                w, {**w.usage, "cache_read_input_tokens": 10**8}, "unknown"
            ),
            "cached as text": usage_is(w, {**w.usage, "cache_read_input_tokens": "1"}, "unknown"),
            "200 with a mistake": hidden(w, mistaken),
            "a tool call": streams(w, event(start), *w.end()),
            "finish without done": streams(w, w.said(OK_TEXT), w.end()[0]),
        },
        Form.RESPONSES: {
            "200 without output": fails([http(200, w.whole(output=None))], "bad_answer"),
            "200 with a failed response": fails(
                [http(200, w.whole(status="failed", error={"code": "server_error"}))],
                "server_error", 500, stream=chunked(w.opening, event(failed)),
            ),
            "failed after content": breaks(w, w.said("All "), event(failed)),
            "a refused prompt": replace(
                hidden(w, {"code": "invalid_prompt"}),
                stream=chunked(w.opening, event(refused)), once="stream",
            ),
            "an error within": replace(
                hidden(w, mistaken), stream=chunked(event({"type": "error", "error": mistaken}))
            ),
            "more cached than read": usage_is(
                w, {**w.usage, "input_tokens_details": {"cached_tokens": 101}}, "unknown"
            ),
            "no details": usage_is(w, {**w.usage, "input_tokens_details": None}, "counted"),
            "a tool call": streams(w, event(item), *w.end()),
        },
    }  # fmt: skip
    as_json = replace(fails([http(200, w.whole())], "bad_answer"), once="stream")
    chat = fails([http(200, CHAT.whole())], "bad_answer")
    return spoken(w) | alone[w.form] | {"JSON for a stream": as_json, "a chat answer": chat}


def cases():
    """(wire, name, behaviour, whether it streams): chat both ways, the others as they differ."""
    found = [(CHAT, name, one, stream) for name, one in BEHAVIOURS.items() for stream in (0, 1)]
    for w in (MESSAGES, RESPONSES):
        for name, one in others(w).items():
            once = one.once or ("whole" if one.stream is one.whole else "both")
            ways = {"whole": (0,), "stream": (1,), "both": (0, 1)}[once]
            found += [(w, name, one, stream) for stream in ways]
    return found
