"""A price list as somebody keeps it in a spreadsheet: CSV or TSV, a model a row."""

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any, Final, TypeAlias

from hydra_core.base.currencies import FOREIGN
from hydra_core.base.errors import CatalogError, Problem
from hydra_core.base.reading.csv_rows import MARKDOWN, BrokenRow, csv_rows
from hydra_core.catalog.prices.quotes import (
    FREE_WORD,
    PriceQuote,
    PriceSource,
    PriceTier,
    SkipEntry,
    day,
    listed_pair,
    listed_price,
    optional_price,
    price_number,
    word,
)

_MODEL: Final = re.compile(r"model|model[ _-]?(?:id|name)|name|id", re.IGNORECASE)
_PRICES: Final = {
    "cached": re.compile(
        r"(?<!un)(?<!non)(?<!non[ _-])(?<!not )cache(?![ _-]*miss)", re.IGNORECASE
    ),
    "input": re.compile(r"input|prompt", re.IGNORECASE),
    "output": re.compile(r"output|completion", re.IGNORECASE),
}
#: Columns that hold no price although they name one.
_OTHERS: Final = re.compile(
    r"writ|creat|store|window|limit|max|context|modal|note|batch|flex|priority|train|fine.?tun"
    r"|^(?!.*text).*(?:image|audio|video)",
    re.IGNORECASE,
)
#: Headings of numbers of tokens, which are prices only where no other heading is one.
_COUNT: Final = re.compile(r"[a-z]+[ _-]tokens?", re.IGNORECASE)
#: Prices of long requests: "input >200K", "Output (above 200,000)".
_ABOVE: Final = re.compile(
    r"(?:>|≥|\babove\b|\bover\b)\s*(?P<number>[0-9]+(?:,[0-9]{3})*)(?![.,\s]?[0-9])"
    r"\s*(?P<times>[km](?![a-su-z]))?",
    re.IGNORECASE,
)
_WINDOW: Final = re.compile(
    r"(?:(?:max(?:imum)?[ _-]*)?context|max(?:imum)?[ _-]*input[ _-]*tokens?|window)"
    r"(?:[ _-]*(?:window|length|size|limit|tokens?))*(?:\s*\(.*\))?",
    re.IGNORECASE,
)
_VISION: Final = re.compile(
    r"(?:supports?[ _-]*)?(?:vision|images?(?:[ _-]*input)?)", re.IGNORECASE
)
_MODALITIES: Final = re.compile(r"(?:input[ _-]*)?modalit(?:y|ies)", re.IGNORECASE)
_TOOLS: Final = re.compile(
    r"(?:supports?[ _-]*)?(?:tools?(?:[ _-]*(?:use|calls?|calling))?|function[ _-]*call(?:s|ing)?)",
    re.IGNORECASE,
)
_RETIRED: Final = re.compile(
    r"(?:retire[sd]?|retirement|deprecat(?:ed|ion)|sunset|shutdown|end[ _-]*of[ _-]*life|eol)"
    r"(?:[ _-]*(?:on|date|day))*",
    re.IGNORECASE,
)
_PROVIDER: Final = re.compile(r"provider|vendor", re.IGNORECASE)
#: Columns that say of each row what its prices are of, and in which money.
_ROW_UNIT: Final = re.compile(r"(?:(?:price|pricing|billing|cost)[ _-]*)?units?|per", re.IGNORECASE)
_ROW_MONEY: Final = re.compile(r"(?:(?:price|pricing|billing|cost)[ _-]*)?currency", re.IGNORECASE)
_DAY: Final = re.compile(r"date|as of|price[ _-]?date", re.IGNORECASE)
_POINTED: Final = re.compile(r"([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})")
_MONTH: Final = re.compile(r"(\d{4})-(\d{1,2})|(\d{1,2})[./](\d{4})")
#: What a price is of, in a heading or behind a number: per 1K tokens, /MTok, (1M), per 10,000.
_PER: Final = re.compile(
    r"(?P<mark>\bper\b|/|[(\[])\s*(?P<number>[0-9][0-9,.]*)?\s*"
    r"(?P<times>k|m|b|thousand|million|mio|billion)?\s*(?P<token>tok(?:en)?s?)?(?![a-z0-9$])"
    r"|\b(?P<short>[km])tok"
    r"|(?<![<>≤≥.,0-9])(?<![<>≤≥] )\b"
    r"(?P<bare>1 ?[km]|1[,.\s]?000(?:[,.\s]?000)?|thousand|million) ?tok",
    re.IGNORECASE,
)
_TIMES: Final = {
    "": 1,
    **dict.fromkeys(("k", "thousand"), 1_000),
    **dict.fromkeys(("m", "million", "mio"), 1_000_000),
    **dict.fromkeys(("b", "billion"), 10**9),
}
_WHOLE: Final = re.compile(r"[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,3}(?:\.[0-9]{3})+")
#: What a price is of that is no number of tokens, or a part of a dollar that is not read.
_NO_UNIT: Final = re.compile(
    r"(?:\bper\b|(?<![a-z])/)[\s0-9,.]*[km]?\s*(?:char|word|request|call|quer|message|image|second"
    r"|minute|hour|page)|(?<![a-z0-9])[muµn](?:\$|usd\b)"
    r"|\b(?:milli|micro|nano)\s?(?:\$|usd\b|cents?\b|dollars?\b)",
    re.IGNORECASE,
)
#: What an amount is of that is no money.
_NO_MONEY: Final = re.compile(
    r"(?<![a-z])(?:credits?|dbus?|points?|ratio|multipliers?|factor)(?![a-z])", re.IGNORECASE
)
#: Columns of what a request costs beside its tokens, or in place of their prices.
_BESIDE: Final = re.compile(
    r"(?:price |cost )?(?:per )?(?:request|call)s?(?: (?:price|cost|fee))?"
    r"|(?:.* )?(?:reasoning|thinking)(?: (?:price|cost|tokens?))?"
    r"|(?:.* )?(?:discount|surcharge|markup|uplift)(?: .*)?",
    re.IGNORECASE,
)
_BESIDE_SAID: Final = "{!r} is {!r}, which is not a part of the price here"
#: A number that a price is of, in whatever words.
_NUMBERED: Final = re.compile(r"(?:\bper\b|/)\s*[0-9]", re.IGNORECASE)
_CENTS: Final = re.compile(r"¢|(?<![a-z])(?:us)?(?:cents?|ct)(?![a-z])", re.IGNORECASE)
#: A comma is read where it can only be a decimal comma: 2,50 and 0,125, but not 1,250.
_CELL: Final = re.compile(
    r"(?:US)?\$?(?:USD)?\s*(?P<number>[0-9]+,(?:[0-9]{1,2}|[0-9]{4,})(?![0-9])|0,[0-9]+"
    r"|[0-9.]+(?:e-?[0-9]+)?)\s*(?P<unit>[^\d,].*)?",
    re.IGNORECASE,
)
BLANK: Final = frozenset({"", "-", "–", "—", "n/a", "na", "none"})
_UNKNOWN: Final = BLANK | {"?", "unknown", "tbd"}
#: 1.05M has a decimal point; 128.000 may have one, or a point between thousands: it is not read.
_TOKENS: Final = re.compile(
    r"(?P<number>[0-9]+|[0-9]{1,3}(?:[, ][0-9]{3})+|[0-9]+\.[0-9]+(?=\s*[km]))\s*(?P<times>k|m)?"
    r"\s*(?:tok(?:en)?s?)?",
    re.IGNORECASE,
)
#: The parts of a price of long requests, in their order.
_SIDES: Final = ("input", "output", "cached")
_MTOK: Final = 1_000_000
_ANSWERS: Final = {
    **dict.fromkeys(("yes", "y", "true", "1", "✓", "✔", "✅", "supported"), True),
    **dict.fromkeys(
        ("no", "n", "false", "0", "✗", "✘", "❌", "unsupported", "not supported"), False
    ),
}


