"""Conversations in the OpenAI messages form: read, checked and bounded; nothing is fetched."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hydra_core.base.errors import Problem, ProblemsError
from hydra_core.base.tokens import text_tokens
from hydra_core.base.types import Ability
from hydra_core.routing.conversations.harness import Rules, rules

_SPOKEN_ROLES: Final = {
    "system": "system", "user": "user", "human": "user", "you": "user",
    "assistant": "assistant", "ai": "assistant", "bot": "assistant", "model": "assistant",
}  # fmt: skip
_SPEAKER: Final = re.compile(
    rf"^[ \t]*[*_#]*[ \t]*({'|'.join(_SPOKEN_ROLES)})[ \t]*[*_]*[ \t]*:[*_]*[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)


def transcript_messages(text: str) -> list[dict[str, str]] | None:
    """The messages of a transcript in the OpenAI form; None where it does not begin as one.

    A line that begins with a speaker (User, Human, You, Assistant, AI, Bot, Model or System, in any
    case, bold or not) and a colon begins a message; everything up to the next belongs to it.
    """
    starts = list(_SPEAKER.finditer(text))
    if not starts or text[: starts[0].start()].strip():
        return None
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return [
        {"role": _SPOKEN_ROLES[match[1].lower()], "content": text[match.end() : end].strip()}
        for match, end in zip(starts, ends, strict=True)
    ]


MAX_BYTES: Final = 5_000_000
MAX_MESSAGES: Final = 1_000
_MAX_PROBLEMS: Final = 20
_ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")
_IMAGES: Final = ("image_url", "input_image", "image", "computer_screenshot")
_AUDIO: Final = ("input_audio", "audio")
_TEXTS: Final = ("text", "input_text", "output_text", "refusal")
#: Tokens counted for a part that routing does not understand, such as a file.
_UNREAD_TOKENS: Final = 1_000
_DEEPEST_PART: Final = 3


@dataclass(frozen=True, slots=True)
class Turn:
    """One user turn and what followed it.

    Attributes:
        text: The user message; messages right after each other are joined.
        images: Images attached to it.
        answer: What the assistant wrote in reply, arguments of tool calls included.
        results: What tools gave back during the reply.
        harness_tokens: Of harness text that came with it and is not in `text`, estimated.
        stalled: Tool results in a row, at the end, that report failure, or calls in a row that are
            the same, whichever is more.
    """

    text: str
    images: int = 0
    answer: str = ""
    results: str = ""
    harness_tokens: int = 0
    stalled: int = 0


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as routing sees it.

    Attributes:
        opening: What stands before the first user message (the system prompt).
        turns: At least one.
        tools: Whether tools were declared or used.
        images: Images that stand before the first user message.
        unread_tokens: Estimate for the parts that routing does not understand.
        needs: Abilities that its parts ask for (`base.types.Ability`).
        continues: Whether it ends with a tool's result: no person has said anything new.
    """

    opening: str
    turns: tuple[Turn, ...]
    tools: bool = False
    images: int = 0
    unread_tokens: int = 0
    continues: bool = False
    needs: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Content:
    """One message's content: its text, and what else it holds."""

    texts: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    images: int = 0
    unread_tokens: int = 0
    harness_tokens: float = 0.0
    needs: set[str] = field(default_factory=set)

    @property
    def is_said(self) -> bool:
        """Whether a person speaks in it, as far as the rules know."""
        return bool(self.texts or self.images or not (self.results or self.harness_tokens))

    def clean(self, by: Rules) -> None:
        """Take harness text and tool results out of what a user's message says."""
        said = []
        for text in self.texts:
            cleaned = by.cleaned(text)
            self.harness_tokens += cleaned.ignored
            if cleaned.is_result:
                self.results.append(text)
            elif cleaned.text or not cleaned.ignored:
                said.append(cleaned.text)
        self.texts = said


