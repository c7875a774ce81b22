"""A value inside nested objects by its path: `doc.question`, `messages.0.content`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_DEPTH: Final = 5


def value_at(row: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 (JSON)
    """The value under a name, else at a path of names and numbers; None where there is none."""
    if path in row:
        return row[path]
    value: Any = row
    for step in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def paths_in(row: Mapping[str, Any], depth: int = _DEPTH) -> Iterator[str]:
    """The names of an object, and behind each that holds an object the paths inside it."""
    for name, value in row.items():
        yield name
        if isinstance(value, Mapping) and depth > 1:
            yield from (f"{name}.{inner}" for inner in paths_in(value, depth - 1))