#: The line of a row, and heading -> cell.
_Row: TypeAlias = tuple[int, dict[str, str]]


def price_table(
    text: str, filename: str, as_of: date
) -> Iterator[tuple[str, Callable[[], PriceQuote]]]:
    """Yield (model, how to read its quote); prices without a unit are USD per million tokens.

    Raises:
        CatalogError: A heading or price that cannot be read, each with line, column and value.
    """
    headings, rows = _rows(text, filename)
    columns, unclear = _columns(headings)
    model = next((one for one in headings if _MODEL.fullmatch(one.strip())), None)
    lacking = [name for name in ("input", "output") if columns[name] is None]
    lacking = (["model"] if model is None else []) + lacking
    if model is None or lacking:
        remedy = f"name them model, input and output; columns: {', '.join(headings[:20])}"
        raise CatalogError(
            filename, [Problem(name, "no column has it", remedy) for name in lacking]
        )
    priced = [heading for heading in [*columns.values(), *_tiers(headings)] if heading]
    problems = [*unclear, *(one for heading in priced for one in _unit_problems(heading))]
    read: list[tuple[str, dict[str, Decimal | None], dict[str, Any]]] = []
    for row in rows:
        found = _prices(row, priced, problems)
        prices = {name: found.get(column or "") for name, column in columns.items()}
        facts = _facts(row, as_of, problems)
        facts["tiers"] = _tier_prices(_tiers(headings), found, prices)
        read.append((row[1][model].strip(), prices, facts))
    CatalogError.raise_any(filename, problems)
    for name, prices, facts in read:
        yield name, partial(_quote, name, prices, facts)


