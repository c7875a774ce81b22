"""A YAML document as a plain tree that knows where in the text each value stands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
