"""A request as routing sees it, whatever its form: the query, and what is passed on."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from hydra_core.base.digests import text_sha256
from hydra_core.base.errors import Problem, ProblemsError
from hydra_core.base.tokens import IMAGE_TOKENS, text_tokens
from hydra_core.base.types import Ability
from hydra_core.routing.conversations.context import last_turn
from hydra_core.routing.conversations.harness import rules
from hydra_core.routing.conversations.messages import Conversation, Turn, read_served
from hydra_core.routing.query import (
    FIELDS,
    BadFieldError,
    Fields,
    Query,
    check_fields,
    is_count,
    limits_of,
)
from hydra_core.server.settings import AUTO
from hydra_core.server.wire import (
    STATE,
    Form,
    answer_format,
    as_chat,
    output_limit,
    schemas,
    session_of,
)
from hydra_core.store.roles import Actor

#: Where a request says more about its query than an OpenAI request can; never passed on.
_OWN: Final = "hydra"
_LONGEST_ID: Final = 1_000
_DEEPEST: Final = 200
_MOST_CHOICES: Final = 128
_MOST_PLACES: Final = 20
_Object = dict[str, Any]
#: Keys of what an upstream stores, and of what in a part or a tool may hold them.
_STORED_IDS: Final = ("file_id", "file_ids", "vector_store_ids", "container_id")
_HOLDERS: Final = ("file", "source", "container", "environment", "input_image_mask")
#: How what gzip and zstd wrote begins.
_COMPRESSED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
#: Headers of a client that go on to an upstream, and the version where it names none.
_PASSED: Final = ("anthropic-version", "anthropic-beta", "openai-beta")
_VERSION: Final = {"anthropic-version": "2023-06-01"}
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
        body: What an upstream gets, but for the model's name.
        model: What the client asked for: `auto`, or a model of the catalog.
        health: What the client knows about models' health, in [0, 1].
        size: Bytes of the request as it came.
        input_tokens: What a model takes in, estimated.
        caller: Whose conversation it is; '' where nobody has to say who they are.
        team: Who pays, '' for nobody in particular.
        headers: Of the client, for the upstream.
        counts: Whether its tokens are asked for, not an answer.
    """

    query: Query
    body: dict[str, Any]
    model: str = AUTO
    health: Mapping[str, float] = field(default_factory=dict)
    receipt: bool = False
    size: int = 0
    input_tokens: int = 0
    caller: str = ""
    team: str = ""
    form: Form = Form.CHAT
    headers: Mapping[str, str] = field(default_factory=dict)
    counts: bool = False

    @property
    def stream(self) -> bool:
        """Whether the answer is wanted piece by piece."""
        return self.body.get("stream") is True

    @property
    def choices(self) -> int:
        """How many answers are asked for at once, at most 128."""
        asked = self.body.get("n")
        return min(asked, _MOST_CHOICES) if is_count(asked) and asked else 1

    @property
    def wants_usage(self) -> bool:
        """Whether the tokens at the end of a stream are for the client as well."""
        if self.form is not Form.CHAT:
            return True  # they are a part of the form
        options = self.body.get("stream_options")
        return isinstance(options, Mapping) and options.get("include_usage") is True