def _facts(row: _Row, as_of: date, problems: list[Problem]) -> dict[str, Any]:
    """What the row says beside prices, as fields of a quote; cells that are not read are noted."""
    line, cells = row
    found: dict[str, Any] = {}
    beside = []
    gone: list[date] = []  # of a day of deprecation and one of retirement the last counts
    for heading, text in cells.items():
        cell = text.strip()
        if cell.lower() in _UNKNOWN:
            continue
        named = _BESIDE.fullmatch(re.sub(r"[\s_-]+", " ", heading.strip()))
        if named and re.search("[1-9]", cell) and cell not in _ANSWERS:
            beside.append(_BESIDE_SAID.format(heading, cell[:60]))
        for name, (pattern, read, remedy) in _READERS.items():
            if not pattern.fullmatch(heading.strip()):
                continue
            value = read(cell)
            if value is None and name == "vision" and price_per_mtok(cell, "") is not None:
                beside.append(_BESIDE_SAID.format(heading, cell[:60]))
                continue
            if value is None:
                place = f"line {line}, column {heading!r}"
                problems.append(Problem(place, f"cannot be read: {cell[:60]!r}", remedy))
            found.setdefault(name, value)
            gone += [value] if name == "retired" and isinstance(value, date) else []
    provider = next((c for heading, c in cells.items() if _PROVIDER.fullmatch(heading)), "")
    return {
        "provider": word(provider.strip()),
        "context_window": found.get("window"),
        "vision": found.get("vision", found.get("modalities")),
        "tools": found.get("tools"),
        "deprecated": found.get("retired") is True,
        "retired_on": max(gone, default=None),
        "as_of": found.get("day", as_of),
        "remarks": tuple(beside),
    }


def tokens_of(cell: str) -> int | None:
    """A number of tokens, such as 128k or 1,048,576; None where the cell does not say one."""
    match = _TOKENS.fullmatch(cell)
    if match is None:
        return None
    number = Decimal(re.sub(r"[, ]", "", match["number"])) * _TIMES[(match["times"] or "").lower()]
    return int(number) if number == int(number) and 0 < number <= 10**9 else None


def date_of(cell: str) -> date | None:
    """A date such as 2027-03-31, or 31.03.2027: with points the day always comes first."""
    match = _POINTED.fullmatch(cell.strip())
    return day(cell if match is None else f"{match[3]}-{match[2]:0>2}-{match[1]:0>2}")


def _priced_on(cell: str) -> date | None:
    """A date, or a month such as 2027-03 or 03/2027: its first day, as in a price file."""
    match = _MONTH.fullmatch(cell.strip())
    return date_of(
        cell if match is None else f"{match[1] or match[4]}-{match[2] or match[3]:0>2}-01"
    )


def _answer(cell: str) -> bool | None:
    return _ANSWERS.get(cell.lower())


#: Fact -> its heading, how its cell is read (None: not at all), and what to write instead.
_READERS: Final[dict[str, tuple[re.Pattern[str], Callable[[str], Any], str]]] = {
    "window": (_WINDOW, tokens_of, "write a number of tokens, such as 128000 or 128k"),
    "vision": (_VISION, _answer, "write yes or no"),
    "modalities": (_MODALITIES, lambda cell: "image" in cell.lower(), ""),
    "tools": (_TOOLS, _answer, "write yes or no"),
    "day": (_DAY, _priced_on, "write a date, such as 2027-03-31 or 31.03.2027"),
    "retired": (
        _RETIRED,
        lambda cell: date_of(cell) or _answer(cell),
        "write a date, such as 2027-03-31 or 31.03.2027, or yes or no",
    ),
}