@dataclass(slots=True)
class _Draft:
    """A turn being read."""

    text: list[str] = field(default_factory=list)
    images: int = 0
    answer: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    harness_tokens: float = 0.0

    def turn(self, by: Rules) -> Turn:
        failed = _last_run([by.failed(one) for one in self.results], True)
        same = _last_run(self.calls, self.calls[-1]) if self.calls else 0
        return Turn(
            "\n\n".join(self.text),
            self.images,
            "\n".join(self.answer),
            "\n".join(self.results),
            round(self.harness_tokens),
            max(failed, same if same > 1 else 0),
        )


def _last_run(values: Sequence[object], wanted: object) -> int:
    return next((n for n, one in enumerate(reversed(values)) if one != wanted), len(values))


def parse_messages(raw: str | bytes, source: str = "conversation") -> Conversation:
    """Read JSON text, a list of messages or an object with `messages`, or a transcript.

    Raises:
        ProblemsError: Too large, not JSON, or not messages; lists every problem found.
    """
    size = len(raw)
    if size > MAX_BYTES:
        message = f"has {size:,} characters, at most {MAX_BYTES:,} are read"
        raise _refused(source, "", message, "cut the conversation, or leave images out")
    try:
        text = raw.decode("utf-8-sig") if isinstance(raw, bytes) else raw.removeprefix("\ufeff")
        spoken = transcript_messages(text)
        value = json.loads(text) if spoken is None else spoken
    except UnicodeDecodeError as error:
        raise _refused(source, f"byte {error.start}", "is not UTF-8 text", "") from error
    except RecursionError as error:
        raise _refused(source, "", "is nested too deeply", "") from error
    except ValueError as error:
        where = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)[:120]
        remedy = 'begin with "User: ...", or paste JSON: [{"role": "user", "content": "..."}]'
        raise _refused(source, where, f"is not JSON: {what}", remedy) from error
    return read_messages(value, source)


def read_messages(value: object, source: str = "conversation") -> Conversation:
    """Read a decoded list of messages, or an object that holds one.

    Raises:
        ProblemsError: Lists every problem found, the first 20 at most.
    """
    tools = isinstance(value, Mapping) and bool(value.get("tools") or value.get("functions"))
    listed = value.get("messages") if isinstance(value, Mapping) else value
    if not isinstance(listed, list):
        remedy = 'give a list of messages, or an object with "messages"'
        raise _refused(source, "", f"holds {_kind(listed)} where messages belong", remedy)
    if len(listed) > MAX_MESSAGES:
        message = f"has {len(listed):,} messages, at most {MAX_MESSAGES:,} are played"
        raise _refused(source, "messages", message, "cut the conversation")
    problems: list[Problem] = []
    conversation = _said(listed, tools, problems)
    if not problems and not conversation.turns:
        problems.append(Problem("messages", "has no user message", "add one with role user"))
    if problems:
        raise ProblemsError(source, problems[:_MAX_PROBLEMS])
    return conversation


def read_served(value: Mapping[str, Any], source: str = "request") -> Conversation:
    """Read the messages of a request that an upstream will judge for itself.

    What routing does not understand (a kind of part, a role) is passed over and estimated; there
    may be any number of messages. Without a user message, what stands before the first one is
    routed on.

    Raises:
        ProblemsError: There are no messages.
    """
    tools = bool(value.get("tools") or value.get("functions"))
    listed = value.get("messages")
    if not isinstance(listed, list) or not listed:
        message = "has no user message" if listed == [] else f"must be a list, got {_kind(listed)}"
        raise _refused(source, "messages", message, "add one with role user")
    conversation = _said(listed, tools, [])
    if conversation.turns:
        return conversation
    turn = Turn(conversation.opening, conversation.images)
    return replace(conversation, opening="", turns=(turn,), images=0)


def _said(listed: Sequence[object], tools: bool, problems: list[Problem]) -> Conversation:
    """What is said in messages; where all of it is harness text, that is read as said."""
    conversation = _assemble(listed, tools, problems, rules())
    if conversation.turns or problems:
        return conversation
    return _assemble(listed, tools, problems, Rules())


