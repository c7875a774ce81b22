"""Reads a value out of a catalog text with its numbers spelled as they stand there."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from hydra_core.catalog.editing.render import Value
from hydra_core.catalog.reading.nodes import ListNode, MapNode, Node, ScalarNode
from hydra_core.catalog.reading.yaml_reader import read_yaml

__all__ = ["spelled"]


def spelled(text: str, path: Sequence[str]) -> Value:
    """The value at `path` (keys, and ids of list entries); "0.80" stays 0.80.

    Args:
        text: A valid catalog that has a value there.
    """
    text = text.removeprefix("\ufeff")
    node = read_yaml(text)[0]
    for key in path:
        node = _child(node, key)
    assert node is not None
    return _value(text, node)


def _child(node: Node | None, key: str) -> Node | None:
    if isinstance(node, MapNode):
        return node.get(key)
    assert isinstance(node, ListNode)
    for item in node.items:
        name = item.get("id") if isinstance(item, MapNode) else None
        if isinstance(name, ScalarNode) and name.value == key:
            return item
    return None


def _value(text: str, node: Node) -> Value:
    match node:
        case MapNode():
            return {key: _value(text, value) for key, (_, value) in node.entries.items()}
        case ListNode():
            return [_value(text, item) for item in node.items]
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        return node.value
    return Decimal(text[node.start : node.end])
