"""Moves whole entries of a block list, with the comments in and directly above them."""

from __future__ import annotations

from collections.abc import Sequence

from hydra_core.catalog.editing.document import CatalogDocument, Data
from hydra_core.catalog.reading.nodes import ListNode, MapNode, Node, ScalarNode
from hydra_core.catalog.reading.yaml_reader import read_yaml
from hydra_core.errors import CatalogError, Problem

__all__ = ["reordered"]


def reordered(
    document: CatalogDocument, path: Sequence[str], ids: Sequence[str]
) -> CatalogDocument:
    """The document with the entries named in `ids` in that order among themselves.

    Entries that `ids` does not name keep their places in the list.

    Args:
        path: Keys that lead to a list of mappings with an id.
        ids: Ids of entries that are there.

    Raises:
        CatalogError: The list is written in a form whose entries cannot be moved.
    """
    bom = "\ufeff" if document.text().startswith("\ufeff") else ""
    text = document.text().removeprefix("\ufeff")
    node = _list(text, path)
    if node is None or node.flow:
        raise _refused("is not a list with one entry below the other")
    now = [_id(item) for item in node.items]
    wanted = _order(now, ids)
    cuts = _cuts(text, node)
    blocks = [text[start:end] for start, end in zip(cuts, cuts[1:], strict=False)]
    blocks = [block if block.endswith("\n") else f"{block}\n" for block in blocks]
    moved = text[: cuts[0]] + "".join(blocks[index] for index in wanted) + text[cuts[-1] :]
    if not text.endswith("\n"):
        moved = moved.removesuffix("\n")
    result = CatalogDocument.parse(bom + moved, "the reordered catalog")
    items = document.get(*path)
    assert isinstance(items, list)
    if result.data() != _replaced(document.data(), path, [items[index] for index in wanted]):
        raise _refused("cannot be reordered without changing other values")
    return result


def _order(now: Sequence[str], ids: Sequence[str]) -> list[int]:
    """Indices into `now` in the wanted order."""
    queue = iter([now.index(name) for name in ids])
    named = set(ids)
    return [next(queue) if name in named else index for index, name in enumerate(now)]


def _cuts(text: str, node: ListNode) -> list[int]:
    """Where each entry begins, with the comment lines right above it, and where the last ends."""
    indent = " " * (node.column - 1)
    starts = []
    for index, item in enumerate(node.items):
        at = text.rindex("\n", 0, text.rindex("-", 0, item.start)) + 1
        while index and text[text.rindex("\n", 0, at - 1) + 1 :].startswith(f"{indent}#"):
            at = text.rindex("\n", 0, at - 1) + 1
        starts.append(at)
    found = text.find("\n", node.items[-1].end)
    return [*starts, len(text) if found < 0 else found + 1]


def _list(text: str, path: Sequence[str]) -> ListNode | None:
    node: Node | None = read_yaml(text)[0]
    for key in path:
        node = node.get(key) if isinstance(node, MapNode) else None
    return node if isinstance(node, ListNode) else None


def _id(node: Node) -> str:
    found = node.get("id") if isinstance(node, MapNode) else None
    return str(found.value) if isinstance(found, ScalarNode) else ""


def _replaced(data: Data, path: Sequence[str], value: Data) -> Data:
    if not path:
        return value
    assert isinstance(data, dict)
    return {**data, path[0]: _replaced(data[path[0]], path[1:], value)}


def _refused(message: str) -> CatalogError:
    remedy = "move the entries by hand in the YAML text"
    return CatalogError("the order", [Problem("", message, remedy)])