def _assemble(
    listed: Sequence[object], tools: bool, problems: list[Problem], by: Rules
) -> Conversation:
    opening: list[str] = []
    drafts: list[_Draft] = []
    needs: set[str] = set()
    last_role, images_before, unread_tokens, waiting = "", 0, 0, 0.0
    for number, message in enumerate(listed):
        place = f"messages[{number}]"
        role = _role(message, place, problems)
        if not role or not isinstance(message, Mapping):
            continue
        content = _content(message, role, place, problems)
        if role == "user":
            content.clean(by)
        elif role == "tool" and message.get("is_error") is True:
            content.texts = [f"Error: {text}" for text in content.texts or [""]]
        unread_tokens += content.unread_tokens
        needs |= content.needs
        used = _calls(message, place, problems)
        tools = tools or bool(used) or role in ("tool", "function")
        said = role == "user" and content.is_said
        if said and (last_role != "user" or not drafts):
            drafts.append(_Draft())
        if drafts:
            drafts[-1].images += content.images
            drafts[-1].harness_tokens += content.harness_tokens + waiting
            waiting = 0.0
        else:
            images_before += content.images
            waiting += content.harness_tokens
        _put(role, content, used, drafts[-1] if drafts else None, opening)
        if said or role != "user":
            last_role = role
        elif content.results:
            last_role = "tool"
    turns = tuple(draft.turn(by) for draft in drafts)
    continues = last_role in ("tool", "function")
    return Conversation(
        "\n".join(opening),
        turns,
        tools,
        images_before,
        unread_tokens,
        bool(turns) and continues,
        frozenset(needs),
    )


def _put(role: str, content: _Content, used: str, draft: _Draft | None, opening: list[str]) -> None:
    """Add a message's texts to the turn it belongs to, or to the opening."""
    parts = [part for part in ("\n".join(content.texts), used) if part]
    if draft is None or role in ("system", "developer"):
        opening += [*parts, *content.results]
    elif role == "user":
        draft.text += parts
        draft.results += content.results
    elif role == "assistant":
        draft.answer += parts
        draft.calls += [used] if used else []
    else:
        draft.results += [*parts, *content.results]


def _role(message: object, place: str, problems: list[Problem]) -> str:
    if not isinstance(message, Mapping):
        problems.append(Problem(place, f"is {_kind(message)}, not an object with role and content"))
        return ""
    role = message.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        found = f"must be one of {', '.join(_ROLES)}, got {_brief(role)}"
        problems.append(Problem(f"{place}: role", found))
        return ""
    return role


def _content(
    message: Mapping[str, Any], role: str, place: str, problems: list[Problem]
) -> _Content:
    content = message.get("content")
    if isinstance(content, str):
        return _Content([content])
    if content is None and role == "assistant":
        return _Content()
    if not isinstance(content, list):
        found = f"must be text or a list of parts, got {_kind(content)}"
        problems.append(Problem(f"{place}: content", found))
        return _Content()
    read = _Content()
    for number, part in enumerate(content):
        if not _add_part(read, part):
            kind = part.get("type") if isinstance(part, Mapping) else None
            found = f"must be a part of type text or image_url, got {_brief(kind)}"
            problems.append(Problem(f"{place}: content[{number}]", found))
    return read


