"""The reference of the two file formats, written from the code that reads them.

python -m docs.write_reference

For catalogs a complete one is read and every question that the reader asks of it is noted: place,
kind, allowed values, remedy. For eval sets every column is offered a wrong value: the answer is the
rule. A test holds the written pages equal to what this makes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd

from hydra_core.base.reading.fields import Interval, Section
from hydra_core.base.types import Policy, StickyPolicy
from hydra_core.catalog.schema import MAX_DIMENSIONS, SCHEMA, parse_catalog
from hydra_core.evalsets import format as evalset_format
from hydra_core.evalsets import rules

FOLDER = Path(__file__).parent / "reference"
EXAMPLE = FOLDER / "complete_catalog.yaml"
_HEAD = "<!-- Written by `python -m docs.write_reference`: change that, not this file. -->\n\n"
_KINDS = {
    "integer": "whole number",
    "section": "mapping",
    "items": "list",
    "flag": "true or false",
    "day": "date",
}
#: Sections that the reader opens only where they are given, and keys that others call for.
_CONDITIONS = {
    "policy.value_usd": "rule `value`",
    "outcome_model": "rule `value`",
    "models[].retire_on": "status `retiring`",
    "models[].scores": "unless all capabilities are set by hand",
    "policy.sticky": "",
    "policy.defences": "",
    "policy.defences.score_caps": "",
    "policy.defences.score_caps.<dimension>": "",
    "realised_costs": "",
}
_DEFAULTS = Policy(tau=0.0, weights=())


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of the reader: where, for what kind of value, within what, and the remedy."""

    place: str
    kind: str
    allowed: str
    required: bool
    remedy: str


def main() -> None:
    """Write every page of the reference."""
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """File name -> text of every page."""
    return {
        "catalog.md": catalog_page(),
        "eval_set.md": eval_set_page(),
    }


def catalog_page() -> str:
    """The keys of a catalog in the order in which they are read, and a complete example."""
    text = EXAMPLE.read_text(encoding="utf-8")
    rows = [("`schema`", "text", f"`{SCHEMA}`", "yes", "the first line of the file")]
    rows += [(f"`{a.place}`", a.kind, a.allowed, _needed(a), a.remedy) for a in asked(text)]
    return (
        f"{_HEAD}# Catalog: `{SCHEMA}`\n\n"
        "One YAML file. Every key that is read stands below, with what is allowed there; any other "
        "key is refused with the nearest known one. Aliases, anchors, tags and doubled keys are "
        f"refused too. At most {MAX_DIMENSIONS} dimensions. Nothing is filled in but the defaults "
        "shown. Check yours:\n\n"
        "```sh\npython -m hydra_core validate pool.yaml\n```\n\n"
        + _table(("key", "kind", "allowed", "needed", "what to write"), rows)
        + "\n`capabilities: derived` computes them from `scores` and the evidence (Algorithm 1); "
        "a dimension set by hand stands as it is.\n\n"
        f"## A catalog that uses every key\n\n```yaml\n{text}```\n"
    )


def asked(text: str) -> list[Asked]:
    """What the reader asks of a catalog, each place once, in the catalog's order.

    Raises:
        ValueError: The catalog lacks a key that the reader knows, so the page would.
    """
    found: dict[str, Asked] = {}
    known: set[str] = set()
    with ExitStack() as patches:
        for kind in ("number", "integer", "text", "flag", "choice", "day", "section", "items"):
            reader = _noting(getattr(Section, kind), kind, found)
            patches.enter_context(patch.object(Section, kind, reader))
        for name, noting in (("rates", _noting_rates), ("checked_number", _noting_numbers)):
            reader = noting(getattr(Section, name), found)
            patches.enter_context(patch.object(Section, name, reader))
        patches.enter_context(patch.object(Section, "known", _noting_known(Section.known, known)))
        parse_catalog(text)
    if lacking := sorted(known - found.keys() - {"schema"}):
        raise ValueError(f"reading {EXAMPLE.name} never comes to {', '.join(lacking)}")
    begun = f"\n{text}"
    return sorted(
        found.values(), key=lambda a: begun.index(f"\n{re.match('[a-z_]+', a.place)[0]}:")
    )


