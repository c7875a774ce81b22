"""How one column writes its numbers: currency, percent, decimal mark, thousands, words.

A cell is read by what it shows itself: `$0.02`, `83 %` and `0,5` have one meaning only. Where the
cells of a column leave it open it is not guessed: `1,234` is a thousand in a count, which is whole,
and refused in a cost.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Final

from hydra_core.base.currencies import CURRENCIES
from hydra_core.base.errors import EvalSetError, Problem


class Measure(StrEnum):
    """What a column's numbers are."""

    QUALITY = "quality"
    COST = "cost"
    COUNT = "count"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class Notation:
    """How a column is written, as far as the operator or its header says so.

    Attributes:
        decimal: The decimal mark, '' where the cells decide.
        divisor: The written value that means 1: 100 for percentages and for cents.
        words: Whether pass and fail and the like are 1 and 0.
        currency: What cells without a sign of their own are in, '' for USD.
        measure: The only measure that a header's unit is one of; None for any.
        unknown: What a header has in brackets that is no known unit.
        stated: Whether the operator said so of this very column; what is said of the whole table,
            or by a header, is believed only where the cells fit it.
    """

    decimal: str = ""
    divisor: float = 1.0
    words: bool = False
    stated: bool = False
    currency: str = ""
    measure: Measure | None = None
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Digits:
    """A cell taken apart: its digits with their marks, and a currency, `%`, `s`, `ms` or ''."""

    body: str
    sign: str


@dataclass(slots=True)
class Reader:
    """Reads the cells of one column; `grouped`: the other mark may part thousands."""

    measure: Measure
    notation: Notation
    mark: str
    grouped: bool
    percent: bool
    rates: Mapping[str, float] = field(default_factory=dict)

    def read(self, digits: Digits) -> Decimal | None:
        """The number that a cell means; None where it does not say which."""
        number = self._number(digits.body)
        if number is None:
            return None
        if self.measure is Measure.COUNT:
            many = _MANY.get(digits.sign)
            number = number * many if many else number / Decimal(repr(self.notation.divisor))
            return number if number == number.to_integral_value() else None
        if digits.sign in _TIMES:
            return number * _TIMES[digits.sign]
        if digits.sign == "cents" or (digits.sign == "%" and self.notation.divisor == 1):
            return number / 100
        if digits.sign in ("", "%") or self.notation.stated:
            number /= Decimal(repr(self.notation.divisor))
        return number * Decimal(repr(self.rates.get(digits.sign, 1.0)))

    def _number(self, body: str) -> Decimal | None:
        group = "." if self.mark == "," else ","
        if group in body:
            whole, _, _ = body.partition(self.mark)
            parted = _THOUSANDS[group].fullmatch(whole) is not None
            if not parted or not (self.grouped or self.mark in body):
                return None
            body = body.replace(group, "")
        plain = body.replace(self.mark, ".")
        return Decimal(plain) if _NUMBER.fullmatch(plain) else None


#: Signs of time behind a number, and their seconds.
_TIMES: Final[Mapping[str, Decimal]] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), Decimal(1)),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), Decimal(60)),
    **dict.fromkeys(("h", "hour", "hours"), Decimal(3600)),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), Decimal("0.001")),
}
#: Signs of many tokens behind a number.
_MANY: Final[Mapping[str, int]] = {"k": 1_000, "m": 1_000_000}
#: Signs of money, and the currency of each; cents are of a USD.
SIGNS: Final[Mapping[str, str]] = {
    **CURRENCIES,
    **dict.fromkeys(("¢", "ct", "cent", "cents"), "cents"),
}
_MOST_CHARS: Final = 100
_SIGN: Final = "|".join(sorted(map(re.escape, SIGNS), key=len, reverse=True))
_UNIT: Final = "|".join(sorted(_TIMES, key=len, reverse=True))
_BODY: Final = r"[+-]?(?:[0-9][0-9.,'’\u00a0\u202f]*|[.,][0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
_CELL: Final = re.compile(
    rf"\s*(?P<sign>{_SIGN})?\s*(?P<body>{_BODY})\s*(?P<after>{_SIGN}|%|{_UNIT}|k|m)?\s*",
    re.IGNORECASE,
)
_COMMAS: Final = re.compile(r"(?:-?[0-9][0-9.,]*(?:[eE][+-]?[0-9]{1,3})?)?")
_SPACES: Final = str.maketrans("", "", "+'’\u00a0\u202f")
_EXPONENT: Final = r"(?:[eE][+-]?[0-9]{1,3})?"
_NUMBER: Final = re.compile(rf"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+){_EXPONENT}")
_THOUSANDS: Final = {
    mark: re.compile(rf"-?[1-9][0-9]{{0,2}}(?:{re.escape(mark)}[0-9]{{3}})+") for mark in ".,"
}
#: What can only be a number with this decimal mark: not three digits behind one to three others,
#: unless the other mark parts thousands twice.
_PROOF: Final = {
    mark: re.compile(
        rf"-?(?:[0-9]+{m}(?:[0-9]{{1,2}}|[0-9]{{4,}})|[0-9]{{4,}}{m}[0-9]+|0?{m}[0-9]+"
        rf"|[0-9]{{1,3}}(?:{g}[0-9]{{3}})+{m}[0-9]+|[0-9]{{1,3}}(?:{g}[0-9]{{3}}){{2,}}){_EXPONENT}"
    )
    for mark, m, g in ((".", r"\.", ","), (",", ",", r"\."))
}


