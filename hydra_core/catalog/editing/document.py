"""Edits catalog YAML in place: only the characters of the edited value change.

Values are written in the plainest spelling that every YAML reader takes alike. Each edit is read
back: where the result would say anything but the old document with that one
change, the edit is refused and the document stays as it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import partial, reduce
from operator import getitem
from typing import Any, Final, TypeAlias

from hydra_core.base.errors import CatalogError
from hydra_core.base.reading.yaml_reader import (
    ListNode,
    MapNode,
    Node,
    Scalar,
    ScalarNode,
    plain,
    read_yaml,
)


def replace(text: str, node: Node, value: Value) -> str:
    """`text` with the value at `node` written anew, on one line."""
    # "key:" with nothing behind it; or a list, which may begin below the first letter of its key
    spaced = node.start == node.end or (isinstance(node, ListNode) and not node.flow)
    space = " " * spaced
    return text[: node.start] + space + flow(value) + text[node.end :]


def insert_key(text: str, parent: MapNode, key: str, value: Value) -> str:
    """`text` with ``key: value`` behind the last entry of `parent`."""
    last = list(parent.entries.values())[-1][1] if parent.entries else None
    if parent.flow:
        return _into_flow(text, parent, last, flow({key: value})[1:-1])
    newline = _newline(text)
    column = parent.column - 1
    line = f"{_text(key)}:{block(value, column, newline)}"
    return _below(text, parent.end, " " * column + line)


def append(text: str, parent: ListNode, value: Value) -> str:
    """`text` with one more entry behind the last of `parent`."""
    if parent.flow:
        return _into_flow(text, parent, parent.items[-1] if parent.items else None, flow(value))
    newline = _newline(text)
    column = parent.column - 1
    line = " " * column + "- " + entry(value, column + 2, newline)
    return _below(text, parent.end, line)


def remove_key(text: str, parent: MapNode, key: str) -> str:
    """`text` without one entry of `parent`."""
    spans = [(name.start, value.end) for name, value in parent.entries.values()]
    return _remove(text, parent, spans, list(parent.entries).index(key), "{}")


def remove_item(text: str, parent: ListNode, index: int) -> str:
    """`text` without one entry of `parent`."""
    spans = [(item.start, item.end) for item in parent.items]
    if not parent.flow:
        spans = [(text.rindex("-", 0, start + 1 - (start == end)), end) for start, end in spans]
    return _remove(text, parent, spans, index, "[]")


def _remove(
    text: str, parent: MapNode | ListNode, spans: list[tuple[int, int]], at: int, empty: str
) -> str:
    if len(spans) == 1:
        return text[: parent.start] + empty + text[parent.end :]
    start, end = spans[at]
    if parent.flow:
        if at == 0:
            return text[:start] + text[spans[1][0] :]
        return text[: spans[at - 1][1]] + text[end:]
    first_of_line = _line_start(text, start)
    if text[first_of_line:start].strip():  # behind a dash: the next entry takes its place
        return text[:start] + text[spans[at + 1][0] :]
    if at > 0:
        first_of_line = _above_comments(text, first_of_line, text[first_of_line:start])
    return text[:first_of_line] + text[_line_end(text, end) :]


def _above_comments(text: str, at: int, indent: str) -> int:
    """Where the comment lines directly above line `at` begin, those at the same indentation."""
    while at > 0:
        above = _line_start(text, at - 1 - text[:at].endswith("\r\n"))
        if not text[above:at].startswith(f"{indent}#"):
            break
        at = above
    return at


def _into_flow(text: str, parent: MapNode | ListNode, last: Node | None, written: str) -> str:
    if last is None:
        return text[: parent.start + 1] + written + text[parent.start + 1 :]
    return f"{text[: last.end]}, {written}{text[last.end :]}"


def _below(text: str, end: int, line: str) -> str:
    """`text` with `line` below the line that `end` is on."""
    at = _line_end(text, end)
    newline = _newline(text)
    if at and text[at - 1] not in "\r\n":
        return text[:at] + newline + line + text[at:]
    return text[:at] + line + newline + text[at:]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


#: What a document says, as plain Python.
Data: TypeAlias = Scalar | list["Data"] | dict[str, "Data"]
Step: TypeAlias = str | int
_BOM: Final = "\ufeff"


def mapping(data: Data) -> dict[str, Data]:
    """A mapping of a document, an empty one for anything else."""
    return data if isinstance(data, dict) else {}


def entries(data: Data) -> list[Data]:
    """A list of a document, an empty one for anything else."""
    return data if isinstance(data, list) else []


class CatalogDocument:
    """The text of a catalog with edits by path.

    A path names keys of mappings and indices of lists; in a list of mappings an id does as well:
    ``("models", "gpt-5.4", "input_usd_per_mtok")``.
    """

    __slots__ = ("_bom", "_root", "_source", "_text")

    def __init__(self, text: str, source: str) -> None:
        self._source = source
        self._bom = _BOM if text.startswith(_BOM) else ""
        self._text = text.removeprefix(_BOM)
        self._root = self._read(self._text)

    @classmethod
    def parse(cls, text: str, source: str = "catalog") -> CatalogDocument:
        """The document in `text`, which must be readable YAML but need not be a valid catalog.

        Raises:
            CatalogError: It is not readable YAML.
        """
        return cls(text, source)

    def text(self) -> str:
        """The YAML text with all edits so far."""
        return self._bom + self._text

    def data(self) -> Data:
        """The document as plain lists, dicts and scalars (a copy)."""
        found: Data = plain(self._root)
        return found

    def get(self, *path: Step) -> Data:
        """The value at `path` as plain data.

        Raises:
            CatalogError: There is nothing at that path.
        """
        found: Data = plain(self._find(path))
        return found

    def set(self, *path_and_value: Value) -> None:
        """Write a value: ``set("models", 1, "input_usd_per_mtok", 0.8)``.

        An existing value is replaced; a new key is added at the end of its mapping. A Decimal is
        written with the digits it has, so "0.80" stays "0.80".

        Raises:
            CatalogError: The path leads nowhere, or the value cannot be written there.
        """
        path, value = self._split(path_and_value)
        if not path:
            raise self._refused("set needs a path of keys and indices, then the value")
        parent, last = self._find(path[:-1]), path[-1]
        if isinstance(parent, MapNode) and str(last) not in parent.entries:
            edit = partial(insert_key, self._text, parent, str(last))
        else:
            edit = partial(replace, self._text, self._find(path))
        self._write(edit, self._indices(path), value)

    def append(self, *path_and_value: Value) -> None:
        """Add an entry at the end of a list: ``append("models", {"id": ...})``.

        Raises:
            CatalogError: There is no list at that path, or the value cannot be written there.
        """
        path, value = self._split(path_and_value)
        node = self._find(path)
        if not isinstance(node, ListNode):
            raise self._refused(f"{_shown(path)} is not a list")
        indices = (*self._indices(path), len(node.items))
        self._write(partial(append, self._text, node), indices, value)

    def _split(self, path_and_value: Sequence[Value]) -> tuple[tuple[Step, ...], Value]:
        *steps, value = path_and_value
        path = tuple(step for step in steps if isinstance(step, str | int))
        if len(path) != len(steps):
            raise self._refused("a path holds keys and indices only")
        return path, value

    def _write(self, edit: Callable[[Value], str], path: Sequence[Step], value: Value) -> None:
        try:
            changed = edit(value)
        except ValueError as error:
            raise self._refused(str(error)) from error
        self._accept(changed, _with(self.data(), path, _plain(value)))

    def remove(self, *path: Step) -> None:
        """Remove a key with its value, or an entry of a list, with the comments inside it.

        Raises:
            CatalogError: There is nothing at that path.
        """
        if not path:
            raise self._refused("remove needs a path")
        parent = self._find(path[:-1])
        self._find(path)
        indices = self._indices(path)
        if isinstance(parent, MapNode):
            changed = remove_key(self._text, parent, str(path[-1]))
        else:
            assert isinstance(parent, ListNode)
            changed = remove_item(self._text, parent, int(indices[-1]))
        self._accept(changed, _without(self.data(), indices))

    def _read(self, text: str) -> Node:
        root, problems = read_yaml(text)
        if root is None or problems:
            raise CatalogError(self._source, problems)
        return root

    def _accept(self, text: str, wanted: Data) -> None:
        """Take over an edited text that says exactly what was wanted."""
        try:
            root = self._read(text)
        except CatalogError as error:
            raise self._refused("the value cannot be written here") from error
        if plain(root) != wanted:
            raise self._refused("the value cannot be written here without changing others")
        self._text, self._root = text, root

    def _refused(self, message: str) -> CatalogError:
        return CatalogError.of(self._source, message, "edit the YAML text by hand")

    def _find(self, path: Sequence[Step]) -> Node:
        node = self._root
        for depth, step in enumerate(path):
            child = _child(node, step)
            if child is None:
                raise self._refused(f"there is nothing at {_shown(path[: depth + 1])}")
            node = child
        return node

    def _indices(self, path: Sequence[Step]) -> tuple[Step, ...]:
        """`path` with ids of list entries replaced by their indices."""
        node: Node | None = self._root
        steps: list[Step] = []
        for step in path:
            index = _index(node, step) if isinstance(node, ListNode) else None
            steps.append(str(step) if index is None else index)
            node = None if node is None else _child(node, step)
        return tuple(steps)


def _shown(path: Sequence[Step]) -> str:
    return ".".join(str(step)[:60] for step in path) or "the document"


def _child(node: Node, step: Step) -> Node | None:
    if isinstance(node, MapNode):
        return node.get(str(step))
    if isinstance(node, ListNode):
        index = _index(node, step)
        return None if index is None else node.items[index]
    return None


def _index(node: ListNode, step: Step) -> int | None:
    """The index of a list entry given by index or by its id; an index may be one past the end."""
    if isinstance(step, int):
        return step if 0 <= step < len(node.items) else None
    for index, item in enumerate(node.items):
        found = item.get("id") if isinstance(item, MapNode) else None
        if isinstance(found, ScalarNode) and found.value == step:
            return index
    return None


def _plain(value: Value) -> Data:
    """What reading `value` back must give."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return float(value)
        case date():
            return value.isoformat()
        case Mapping():
            return {key: _plain(item) for key, item in value.items()}
        case _:
            return [_plain(item) for item in value]