def _noting(reader: Callable[..., Any], kind: str, found: dict[str, Asked]) -> Callable[..., Any]:
    """`reader`, with what it is asked noted in `found`."""

    def note(section: Section, key: str, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        place = _general(section.at(key))
        allowed = "; ".join(filter(None, map(_limits, args)))
        if "limit" in options:
            unit = "characters" if kind == "text" else "entries"
            allowed = f"at most {options['limit']:,} {unit}"
        required = bool(options.get("required", True))
        remedy = next(arg for arg in reversed(args) if isinstance(arg, str))
        found.setdefault(place, Asked(place, _KINDS.get(kind, kind), allowed, required, remedy))
        return reader(section, key, *args, **options)

    return note


def _noting_rates(reader: Callable[..., Any], found: dict[str, Asked]) -> Callable[..., Any]:
    def note(section: Section, known: Any, what: str, remedy: str, **options: Any) -> Any:  # noqa: ANN401
        place = _general(section.at(f"<{what}>"))
        found.setdefault(place, Asked(place, "number", str(Interval(0.0, 1.0)), False, remedy))
        return reader(section, known, what, remedy, **options)

    return note


def _noting_numbers(reader: Callable[..., Any], found: dict[str, Asked]) -> Callable[..., Any]:
    """Numbers inside lists and mappings, whose own places were noted without limits."""

    def note(section: Section, key: str, node: object, allowed: Interval, remedy: str) -> Any:  # noqa: ANN401
        place = _general(section.at(key))
        was = found.get(place, Asked(place, "number", "", False, remedy))
        found[place] = replace(was, allowed=str(allowed))
        return reader(section, key, node, allowed, remedy)

    return note


def _noting_known(reader: Callable[..., Any], known: set[str]) -> Callable[..., Any]:
    """Which fields there are at all, to see that the example uses each."""

    def note(section: Section, keys: Sequence[str], what: str = "") -> None:
        known.update(_general(section.at(key)) for key in keys if not what)
        reader(section, keys, what)

    return note


def _limits(argument: object) -> str:
    if isinstance(argument, Interval):
        return str(argument)
    return (
        ", ".join(f"`{option.value}`" for option in argument) if isinstance(argument, type) else ""
    )


def _general(place: str) -> str:
    """A place in words that hold for every catalog: no ids, no digests, no dimensions."""
    place = re.sub(r"\[\d+\] '[^']*': ", "[].", place)
    place = re.sub(r"\[\d+\] '[^']*'", "[]", place)
    place = re.sub(r"\[\d+\]", "[]", place)
    place = re.sub(r"\b[0-9a-f]{60,64}\b", "<digest>", place)
    place = re.sub(r"(scores\.)(swe|puzzles)", r"\1<benchmark>", place)
    place = re.sub(r"(usd_per_query\.)(small|large)", r"\1<model>", place)
    return re.sub(r"\.(reasoning|debugging)$", ".<dimension>", place)


def _needed(asked: Asked) -> str:
    """When the key must be there; what it stands for where it may be left out."""
    place = asked.place
    if place in _CONDITIONS:
        return _CONDITIONS[place]
    if asked.required:
        return "yes"
    name = place.removeprefix("policy.")
    holder: object = _DEFAULTS
    if name.startswith("sticky."):
        holder, name = StickyPolicy(), name.removeprefix("sticky.")
    value = getattr(holder, name, None) if place.startswith("policy.") else None
    if not isinstance(value, float | str):
        return ""
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


_MANIFEST = {
    "schema": f"`{evalset_format.SCHEMA}`",
    "name": "what pages and commands call the set",
    "origin": "where the data come from",
    "licence": "their licence",
    "price_notes": "what is known about the costs",
    "synthetic": "true where outcomes were simulated; every page says so then",
    "cost_estimated": "true where costs were computed from prices",
    "prices": "USD per million tokens at recording, by model: `{input, output, cached}`",
    "models": "the models' ids; the outcome table names no others",
    "parts": "file name to SHA-256; a part that was changed is refused",
    "dependence": "the answer about queries that belong together (`dependence`)",
}
_COLUMNS = {
    "query_id": "names the query in every part",
    "language": "ISO 639 code of its text",
    "text": "the message; needed for scoring, Inspect and Learn",
    "has_image": "whether an image is attached",
    "conversation_id": "turns of one conversation; they count as dependent",
    "turn": "number of the turn",
    "context": "what came before, in the form a bundle may read; imports of logs fill it",
    "group": "what tables are split by",
    "cluster": "queries that belong together, such as translations; they count as one",
    "label_reasoning": "a requirement's label, one column a dimension",
    "model": "the model that answered",
    "quality": "what it achieved: 0 or 1, or between",
    "cost_usd": "what that cost, in USD",
    "latency_s": "how long it took, in seconds",
    "tokens": "all tokens, where input and output are not told apart",
    "input_tokens": "input tokens, the cached ones among them",
    "output_tokens": "output tokens",
    "cached_input_tokens": "input tokens that were read from a cache",
}


def eval_set_page() -> str:
    """The manifest's keys and the columns of both tables, with what each refuses."""
    manifest = [(f"`{key}`", _MANIFEST[key]) for key in evalset_format._KEYS]
    queries = (*rules.REQUIRED_QUERY_COLUMNS, *rules.OPTIONAL_QUERY_COLUMNS, "label_reasoning")
    outcomes = ("query_id", "model", "quality", "cost_usd", *rules.EXTRA_OUTCOMES)
    return (
        f"{_HEAD}# Eval set: `{evalset_format.SCHEMA}`\n\n"
        "A folder that an import writes: `evalset.yaml`, `queries.parquet`, `outcomes.parquet` and "
        "`scores/`, one file a predictor bundle. What is not known is left out: a model without an "
        "outcome on a query has no row, and nothing is filled in. Check yours:\n\n"
        "```sh\npython -m hydra_core validate evalsets/mine\n```\n\n"
        "## `evalset.yaml`\n\n"
        + _table(("key", "what it says"), manifest)
        + "\n## `queries.parquet`: one row a query\n\n"
        + _table(("column", "needed", "what it says", "a wrong value"), list(_query_rows(queries)))
        + "\n## `outcomes.parquet`: one row a query and model\n\n"
        + _table(
            ("column", "needed", "what it says", "a wrong value"), list(_outcome_rows(outcomes))
        )
    )


def _query_rows(columns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name in columns:
        row: dict[str, object] = {"query_id": "q1", "language": "en", name: _wrong(name)}
        told = rules.check_queries(pd.DataFrame([row]))
        needed = "yes" if name in rules.REQUIRED_QUERY_COLUMNS else ""
        yield f"`{name}`", needed, _COLUMNS[name], _rule(told[0].message)


def _outcome_rows(columns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name in columns:
        row: dict[str, object] = {"query_id": "q1", "model": "a", "quality": 1.0, "cost_usd": 0.1}
        row |= {name: "stranger" if name in ("query_id", "model") else -1.0}
        told = rules.check_outcomes(pd.DataFrame([row]), pd.Index(["q1"]), ["a"])
        needed = "" if name in rules.EXTRA_OUTCOMES else "yes"
        yield f"`{name}`", needed, _COLUMNS[name], _rule(told[0].message)


def _wrong(column: str) -> object:
    """A value that no eval set may have there."""
    wrong = {"query_id": "", "language": "english", "text": "", "has_image": "yes"}
    return wrong.get(column, -1.0)


def _rule(message: str) -> str:
    """The rule in a reader's answer, without the rows and values that broke it."""
    return re.sub(r" in \d+ row\(s\).*", "", message)


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "".join("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |\n" for row in lines)


if __name__ == "__main__":
    main()
