"""Where in a YAML text an edit goes: pure functions from text and node to the new text.

They know block and flow style, comments behind a value, and files with or without a last line end.
The caller reads the result back and refuses it where it does not say what was wanted.
"""

from __future__ import annotations

from hydra_core.catalog.editing.render import Value, block, entry, flow
from hydra_core.catalog.reading.nodes import ListNode, MapNode, Node

__all__ = ["append", "insert_key", "remove_item", "remove_key", "replace"]


def replace(text: str, node: Node, value: Value) -> str:
    """`text` with the value at `node` written anew, on one line."""
    space = " " if node.start == node.end else ""  # "key:" with nothing behind it
    return text[: node.start] + space + flow(value) + text[node.end :]


def insert_key(text: str, parent: MapNode, key: str, value: Value) -> str:
    """`text` with ``key: value`` behind the last entry of `parent`."""
    last = list(parent.entries.values())[-1][1] if parent.entries else None
    if parent.flow:
        return _into_flow(text, parent, last, flow({key: value})[1:-1])
    newline = _newline(text)
    column = parent.column - 1
    name = flow({key: None}).removeprefix("{").removesuffix(": null}")
    return _below(text, parent.end, " " * column + f"{name}:{block(value, column, newline)}")


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
    """Where the next line begins."""
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1
