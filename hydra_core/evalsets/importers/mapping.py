"""Which column of somebody's table means what: suggested from the names, or said with --map."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.importers.headers import holders, unit_of, wide_columns
from hydra_core.evalsets.importers.reading.cells import LINE
from hydra_core.evalsets.importers.reading.json_document import EACH
from hydra_core.evalsets.importers.reading.notation import Measure, Notation
from hydra_core.evalsets.rules import (
    EXTRA_OUTCOMES,
    OPTIONAL_QUERY_COLUMNS,
    REQUIRED_QUERY_COLUMNS,
    model_id_problem,
)

QUERY_FIELDS = (*REQUIRED_QUERY_COLUMNS, *OPTIONAL_QUERY_COLUMNS)
LONG_FIELDS = ("model", "quality", "cost_usd", *EXTRA_OUTCOMES)

#: OpenRouter's names: the provider's own count, which is what it bills.
_NATIVE = (
    ("native_tokens_prompt", "tokens_prompt"),
    ("native_tokens_completion", "tokens_completion"),
)
#: What OpenRouter writes beside them, in milliseconds.
_OPENROUTER_MS = frozenset({"latency", "generation_time"})
#: Without the accents of their letters, which `_plain` takes off.
_KNOWN_NAMES: Mapping[str, tuple[str, ...]] = {
    "query_id": (
        *("query_id", "id", "qid", "instance_id", "question_id", "global_index", "task_id"),
        *("prompt_id", "sample_id", "request_id", "ticket", "ticket_id", "case", "case_id"),
        *("item", "item_id", "doc_id", "key", "uid", "uuid", "no", "nr", "number", "row"),
        *("nummer", "numero"),
    ),
    "text": (
        *("text", "prompt", "question", "query", "problem_statement", "message", "input"),
        *("origin_query", "instruction", "user_message", "messages"),
        *("frage", "anfrage", "nachricht", "pregunta", "consulta", "mensaje"),
    ),
    "language": ("language", "lang", "locale", "sprache", "langue", "idioma"),
    "has_image": ("has_image", "image", "vision"),
    "conversation_id": ("conversation_id", "conversation", "session_id", "thread_id"),
    "turn": ("turn", "turn_index", "turn_number"),
    "context": (),  # other people's columns of that name hold something else
    "group": (
        *("group", "category", "task", "dataset", "repo", "eval_name", "team", "topic"),
        *("kategorie", "categorie", "categoria", "thema", "gruppe", "groupe", "grupo"),
    ),
    "cluster": ("cluster",),
    "needs": (),  # other people's columns of that name hold something else
    "require": (),
    "needs_tools": (),
    "context_tokens": (),
    "allow": (),
    "deny": (),
    "model": (
        *("model", "model_id", "model_name", "llm", "llm_selected"),
        *("modell", "modele", "modelo"),
    ),
    "quality": (
        *("quality", "score", "resolved", "correct", "is_correct", "passed", "pass"),
        *("pass1", "accuracy", "success", "solved", "rating", "judge_score"),
        *("richtig", "korrekt", "correcte", "correcto", "correcta", "ok"),
    ),
    "cost_usd": (
        *("cost_usd", "cost", "usd", "total_cost", "inference_cost", "price", "cost_cents"),
        *("cost_in_usd", "cost_in_cents", "price_usd", "spend", "cost_in", "cost_in_dollars"),
        *("cost_per_query", "cost_per_request", "cost_per_call", "cost_per_message"),
        *("estimated_cost", "total_estimated_cost", "total_cost_usd", "response_cost"),
        *("accumulated_cost", "cost_total"),
        *("kosten", "cout", "couts", "coste", "costes", "costo"),
    ),
    "latency_s": (
        *("latency_s", "latency", "seconds", "duration_s"),
        *("latency_ms", "latencyms", "duration_ms", "durationms", "duration", "response_time"),
        *("latency_us", "latency_ns", "duration_us", "duration_ns", "elapsed", "elapsed_ms"),
        *("latency_seconds", "duration_seconds", "response_time_ms", "latency_minutes"),
        *("latenz", "latence", "latencia", "dauer", "duree", "duracion"),
    ),
    "tokens": ("tokens", "total_tokens", "num_tokens", "tokens_total", "usage_total"),
    "input_tokens": (
        *("input_tokens", "prompt_tokens", "tokens_in", "num_input_tokens", *_NATIVE[0]),
        *("tokens_input", "usage_input"),
    ),
    "output_tokens": (
        *("output_tokens", "completion_tokens", "tokens_out", "num_output_tokens", *_NATIVE[1]),
        *("tokens_output", "usage_output"),
    ),
    "cached_input_tokens": (
        *("cached_input_tokens", "cached_tokens", "cache_read_input_tokens"),
        *("native_tokens_cached", "tokens_cached", "usage_cached"),
    ),
}
_ENDINGS: Mapping[str, re.Pattern[str]] = {
    "query_id": re.compile(r"_(?:id|no|nr|number)$"),
    "text": re.compile(r"_(?:prompt|question|query|message|request|text|instruction)$"),
}
#: What an id or a text is of where it is not the query's.
_OTHERS = re.compile(
    r"model|session|conversation|thread|user[\s_-]*id|team|run|group|system|answer|response"
    r"|cost|price|spend|token|latency|seconds|time|score",
    re.IGNORECASE,
)


_PART_OF_COST = re.compile(
    r"(?:input|prompt|output|completion|cached?)[\s_.-]*(?:token[\s_.-]*)?(?:cost|price|usd)",
    re.IGNORECASE,
)

#: Objects that hold the query itself, and not an answer or somebody's id.
_QUERY = re.compile(
    r"(?:^|[._])(?:sample|doc|request|query|question|task|item|row|example|input)$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class TableMapping:
    """Field -> column. The long form maps `model`; the wide form maps columns per model.

    Attributes:
        fields: query_id, text, language, ..., label_<dimension>; in the long form also model,
            quality, cost_usd, latency_s, tokens, input_tokens, ...
        sides: Wide form: outcome, such as quality or cost_usd -> model -> column.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    sides: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def quality(self) -> Mapping[str, str]:
        """Wide form: model -> column of its quality."""
        return self.sides.get("quality", {})

    @property
    def cost(self) -> Mapping[str, str]:
        """Wide form: model -> column of its cost in USD."""
        return self.sides.get("cost_usd", {})

    @property
    def wide(self) -> bool:
        """One column per model instead of one row per model."""
        return bool(self.quality)

    @property
    def query_fields(self) -> dict[str, str]:
        return {f: c for f, c in self.fields.items() if f not in LONG_FIELDS}

    @property
    def outcome_fields(self) -> dict[str, str]:
        return {f: c for f, c in self.fields.items() if f in LONG_FIELDS}

    def over(self, suggested: TableMapping) -> TableMapping:
        """This mapping, completed by a suggestion; what is said here wins."""
        if self.wide or self.cost:
            suggested = replace(suggested, fields=suggested.query_fields)
        elif "model" in self.fields:
            suggested = TableMapping(suggested.fields)
        mine = set(self.all_columns().values())

        def completed(own: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
            return {name: c for name, c in other.items() if c not in mine} | dict(own)

        sides = {
            name: completed(self.sides.get(name, {}), suggested.sides.get(name, {}))
            for name in {**self.sides, **suggested.sides}
        }
        return TableMapping(completed(self.fields, suggested.fields), sides)

    def identified(self) -> tuple[TableMapping, str]:
        """This mapping of one file with ids where no column has them, and what they then are.

        A row of the wide form is a query, and its line the id; in the long form, rows with the same
        text are of one query.
        """
        text = self.fields.get("text")
        if "query_id" in self.fields or not (self.wide or ("model" in self.fields and text)):
            return self, ""
        column = LINE if self.wide else str(text)
        which = "line" if self.wide else f"text ({column})"
        note = f"no column has ids of queries: each query has its {which} as its id"
        return replace(self, fields={**self.fields, "query_id": column}), note

    def renamed(self, ids: Mapping[str, str]) -> TableMapping:
        """The wide form's models under other ids (name -> id); EvalSetError where two get one."""
        for side in (self.quality, self.cost):
            new = [ids.get(model, model) for model in side]
            twice = sorted({name for name in new if new.count(name) > 1})
            if twice:
                raise EvalSetError.of(
                    "model ids",
                    "would be the id of two models",
                    "give each its own",
                    place=twice[0],
                )
        sides = {
            name: {ids.get(model, model): column for model, column in side.items()}
            for name, side in self.sides.items()
        }
        return replace(self, sides=sides)

    def problems(
        self, columns: Iterable[str], *, need_cost: bool = True, need_text: bool = True
    ) -> list[Problem]:
        """What keeps this mapping from being imported from files with these columns."""
        found = list(columns)
        problems = [
            _missing(name, column, found)
            for name, column in self.all_columns().items()
            if column not in found and column != LINE
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
        per_model = {
            f"{'cost' if name == 'cost_usd' else name}:{model}": column
            for name in LONG_FIELDS
            for model, column in self.sides.get(name, {}).items()
        }
        return {**self.fields, **per_model}

    def _wide_problems(self, need_cost: bool) -> list[Problem]:
        checked = (model_id_problem(m, f"quality:{m}"[:60]) for m in self.quality)
        problems = [
            replace(problem, remedy=f"{problem.remedy}; --accept-ids takes all that are proposed")
            for problem in checked
            if problem is not None
        ]
        for model in self.quality:
            if need_cost and model not in self.cost:
                remedy = f"say which column holds it with --map 'cost:{model}=COLUMN'"
                remedy += ", or that there are none with --no-cost"
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
    none = {
        "text": ", or that there are none with --no-texts",
        "cost_usd": ", or that there are none with --no-cost",
        "model": ", or the columns of each model with --map 'quality:MODEL=COLUMN' and "
        "--map 'cost:MODEL=COLUMN'",
    }.get(name, "")
    parts = [one for one in columns if name == "cost_usd" and _PART_OF_COST.search(one)]
    if len(parts) > 1:
        shown = " and ".join(map(repr, parts[:3]))
        none += f" ({shown} look like parts of it: add them up in a column of its own)"
    remedy = f"say which it is with --map {name}=COLUMN{none}; columns: {_list(columns)}"
    return Problem(name, "the column is missing", remedy)


def _list(columns: Sequence[str]) -> str:
    return ", ".join(columns[:20]) + (", ..." if len(columns) > 20 else "")


def suggest_mapping(columns: Sequence[str]) -> TableMapping:
    """The mapping that the column names suggest; what cannot be told is left out."""
    long = _best("model", columns) and _best("quality", columns)
    headers = {} if long else wide_columns(columns)
    sides: dict[str, dict[str, str]] = {}
    for name, header in headers.items():
        sides.setdefault(header.figure, {}).setdefault(header.model, name)
    fields = {}
    taken, objects = set(headers), holders(columns)
    for name in QUERY_FIELDS if headers else (*QUERY_FIELDS, *LONG_FIELDS):
        not_cells = objects if name in EXTRA_OUTCOMES else set[str]()
        column = _best(name, [c for c in columns if c not in taken], not_cells)
        if column is not None:
            fields[name] = column
            taken.add(column)
    fields |= {column: column for column in columns if column.startswith("label_")}
    return TableMapping(fields, sides)


def header_notations(columns: Sequence[str]) -> dict[str, Notation]:
    """Column -> how it is written, where its header says so: "score (%)", "latency (ms)"."""
    headers = wide_columns(columns)
    stated = {column: header.notation for column, header in headers.items()}
    stated |= {column: unit_of(column) for column in columns if column not in stated}
    for column in columns:
        inside, leaf = column[: column.rfind(".") + 1], column[column.rfind(".") + 1 :]
        if leaf in _OPENROUTER_MS and f"{inside}{_NATIVE[0][0]}" in columns:
            stated[column] = Notation(divisor=1e3, measure=Measure.SECONDS)
    return {column: notation for column, notation in stated.items() if notation != Notation()}


def _best(name: str, columns: Sequence[str], objects: Container[str] = ()) -> str | None:
    """The column known by its name, none of `objects`; for id and text one that ends alike."""
    plain = {_plain(column): column for column in reversed(columns) if column not in objects}
    known = next((plain[one] for one in _KNOWN_NAMES[name] if one in plain), None)
    known = known or _inside(name, columns)
    if known is None and name in _ENDINGS:
        near = [c for c in columns if _ENDINGS[name].search(_plain(c)) and not _OTHERS.search(c)]
        return near[0] if near else None
    return known


def _inside(name: str, columns: Sequence[str]) -> str | None:
    """The one column inside an object that has a known name: `usage.cost`, `sample.input`."""
    found: dict[str, list[str]] = {}
    for column in columns:
        parent, dot, leaf = column.rpartition(".")
        if dot and parent in columns and not (name in _ENDINGS and not _QUERY.search(parent)):
            found.setdefault(_plain(leaf), []).append(column)
    named = (found[one] for one in _KNOWN_NAMES[name] if one in found)
    return next((inside[0] for inside in named if len(inside) == 1), None)


def _plain(column: str) -> str:
    column = column.rpartition(f"{EACH}.")[2]
    bare = re.sub(r"\s*[(\[][^()\[\]]*[)\]]\s*$", "", column)
    words = re.sub(r"[\s.-]+", "_", (bare or column).lower().replace("#", " no").strip())
    return re.sub(r"[^a-z0-9_]", "", unicodedata.normalize("NFD", words)).strip("_")


def parse_map(pairs: Sequence[str]) -> TableMapping:
    """A mapping from `FIELD=COLUMN` texts; `quality:MODEL=COLUMN`, `cost:MODEL=COLUMN` and the
    like for the other outcomes (`input_tokens:MODEL=COLUMN`) too.

    Raises:
        EvalSetError: A text of another form, or a field said twice.
    """
    problems = []
    sides: dict[str, dict[str, str]] = {
        name: {} for name in ("", "quality", "cost", *EXTRA_OUTCOMES)
    }
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
    EvalSetError.raise_any("--map", problems)
    fields, sides["cost_usd"] = sides.pop(""), sides.pop("cost")
    return TableMapping(fields, {name: side for name, side in sides.items() if side})
