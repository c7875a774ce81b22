"""JSON without surprises: what it cannot hold becomes null, and no key says two things."""

import json
import math
from collections.abc import Mapping
from typing import Any


def json_value(value: object) -> object:
    """The value with NaN and infinities, which JSON does not know, as None, and keys as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    return value


def json_text(value: object, *, indent: int | None = 2, ascii_only: bool = False) -> str:
    """One JSON document."""
    ready = json_value(value)
    return json.dumps(ready, indent=indent, ensure_ascii=ascii_only, allow_nan=False)


def json_or_none(text: str | bytes) -> Any:  # noqa: ANN401 (JSON)
    """What JSON text holds, None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def objects(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list, none for anything else."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def mapping(value: object) -> Mapping[str, Any]:
    """An object, an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


class TwiceError(ValueError):
    """An object has a key twice with different values; the message names it."""


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make the object of these pairs, as `object_pairs_hook` of `json.loads`.

    Raises:
        TwiceError: A key occurs twice with different values.
    """
    found = dict(pairs)
    for key, value in pairs if len(found) < len(pairs) else ():
        if found[key] != value:
            raise TwiceError(f"the key {key!r} occurs twice in one object, with different values")
    return found
