"""Which column of somebody's table means what: suggested from the names, or said with --map."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.rules import (
    EXTRA_OUTCOMES,
    OPTIONAL_QUERY_COLUMNS,
    REQUIRED_QUERY_COLUMNS,
    model_id_problem,
)

QUERY_FIELDS = (*REQUIRED_QUERY_COLUMNS, *OPTIONAL_QUERY_COLUMNS)
LONG_FIELDS = ("model", "quality", "cost_usd", *EXTRA_OUTCOMES)

_KNOWN_NAMES: Mapping[str, tuple[str, ...]] = {
    "query_id": (
        *("query_id", "id", "qid", "instance_id", "question_id", "global_index", "task_id"),
        *("prompt_id", "sample_id", "request_id"),
    ),
    "text": (
        *("text", "prompt", "question", "query", "problem_statement", "message", "input"),
        *("origin_query", "instruction", "user_message"),
    ),
    "language": ("language", "lang", "locale"),
    "has_image": ("has_image", "image", "vision"),
    "conversation_id": ("conversation_id", "conversation", "session_id", "thread_id"),
    "turn": ("turn", "turn_index", "turn_number"),
    "context": (),  # other people's columns of that name hold something else
    "group": ("group", "category", "task", "dataset", "repo"),
    "cluster": ("cluster",),
    "model": ("model", "model_id", "model_name", "llm", "llm_selected"),
    "quality": (
        *("quality", "score", "resolved", "correct", "is_correct", "passed", "pass"),
        *("pass1", "accuracy"),
    ),
    "cost_usd": ("cost_usd", "cost", "usd", "total_cost", "inference_cost", "price"),
    "latency_s": ("latency_s", "latency", "seconds", "duration_s"),
    "tokens": ("tokens", "total_tokens", "num_tokens"),
    "input_tokens": ("input_tokens", "prompt_tokens", "tokens_in", "num_input_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens", "tokens_out", "num_output_tokens"),
    "cached_input_tokens": ("cached_input_tokens", "cached_tokens", "cache_read_input_tokens"),
}
_WIDE = re.compile(
    r"(?P<what>quality|score|resolved|correct|cost_usd|cost)[:|](?P<model>.+)"
    r"|(?P<model2>.+?)[:|](?P<what2>quality|score|resolved|correct|cost_usd|total_cost|cost)",
    re.IGNORECASE,
)
_LOOSE = re.compile(
    r"(?P<what>quality|score|resolved|correct|cost_usd|cost)[_. ](?P<model>.+)"
    r"|(?P<model2>.+?)[_. ](?P<what2>quality|score|resolved|correct|cost_usd|total_cost|cost)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class TableMapping:
    """Field -> column. The long form maps `model`; the wide form maps columns per model.

    Attributes:
        fields: query_id, text, language, ..., label_<dimension>; in the long form also model,
            quality, cost_usd, latency_s, tokens, input_tokens, ...
        quality: Wide form: model -> column of its quality.
        cost: Wide form: model -> column of its cost in USD.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    quality: Mapping[str, str] = field(default_factory=dict)
    cost: Mapping[str, str] = field(default_factory=dict)

    @property
    def wide(self) -> bool:
        """One column per model instead of one row per model."""
        return bool(self.quality)

    @property
    def query_fields(self) -> dict[str, str]:
        """The fields that describe a query."""
        return {f: c for f, c in self.fields.items() if f not in LONG_FIELDS}

    @property
    def outcome_fields(self) -> dict[str, str]:
        """The fields that describe an outcome (long form)."""
        return {f: c for f, c in self.fields.items() if f in LONG_FIELDS}

    def over(self, suggested: TableMapping) -> TableMapping:
        """This mapping, completed by a suggestion; what is said here wins."""
        if self.wide or self.cost:
            suggested = TableMapping(suggested.query_fields, suggested.quality, suggested.cost)
        elif "model" in self.fields:
            suggested = TableMapping(suggested.fields)
        mine = set(self.fields.values()) | set(self.quality.values()) | set(self.cost.values())
        rest = {f: c for f, c in suggested.fields.items() if c not in mine}
        return TableMapping(
            rest | dict(self.fields),
            {m: c for m, c in suggested.quality.items() if c not in mine} | dict(self.quality),
            {m: c for m, c in suggested.cost.items() if c not in mine} | dict(self.cost),
        )

    def renamed(self, ids: Mapping[str, str]) -> TableMapping:
        """The wide form's models under other ids (name in the table -> id).

        Raises:
            EvalSetError: Two models would have the same id.
        """
        for side in (self.quality, self.cost):
            new = [ids.get(model, model) for model in side]
            twice = sorted({name for name in new if new.count(name) > 1})
            if twice:
                problem = Problem(twice[0], "would be the id of two models", "give each its own")
                raise EvalSetError("model ids", [problem])
        return TableMapping(
            self.fields,
            {ids.get(model, model): column for model, column in self.quality.items()},
            {ids.get(model, model): column for model, column in self.cost.items()},
        )

    def problems(
        self, columns: Iterable[str], *, need_cost: bool = True, need_text: bool = True
    ) -> list[Problem]:
        """What keeps this mapping from being imported from files with these columns."""
        found = list(columns)
        problems = [
            _missing(name, column, found)
            for name, column in self.all_columns().items()
            if column not in found
        ]
        problems += [
            Problem(name, "is not a field", f"fields: {', '.join((*QUERY_FIELDS, *LONG_FIELDS))}")
            for name in self.fields
            if name not in (*QUERY_FIELDS, *LONG_FIELDS) and not name.startswith("label_")
        ]
        needed = ["query_id", *(["text"] if need_text else [])]
        if self.wide:
            problems += self._wide_problems(need_cost)
        else:
            needed += ["model", "quality", *(["cost_usd"] if need_cost else [])]
        return problems + [_unmapped(name, found) for name in needed if name not in self.fields]

    def all_columns(self) -> dict[str, str]:
        """Every field with its column, `quality:MODEL` and `cost:MODEL` among them."""
        per_model = {f"quality:{m}": c for m, c in self.quality.items()}
        return {**self.fields, **per_model, **{f"cost:{m}": c for m, c in self.cost.items()}}

    def _wide_problems(self, need_cost: bool) -> list[Problem]:
        checked = (model_id_problem(m, f"quality:{m}"[:60]) for m in self.quality)
        problems = [problem for problem in checked if problem is not None]
        for model in self.quality:
            if need_cost and model not in self.cost:
                remedy = f"say which column holds it with --map 'cost:{model}=COLUMN'"
                problems.append(Problem(f"cost:{model}", "no column has the cost", remedy))
        for model in self.cost:
            if model not in self.quality:
                remedy = f"say which column holds it with --map 'quality:{model}=COLUMN'"
                problems.append(Problem(f"quality:{model}", "no column has the quality", remedy))
        return problems


