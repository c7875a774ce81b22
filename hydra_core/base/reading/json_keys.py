"""Objects of JSON whose keys may not say two things; of two values Python would keep the last."""

from __future__ import annotations

from typing import Any


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
