"""What a header of somebody's wide table says: which model, which figure of it, in which unit.

"GPT 4o (May) correct", "gpt-4o|total_cost", "Score (%) of Sonnet" and "cost:gpt-5" all name a model
and a figure. A header is believed only beside others: a model needs a quality, and the quality a
cost or another model's quality that is named alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hydra_core.evalsets.importers.reading.notation import SIGNS, Notation

_FIGURES: Final[Mapping[str, tuple[str, ...]]] = {
    "quality": (
        *("is correct", "correct", "quality", "score", "accuracy", "acc", "passed", "pass"),
        *("resolved", "solved", "success", "rating", "grade", "exact match", "pass@1", "result"),
    ),
    "input_tokens": ("input tokens", "prompt tokens", "tokens in", "in tokens", "tokens input"),
    "output_tokens": (
        *("output tokens", "completion tokens", "tokens out", "out tokens", "answer tokens"),
        "tokens output",
    ),
    "cached_input_tokens": ("cached input tokens", "cached tokens", "cache read tokens"),
    "tokens": ("total tokens", "num tokens", "tokens"),
    "latency_s": ("latency", "duration", "seconds", "latency s", "latency ms", "time"),
    "cost_usd": (
        *("total cost", "cost usd", "cost", "price", "spend", "usd", "eur", "$", "€", "£"),
        *("cents", "cost cents", "¢"),
    ),
}
_FIGURE_OF: Final = {name: figure for figure, names in _FIGURES.items() for name in names}
_NAME: Final = "|".join(
    re.escape(name).replace(r"\ ", r"[\s_.-]*")
    for name in sorted(_FIGURE_OF, key=len, reverse=True)
)
_MONEY: Final = "|".join(map(re.escape, SIGNS))
_UNIT_WORDS: Final = (
    rf"%|percent|{_MONEY}|s|ms|sec|seconds|k|thousands?"
    r"|0\s*(?:-|–|to)\s*[0-9]+|out of\s*[0-9]+|/\s*[0-9]+"
)
_UNIT: Final = rf"(?:\s*[(\[]\s*(?P<unit>{_UNIT_WORDS})\s*[)\]])?"
_ANY_UNIT: Final = re.compile(rf".*[(\[]\s*(?P<unit>{_UNIT_WORDS})\s*[)\]]\s*", re.IGNORECASE)
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
_WHOLE: Final = re.compile(rf"\s*(?:{_NAME})\s*\??\s*", re.IGNORECASE)
_UNITS: Final[Mapping[str, Notation]] = {
    **{sign: Notation(currency=money) for sign, money in SIGNS.items() if money != "USD"},
    **dict.fromkeys(("%", "percent", "pct"), Notation(divisor=100.0)),
    **dict.fromkeys(("cents", "cent", "ct", "¢"), Notation(divisor=100.0)),
    **dict.fromkeys(("ms", "millis", "milliseconds"), Notation(divisor=1000.0)),
    **dict.fromkeys(("k", "thousand", "thousands"), Notation(divisor=0.001)),
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
        model: The model as the header names it.
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
    if _WHOLE.fullmatch(column):
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
    return None


def unit_of(column: str) -> Notation:
    """How a column is written by the unit behind its name: "(%)", "(0-5)", "latency_ms"."""
    match = _ANY_UNIT.fullmatch(column)
    if match is not None:
        return _notation(match["unit"].lower())
    words = re.split(r"[\s_.-]+|(?<=[a-z])(?=[A-Z])", column.strip())
    return _UNITS.get(words[-1].lower(), Notation()) if len(words) > 1 else Notation()


def _notation(unit: str) -> Notation:
    """What a unit says; of "0-5", "out of 5" and "/5" that 5 means 1."""
    best = re.search(r"[0-9]+$", unit)
    if best is not None:
        return Notation(divisor=float(best[0])) if float(best[0]) > 0 else Notation()
    return _UNITS.get(unit, Notation())


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


def wide_columns(columns: Sequence[str]) -> dict[str, Header]:
    """Column -> what its header says, of the headers that belong to a model with a quality."""
    read = {column: header for column in columns if (header := read_header(column)) is not None}
    models: dict[str, dict[str, str]] = {}
    for column, header in read.items():
        models.setdefault(header.model, {}).setdefault(header.figure, column)
    for model, figures in models.items():
        if "quality" not in figures and model in columns and "cost_usd" in figures:
            figures["quality"] = model  # `<model>`, `<model>|total_cost`: the bare one
            read[model] = Header(model, "quality", ("", ""), read[figures["cost_usd"]].marked)
    alike = [read[figures["quality"]].named for figures in models.values() if "quality" in figures]
    kept = {column for column, header in read.items() if header.marked} if alike else set()
    for figures in models.values():
        quality = read.get(figures.get("quality", ""))
        if quality is not None and ("cost_usd" in figures or alike.count(quality.named) > 1):
            kept |= {*figures.values()}
    return {column: read[column] for column in columns if column in kept}
