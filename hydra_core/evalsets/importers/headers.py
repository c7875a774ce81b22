"""What a header of somebody's wide table says: which model, which figure of it, in which unit.

"GPT 4o (May) correct", "gpt-4o|total_cost", "Score (%) of Sonnet" and "cost:gpt-5" all name a model
and a figure. A header is believed only beside others: a model needs a quality, and the quality a
cost or another model's quality that is named alike.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hydra_core.base.currencies import CURRENCIES
from hydra_core.evalsets.importers.reading.json_document import EACH
from hydra_core.evalsets.importers.reading.notation import SIGNS, Measure, Notation
from hydra_core.evalsets.rules import EXTRA_OUTCOMES

_FIGURES: Final[Mapping[str, tuple[str, ...]]] = {
    "quality": (
        *("is correct", "correct", "quality", "score", "accuracy", "acc", "passed", "pass"),
        *("resolved", "solved", "success", "rating", "grade", "exact match", "pass@1", "result"),
        *("scores", "richtig", "korrekt", "correcto", "ok"),
    ),
    "input_tokens": (
        *("input tokens", "prompt tokens", "tokens in", "in tokens", "tokens input"),
        "tokens prompt",
    ),
    "output_tokens": (
        *("output tokens", "completion tokens", "tokens out", "out tokens", "answer tokens"),
        *("tokens output", "tokens completion"),
    ),
    "cached_input_tokens": (
        *("cached input tokens", "cached tokens", "cache read tokens", "tokens cached"),
    ),
    "tokens": ("total tokens", "num tokens", "tokens", "tokens total"),
    "latency_s": ("latency", "duration", "seconds", "latency s", "latency ms", "time"),
    "cost_usd": (
        *("total cost", "cost usd", "cost", "costs", "price", "spend", "usd", "eur", "$", "€", "£"),
        *("cents", "cost cents", "¢", "kosten", "coût", "coste", "costo"),
    ),
}
_FIGURE_OF: Final = {name: figure for figure, names in _FIGURES.items() for name in names}
_NAME: Final = "|".join(
    re.escape(name).replace(r"\ ", r"[\s_.-]*")
    for name in sorted(_FIGURE_OF, key=len, reverse=True)
)
_MONEY: Final = "|".join(map(re.escape, SIGNS))
_UNIT_WORDS: Final = (
    rf"%|percent|{_MONEY}|s|ms|sec|seconds|min|minutes|h|hours|[uµ]s|ns|k|thousands?"
    r"|usd? ?cents|(?:milli|micro|nano|[muµμn])\s?(?:usd|dollars?|\$)|millicents|msecs?|mins|hrs?"
    r"|millions?|0\s*(?:-|–|to)\s*[0-9]+|out of\s*[0-9]+|/\s*[0-9]+"
)
_UNIT: Final = rf"(?:\s*[(\[]\s*(?P<unit>{_UNIT_WORDS})\s*[)\]])?"
_ANY_UNIT: Final = re.compile(r".*[(\[]\s*(?P<unit>[^()\[\]]+?)\s*[)\]]\s*")
_KNOWN_UNIT: Final = re.compile(_UNIT_WORDS, re.IGNORECASE)
_BEHIND: Final = re.compile(
    rf"(?P<model>.*?[^\s:|_.–—-])(?:(?P<mark>[:|])\s*|[\s_.–—-]+|(?=[$€£¢]))(?P<name>{_NAME})"
    rf"\s*(?P<ask>\??){_UNIT}\s*(?P<percent>%?)\s*",
    re.IGNORECASE,
)
_BEFORE: Final = re.compile(
    rf"(?P<name>{_NAME})\s*(?P<ask>\??){_UNIT}\s*(?P<percent>%?)"
    rf"(?:\s*(?P<mark>[:|])\s*|[\s_.–—-]+(?:of|for)?\s*|\s*[(\[])(?P<model>[^\s:|_.–—-].*?)\s*[)\]]?\s*",
    re.IGNORECASE,
)
#: "GPT 4o ($)", "GPT 4o (correct?)": the figure alone stands in brackets.
_IN_BRACKETS: Final = re.compile(
    rf"(?P<model>.*\S)\s*[(\[]\s*(?P<name>{_NAME})\s*\??\s*[)\]]\s*", re.IGNORECASE
)
_BETWEEN_WORDS: Final = re.compile(r"[\s_.-]+|(?<=[a-z])(?=[A-Z])")
_WHOLE: Final = re.compile(rf"\s*(?:{_NAME})\s*\??\s*", re.IGNORECASE)
_PARTS: Final = {"milli": 1e3, "micro": 1e6, "nano": 1e9}
_SHORT: Final = {"m": 1e3, "u": 1e6, "µ": 1e6, "μ": 1e6, "n": 1e9}
_UNITS: Final[Mapping[str, Notation]] = {
    **{sign: Notation(currency=money) for sign, money in CURRENCIES.items() if money != "USD"},
    **dict.fromkeys(("%", "percent", "percentage", "pct"), Notation(divisor=100.0)),
    **dict.fromkeys(("cents", "cent", "ct", "¢", "uscents", "usdcents"), Notation(divisor=100.0)),
    **{
        f"{prefix}{dollar}": Notation(divisor=part, measure=Measure.COST)
        for prefix, part in (_PARTS | _SHORT).items()
        for dollar in (("usd", "$") if prefix in _SHORT else ("usd", "$", "dollar", "dollars"))
    },
    **{
        f"{prefix}cents": Notation(divisor=100 * part, measure=Measure.COST)
        for prefix, part in _PARTS.items()
    },
    **{f"{name}s": Notation(divisor=part) for name, part in _PARTS.items()},
    **{
        unit: Notation(divisor=part, measure=Measure.SECONDS)
        for part, units in (
            (1e9, ("ns", "nsec", "nanoseconds")),
            (1e6, ("us", "µs", "usec", "microseconds")),
            (1e3, ("ms", "msec", "msecs", "milliseconds")),
            (1 / 60, ("minutes", "mins")),
            (1 / 3600, ("h", "hr", "hrs", "hours")),
        )
        for unit in units
    },
    **dict.fromkeys(("k", "thousand", "thousands"), Notation(divisor=1e-3, measure=Measure.COUNT)),
    **dict.fromkeys(("million", "millions"), Notation(divisor=1e-6, measure=Measure.COUNT)),
    **dict.fromkeys(("ktok", "ktokens"), Notation(divisor=1e-3, measure=Measure.COUNT)),
}
#: Units in brackets alone: elsewhere they are other words, as in latency_min, the shortest.
_BRACKETED: Final[Mapping[str, Notation]] = {
    "min": _UNITS["minutes"],
    "sec": Notation(),
    "seconds": Notation(),
    "s": Notation(),
    "tokens": Notation(),
}
#: What stands where a model would, in columns that sum up several of them.
_NO_MODELS: Final = frozenset(
    {
        *("total", "overall", "average", "avg", "mean", "median", "best", "max", "min", "sum"),
        *("oracle", "router", "any", "all", "final", "input", "output", "prompt", "cached"),
    }
)


@dataclass(frozen=True, slots=True)
class Header:
    """What one header says.

    Attributes:
        figure: quality, cost_usd, or another outcome.
        named: The word for the figure, and whether it stands before or behind the model.
        marked: Whether a colon or a bar parts them, which needs no other column beside it.
        notation: How the column is written, by its unit.
    """

    model: str
    figure: str
    named: tuple[str, str]
    marked: bool = False
    notation: Notation = Notation()


def read_header(column: str) -> Header | None:
    """What a header says, None where it names no model and figure."""
    bracketed = _IN_BRACKETS.fullmatch(column)
    if EACH in column or _WHOLE.fullmatch(column):
        return None
    if bracketed is not None and _WHOLE.fullmatch(bracketed["model"]):
        return None
    for place, pattern in (("behind", _BEHIND), ("before", _BEFORE)):
        match = pattern.fullmatch(column.strip())
        if match is None:
            continue
        model, name = _balanced(match["model"].strip()), _words(match["name"])
        if not model or model.lower() in _NO_MODELS:
            continue
        unit = (match["unit"] or match["percent"] or "").lower()
        unit = unit or name.rsplit(" ", 1)[-1]
        figure = _FIGURE_OF[name]
        if figure != "quality" and (unit in ("%", "percent") or unit[-1:].isdecimal()):
            continue
        notation = _notation(unit)
        return Header(model, figure, (name, place), match["mark"] is not None, notation)
    return None if bracketed is None else read_header(f"{bracketed['model']} {bracketed['name']}")


def unit_of(column: str) -> Notation:
    """How a column is written by the unit behind its name: "(%)", "(0-5)", "latency_ms".

    Of words in brackets that are no known unit it says so.
    """
    match = _ANY_UNIT.fullmatch(column)
    if match is not None:
        unit = match["unit"].lower()
        known = _KNOWN_UNIT.fullmatch(unit) or _squeezed(unit) in (_UNITS.keys() | _BRACKETED)
        return _notation(unit) if known else Notation(unknown=match["unit"])
    words = [word.lower() for word in _BETWEEN_WORDS.split(column.strip())]
    ends = ("".join(words[-2:]), words[-1]) if len(words) > 1 else ()
    return next((_UNITS[end] for end in ends if end in _UNITS), Notation())


def unit_columns(column: str, columns: Iterable[str], measure: Measure) -> list[str]:
    """The columns that say of each row in which unit a cost or time stands: `latency_unit`,
    `cost.currency`; `currency` alone unless the header of the cost names one.
    """
    if measure not in (Measure.COST, Measure.SECONDS):
        return []
    parent, dot, _ = column.rpartition(".")
    beside = rf"|{re.escape(parent)}\." if dot else ""
    own = rf"(?:{re.escape(column)}[\s_.-]*{beside})(?:units?|currency)"
    named = {*_BETWEEN_WORDS.split(column.lower()), *column} & SIGNS.keys()
    if measure is Measure.COST and not named:
        own += r"|(?:(?:cost|price|spend)[\s_.-]*)?currency|währung|devise|moneda"
    return [one for one in columns if re.fullmatch(own, one.strip(), re.IGNORECASE)]


def _notation(unit: str) -> Notation:
    """What a unit says; of "0-5", "out of 5" and "/5" that 5 means 1."""
    best = re.search(r"[0-9]+$", unit)
    if best is not None:
        return Notation(divisor=float(best[0])) if float(best[0]) > 0 else Notation()
    return _BRACKETED.get(_squeezed(unit)) or _UNITS.get(_squeezed(unit), Notation())


def _squeezed(unit: str) -> str:
    return re.sub(r"[\s_.-]+", "", unit)


def _words(name: str) -> str:
    """The word for a figure as it is listed: one space between its parts."""
    plain = re.sub(r"[\s_.-]+", " ", name.lower()).strip()
    squeezed = plain.replace(" ", "")
    return (
        plain
        if plain in _FIGURE_OF
        else next(known for known in _FIGURE_OF if known.replace(" ", "") == squeezed)
    )


def _balanced(model: str) -> str:
    """The model's name with the bracket that closes one of its own."""
    return f"{model})" if model.count("(") == model.count(")") + 1 else model