def _add_part(read: _Content, part: object, depth: int = 0) -> bool:
    """Add one part to what was read; False where routing does not understand it."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping):
        read.unread_tokens += _UNREAD_TOKENS
        return False
    if kind in _AUDIO:
        read.needs.add(Ability.AUDIO)
    elif _is_pdf(part):
        read.needs.add(Ability.PDF)
    if kind in _IMAGES or _is_image_file(part):
        read.images += 1
    elif kind == "tool_result" and not depth:
        _add_result(read, part)
        return True
    elif kind in _TEXTS and isinstance(_text_of(part), str) and not depth:
        read.texts.append(_text_of(part))
        return True
    elif isinstance(held := _held(part), str):
        read.unread_tokens += int(text_tokens(held))
    elif isinstance(held, list) and depth < _DEEPEST_PART:
        for one in held:
            _add_part(read, one, depth + 1)
    else:
        read.unread_tokens += _file_tokens(part)
    return kind in _IMAGES


def _held(part: Mapping[str, Any]) -> object:
    """The text or the parts in a part of another kind, None where routing does not know them."""
    text, source = part.get(str(part.get("type")), part.get("text")), part.get("source")
    if isinstance(text, str):
        return text
    if "stdout" in part or "stderr" in part:
        return f"{part.get('stdout') or ''}{part.get('stderr') or ''}"
    held = part.get("content")
    if isinstance(source, Mapping) and source.get("type") in ("text", "content"):
        held = source.get("data", source.get("content"))
    return [held] if isinstance(held, Mapping) else held


def _file_tokens(part: Mapping[str, Any]) -> int:
    """About the tokens of a file: those of a text that stands in base64, else of a short one."""
    file = part.get("file")
    data = (file if isinstance(file, Mapping) else part).get("file_data")
    if isinstance(data, str) and data.startswith("data:text/"):
        return int(0.75 * text_tokens(data))
    return _UNREAD_TOKENS


def _add_result(read: _Content, part: Mapping[str, Any]) -> None:
    """Add a tool's result that stands in a user's message (Anthropic's form)."""
    content = part.get("content")
    listed = content if isinstance(content, list) else []
    texts = [content] if isinstance(content, str) else []
    for one in listed:
        text = _text_of(one) if isinstance(one, Mapping) and one.get("type") in _TEXTS else None
        if isinstance(text, str):
            texts.append(text)
        else:
            _add_part(read, one, 1)
    failed = "Error: " if part.get("is_error") is True else ""
    read.results.append(failed + "\n".join(texts))


def _is_pdf(part: Mapping[str, Any]) -> bool:
    """Whether a part is a PDF: a file of OpenAI's forms, or a document of Anthropic's.

    A document of Anthropic's that is given by its address is always one.
    """
    file = part.get("file") if part.get("type") == "file" else part
    if not isinstance(file, Mapping):
        return False
    source, data = file.get("source"), file.get("file_data")
    held = source if isinstance(source, Mapping) else {}
    named = (file.get("filename"), str(file.get("file_url")).partition("?")[0])
    return (
        held.get("media_type") == "application/pdf"
        or (file.get("type") == "document" and held.get("type") == "url")
        or (isinstance(data, str) and data.startswith("data:application/pdf"))
        or any(isinstance(name, str) and name[-4:].lower() == ".pdf" for name in named)
    )


def _is_image_file(part: Mapping[str, Any]) -> bool:
    file = part.get("file")
    data = file.get("file_data") if isinstance(file, Mapping) else None
    return isinstance(data, str) and data.startswith("data:image/")


def _text_of(part: Mapping[str, Any]) -> Any:  # noqa: ANN401 (decoded JSON)
    return part.get("text", part.get("refusal"))


def _calls(message: Mapping[str, Any], place: str, problems: list[Problem]) -> str:
    """The arguments of a message's tool calls as text: the model wrote them, so they are billed."""
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        problems.append(Problem(f"{place}: tool_calls", f"must be a list, got {_kind(calls)}"))
        return ""
    made = [
        one.get("function") or one.get("custom") for one in calls or () if isinstance(one, Mapping)
    ]
    written = []
    for one in (message.get("function_call"), *made):
        if isinstance(one, Mapping):
            written.append(f"{one.get('name', '')} {one.get('arguments', one.get('input', ''))}")
    return "\n".join(written)


def _kind(value: object) -> str:
    names = {type(None): "nothing", dict: "an object", list: "a list", str: "a text"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else "something")


def _brief(value: object) -> str:
    shown = ascii(value)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."


def _refused(source: str, place: str, message: str, remedy: str) -> ProblemsError:
    return ProblemsError(source, [Problem(place, message, remedy)])
