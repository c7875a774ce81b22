"""Values as JSON can hold them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping


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