def digits_of(cell: str, measure: Measure) -> Digits | None:
    """A cell taken apart; None where it is no number of this measure."""
    match = _CELL.fullmatch(cell) if len(cell) <= _MOST_CHARS else None
    if match is None or (match["sign"] and match["after"]):
        return None
    sign = (match["sign"] or match["after"] or "").lower()
    wanted = {"%": Measure.QUALITY, "": measure} | dict.fromkeys(_TIMES, Measure.SECONDS)
    wanted |= dict.fromkeys(_MANY, Measure.COUNT)
    if wanted.get(sign, Measure.COST) is not measure:
        return None
    return Digits(match["body"].translate(_SPACES), SIGNS.get(sign, sign))


def can_part_thousands(cell: str, measure: Measure) -> bool:
    """Whether a cell's comma may stand between thousands: 1,234 but not 0,5."""
    digits = digits_of(cell, measure)
    return digits is not None and _THOUSANDS[","].fullmatch(digits.body) is not None


def reader_of(
    cells: Iterable[Digits | None],
    measure: Measure,
    notation: Notation,
    rates: Mapping[str, float],
) -> Reader:
    """How to read a column, by what all of its cells prove together."""
    known = [cell for cell in cells if cell is not None]
    proven = [m for m in ".," if any(_PROOF[m].fullmatch(cell.body) for cell in known)]
    mark = notation.decimal or "."
    if len(proven) == 1 and not notation.stated:
        mark = proven[0]
    grouped = proven == [mark] or (notation.stated and bool(notation.decimal))
    if measure is Measure.COUNT and mark == (proven or ["."])[0]:
        grouped = True
    percent = any(cell.sign == "%" for cell in known)
    return Reader(measure, notation, mark, grouped, percent, rates)


def with_decimal_points(columns: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The columns of numbers of a file that proves decimal commas, and no points, as plain numbers.

    Nothing where the file does not prove them.
    """
    numbers = {
        name: [cell.strip() for cell in cells]
        for name, cells in columns.items()
        if all(_COMMAS.fullmatch(cell.strip()) for cell in cells) and any(map(str.strip, cells))
    }
    filled = [cell for cells in numbers.values() for cell in cells if cell]
    proven = [mark for mark in ".," if any(_PROOF[mark].fullmatch(cell) for cell in filled)]
    if proven != [","]:
        return {}
    reader = Reader(Measure.SECONDS, Notation(), ",", grouped=True, percent=False)
    marked = {cell for cell in filled if "," in cell or "." in cell}
    read = {cell: reader.read(Digits(cell, "")) for cell in marked}
    plain = {cell: format(number, "f") for cell, number in read.items() if number is not None}
    return {name: [plain.get(cell, cell) for cell in cells] for name, cells in numbers.items()}


def parse_notations(pairs: Sequence[str]) -> dict[str, Notation]:
    """Column -> notation from `COLUMN=HOW` texts; HOW is one or several of comma, point, percent,
    cents, words, and 1/5 (the value 5 means 1), with commas between.

    Raises:
        EvalSetError: A text of another form, or a column twice.
    """
    problems, notations = [], {}
    for pair in pairs:
        column, equals, how = pair.rpartition("=")
        notation = _notation(how.split(","))
        if not equals or not column or notation is None:
            remedy = "HOW is comma, point, percent, cents, words or 1/X, X the value that means 1"
            problems.append(Problem(repr(pair), "is not COLUMN=HOW", remedy))
        elif column in notations:
            problems.append(Problem(repr(pair), f"names {column} twice", "say it once"))
        else:
            notations[column] = notation
    EvalSetError.raise_any("--read", problems)
    return notations


def _notation(words: Sequence[str]) -> Notation | None:
    decimal, divisor, in_words = "", 1.0, False
    for word in words:
        best = re.fullmatch(r"1/([0-9]+(?:\.[0-9]+)?)", word)
        if word in ("comma", "point"):
            decimal = "," if word == "comma" else "."
        elif word in ("percent", "cents"):
            divisor = 100.0
        elif word == "words":
            in_words = True
        elif best is not None and float(best[1]) > 0:
            divisor = float(best[1])
        elif word != "share":
            return None
    return Notation(decimal, divisor, in_words, stated=True)


def parse_rates(pairs: Sequence[str]) -> dict[str, float]:
    """Currency -> USD of one unit, from `EUR=1.08` texts; EvalSetError lists the wrong ones."""
    problems, rates = [], {"USD": 1.0}
    for pair in pairs:
        currency, _, rate = pair.partition("=")
        plain = re.fullmatch(r"[A-Z]{3}", currency) and re.fullmatch(r"[0-9]*\.?[0-9]+", rate)
        if not plain or float(rate) == 0:
            problems.append(Problem(repr(pair), "is not CURRENCY=USD of one unit", "e.g. EUR=1.08"))
        elif currency == "USD" and float(rate) != 1:
            problems.append(Problem(repr(pair), "must be 1", "leave it out"))
        elif rates.setdefault(currency, float(rate)) != float(rate):
            problems.append(Problem(repr(pair), f"names {currency} twice", "say it once"))
    EvalSetError.raise_any("--rate", problems)
    return rates
