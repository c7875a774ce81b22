"""Columns of text to plain numbers, each as it is written; every cell that is none is named."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from shlex import quote

import pandas as pd

from hydra_core.base.currencies import CURRENCIES
from hydra_core.base.errors import Problem
from hydra_core.evalsets.importers.headers import read_header, unit_columns
from hydra_core.evalsets.importers.reading.cells import (
    BLANK,
    FILE,
    FLAGS,
    GOOD,
    LINE,
    NUMBER,
    PLAIN,
    WORDS,
    Form,
    Issues,
    among,
)
from hydra_core.evalsets.importers.reading.notation import (
    Digits,
    Measure,
    Notation,
    Reader,
    can_part_thousands,
    digits_of,
    reader_of,
)

_WHOLE = r"\s*[0-9]+(?:\.0*)?\s*"
_FRACTION = re.compile(r"\s*([0-9]{1,6})\s*/\s*([1-9][0-9]{0,5})\s*")
_POINTS = re.compile(r"\s*[0-9]{1,3}(?:\.[0-9]{3})+\s*")
_OPTION = re.compile(r"COLUMN=([a-z]+|1/[0-9]+)")
_SHOWN = 3
#: The best of a rating; beyond it are percentages.
_MOST_RATING = 10
#: Whole numbers below this are exact as floats.
_EXACT = 2**53


@dataclass(frozen=True, slots=True, eq=False)
class _Fault:
    """Cells that cannot be read: which, what is wrong, what to do (COLUMN stands for the name)."""

    bad: pd.Series
    message: str
    remedy: str


@dataclass(slots=True)
class Columns:
    """Reads columns, and collects what was read otherwise than it stands, and what cannot be.

    Attributes:
        form: What is said of the whole table, and how a remedy says it.
        notations: Column -> how it is written, by the operator.
        headers: Column -> how it is written, by its header.
        rates: Currency -> USD of one unit.
        wide: Whether several columns share a measure, so that what is said of all may not fit one.
        unrated: Currencies that were met and have no rate.
    """

    form: Form = PLAIN
    notations: Mapping[str, Notation] = field(default_factory=dict)
    headers: Mapping[str, Notation] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    wide: bool = False
    issues: Issues = field(default_factory=Issues)
    notes: list[str] = field(default_factory=list)
    converted: set[str] = field(default_factory=set)
    unrated: set[str] = field(default_factory=set)

    def plain(self, frame: pd.DataFrame, column: str, measure: Measure) -> pd.Series:
        """(rows,) cells of a column as plain numbers, true or false; blank where at fault.

        Args:
            frame: The column beside FILE and LINE.
        """
        cells, notation = frame[column].astype(object), self._notation(column, measure)
        for beside in unit_columns(column, frame.columns, measure):
            cells = _with_unit(cells, frame[beside].astype(object).str.strip(), measure)
            frame = frame.assign(**{column: cells})
        if measure is Measure.COST:
            self._require_of_one(column)
        if notation.unknown and measure in _ASSUMED:
            unit = f"({notation.unknown}) is no known unit"
            self.notes.append(f"{column} was read {_ASSUMED[measure]}: {unit}")
        flags = among(cells, FLAGS)
        if notation.words:
            self._note_words(column, cells[among(cells, WORDS)])
            flags |= among(cells, WORDS)
        rest = ~among(cells, BLANK) & ~flags
        texts = values = cells[rest]
        faults: list[_Fault] = []
        if measure is Measure.QUALITY and texts.str.fullmatch(_FRACTION).all() and len(texts):
            values = texts.map(_share)
            self.notes.append(f"{column} was read as shares, such as {texts.iloc[0].strip()}")
        elif not _is_plain(texts, measure, notation):
            values, faults = self._numbers(column, texts, measure, notation)
        best = self._best_beside(column, notation) if measure is Measure.QUALITY else 1.0
        if best > 1 and not (read := values[values != ""].astype(float)).empty and read.min() >= 1:
            message = f"are read as shares although a column beside it counts to {best:g}"
            share = f" or {self._how('share')}" if read.max() <= 1 else ""
            remedy = f"say how it is written: {self._how(f'1/{best:g}')}{share}"
            faults.append(_Fault(texts.notna(), message, remedy))
        else:
            faults += _out_of_range(texts, values, measure, self.form)
        for fault in faults:
            self._report(frame, column, fault, int((~among(cells, BLANK)).sum()))
            values = values.mask(fault.bad, "")
        cells = cells.mask(flags, among(cells, GOOD).map({True: "true", False: "false"}))
        return cells.mask(rest, values)

    def _notation(self, column: str, measure: Measure) -> Notation:
        """What is said of a column: by itself, else by its header and of the whole table."""
        header = self.headers.get(column, Notation())
        if header.measure not in (None, measure):
            header = Notation()
        if column in self.notations:
            return replace(self.notations[column], currency=header.currency)
        decimal = "," if self.form.decimal == "," else ""
        if measure is not Measure.QUALITY:
            return replace(header, decimal=decimal)
        divisor = self.form.scale if self.form.scale != 1 else header.divisor
        return Notation(decimal, divisor, self.form.words)

    def _best_beside(self, column: str, notation: Notation) -> float:
        """The best rating, such as 5, that was stated of a column headed alike; 1 for none.

        A model that has 1 of 5 alone would else be taken for one that is always right.
        """
        if notation.stated or notation.divisor != 1 or (own := read_header(column)) is None:
            return 1.0
        alike = (
            stated.divisor
            for other, stated in self.notations.items()
            if (header := read_header(other)) is not None and header.named == own.named
        )
        return max((best for best in alike if best <= _MOST_RATING), default=1.0)

    def _require_of_one(self, column: str) -> None:
        """Refuse a cost that its header calls the price of tokens, or of many of anything."""
        header = column.replace("_", " ")
        count = max(map(_count, _MANY.finditer(header)), default=1)
        if _PRICE.search(header):
            problem = "is a price of tokens, not what each answer cost"
            remedy = "map what each answer cost; prices of tokens belong in the catalog"
        elif count > 1 and column not in self.notations:
            problem = f"is the cost of {count:,}, not of one answer"
            remedy = f"of {count:,} answers, {self._how(f'1/{count}')}; else map what each cost"
        else:
            return
        self.issues.problem(Problem(f"column {column!r}", problem, _quoted(remedy, column)))

    def _note_words(self, column: str, cells: pd.Series) -> None:
        counts = cells.str.strip().str.lower().value_counts()
        shown = ", ".join(
            f"{count:,} x {word} as {1 if word in GOOD else 0}" for word, count in counts.items()
        )
        self.notes += [f"{column} was read from words: {shown}"] if shown else []

    def _numbers(
        self, column: str, texts: pd.Series, measure: Measure, notation: Notation
    ) -> tuple[pd.Series, list[_Fault]]:
        """The cells as plain numbers, and which are none."""
        taken = {cell: digits_of(cell, measure) for cell in texts.unique()}
        known = {cell: digits for cell, digits in taken.items() if digits is not None}
        if measure is Measure.COST and notation.currency:
            money = notation.currency
            known = {c: d if d.sign else Digits(d.body, money) for c, d in known.items()}
        reader = reader_of(known.values(), measure, notation, self.rates)
        numbers = {cell: reader.read(digits) for cell, digits in known.items()}
        values = {cell: _text(number) for cell, number in numbers.items() if number is not None}
        bad = texts[~texts.isin(list(values))]
        faults = [
            _Fault(~texts.isin(list(values)), _NOT_NUMBERS[measure], self._remedy(bad, reader))
        ]
        signs = {digits.sign for digits in known.values()} & set(CURRENCIES.values())
        self.converted |= signs & self.rates.keys() - {"USD"}
        for sign in sorted(signs - self.rates.keys()):
            self.unrated.add(sign)
            foreign = [cell for cell, digits in known.items() if digits.sign == sign]
            rate = self.form.to_rate.replace("CURRENCY", sign)
            remedy = f"say how many USD one {sign} was: {rate}"
            faults.append(_Fault(texts.isin(foreign), f"are in {sign}", remedy))
        if reader.percent and notation.divisor == 1:
            bare = [c for c, d in known.items() if d.sign == "" and numbers[c]]
            shares = all((numbers[c] or 0) <= 1 for c in bare)  # 1 may be 100 % as well as 1 %
            remedy = "write all with % or all without"
            remedy = remedy if shares else f"say that all are percentages: {self._how('percent')}"
            faults.append(_Fault(texts.isin(bare), "have no % while others have one", remedy))
        elif self._doubtful(column, reader, numbers.values()):
            message = f"would be divided by {notation.divisor:g} although none is above 1"
            divisor = notation.divisor
            scale = self._how("percent" if divisor == 100 else f"1/{divisor:g}")
            remedy = f"say how it is written: {scale} or {self._how('share')}"
            faults.append(_Fault(texts.notna(), message, remedy))
        self._note(column, known, reader)
        small = [c for c, n in numbers.items() if n is not None and 0 < n * 100 <= 1]
        percent = reader.percent or notation.divisor == 100
        if measure is Measure.QUALITY and percent and small:
            count = int(texts.isin(small).sum())
            self.notes.append(
                f"{column}: {count:,} of {len(texts):,} percentages are at most 1 %, such as "
                f"{small[0]}; check that they are no shares"
            )
        return texts.map(lambda cell: values.get(cell, "")), faults

    def _doubtful(self, column: str, reader: Reader, numbers: Iterable[Decimal | None]) -> bool:
        """Whether a divisor that was not stated of this column fits none of its cells."""
        if reader.percent or reader.notation.stated or reader.notation.divisor == 1:
            return False
        divisor = Decimal(repr(reader.notation.divisor))
        by_header = column in self.headers and divisor >= 100
        if reader.measure is not Measure.QUALITY or not (self.wide or by_header):
            return False
        return 0 < max((n for n in numbers if n is not None), default=0) * divisor <= 1

    def _remedy(self, bad: pd.Series, reader: Reader) -> str:
        """What to do about cells that are no numbers, by what they hold."""
        if reader.measure is Measure.QUALITY and among(bad, WORDS).any():
            return f"use 1 or 0; or say that words count ({self._how('words')})"
        commas = [cell.strip() for cell in bad if "," in cell and digits_of(cell, reader.measure)]
        if commas and reader.measure is not Measure.COUNT:
            if not can_part_thousands(commas[0], reader.measure):
                return "write 0.5, not 0,5: other cells of the column have a decimal point"
            return (
                f"say what the comma is: {self._how('comma')} where {commas[0]} has a decimal "
                f"comma, {self._how('point')} where the comma parts thousands"
            )
        if reader.measure is Measure.COUNT:
            points = [cell.strip() for cell in bad if _POINTS.fullmatch(cell)]
            if points and len(points) == len(bad):
                return f"where {points[0]} has a point between thousands, {self._how('comma')}"
            return "write each as digits alone, such as 1234"
        if reader.measure is Measure.SECONDS:
            return "write seconds, such as 80 for 1m 20s"
        empty = "or true or false; leave the cell empty where there is no outcome"
        truth = f", {empty}" if reader.measure is Measure.QUALITY else ""
        return f"use a plain number such as 0.5{truth}"

    def _how(self, how: str) -> str:
        return self.form.to_read.replace("HOW", how)

    def _note(self, column: str, known: Mapping[str, Digits], reader: Reader) -> None:
        """Say how cells were read that do not stand as plain numbers."""
        signs = {digits.sign for digits in known.values()}
        bare = "" in signs or reader.notation.stated
        unit = _UNITS.get((reader.measure, reader.notation.divisor), "") if bare else ""
        how = ["as percentages"] if "%" in signs else [unit] if unit else []
        bodies = [digits.body for digits in known.values()]
        other = "." if reader.mark == "," else ","
        if reader.mark == "," and any("," in body for body in bodies):
            how.append("with a decimal comma")
        if any(other in body for body in bodies):
            how.append(f"with a {_NAMES[other]} between thousands")
        how += [
            f"in {_MANY_OF.get(sign, sign)}"
            + (f" at {self.rates[sign]:g} USD" if sign in self.converted else "")
            for sign in sorted(signs - {"", "%", "USD"})
        ]
        signed = [cell for cell, digits in known.items() if digits.sign not in ("", "USD")]
        marked = [cell for cell, digits in known.items() if not digits.body.isdigit()]
        shown = next(iter(signed or marked or known), "")
        if how:
            self.notes.append(f"{column} was read {' and '.join(how)}, such as {shown}")

    def _report(self, frame: pd.DataFrame, column: str, fault: _Fault, total: int) -> None:
        bad = fault.bad[fault.bad]
        if bad.empty:
            return
        first = frame.loc[bad.index[0]]
        cells = list(dict.fromkeys(str(cell)[:60] for cell in frame.loc[bad.index, column]))
        shown = ", ".join(map(repr, cells[:_SHOWN]))
        place = f"first in {first[FILE]} line {first[LINE]}"
        message = f"{len(bad):,} of {total:,} cells {fault.message}, {place} ({shown})"
        remedy = _quoted(fault.remedy, column)
        self.issues.problem(Problem(f"column {column!r}", message, remedy))


_UNITS = {
    (Measure.QUALITY, 100.0): "as percentages",
    (Measure.COST, 100.0): "in cents",
    (Measure.COST, 1000.0): "in thousandths of a USD",
    (Measure.COST, 1e6): "in millionths of a USD",
    (Measure.COST, 1e9): "in billionths of a USD",
    (Measure.COST, 1e5): "in thousandths of a cent",
    (Measure.SECONDS, 1e9): "in nanoseconds",
    (Measure.SECONDS, 1e6): "in microseconds",
    (Measure.SECONDS, 1000.0): "in milliseconds",
    (Measure.SECONDS, 1 / 60): "in minutes",
    (Measure.SECONDS, 1 / 3600): "in hours",
    (Measure.COUNT, 0.001): "in thousands",
    (Measure.COUNT, 1e-6): "in millions",
}
_ASSUMED = {
    Measure.COST: "in USD",
    Measure.SECONDS: "in seconds",
    Measure.COUNT: "as a number of tokens",
}
#: Such as "$/1M tokens" and "cost per token".
_PRICE = re.compile(
    r"(?:\bper|/)\s*(?:1(?:[,.]?000){0,2})?\s*(?:[km]|thousand|million)?[\s-]*"
    r"(?:tok|(?:input|output|prompt|completion)\b)",
    re.IGNORECASE,
)
#: Such as "cost/1000", "usd per 1k" and "cost per thousand queries".
_MANY = re.compile(
    r"(?:\bper|/)\s*(?P<number>1(?:0{1,6}|(?:[., ]000){1,2})?)?\s*"
    r"(?P<times>k|m|thousand|million)?(?![^\W_])",
    re.IGNORECASE,
)
_TIMES = {"": 1, "k": 1000, "thousand": 1000, "m": 1_000_000, "million": 1_000_000}
_NAMES = {",": "comma", ".": "point"}
_MANY_OF = {"k": "thousands", "m": "millions"}
_NOT_NUMBERS = {
    Measure.QUALITY: "are not numbers",
    Measure.COST: "are not numbers",
    Measure.COUNT: "are not whole numbers",
    Measure.SECONDS: "are not numbers",
}


def _with_unit(cells: pd.Series, units: pd.Series, measure: Measure) -> pd.Series:
    """The cells with the unit that stands in another column, where they have none of their own."""
    taken = {cell: digits_of(cell, measure) for cell in cells.unique()}
    bare = [cell for cell, digits in taken.items() if digits is not None and not digits.sign]
    return cells.mask(cells.isin(bare) & ~among(units, BLANK), cells.str.strip() + " " + units)


def _is_plain(texts: pd.Series, measure: Measure, notation: Notation) -> bool:
    foreign = measure is Measure.COST and notation.currency
    if notation.divisor != 1 or notation.decimal == "," or foreign:
        return False
    form = _WHOLE if measure is Measure.COUNT else NUMBER
    return bool(texts.str.fullmatch(form).all())


def _out_of_range(
    texts: pd.Series, values: pd.Series, measure: Measure, form: Form
) -> list[_Fault]:
    read = values[values != ""].astype(float)
    huge = read.abs() == float("inf")
    share = measure is Measure.QUALITY
    out = ~huge & ((read < 0) | (share & (read > 1)))
    what, remedy = ("are not >= 0", "correct them")
    if share:
        what, remedy = ("are not from 0 to 1", _scale_remedy(read[~huge], form))
    faults = ((huge, "are too large for a number", "correct them"), (out, what, remedy))
    return [_Fault(bad.reindex(texts.index, fill_value=False), *words) for bad, *words in faults]


def _scale_remedy(values: pd.Series, form: Form) -> str:
    """How to say which value means 1, where most of the column goes beyond it."""
    highest = values.max()
    if values.min() < 0 or not 2 <= highest <= 100 or 2 * (values > 1).sum() <= (values > 0).sum():
        return "quality is a share from 0 to 1; correct them"
    if highest > 10:
        return f"of percentages say that they are ({form.to_read.replace('HOW', 'percent')})"
    best = f"{highest:.0f}"
    how = form.to_read.replace("HOW", f"1/{best}")
    return f"say which value means 1; where {best} is the best, {how}"


def _count(match: re.Match[str]) -> int:
    """How many a cost is of, by its header."""
    number = re.sub("[., ]", "", match["number"] or "1")
    return int(number) * _TIMES[(match["times"] or "").lower()]


def _quoted(remedy: str, column: str) -> str:
    return _OPTION.sub(lambda match: quote(f"{column}={match[1]}"), remedy)


def _share(cell: str) -> str:
    """A cell such as 3/5, which is 0.6."""
    of, all_of = cell.split("/")
    return _text(Decimal(of.strip()) / Decimal(all_of.strip()))


def _text(number: Decimal) -> str:
    """The number as `float` reads it, a whole one without a decimal mark."""
    value = float(number)
    return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)