def _quote(name: str, prices: dict[str, Decimal | None], facts: dict[str, Any]) -> PriceQuote:
    if not name:
        raise SkipEntry("no id or no prices")
    cached = prices["cached"]
    inward, outward = listed_pair(prices["input"], prices["output"], Decimal(1))
    return PriceQuote(
        source=PriceSource.TABLE,
        id=name,
        input_usd_per_mtok=inward,
        output_usd_per_mtok=outward,
        cached_input_usd_per_mtok=(
            None if cached is None or not inward else listed_price(cached, Decimal(1))
        ),
        **facts,
    )


def _rows(text: str, filename: str) -> tuple[list[str], list[_Row]]:
    usual = MARKDOWN if filename.lower().endswith(".md") else ""
    lines = csv_rows(io.StringIO(text.removeprefix("\ufeff")), usual)
    try:
        table = [(line, cells) for line, cells in lines if any(map(str.strip, cells))]
    except BrokenRow as error:
        remedy = "end each text in quotes where its cell ends"
        raise CatalogError.of(filename, str(error), remedy, place=f"line {error.line}") from error
    headings = [cell.strip() for cell in table[0][1]] if table else []
    twice = sorted({one for one in headings if one and headings.count(one) > 1})
    again = [Problem(f"column {name!r}", "occurs twice", "rename one") for name in twice]
    CatalogError.raise_any(filename, again)
    rows = []
    for line, cells in table[1:]:
        if len(cells) != len(headings):
            message = f"has {len(cells)} cells instead of {len(headings)}"
            remedy = "put a cell that holds the delimiter into quotes"
            raise CatalogError.of(filename, message, remedy, place=f"line {line}")
        rows.append((line, dict(zip(headings, cells, strict=True))))
    return headings, rows


def _side(heading: str) -> str:
    """Which price a heading names: cached, input, output, or none."""
    named = [one for one, pattern in _PRICES.items() if pattern.search(heading)]
    return named[0] if named and not _OTHERS.search(heading) else ""


def _columns(headings: Sequence[str]) -> tuple[dict[str, str | None], list[Problem]]:
    """Price -> its column; and the prices that several columns may be."""
    columns: dict[str, str | None] = {}
    unclear = []
    for name in _PRICES:
        fitting = [one for one in headings if _side(one) == name and not _ABOVE.search(one)]
        if len(fitting) > 1:
            fitting = [one for one in fitting if not _COUNT.fullmatch(one.strip())] or fitting
        columns[name] = fitting[0] if fitting else None
        if len(fitting) > 1:
            listed = ", ".join(map(repr, fitting))
            unclear.append(Problem(name, f"may be the column {listed}", "leave one of them"))
    return columns, unclear


