"""A chat request of the OpenAI form, as routing sees it: the query, and what is passed on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hydra_core.base.errors import Problem, ProblemsError
from hydra_core.base.tokens import text_tokens
from hydra_core.routing.conversations.context import last_turn
from hydra_core.routing.conversations.conversation import IMAGE_TOKENS
from hydra_core.routing.conversations.messages import Conversation, read_messages
from hydra_core.routing.query import FIELDS, BadFieldError, Fields, Query, check_fields, limits_of
from hydra_core.server.settings import AUTO

#: Where a request says more about its query than an OpenAI request can; never passed on.
_OWN: Final = "hydra"
_LONGEST_ID: Final = 1_000
_KNOWN: Final[Fields] = {
    **FIELDS,
    "receipt": ("true or false", lambda value: isinstance(value, bool)),
}


class RequestError(ProblemsError):
    """A request that cannot be read; a client is answered 400 with every problem."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request.

    Attributes:
        query: What is routed.
        body: What an upstream gets, but for the model's name.
        model: What the client asked for: `auto`, or a model of the catalog.
        health: What the client knows about models' health, in [0, 1].
        receipt: Whether the whole receipt is wanted.
    """

    query: Query
    body: dict[str, Any]
    model: str = AUTO
    health: Mapping[str, float] = field(default_factory=dict)
    receipt: bool = False

    @property
    def stream(self) -> bool:
        """Whether the answer is wanted piece by piece."""
        return self.body.get("stream") is True

    @property
    def wants_usage(self) -> bool:
        """Whether the client asked for the tokens at the end of a stream."""
        options = self.body.get("stream_options")
        return isinstance(options, Mapping) and options.get("include_usage") is True


def parse_json(raw: bytes) -> dict[str, Any]:
    """The object in a request's body.

    Raises:
        RequestError: It is not a JSON object.
    """
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _refused("", f"is not JSON: {str(error)[:120]}", "send a JSON object") from error
    if not isinstance(found, dict):
        raise _refused("", "is not a JSON object", 'such as {"model": "auto", "messages": [...]}')
    return found


def read_chat(found: dict[str, Any], conversation_id: str | None = None) -> ChatRequest:
    """The request in a decoded body; what HyDRA alone understands stands in its key `hydra`.

    Args:
        found: A decoded chat request.
        conversation_id: From a header; the body's own wins.

    Raises:
        RequestError: Messages or fields are not valid; lists what is wrong.
    """
    own = found.get(_OWN, {})
    if not isinstance(own, dict):
        raise _refused(_OWN, "must be an object", "such as {'conversation_id': 'c-17'}")
    try:
        check_fields(own, _KNOWN)
    except BadFieldError as error:
        raise _refused(_OWN, str(error), "") from error
    try:
        conversation = read_messages(found, "request")
    except ProblemsError as error:
        raise RequestError("request", error.problems) from error
    model = found.get("model", AUTO)
    if not isinstance(model, str):
        raise _refused("model", "must be text", f"give '{AUTO}' or a model of the catalog")
    body = {key: value for key, value in found.items() if key != _OWN}
    key = own.get("conversation_id") or conversation_id or _conversation_of(found)
    if key is not None:
        _require_plain(key)
    query = query_of(conversation, own, key)
    receipt = bool(own.get("receipt"))
    return ChatRequest(query, body, model, own.get("health", {}), receipt)


def query_of(conversation: Conversation, own: Mapping[str, Any], key: str | None = None) -> Query:
    """What is routed of a conversation: its last user turn, with what came before.

    Args:
        own: Checked fields that say more or otherwise (`routing/query.py`).
        key: The conversation's id.
    """
    turns, last = conversation.turns, last_turn(conversation)
    return Query(
        text=last.text,
        turn=own.get("turn") or last.turn,
        conversation_id=key,
        prefix=tuple(own.get("prefix") or (turn.text for turn in turns[:-1])),
        has_image=own.get("has_image", any(turn.images for turn in turns)),
        needs_tools=own.get("needs_tools", conversation.tools),
        context_tokens=own.get("context_tokens") or _tokens(conversation),
        context=last.context,
        **limits_of(own),
    )


def _tokens(conversation: Conversation) -> int:
    """What a model must take in, estimated; the provider counts for itself."""
    texts = [conversation.opening]
    for turn in conversation.turns:
        texts += [turn.text, turn.answer, turn.results]
    images = sum(turn.images for turn in conversation.turns)
    return round(sum(map(text_tokens, texts))) + IMAGE_TOKENS * images


def _conversation_of(found: Mapping[str, Any]) -> str | None:
    """The conversation that a plain OpenAI request names, if it does."""
    metadata = found.get("metadata")
    named = metadata.get("conversation_id") if isinstance(metadata, Mapping) else None
    key = named or found.get("prompt_cache_key")
    return key if isinstance(key, str) and key else None


def _require_plain(key: str) -> None:
    """A conversation's id is a key in Redis, in memory and in the log."""
    if len(key) > _LONGEST_ID or not _is_text(key):
        told = f"must be a text of at most {_LONGEST_ID} characters, got {ascii(key)[:40]}"
        raise _refused("conversation_id", told, "name conversations by short ids")


def _is_text(key: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in key)


def _refused(place: str, message: str, remedy: str) -> RequestError:
    return RequestError("request", [Problem(place, message, remedy)])
