"""A price as a person typed it or a file holds it: the one way to a number."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_NUMBER: Final = re.compile(
    r"[-+]?(?:[0-9]{1,12}\.?[0-9]{0,30}|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?"
)


def price_number(value: object) -> Decimal | None:
    """Read a plain finite number; through Decimal 0.31 stays 0.31. None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    text = str(value).strip()
    return Decimal(text) if _NUMBER.fullmatch(text) else None