def _tiers(headings: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Column of a price of long requests -> tokens that it starts above, and which price."""
    found = {}
    for heading in headings:
        match = _ABOVE.search(heading)
        if match is not None and (side := _side(heading)):
            number = int(match["number"].replace(",", ""))
            found[heading] = (number * _TIMES[(match["times"] or "").lower()], side)
    return found


def _tier_prices(
    tiers: Mapping[str, tuple[int, str]],
    found: Mapping[str, Decimal | None],
    base: Mapping[str, Decimal | None],
) -> tuple[PriceTier, ...]:
    """The prices of long requests of one row; what a tier does not name is as below it."""
    sides: dict[int, dict[str, Decimal | None]] = {}
    for heading, (above, side) in tiers.items():
        if found.get(heading) is not None:
            sides.setdefault(above, {})[side] = found[heading]
    return tuple(
        PriceTier(above, *(optional_price(one.get(s, base[s]), Decimal(1)) for s in _SIDES))
        for above, one in sorted(sides.items())
    )


def _prices(
    row: _Row, columns: Sequence[str], problems: list[Problem]
) -> dict[str, Decimal | None]:
    """Column -> its price in this row; cells that hold none are noted."""
    line, cells = row
    unit = _unit_of_row(row, problems)
    found: dict[str, Decimal | None] = {}
    for column in columns:
        cell = cells[column].strip()
        stated = f"{column} {unit}".strip()
        found[column] = None if cell.lower() in BLANK else price_per_mtok(cell, stated)
        if cell.lower() == FREE_WORD:
            found[column] = Decimal(0)
        if found[column] is None and cell.lower() not in BLANK:
            place = f"line {line}, column {column!r}"
            remedy = "write USD per million tokens, such as 2.5"
            problems.append(Problem(place, f"is no price in USD: {cell[:60]!r}", remedy))
    return found


def _unit_of_row(row: _Row, problems: list[Problem]) -> str:
    """What a row's own unit says, as the end of a heading; a unit that is not read is noted."""
    line, cells = row
    unit = ""
    for heading, text in cells.items():
        place, cell = f"line {line}, column {heading!r}", text.strip()
        if _ROW_MONEY.fullmatch(heading) and cell.upper() not in ("", "USD", "US$", "$"):
            problems.append(Problem(place, f"is not in USD: {cell[:60]!r}", "convert the prices"))
        elif _ROW_UNIT.fullmatch(heading) and cell.lower() not in BLANK:
            unit = cell if _NUMBERED.search(cell) or _PER.search(cell) else f"per {cell}"
            wrong = [replace(one, place=place) for one in _unit_problems(unit)]
            problems += [replace(one, message=f"{one.message}: {cell[:60]!r}") for one in wrong]
    return unit


def _unit_problems(heading: str) -> list[Problem]:
    """What keeps a heading's prices from being USD for a number of tokens."""
    place = f"column {heading!r}"
    if FOREIGN.search(heading) or _NO_MONEY.search(heading.replace("_", " ")):
        return [Problem(place, "is not in USD", "convert its prices to USD")]
    if _unit(heading) == 0:
        remedy = "give USD per million tokens, per 1K tokens or per token"
        return [Problem(place, "states a unit that is not read", remedy)]
    return []


def priced_by(heading: str) -> tuple[str, list[Problem]]:
    """Which price a heading names, and what keeps it from being USD for a number of tokens.

    It is input, output or cached; '' for a heading of no price, or of a price of long requests.
    """
    named = "" if _ABOVE.search(heading) else _side(heading)
    return named, _unit_problems(heading) if named else []


def price_per_mtok(cell: str, heading: str) -> Decimal | None:
    """USD per million tokens, by the units of cell and heading; None where they do not say it."""
    match = None if FOREIGN.search(cell) else _CELL.fullmatch(cell)
    number = None if match is None else price_number(match["number"].replace(",", "."))
    if match is None or number is None:
        return None
    behind = match["unit"] or ""
    own, in_cents = _unit(behind), _CENTS.search(behind) is not None
    if own == 0:
        return None
    if own is None and _CENTS.sub("", behind).strip().upper() not in ("", "USD", "$"):
        return None
    dollars = "$" in cell and not in_cents
    cents = in_cents or (not dollars and _CENTS.search(heading) is not None)
    return number * _MTOK / (own or _unit(heading) or _MTOK) / (100 if cents else 1)


def typed_price(value: object) -> Decimal | None:
    """USD per million tokens of a cell: a plain number, or a price such as $0.40 or 40 ct.

    0 for the word free; None where it says no price.
    """
    if str(value).strip().lower() == FREE_WORD:
        return Decimal(0)
    number = price_number(value)
    return number if number is not None else price_per_mtok(str(value).strip(), "")


def _unit(text: str) -> int | None:
    """How many tokens a price is of; None where nothing is said, 0 where it is not understood."""
    plain = re.sub(r"[_-]", " ", text)
    for match in _PER.finditer(plain):
        if match["short"]:
            return _TIMES[match["short"].lower()]
        if match["bare"]:
            number = "".join(filter(str.isdigit, match["bare"])) or "1"
            return int(number) * _TIMES["".join(filter(str.isalpha, match["bare"])).lower()]
        if not (match["number"] or match["times"] or match["token"]):
            continue
        written = match["number"] or "1"
        if not _WHOLE.fullmatch(written.rstrip(",.")) or _NO_UNIT.search(plain):
            break
        tokens = int(re.sub(r"[,.]", "", written)) * _TIMES[(match["times"] or "").lower()]
        plainly = match["mark"] not in "([" and (match["times"] or match["token"])
        if plainly or tokens in (1_000, _MTOK):
            return tokens
    return 0 if _NO_UNIT.search(plain) or _NUMBERED.search(plain) else None