def parse_json(raw: bytes) -> dict[str, Any]:
    """The object in a request's body; RequestError where there is none."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        if raw.startswith(_COMPRESSED):
            raise refused("", "is compressed", "send it without content-encoding") from error
        raise refused("", f"is not JSON: {str(error)[:120]}", "send a JSON object") from error
    if raw.count(b"[") + raw.count(b"{") > _DEEPEST and _is_deep(found):
        raise refused("", f"is nested more than {_DEEPEST} levels deep", "send it flatter")
    if not isinstance(found, dict):
        raise refused("", "is not a JSON object", 'such as {"model": "auto", "messages": [...]}')
    return found


def read_chat(
    found: dict[str, Any],
    conversation_id: str | None = None,
    *,
    size: int = 0,
    caller: str = "",
    headers: Mapping[str, str] | None = None,
    form: Form = Form.CHAT,
) -> ChatRequest:
    """The request in a decoded body; what HyDRA alone understands stands in its key `hydra`.

    Args:
        conversation_id: From a header; the body's own wins.
        headers: Of the request, by their names in small letters.

    Raises:
        RequestError: Messages or fields are not valid; lists what is wrong.
    """
    own = found.get(_OWN, {})
    if not isinstance(own, dict):
        raise refused(_OWN, "must be an object", "such as {'conversation_id': 'c-17'}")
    try:
        check_fields(own, _KNOWN)
    except BadFieldError as error:
        raise refused(_OWN, str(error), "") from error
    model = found.get("model", AUTO)
    if not isinstance(model, str):
        raise refused("model", "must be text", f"give '{AUTO}' or a model of the catalog")
    if not isinstance(stream := found.get("stream"), bool | None):  # upstreams may take 1 for true
        raise refused("stream", f"must be true or false, got {ascii(stream)[:40]}", "")
    conversation = _conversation(found, form, named=model != AUTO)
    key = own.get("conversation_id") or conversation_id
    if key is not None and not _is_plain(key):  # a key in Redis, in memory and in the log
        message = f"must be a text of at most {_LONGEST_ID} characters, got {ascii(key)[:40]}"
        raise refused("conversation_id", message, "name conversations by short ids")
    key = _agent_key(key or _conversation_of(found, form), conversation, headers or {})
    query = query_of(conversation, own, key, found, form)
    stated = own.get("context_tokens")  # for the gates; a model takes in what there is
    return ChatRequest(
        query,
        {key: value for key, value in found.items() if key != _OWN},
        model,
        own.get("health", {}),
        bool(own.get("receipt")),
        size,
        _tokens(conversation, found, form) if stated else query.context_tokens,
        caller,
        form=form,
        headers={} if form is Form.CHAT else _passed_on(headers or {}, form),
    )


def for_actor(request: ChatRequest, actor: Actor) -> ChatRequest:
    """The request with what the asker's token says: the team, and tags that models must have."""
    query = request.query
    if actor.require:
        query = replace(query, require=query.require | actor.require)
    return replace(request, query=query, team=actor.team)


def _passed_on(headers: Mapping[str, str], form: Form) -> dict[str, str]:
    """The client's headers that its upstream needs to understand the request."""
    found = {name: headers.get(name, "") for name in _PASSED}
    given = {name: v for name, v in found.items() if v and v.isascii() and v.isprintable()}
    return {**_VERSION, **given} if form is Form.MESSAGES else given


def require_whole(found: Mapping[str, Any], form: Form, *, shared: bool) -> None:
    """A routed request must hold all that it asks about: upstreams do not share what they store.

    Args:
        shared: Whether all models that it may go to know what one of them stores: then only earlier
            turns and work in the background are refused, which the router could not follow.

    Raises:
        RequestError: It names something stored, and no model; lists the places, 20 at most.
    """
    if found.get("model", AUTO) != AUTO:
        return
    stored = [name for name in STATE if form is Form.RESPONSES and found.get(name)]
    stored += () if shared else _stored(found, form)
    if stored:
        message = "refers to what one upstream stores, and a routed request may go to another"
        remedy = "send the whole conversation with its files, or ask for a model by name"
        problems = [Problem(place, message, remedy) for place in stored[:_MOST_PLACES]]
        raise RequestError("request", problems)


def _stored(found: Mapping[str, Any], form: Form) -> Iterator[str]:
    """The places of a request that name templates, items, files and the like by their id."""
    responses = form is Form.RESPONSES
    if responses and found.get("prompt"):
        yield "prompt"
    if _names_stored({"container": found.get("container")}):
        yield "container"
    yield from (place for place, tool in _within(found, "tools") if _names_stored(tool))
    name = "input" if responses else "messages"
    for place, item in _within(found, name):
        kind = item.get("type") or ("message" if "role" in item else "item_reference")
        if (responses and kind == "item_reference") or _names_stored({"audio": item.get("audio")}):
            yield place
        for inner, part in (*_within(item, "content", place), *_within(item, "output", place)):
            held = [(inner, part)]
            if part.get("type") == "tool_result":
                held += _within(part, "content", inner)
            yield from (where for where, one in held if _names_stored(one))


def _within(found: Mapping[str, Any], name: str, place: str = "") -> Iterator[tuple[str, _Object]]:
    """The objects in a list, or the object, that stands under a name, with their places."""
    held, place = found.get(name), f"{place}.{name}" if place else name
    if isinstance(held, dict):
        yield place, held
    elif isinstance(held, list):
        yield from ((f"{place}[{n}]", one) for n, one in enumerate(held) if isinstance(one, dict))


def _names_stored(part: _Object) -> bool:
    """Whether a part or a tool names a file, a container or a sound by an upstream's id of it."""
    whole = [part.get(name) for name in ("container", "audio")]
    ids = [one.get("id") if isinstance(one, dict) else one for one in whole]
    held = (part, *(part.get(name) for name in _HOLDERS))
    named = (one.get(name) for one in held if isinstance(one, dict) for name in _STORED_IDS)
    return any(isinstance(one, str) for one in ids) or any(named)


