"""How an upstream says things in each form: whole answers, events, tokens and errors."""

import json

from hydra_core.server.wire import Form
from tests.server.raw_upstream import DONE, OK_TEXT, ROLE, USAGE, event, finish, said, usage_event
from tests.server.raw_upstream import whole as chat_whole


class Chat:
    """Chat Completions."""

    form = Form.CHAT
    usage = USAGE
    opening, over = ROLE, DONE

    def counted(self, read, written):
        return {"prompt_tokens": read, "completion_tokens": written}

    def asks(self, text, stream):
        return {"model": "auto", "messages": [{"role": "user", "content": text}], "stream": stream}

    def whole(self, **changes):
        return chat_whole(**changes)

    def said(self, text, blank=b"\n\n"):
        return said(text, blank)

    def end(self, usage=USAGE, blank=b"\n\n"):
        """The last events: why the model stopped, its tokens, and that nothing follows."""
        return [finish(blank=blank), *([usage_event(usage)] if usage is not None else []), DONE]

    def error(self, error):
        return {"error": error}

    def error_event(self, error):
        return event({"error": error})

    def text_of(self, body):
        return body["choices"][0]["message"].get("content") or ""

    def delta_of(self, one):
        return "".join(c.get("delta", {}).get("content") or "" for c in one.get("choices", ()))


class Messages(Chat):
    """Messages: the tokens read come first, those written with the reason to stop."""

    form = Form.MESSAGES
    usage = {"input_tokens": 100, "output_tokens": 20}
    opening = event({"type": "message_start", "message": {"type": "message", "content": []}})
    over = event({"type": "message_stop"})

    def counted(self, read, written):
        return {"input_tokens": read, "output_tokens": written}

    def asks(self, text, stream):
        return super().asks(text, stream) | {"max_tokens": 1_000}

    def whole(self, **changes):
        found = {"id": "x", "type": "message", "role": "assistant", "stop_reason": "end_turn",
                 "content": [{"type": "text", "text": OK_TEXT}], "usage": self.usage}  # fmt: skip
        return {key: value for key, value in (found | changes).items() if value is not None}

    def said(self, text, blank=b"\n\n"):
        delta = {"type": "text_delta", "text": text}
        return event({"type": "content_block_delta", "index": 0, "delta": delta}, blank)

    def end(self, usage=usage, blank=b"\n\n"):
        last = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
        return [event(last | ({} if usage is None else {"usage": usage}), blank), self.over]

    def error(self, error):
        return {"type": "error", "error": error}

    def error_event(self, error):
        return b"event: error\n" + event(self.error(error))

    def text_of(self, body):
        return "".join(block["text"] for block in body["content"])

    def delta_of(self, one):
        return one.get("delta", {}).get("text") or ""


class Responses(Messages):
    """Responses: one last event holds the whole response again, and its tokens."""

    form = Form.RESPONSES
    opening = event({"type": "response.created", "response": {"status": "in_progress"}})
    over = event({"type": "response.completed", "response": {"status": "completed"}})

    def asks(self, text, stream):
        return {"model": "auto", "input": text, "stream": stream}

    def whole(self, **changes):
        item = {"type": "message", "content": [{"type": "output_text", "text": OK_TEXT}]}
        found = {"id": "x", "object": "response", "status": "completed", "output": [item],
                 "usage": self.usage}  # fmt: skip
        return {key: value for key, value in (found | changes).items() if value is not None}

    def said(self, text, blank=b"\n\n"):
        return event({"type": "response.output_text.delta", "delta": text}, blank)

    def end(self, usage=Messages.usage, blank=b"\n\n"):
        response = {"status": "completed"} | ({} if usage is None else {"usage": usage})
        return [event({"type": "response.completed", "response": response}, blank)]

    def error(self, error):
        return {"error": error}

    def error_event(self, error):
        return event({"type": "error", **error})

    def text_of(self, body):
        return "".join(part["text"] for item in body["output"] for part in item["content"])

    def delta_of(self, one):
        delta = one.get("delta", "")
        return delta if isinstance(delta, str) else ""


CHAT, MESSAGES, RESPONSES = Chat(), Messages(), Responses()


def events_of(text):
    """The decoded events of a stream."""
    lines = [one[5:].strip() for one in text.splitlines() if one.startswith("data:")]
    return [json.loads(one) for one in lines if one != "[DONE]"]
