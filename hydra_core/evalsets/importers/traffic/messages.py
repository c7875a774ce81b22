"""What was asked, in any of the forms that logs store: read for its last user message.

Forms: OpenAI's messages and Responses input, Anthropic's blocks, Gemini's contents, OpenTelemetry's
parts, LangChain's messages, or one text. A part that holds no text (a PDF, audio), and an item that
is no message (reasoning), is left out; the text beside it stays.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from hydra_core.base.errors import ProblemsError
from hydra_core.evalsets.importers.traffic.rows import decoded, text
from hydra_core.routing.conversations.context import last_turn
from hydra_core.routing.conversations.messages import read_messages

#: Why a row has no message. A log shows the operator these words with a count.
NO_MESSAGE: Final = "no message was stored"
UNREAD: Final = "the message is in a form that is not read"
_NO_USER: Final = "no user message"
NO_TEXT: Final = "the message has no text"
_CUT: Final = "the message was cut off when it was stored"
_REDACTED: Final = "the message was redacted when it was stored"

_CUT_MARK: Final = re.compile(r"\.\.\. ?\((?:litellm_truncated(?: skipped)?|truncated) \d+ chars")
_REDACTED_TEXTS: Final = (
    *("redacted-by-litellm", "redacted by litellm"),
    "<fully masked due to failed mask function>",
)
#: How a stored request or list of messages begins; one that cannot be decoded was cut off.
_STORED: Final = re.compile(
    r"""\s*(?:\[\s*\{\s*['"](?:role|content|from|type)|\{\s*['"](?:role|messages|model))['"]\s*:"""
)
_LISTS: Final = ("messages", "input", "contents", "prompt", "kwargs")
#: Where an object of another form holds the message itself.
_SAID: Final = ("query", "question", "text", "message", "user_input", "content")
_ROLES: Final = {
    **dict.fromkeys(("human", "humanmessage", "humanmessagechunk"), "user"),
    **dict.fromkeys(("ai", "aimessage", "aimessagechunk", "model", "bot", "gpt"), "assistant"),
    "systemmessage": "system",
    "toolmessage": "tool",
}
#: What LangChain calls its messages, in place of a role.
_KINDS: Final = frozenset({*_ROLES, "system", "tool"})
_TEXT_TYPES: Final = ("", "text", "input_text", "output_text", "refusal")
_TEXT_NAMES: Final = ("text", "content", "refusal")
_IMAGE_TYPES: Final = ("image_url", "input_image", "image", "image_file")
_KINDS_OF_MEDIA: Final = ("modality", "mime_type", "media_type", "mimeType")


@dataclass(frozen=True, slots=True)
class Asked:
    """The last user message of a request.

    Attributes:
        turn: Its number in the conversation, from 1.
        context: What came before it, as a predictor reads it.
        has_image: Whether the conversation holds an image.
        problem: Why there is no message, '' where there is one.
    """

    text: str = ""
    turn: int = 1
    context: str = ""
    has_image: bool = False
    problem: str = ""


def asked_in(stored: object) -> Asked:
    """What a log's field asks; `problem` says why where that cannot be read."""
    value = decoded(stored)
    if isinstance(value, str):
        if _STORED.match(value):
            return Asked(problem=UNREAD)
        return _checked(Asked(value)) if value.strip() else Asked(problem=NO_MESSAGE)
    if not value:
        return Asked(problem=NO_MESSAGE)
    listed = _listed(value)
    if listed is None:
        return Asked(problem=UNREAD)
    plain = [message for one in listed for message in _plain(one)]
    if not plain:
        return Asked(problem=UNREAD if listed else NO_MESSAGE)
    if not any(message["role"] == "user" for message in plain):
        return Asked(problem=_NO_USER)
    try:
        conversation = read_messages(plain)
    except ProblemsError:
        return Asked(problem=UNREAD)
    last = last_turn(conversation)
    image = any(turn.images for turn in conversation.turns)
    return _checked(Asked(last.text, last.turn, last.context, image))


def asked_in_cells(texts: pd.Series) -> dict[str, list[str]] | None:
    """The columns text, context and has_image of a table whose texts are lists of messages.

    None where not every filled cell is such a list, or begins as one. A list without a message, or
    one that was cut off, gives no text.
    """
    filled = texts[texts.str.strip() != ""]
    if filled.empty or not filled.str.match(r"\s*(?:\[\s*)?\{").all():
        return None
    read = {text: asked_in(text) for text in filled.unique()}
    if not all(_STORED.match(text) or _is_list(text, one) for text, one in read.items()):
        return None
    found = [read.get(text, Asked()) for text in texts]
    columns = {"text": [one.text for one in found]}
    if any(one.context for one in found):
        columns["context"] = [one.context for one in found]
    if any(one.has_image for one in found):
        columns["has_image"] = ["true" if one.has_image else "false" for one in found]
    return columns


def _is_list(text: str, asked: Asked) -> bool:
    return isinstance(decoded(text), list) and asked.problem != UNREAD


def _checked(asked: Asked) -> Asked:
    """The message itself, unless what was stored is not the whole of it."""
    if not asked.text.strip():
        return Asked(problem=NO_TEXT)
    if asked.text.strip().lower() in _REDACTED_TEXTS:
        return Asked(problem=_REDACTED)
    return Asked(problem=_CUT) if _CUT_MARK.search(asked.text) else asked


def _listed(value: object) -> Sequence[object] | None:
    """The messages of a request, None where there are none in a known form."""
    if isinstance(value, Mapping):
        if "role" in value:
            return [value]
        stored = next((value[name] for name in _LISTS if value.get(name)), None)
        if stored is not None:
            return _listed(decoded(stored))
        if any(name in value for name in _LISTS):
            return []
        said = next((value[name] for name in _SAID if isinstance(value.get(name), str)), None)
        return None if said is None else _listed(said)
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if isinstance(value, list) and len(value) == 1:  # a batch of one
        inner = decoded(value[0])
        value = inner if isinstance(inner, list) else value
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return [{"role": "user", "content": value}]
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        return None
    return value


def _plain(message: object) -> list[dict[str, Any]]:
    """A stored message in the OpenAI form; tool results inside it become messages of their own."""
    if not isinstance(message, Mapping):
        return []
    kind = message.get("type")
    if kind == "function_call":
        return [_called(message.get("name"), message.get("arguments"))]
    if kind == "function_call_output":
        return [{"role": "tool", "content": _words(message.get("output"))}]
    inner = message.get("kwargs", message.get("data"))
    if isinstance(inner, Mapping) and "content" in inner and "role" not in message:
        named = message.get("id")  # LangChain's dump: its class, and what it was made of
        message = {"type": named[-1] if isinstance(named, list) and named else kind, **inner}
    role = _role(message)
    if not role:
        return []
    content = next(
        (message[name] for name in ("content", "parts", "value") if name in message), None
    )
    listed = [content] if isinstance(content, str | Mapping) else content
    plain, results, calls = _parts(listed if isinstance(listed, list) else [])
    messages: list[dict[str, Any]] = [{"role": "tool", "content": one} for one in results]
    if plain or not results:
        own = message.get("tool_calls")
        calls += own if isinstance(own, list) else []
        messages.append({"role": _ROLES.get(role, role), "content": plain, "tool_calls": calls})
    return messages


def _role(message: Mapping[str, Any]) -> str:
    """Who says a message, '' of an item that is none, such as reasoning."""
    said = text(message.get("role", message.get("from"))).lower()
    kind = text(message.get("type")).lower()
    if not said and kind in _KINDS:
        said = kind
    if not said and isinstance(message.get("parts"), list):
        said = "user"  # as Gemini takes it
    return said


def _parts(content: Sequence[object]) -> tuple[list[dict[str, Any]], list[str], list[Any]]:
    """(texts and images, results of tools, calls of tools) of a message's parts."""
    plain: list[dict[str, Any]] = []
    results: list[str] = []
    calls: list[Any] = []
    for part in content:
        if isinstance(part, str):
            plain.append({"type": "text", "text": part})
        elif isinstance(part, Mapping):
            kind = text(part.get("type"))
            if kind in ("tool_result", "tool_call_response"):
                said = (part[name] for name in ("content", "response", "result") if name in part)
                results.append(_words(next(said, None)))
            elif kind in ("tool_use", "tool_call"):
                called = part.get("input", part.get("arguments"))
                calls += _called(part.get("name"), called)["tool_calls"]
            elif _is_image(part, kind):
                plain.append({"type": "image_url"})
            elif kind in _TEXT_TYPES:
                words = next((part[name] for name in _TEXT_NAMES if name in part), None)
                plain += [{"type": "text", "text": words}] if isinstance(words, str) else []
    return plain, results, calls


def _is_image(part: Mapping[str, Any], kind: str) -> bool:
    media = [part, *(one for one in part.values() if isinstance(one, Mapping))]
    said = [text(one.get(name)).lower() for one in media for name in _KINDS_OF_MEDIA]
    return kind in _IMAGE_TYPES or any(word.split("/")[0] == "image" for word in said)


def _called(name: object, arguments: object) -> dict[str, Any]:
    function = {"name": text(name), "arguments": _words(arguments)}
    return {"role": "assistant", "content": "", "tool_calls": [{"function": function}]}


def _words(value: object) -> str:
    """A result or an argument as text."""
    if isinstance(value, list):
        return "\n".join(_words(one) for one in value)
    if isinstance(value, Mapping) and isinstance(value.get("text"), str):
        return str(value["text"])
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