def query_of(
    conversation: Conversation,
    own: Mapping[str, Any],
    key: str | None = None,
    found: Mapping[str, Any] = MappingProxyType({}),
    form: Form = Form.CHAT,
) -> Query:
    """What is routed of a conversation: its last user turn, with what came before it.

    Args:
        own: Checked fields that say more or otherwise (`routing/query.py`).
        found: The request, for what it declares and asks of the answer beside its messages.
    """
    turns, last = conversation.turns, last_turn(conversation)
    longest = output_limit(found, form)
    image = bool(conversation.images) or any(turn.images for turn in turns)
    return Query(
        text=last.text,
        turn=own.get("turn") or last.turn,
        conversation_id=key,
        prefix=tuple(own.get("prefix") or (turn.text for turn in turns[:-1])),
        has_image=own.get("has_image", image),
        needs_tools=own.get("needs_tools", conversation.tools),
        context_tokens=own.get("context_tokens") or _tokens(conversation, found, form),
        context=last.context,
        harness_tokens=turns[-1].harness_tokens,
        continues=conversation.continues,
        stalled=turns[-1].stalled,
        output_tokens=longest if is_count(longest) else 0,
        needs=conversation.needs | {*own.get("needs", ())} | _declared_needs(found, form),
        **limits_of(own),
    )


def _conversation(found: Mapping[str, Any], form: Form, *, named: bool) -> Conversation:
    """The messages as routing understands them; a named model's upstream judges them itself."""
    try:
        said = as_chat(found, form)
        if form is Form.RESPONSES and not said["messages"]:
            raise refused("input", "is missing or empty", "give a text or a list of items")
        return read_served(said)
    except ProblemsError as error:
        if named:
            return Conversation("", (Turn(""),))
        raise RequestError("request", error.problems) from error


def _tokens(conversation: Conversation, found: Mapping[str, Any], form: Form) -> int:
    """What a model must take in of a request, estimated; the provider counts for itself."""
    shapes = schemas(found, form)
    declared = json.dumps(shapes, ensure_ascii=False, separators=(",", ":")) if shapes else ""
    texts = [conversation.opening]
    for turn in conversation.turns:
        texts += [turn.text, turn.answer, turn.results]
    images = conversation.images + sum(turn.images for turn in conversation.turns)
    written = round(sum(map(text_tokens, texts)))
    written += sum(turn.harness_tokens for turn in conversation.turns)
    written += round(text_tokens(declared))
    return written + IMAGE_TOKENS * images + conversation.unread_tokens


def _is_deep(found: object) -> bool:
    """Whether a decoded body is nested more deeply than is passed on."""
    level = [found]
    for _ in range(_DEEPEST):
        inner: list[object] = []
        for one in level:
            if isinstance(one, dict):
                inner.extend(one.values())
            elif isinstance(one, list):
                inner.extend(one)
        if not inner:
            return False
        level = inner
    return True


def _declared_needs(found: Mapping[str, Any], form: Form) -> frozenset[str]:
    shape = answer_format(found, form)
    needs = set()
    if isinstance(shape, Mapping) and shape.get("type") in ("json_schema", "json_object"):
        needs.add(Ability.STRUCTURED_OUTPUT)
    if found.get("parallel_tool_calls") is True and found.get("tools"):
        needs.add(Ability.PARALLEL_TOOLS)
    modalities = found.get("modalities")
    if isinstance(modalities, list) and "audio" in modalities:
        needs.add(Ability.AUDIO)
    return frozenset(needs)


def _conversation_of(found: Mapping[str, Any], form: Form) -> str | None:
    metadata = found.get("metadata")
    named = metadata.get("conversation_id") if isinstance(metadata, Mapping) else None
    key = named or found.get("prompt_cache_key") or session_of(found, form)
    if not isinstance(key, str) or not key:
        return None
    return key if _is_plain(key) else text_sha256(key)


def _agent_key(
    key: str | None, conversation: Conversation, headers: Mapping[str, str]
) -> str | None:
    """The conversation's id; a sub-agent's conversation is its own, by its task."""
    agent = rules().agent(headers, conversation.opening) if key else ""
    if not key or not agent:
        return key
    return f"{key}/{text_sha256(agent + conversation.turns[0].text)[:16]}"


def _is_plain(key: str) -> bool:
    return len(key) <= _LONGEST_ID and not any("\ud800" <= sign <= "\udfff" for sign in key)


def refused(place: str, message: str, remedy: str) -> RequestError:
    """The error that names one place of a request."""
    return RequestError("request", [Problem(place, message, remedy)])
