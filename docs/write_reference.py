"""The reference of the two file formats, written from the code that reads them.

python -m docs.write_reference

For catalogs it reads a complete one and notes every question that the reader asks: place, kind,
allowed values, remedy. For eval sets it offers a wrong value in every column: the answer is the
rule. A test compares the written pages with what this makes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import pandas as pd

from hydra_core.base.reading.fields import SHARE, Bounds, Problems, Section
from hydra_core.base.reading.yaml_reader import MapNode, Node, read_yaml
from hydra_core.base.types import Policy, StickyPolicy
from hydra_core.catalog.schema import MAX_DIMENSIONS, SCHEMA, catalog_of
from hydra_core.evalsets import folders, rules

_Choice = TypeVar("_Choice", bound=StrEnum)
FOLDER = Path(__file__).parent / "reference"
EXAMPLE = FOLDER / "complete_catalog.yaml"
_HEAD = "<!-- Written by `python -m docs.write_reference`: change that, not this file. -->\n\n"
#: Sections that the reader opens only where they are given, and keys that others call for.
_CONDITIONS = {
    "policy.value_usd": "rule `value`",
    "outcome_model": "rule `value`",
    "models[].retire_on": "status `retiring`",
    "models[].scores": "unless all capabilities are set by hand",
    "models[].shares_prompt_cache": "only with `variant_of`",
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
    rows += [(f"`{a.place}`", a.kind, a.allowed, needed(a), a.remedy) for a in asked(text)]
    return (
        f"{_HEAD}# Catalog: `{SCHEMA}`\n\n"
        "One YAML file. Every key that is read stands below, with what is allowed there; any other "
        "key is refused with the nearest known one. Aliases, anchors, tags and doubled keys are "
        f"refused too. At most {MAX_DIMENSIONS} dimensions. Nothing is filled in but the defaults "
        "shown. Check yours:\n\n"
        "```sh\nhydra-router validate pool.yaml\n```\n\n"
        + _table(("key", "kind", "allowed", "needed", "what to write"), rows)
        + "\n`capabilities: derived` computes them from `scores` and the evidence (Algorithm 1); "
        "a dimension set by hand stands as it is.\n\n"
        f"## A catalog that uses every key\n\n```yaml\n{text}```\n"
    )


@dataclass(frozen=True)
class NotingSection(Section):
    """A section that also notes each question of the reader, by place.

    Attributes:
        questions: Place -> the first question about it.
        names: Places of all fields that the reader knows.
    """

    questions: dict[str, Asked] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def _note(self, key: str, kind: str, allowed: str, remedy: str, required: bool = True) -> None:
        place = general(self.at(key))
        self.questions.setdefault(place, Asked(place, kind, allowed, required, remedy))

    def known(self, keys: Sequence[str], what: str = "") -> None:
        if not what:
            self.names.update(general(self.at(key)) for key in keys)
        super().known(keys, what)

    def number(
        self, key: str, allowed: Bounds, remedy: str, *, required: bool = True
    ) -> float | None:
        self._note(key, "number", str(allowed), remedy, required)
        return super().number(key, allowed, remedy, required=required)

    def checked_number(self, key: str, node: Node, allowed: Bounds, remedy: str) -> float | None:
        """Also numbers inside lists and mappings, whose places were noted without limits."""
        self._note(key, "number", "", remedy, required=False)
        place = general(self.at(key))
        self.questions[place] = replace(self.questions[place], allowed=str(allowed))
        return super().checked_number(key, node, allowed, remedy)

    def integer(self, key: str, allowed: Bounds, remedy: str) -> int | None:
        self._note(key, "whole number", str(allowed), remedy)
        return super().integer(key, allowed, remedy)

    def text(self, key: str, remedy: str, *, required: bool = True, limit: int = 0) -> str:
        self._note(key, "text", f"at most {limit:,} characters" if limit else "", remedy, required)
        limits = {"limit": limit} if limit else {}
        return super().text(key, remedy, required=required, **limits)

    def flag(self, key: str, remedy: str, *, required: bool = True) -> bool | None:
        self._note(key, "true or false", "", remedy, required)
        return super().flag(key, remedy, required=required)

    def choice(
        self, key: str, options: type[_Choice], remedy: str, *, required: bool = True
    ) -> _Choice | None:
        words = ", ".join(f"`{option.value}`" for option in options)
        self._note(key, "choice", words, remedy, required)
        return super().choice(key, options, remedy, required=required)

    def day(self, key: str, remedy: str, *, required: bool = True) -> date | None:
        self._note(key, "date", "", remedy, required)
        return super().day(key, remedy, required=required)

    def section(
        self, key: str, remedy: str, *, required: bool = True, keys: Sequence[str] = ()
    ) -> NotingSection | None:
        self._note(key, "mapping", "", remedy, required)
        return super().section(key, remedy, required=required, keys=keys)

    def items(
        self, key: str, remedy: str, *, limit: int, required: bool = True
    ) -> tuple[Node, ...]:
        self._note(key, "list", f"at most {limit:,} entries", remedy, required)
        return super().items(key, remedy, limit=limit, required=required)

    def rates(
        self, known: Sequence[str], what: str, remedy: str, *, skip: str | None = None
    ) -> dict[str, float]:
        self._note(f"<{what}>", "number", str(SHARE), remedy, required=False)
        return super().rates(known, what, remedy, skip=skip)


def asked(text: str) -> list[Asked]:
    """What the reader asks of a catalog, each place once, in the catalog's order.

    Raises:
        ValueError: The catalog is not valid, or lacks a key that the reader knows.
    """
    root, _ = read_yaml(text)
    if not isinstance(root, MapNode):
        raise ValueError(f"{EXAMPLE.name} is not a mapping")
    section = NotingSection(root, "", Problems())
    if catalog_of(section, text, EXAMPLE.name) is None:
        raise ValueError(f"{EXAMPLE.name} is not valid: {section.problems.listed()}")
    if lacking := sorted(section.names - section.questions.keys() - {"schema"}):
        raise ValueError(f"reading {EXAMPLE.name} never comes to {', '.join(lacking)}")
    after = f"\n{text}"
    return sorted(
        section.questions.values(),
        key=lambda a: after.index(f"\n{re.match('[a-z_]+', a.place)[0]}:"),
    )


def general(place: str) -> str:
    """A place in words that hold for every catalog: no ids, no digests, no dimensions."""
    place = re.sub(r"\[\d+\] '[^']*': ", "[].", place)
    place = re.sub(r"\[\d+\] '[^']*'", "[]", place)
    place = re.sub(r"\[\d+\]", "[]", place)
    place = re.sub(r"\b[0-9a-f]{60,64}\b", "<digest>", place)
    place = re.sub(r"(policy\.teams\.)search", r"\1<team>", place)
    place = re.sub(r"(scores\.)(swe|puzzles)", r"\1<benchmark>", place)
    place = re.sub(r"(usd_per_query\.)(small|large)", r"\1<model>", place)
    place = re.sub(r"(success_profiles\.models\.)(small|large-high|large)", r"\1<model>", place)
    return re.sub(r"\.(reasoning|debugging)$", ".<dimension>", place)


def needed(asked: Asked) -> str:
    """When the key must be there; what it stands for where it may be left out."""
    place = asked.place
    if place in _CONDITIONS:
        return _CONDITIONS[place]
    if place.endswith(("<digest>", "<team>", "<model>")):
        return ""  # names, of which there may be none
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
    "schema": f"`{folders.SCHEMA}`",
    "name": "what pages and commands call the set",
    "origin": "where the data come from",
    "licence": "their licence",
    "price_notes": "what is known about the costs",
    "synthetic": "true where outcomes were simulated; every page says so then",
    "cost_estimated": "true where costs were computed from prices",
    "prices": "USD per million tokens at recording, by model: `{input, output, cached}`, "
    "and `long_prompts`: a list of `{above_tokens, input, output, cached}`",
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
    "needs": "abilities that a query needs, between commas, such as `pdf, audio`",
    "require": "tags that a model must have to serve it, between commas, such as `eu`",
    "needs_tools": "whether the request declares tools",
    "context_tokens": "tokens that a context window must hold; without it the length of the text",
    "allow": "the only models that may serve it, between commas; empty for all",
    "deny": "models that may not serve it, between commas",
    "label_reasoning": "a requirement's label, one column a dimension",
    "model": "the model that answered",
    "quality": "what it achieved: 0 or 1, or between",
    "cost_usd": "what that cost, in USD",
    "latency_s": "how long it took, in seconds",
    "tokens": "all tokens, where input and output are not told apart",
    "input_tokens": "input tokens, the cached ones among them",
    "output_tokens": "output tokens",
    "cached_input_tokens": "input tokens that were read from a cache",
    "propensity": "in a log: how likely this model was to serve the query, also where it did not",
}


def eval_set_page() -> str:
    """The manifest's keys and the columns of both tables, with what each refuses."""
    manifest = [(f"`{key}`", _MANIFEST[key]) for key in folders._KEYS]
    queries = (*rules.REQUIRED_QUERY_COLUMNS, *rules.OPTIONAL_QUERY_COLUMNS, "label_reasoning")
    outcomes = ("query_id", "model", *rules._KEPT)
    return (
        f"{_HEAD}# Eval set: `{folders.SCHEMA}`\n\n"
        "A folder that an import writes: `evalset.yaml`, `queries.parquet`, `outcomes.parquet` and "
        "`scores/`, one file a predictor bundle. What is not known is left out: a model without an "
        "outcome on a query has no row, and nothing is filled in. Check yours:\n\n"
        "```sh\nhydra-router validate evalsets/mine\n```\n\n"
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
        problems = rules.check_queries(pd.DataFrame([row]))
        needed = "yes" if name in rules.REQUIRED_QUERY_COLUMNS else ""
        yield f"`{name}`", needed, _COLUMNS[name], _rule(problems[0].message)


def _outcome_rows(columns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name in columns:
        row: dict[str, object] = {"query_id": "q1", "model": "a", "quality": 1.0, "cost_usd": 0.1}
        row |= {name: "unknown" if name in ("query_id", "model") else -1.0}
        problems = rules.check_outcomes(pd.DataFrame([row]), pd.Index(["q1"]), ["a"])
        needed = "" if name in (*rules.EXTRA_OUTCOMES, rules.PROPENSITY) else "yes"
        yield f"`{name}`", needed, _COLUMNS[name], _rule(problems[0].message)


def _wrong(column: str) -> object:
    """A value that no eval set may have there."""
    wrong = {
        "query_id": "",
        "language": "english",
        "text": "",
        "has_image": "yes",
        "needs_tools": "yes",
    }
    return wrong.get(column, -1.0)


def _rule(message: str) -> str:
    """The rule in a reader's answer, without the rows and values that broke it."""
    return re.sub(r" in \d+ row\(s\).*", "", message)


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "".join("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |\n" for row in lines)


if __name__ == "__main__":
    main()
