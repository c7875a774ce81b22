"""Writes single values as YAML in the plainest spelling that every YAML reader takes alike."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Final, TypeAlias

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