def _missing(name: str, column: str, columns: Sequence[str]) -> Problem:
    near = difflib.get_close_matches(column, columns, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return Problem(name, f"there is no column {column!r}", f"{hint}columns: {_list(columns)}")


def _unmapped(name: str, columns: Sequence[str]) -> Problem:
    none = ", or that there are none with --no-texts" if name == "text" else ""
    remedy = f"say which it is with --map {name}=COLUMN{none}; columns: {_list(columns)}"
    return Problem(name, "the column is missing", remedy)


def _list(columns: Sequence[str]) -> str:
    return ", ".join(columns[:20]) + (", ..." if len(columns) > 20 else "")


def suggest_mapping(columns: Sequence[str]) -> TableMapping:
    """The mapping that the column names suggest; what cannot be told is left out."""
    wide = _suggest_wide(columns)
    fields = {}
    taken = {*wide.quality.values(), *wide.cost.values()}
    for name in QUERY_FIELDS if wide.quality else (*QUERY_FIELDS, *LONG_FIELDS):
        column = _best(name, [c for c in columns if c not in taken])
        if column is not None:
            fields[name] = column
            taken.add(column)
    fields |= {column: column for column in columns if column.startswith("label_")}
    if "model" in fields:
        return TableMapping(fields)
    return TableMapping(fields, wide.quality, wide.cost)


def _best(name: str, columns: Sequence[str]) -> str | None:
    plain = {re.sub(r"[^a-z0-9_]", "", c.lower().replace(" ", "_")): c for c in reversed(columns)}
    return next((plain[known] for known in _KNOWN_NAMES[name] if known in plain), None)


def _suggest_wide(columns: Sequence[str]) -> TableMapping:
    quality: dict[str, str] = {}
    cost: dict[str, str] = {}
    for column in columns:
        match = _WIDE.fullmatch(column)
        if match is None:
            continue
        what = (match["what"] or match["what2"]).lower()
        side = cost if "cost" in what else quality
        side.setdefault(match["model"] or match["model2"], column)
    for model, (good, price) in _loose_pairs(columns).items():
        if model not in quality and model not in cost:
            quality[model], cost[model] = good, price
    # The layout `<model>`, `<model>|total_cost`: the bare column is the quality.
    quality |= {model: model for model in cost if model not in quality and model in columns}
    return TableMapping({}, quality, cost) if quality else TableMapping()


def _loose_pairs(columns: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Model -> columns of its quality and cost, in names such as `gpt-5_quality`, `cost_gpt-5`.

    Such names are read only in pairs: `total_cost` alone is no model called total.
    """
    sides: dict[str, dict[str, str]] = {}
    for column in columns:
        match = _LOOSE.fullmatch(column)
        if match is not None:
            what = (match["what"] or match["what2"]).lower()
            side = "cost" if "cost" in what else "quality"
            sides.setdefault(match["model"] or match["model2"], {}).setdefault(side, column)
    return {m: (s["quality"], s["cost"]) for m, s in sides.items() if len(s) == 2}


def parse_map(pairs: Sequence[str]) -> TableMapping:
    """A mapping from `FIELD=COLUMN` texts; `quality:MODEL=COLUMN` and `cost:MODEL=COLUMN` too.

    Raises:
        EvalSetError: A text of another form, or a field said twice.
    """
    problems = []
    sides: dict[str, dict[str, str]] = {"": {}, "quality": {}, "cost": {}}
    for pair in pairs:
        name, equals, column = pair.partition("=")
        side, colon, model = name.partition(":")
        target = sides.get(side if colon else "")
        key = model if colon else name
        if not equals or not key or not column or target is None:
            problems.append(Problem(repr(pair), "is not FIELD=COLUMN", "e.g. query_id=task"))
        elif key in target:
            problems.append(Problem(repr(pair), f"says {name} twice", "say it once"))
        else:
            target[key] = column
    if problems:
        raise EvalSetError("--map", problems)
    return TableMapping(sides[""], sides["quality"], sides["cost"])
