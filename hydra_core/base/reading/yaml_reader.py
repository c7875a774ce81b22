"""Reads untrusted YAML into a plain tree that knows where in the text each value stands.

Time and memory are bounded. Only libyaml's event stream is used: nothing in a file can be
executed. Scalars follow YAML 1.2's core schema in a strict form: ``yes`` and ``0x10`` are text.
Refused with a Problem, not repaired: more than 5 MB, aliases, anchors, tags, directives, duplicate
keys, several documents, deep nesting, too many values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from hydra_core.base.errors import Problem

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """One value. `start` and `end` are character offsets, `line` and `column` count from 1."""

    value: Scalar
    line: int
    column: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ListNode:
    """A sequence; `flow` is the ``[a, b]`` form."""

    items: tuple[Node, ...]
    flow: bool
    line: int
    column: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class MapNode:
    """A mapping: key -> its node and its value's node, in file order."""

    entries: Mapping[str, tuple[ScalarNode, Node]]
    flow: bool
    line: int
    column: int
    start: int
    end: int

    def get(self, key: str) -> Node | None:
        """The value of `key`, None where it is absent."""
        entry = self.entries.get(key)
        return None if entry is None else entry[1]


Node = ScalarNode | ListNode | MapNode


def plain(node: Node) -> Any:  # noqa: ANN401 (as JSON has it)
    """The value of a node without its places."""
    match node:
        case ScalarNode():
            return node.value
        case ListNode():
            return [plain(item) for item in node.items]
    return {key: plain(value) for key, (_, value) in node.entries.items()}


def shown(value: object) -> str:
    """A value as a message shows it: in YAML's spelling and never longer than 60 characters."""
    match value:
        case ScalarNode():
            return shown(value.value)
        case ListNode():
            return f"a list of {len(value.items)}"
        case MapNode():
            return "a mapping"
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return f"the text {value[:60] + '...' if len(value) > 60 else value!r}"
        case float() if not math.isfinite(value):
            return f".{value}".replace(".-", "-.")
    return str(value)


MAX_BYTES: Final = 5_000_000
MAX_DEPTH: Final = 16
MAX_NODES: Final = 100_000
_MAX_NUMBER_CHARS: Final = 40
_MAX_PROBLEMS: Final = 50