def _without_parent(read: Mapping[str, Header], columns: Sequence[str]) -> dict[str, Header]:
    """Models of paths without what holds them all: `results` of `results.gpt-4o.score`."""
    parents = {header.model.partition(".")[0] for header in read.values()}
    parent = parents.pop() if len(parents) == 1 else ""
    paths = all(column.startswith(f"{header.model}.") for column, header in read.items())
    if parent not in columns or not paths or any(h.model == parent for h in read.values()):
        return dict(read)
    return {
        column: replace(header, model=header.model.partition(".")[2])
        for column, header in read.items()
    }


def holders(columns: Sequence[str]) -> set[str]:
    """Columns that hold objects, by the paths into them: `tokens` beside `tokens.input`."""
    parts = (column.rpartition(".") for column in columns)
    return {parent for parent, _, leaf in parts if leaf.isidentifier()} & set(columns)


def wide_columns(columns: Sequence[str]) -> dict[str, Header]:
    """Column -> what its header says, of the headers that belong to a model with a quality."""
    objects = holders(columns)
    read = {
        column: header
        for column in columns
        if (header := read_header(column)) is not None
        and not (column in objects and header.figure in EXTRA_OUTCOMES)
    }
    models: dict[str, dict[str, str]] = {}
    read = _without_parent(read, columns)
    for column, header in read.items():
        models.setdefault(header.model, {}).setdefault(header.figure, column)
    for model, figures in models.items():
        bare = model in columns and model not in objects
        if "quality" not in figures and bare and "cost_usd" in figures:
            figures["quality"] = model  # `<model>`, `<model>|total_cost`: the bare one
            read[model] = Header(model, "quality", ("", ""), read[figures["cost_usd"]].marked)
    alike = [read[figures["quality"]].named for figures in models.values() if "quality" in figures]
    kept = {column for column, header in read.items() if header.marked} if alike else set()
    for figures in models.values():
        quality = read.get(figures.get("quality", ""))
        if quality is not None and ("cost_usd" in figures or alike.count(quality.named) > 1):
            kept |= {*figures.values()}
    return {column: read[column] for column in columns if column in kept}
