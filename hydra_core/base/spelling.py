"""Differences, costs and counts as every sentence spells them: console, receipt, report."""

import math
from decimal import Decimal


def signed(value: float, digits: int = 1) -> str:
    """A difference with its sign: +1.8, −0.7, and 0.0 for what rounds to nothing."""
    shown = f"{value:+.{digits}f}"
    if not float(shown):
        return shown[1:]
    return shown.replace("-", "−")


def usd(value: float) -> str:
    """A cost per query with three significant digits and no scientific notation: $0.0123."""
    if not value:
        return "$0"
    digits = max(2 - math.floor(math.log10(abs(value))), 2)
    return f"${value:,.{min(digits, 9)}f}"


def set_usd(value: float) -> str:
    """An amount that somebody has set, without zeros at its end: $0.02, $1,500."""
    return usd(value).rstrip("0").rstrip(".") if value else "$0"


def short_number(value: float, digits: int = 4) -> str:
    """A number in at most so many significant digits, never with an exponent: 0.24, 0.00001."""
    return f"{Decimal(f'{value:.{digits}g}').normalize():,f}"


def counted(count: int, noun: str) -> str:
    """A number of things, named in the singular: 1 query, 4,074 queries."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def counted_that(count: int, noun: str, does: str, do: str) -> str:
    """A number of things and what they do: 1 outcome costs, 3 outcomes cost."""
    return f"{counted(count, noun)} {does if count == 1 else do}"


def signed_usd(value: float) -> str:
    """A difference of costs with its sign: +$0.0123, −$0.0004, and $0 for none."""
    sign = "−" if value < 0 else "+" if value > 0 else ""
    return sign + usd(abs(value))


def titled(name: str) -> str:
    """A name such as `tool_use` as a heading: `Tool use`."""
    return name.replace("_", " ").capitalize()