# libyaml where the wheel has it (every published one has); the pure parser is slower only.
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: What an empty file has wrong; what it is to hold depends on the file.
EMPTY: Final = Problem("", "is empty")
_INT: Final = re.compile(r"[-+]?[0-9]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NON_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_CORE: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def read_yaml(text: str) -> tuple[Node | None, tuple[Problem, ...]]:
    """The single document in `text` as a tree, and what is wrong with it as YAML.

    The tree is there also with problems that leave it readable (a duplicate key, a tag, an alias),
    so that a caller can go on and report everything at once; it is None where reading had to stop.

    Args:
        text: YAML without a byte order mark.
    """
    problem = _text_problem(text)
    if problem is not None:
        return None, (problem,)
    builder = _Builder(text)
    try:
        root = builder.document(yaml.parse(text, Loader=_LOADER))
    except _StopReadingError:
        root = None
    except yaml.YAMLError as error:
        builder.problems.append(_syntax_problem(error, text))
        root = None
    return root, tuple(builder.problems)


def _text_problem(text: str) -> Problem | None:
    """What is wrong with the text before any parsing; all checks are linear and cheap."""
    try:
        size = len(text) if len(text) > MAX_BYTES else len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        return Problem(
            f"line {text.count(chr(10), 0, error.start) + 1}",
            f"holds U+{ord(text[error.start]):04X}, which is not a character",
            "save the file as UTF-8",
        )
    if size > MAX_BYTES:
        return Problem("", f"is larger than {MAX_BYTES / 1e6:g} MB", "a catalog is a few kB")
    directive = re.search(r"^%", text, re.MULTILINE)
    if directive:
        line = text.count("\n", 0, directive.start()) + 1
        return Problem(f"line {line}", "YAML directives (%...) are refused", "remove the line")
    return None


def _syntax_problem(error: yaml.YAMLError, text: str) -> Problem:
    """A parser error in an operator's words, with its line where the parser knows it."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        reason = str(getattr(error, "reason", error)).splitlines()[0]
        return Problem("", f"is not readable YAML: {reason}", "save the file as plain UTF-8 text")
    if "nesting depth" in str(getattr(error, "problem", "")):  # PyYAML from 6.0.4 on
        place = f"line {mark.line + 1}, column {mark.column + 1}"
        return Problem(place, f"nested deeper than {MAX_DEPTH} levels", "a catalog needs 5")
    lines = text.splitlines()
    row = lines[mark.line] if mark.line < len(lines) else ""
    message = f"is not valid YAML: {getattr(error, 'problem', None) or error}"
    indent = row[: len(row) - len(row.lstrip())]
    remedy = "check the indentation, quotes and colons here and on the line above"
    if "\t" in indent or row[mark.column : mark.column + 1] == "\t":
        remedy = "replace the tab by spaces; YAML does not allow tabs in the indentation"
    return Problem(f"line {mark.line + 1}, column {mark.column + 1}", message, remedy)


class _StopReadingError(Exception):
    """A limit was hit: reading on would not be bounded."""


class _Builder:
    """Folds parser events into nodes; recursion is bounded by MAX_DEPTH."""

    def __init__(self, text: str) -> None:
        self.problems: list[Problem] = []
        self._text = text
        self._nodes = 0

    def document(self, events: Iterator[Any]) -> Node | None:
        """The root of the only document; a Problem where there is none or more than one."""
        root: Node | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    self._add(event, "a second YAML document begins here", "keep one document")
                    return None
                root = self._node(next(events), events, 1)
        if root is None:
            self.problems.append(EMPTY)
        return root

    def _add(self, event: Any, message: str, remedy: str) -> None:  # noqa: ANN401
        self.problems.append(Problem(f"line {event.start_mark.line + 1}", message, remedy))
        if len(self.problems) >= _MAX_PROBLEMS:
            raise _StopReadingError

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> Node:  # noqa: ANN401
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._add(event, f"more than {MAX_NODES:,} values", "split the catalog")
            raise _StopReadingError
        if depth > MAX_DEPTH:
            self._add(event, f"nested deeper than {MAX_DEPTH} levels", "a catalog needs 5")
            raise _StopReadingError
        self._refuse_features(event)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, events, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(event, events, depth)
        return self._scalar(event)

    def _refuse_features(self, event: Any) -> None:  # noqa: ANN401
        if isinstance(event, yaml.AliasEvent):
            self._add(event, f"alias *{str(event.anchor)[:40]} is refused", "write the value out")
        elif event.anchor is not None:
            self._add(event, f"anchor &{str(event.anchor)[:40]} is refused", "write the value out")
        tag = getattr(event, "tag", None)
        if tag is not None:
            self._add(event, f"tag {tag[:60]!r} is refused", "remove the tag; it is never executed")

    def _scalar(self, event: Any) -> ScalarNode:  # noqa: ANN401
        start, end = event.start_mark.index, event.end_mark.index
        style, raw = getattr(event, "style", None), getattr(event, "value", f"*{event.anchor}")
        if style in ("|", ">"):  # their end mark lies behind the closing line breaks
            end = start + len(self._text[start:end].rstrip())
        plain = style in (None, "")
        value = self._resolve(event, raw) if plain else raw
        mark = event.start_mark
        return ScalarNode(value, mark.line + 1, mark.column + 1, start, end)

    def _resolve(self, event: Any, raw: str) -> Scalar:  # noqa: ANN401
        """YAML 1.2 core schema for an unquoted scalar, without octal and hexadecimal."""
        if raw in _CORE:
            return _CORE[raw]
        if len(raw) > _MAX_NUMBER_CHARS:
            if raw.lstrip("-+").replace(".", "").isdigit():
                self._add(event, f"a number of {len(raw)} digits", "round it")
            return raw
        if _INT.fullmatch(raw):
            return int(raw)
        if _FLOAT.fullmatch(raw) or _NON_FINITE.fullmatch(raw):
            return float(raw.replace(".", "") if _NON_FINITE.fullmatch(raw) else raw)
        return raw

    def _sequence(self, event: Any, events: Iterator[Any], depth: int) -> ListNode:  # noqa: ANN401
        items = []
        for child in events:
            if isinstance(child, yaml.SequenceEndEvent):
                break
            items.append(self._node(child, events, depth + 1))
        mark, flow = event.start_mark, bool(event.flow_style)
        end = child.end_mark.index if flow or not items else items[-1].end
        return ListNode(tuple(items), flow, mark.line + 1, mark.column + 1, mark.index, end)

    def _mapping(self, event: Any, events: Iterator[Any], depth: int) -> MapNode:  # noqa: ANN401
        entries: dict[str, tuple[ScalarNode, Node]] = {}
        for child in events:
            if isinstance(child, yaml.MappingEndEvent):
                break
            key = self._key(self._node(child, events, depth + 1), child)
            value = self._node(next(events), events, depth + 1)
            name = str(key.value)
            if name in entries:
                first = entries[name][0].line
                self._add(
                    child,
                    f"key {name[:60]!r} is given twice, first on line {first}",
                    "keep one of the two",
                )
            else:
                entries[name] = (key, value)
        mark, flow = event.start_mark, bool(event.flow_style)
        last = next(reversed(entries.values()))[1].end if entries else mark.index
        end = child.end_mark.index if flow else last
        return MapNode(entries, flow, mark.line + 1, mark.column + 1, mark.index, end)

    def _key(self, node: Node, event: Any) -> ScalarNode:  # noqa: ANN401
        """The key as text, as it is written: ``5:`` is the key '5'."""
        if not isinstance(node, ScalarNode):
            self._add(event, "a list or mapping is used as a key", "use a plain name as the key")
            return ScalarNode("", event.start_mark.line + 1, 1, 0, 0)
        text = node.value
        if not isinstance(text, str):
            text = self._text[node.start : node.end]
        return ScalarNode(text, node.line, node.column, node.start, node.end)