def _with(data: Any, path: Sequence[Step], value: Data) -> Data:  # noqa: ANN401
    """`data`, changed to hold `value` at `path`; an index past a list's end adds to it."""
    if not path:
        return value
    holder = reduce(getitem, path[:-1], data)
    if isinstance(holder, list) and path[-1] == len(holder):
        holder.append(value)
    else:
        holder[path[-1]] = value
    whole: Data = data
    return whole


def _without(data: Any, path: Sequence[Step]) -> Data:  # noqa: ANN401
    """`data`, changed to hold nothing at `path`."""
    del reduce(getitem, path[:-1], data)[path[-1]]
    whole: Data = data
    return whole


#: What can be written: scalars, dates, and lists and mappings of them.
Value: TypeAlias = (
    str | int | float | bool | date | Decimal | None | Sequence["Value"] | Mapping[str, "Value"]
)

_FLOW_WIDTH: Final = 80
_PLAIN: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9 ._/+@()-]*[A-Za-z0-9._/+@()])?")
#: Words that YAML 1.1 or 1.2 readers take for something else than text.
_RESERVED: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def flow(value: Value) -> str:
    """`value` on one line; lists as ``[a, b]``, mappings as ``{a: 1}``.

    Numbers are written without an exponent, so that 1e-05 is a number to every reader.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() | Decimal():
            return _number(value)
        case date():
            return value.isoformat()
        case str():
            return _text(value)
        case Mapping():
            return (
                "{" + ", ".join(f"{_text(key)}: {flow(item)}" for key, item in value.items()) + "}"
            )
        case _:
            return f"[{', '.join(map(flow, value))}]"


def _number(value: float | Decimal) -> str:
    number = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
    if not number.is_finite():
        raise ValueError(f"{value} is not a finite number")
    text = f"{number:f}"
    return text if "." in text or isinstance(value, Decimal) else f"{text}.0"


def _text(value: str) -> str:
    if _PLAIN.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def block(value: Value, indent: int, newline: str) -> str:
    """`value` as it stands behind ``key:`` in a block mapping whose keys begin at `indent`.

    Short and flat collections stay on the line, others go below it, two columns deeper.
    """
    if not isinstance(value, Mapping | Sequence) or isinstance(value, str) or _is_short(value):
        return f" {flow(value)}"
    return newline + newline.join(_lines(value, indent + 2, newline))


def _is_short(value: Mapping[str, Value] | Sequence[Value]) -> bool:
    children = value.values() if isinstance(value, Mapping) else value
    flat = not any(
        isinstance(child, Sequence | Mapping) and not isinstance(child, str) for child in children
    )
    return flat and len(flow(value)) <= _FLOW_WIDTH


def _lines(value: Mapping[str, Value] | Sequence[Value], indent: int, newline: str) -> list[str]:
    pad = " " * indent
    if isinstance(value, Mapping):
        return [f"{pad}{_text(key)}:{block(item, indent, newline)}" for key, item in value.items()]
    return [f"{pad}- {entry(item, indent + 2, newline)}" for item in value]


def entry(value: Value, indent: int, newline: str) -> str:
    """`value` as it stands behind the dash of a block list; its further lines at `indent`."""
    if isinstance(value, Mapping) and value:
        return newline.join(_lines(value, indent, newline))[indent:]
    return flow(value)
