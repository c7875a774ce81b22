"""A price as a person typed it or a file holds it: the one way to a number."""

from __future__ import annotations

from decimal import Decimal


def price_number(value: object) -> Decimal | None:
    """Read a plain finite number; through Decimal 0.31 stays 0.31. None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        number = Decimal(str(value).strip())
    except ArithmeticError:
        return None
    return number if number.is_finite() else None
