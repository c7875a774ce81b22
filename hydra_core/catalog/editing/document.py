"""Edits catalog YAML in place: only the characters of the edited value change.

The text itself is the document. An edit finds where the value stands, writes the new one there and
leaves every other byte (comments, order, spelling of numbers, line ends) as it was. Each edit is
then read back: where the result would say anything but the old document with that one change, the
edit is refused and the document stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Final, TypeAlias

from hydra_core.catalog.editing import splice
from hydra_core.catalog.editing.render import Value
from hydra_core.catalog.reading.nodes import ListNode, MapNode, Node, Scalar, ScalarNode
from hydra_core.catalog.reading.yaml_reader import read_yaml
from hydra_core.errors import CatalogError, Problem

__all__ = ["CatalogDocument", "Data"]

#: What a document says, as plain Python.
Data: TypeAlias = Scalar | list["Data"] | dict[str, "Data"]
Step: TypeAlias = str | int
_BOM: Final = "\ufeff"


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
        return _data(self._root)

    def get(self, *path: Step) -> Data:
        """The value at `path` as plain data.

        Raises:
            CatalogError: There is nothing at that path.
        """
        return _data(self._find(path))

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
            edit = partial(splice.insert_key, self._text, parent, str(last))
        else:
            edit = partial(splice.replace, self._text, self._find(path))
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
        self._write(partial(splice.append, self._text, node), indices, value)

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
            changed = splice.remove_key(self._text, parent, str(path[-1]))
        else:
            assert isinstance(parent, ListNode)
            changed = splice.remove_item(self._text, parent, int(indices[-1]))
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
        if _data(root) != wanted:
            raise self._refused("the value cannot be written here without changing others")
        self._text, self._root = text, root

    def _refused(self, message: str) -> CatalogError:
        return CatalogError(self._source, [Problem("", message, "edit the YAML text by hand")])

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


def _data(node: Node) -> Data:
    match node:
        case ScalarNode():
            return node.value
        case ListNode():
            return [_data(item) for item in node.items]
    return {key: _data(value) for key, (_, value) in node.entries.items()}


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


def _with(data: Data, path: Sequence[Step], value: Data) -> Data:
    if not path:
        return value
    if isinstance(data, dict):
        return {**data, str(path[0]): _with(data.get(str(path[0])), path[1:], value)}
    assert isinstance(data, list)
    assert isinstance(path[0], int)
    index = path[0]
    old = data[index] if index < len(data) else None
    return [*data[:index], _with(old, path[1:], value), *data[index + 1 :]]


def _without(data: Data, path: Sequence[Step]) -> Data:
    first, rest = path[0], path[1:]
    if isinstance(data, dict):
        kept = dict(data)
        gone = kept.pop(str(first))
        if not rest:
            return kept
        return {key: _without(gone, rest) if key == first else item for key, item in data.items()}
    assert isinstance(data, list)
    assert isinstance(first, int)
    inner = [_without(data[first], rest)] if rest else []
    return [*data[:first], *inner, *data[first + 1 :]]
