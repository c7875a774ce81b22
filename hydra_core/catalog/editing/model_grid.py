"""The models of a catalog as a table: rows to show, and edits of cells back into the text.

Works on texts that are not yet valid, so that a half-finished edit can be shown beside its problem.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from hydra_core.base.errors import CatalogError, Problem
from hydra_core.base.types import ModelStatus
from hydra_core.catalog.editing.document import CatalogDocument, Data, Value, entries, mapping
from hydra_core.catalog.model_fields import LONG_KEYS
from hydra_core.catalog.prices.price_table import tokens_of, typed_price
from hydra_core.catalog.prices.quotes import price_number, share_number


@dataclass(frozen=True, slots=True)
class Field:
    """One column: what it is called, how a cell is read, and whether it may be empty."""

    label: str
    read: Callable[[object], Value]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class CellProblem:
    """A problem and the cell it belongs to.

    Attributes:
        row: Index of the model; None where it belongs to no model.
        column: Label of the column, such as "Input price".
    """

    row: int | None
    model: str
    column: str
    message: str
    remedy: str

    def __str__(self) -> str:
        return self.in_form_of("")

    def in_form_of(self, model: str) -> str:
        """The problem with its place, where a form for `model` alone has to name the field only."""
        shown = "" if model and self.model == model else self.model
        where = " · ".join(part for part in (shown, self.column) if part)
        text = f"{where}: {self.message}" if where else self.message
        return f"{text} ({self.remedy})" if self.remedy else text


def _text(value: object) -> Value:
    return str(value).strip()


def _number(value: object) -> Value:
    """A number as it was typed: through Decimal, 0.31 stays 0.31. Other texts as they are."""
    number = price_number(value)
    return str(value).strip() if number is None else number


def read_rate(value: object) -> Value:
    """A share such as 0.72 or 72 %; other texts as they are."""
    share = share_number(value)
    return str(value).strip() if share is None else share


def _price(value: object) -> Value:
    """USD per million tokens; other texts as they are."""
    number = typed_price(value)
    return str(value).strip() if number is None else number


def _tokens(value: object) -> Value:
    """A number of tokens such as 128000, 128,000 or 128k; other texts as they are."""
    text = str(value).strip()
    number = price_number(text)
    whole = number is not None and "." not in text and number == int(number)
    return tokens_of(text) or (int(number) if number is not None and whole else text)


def _flag(value: object) -> Value:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    return known.get(word, str(value))


def _day(value: object) -> Value:
    text = value.isoformat() if isinstance(value, date) else str(value).strip()
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return text


def _words(value: object) -> Value:
    listed = value if isinstance(value, list) else str(value).split(",")
    return [str(word).strip() for word in listed if str(word).strip()]


def _long_prompts(value: object) -> Value:
    """`200000: 4/18/0.4` as a catalog holds it, several between `;`; other texts as they are."""
    text, found = str(value).strip(), []
    for part in filter(None, map(str.strip, text.split(";"))):
        above, _, prices = part.partition(":")
        numbers = [_tokens(above), *map(_price, prices.split("/"))]
        if not 3 <= len(numbers) <= 4 or any(isinstance(one, str) for one in numbers):
            return text
        found.append(dict(zip(LONG_KEYS, numbers, strict=False)))
    return found


def _cell(data: Data) -> Data:
    """What a cell of the table shows: words between commas, prices of long requests between `;`."""
    if not isinstance(data, list):
        return data
    if data and all(isinstance(one, dict) and set(LONG_KEYS[:3]) <= one.keys() for one in data):
        return "; ".join(_spelled(one) for one in data if isinstance(one, dict))
    return ", ".join(map(str, data))


def _spelled(tier: Mapping[str, Data]) -> str:
    above, *prices = (tier.get(name) for name in LONG_KEYS)
    shown = (one if isinstance(one, str) else f"{one:.12g}" for one in prices if one is not None)
    return f"{above}: {'/'.join(shown)}"


#: The columns that can be edited, in their order on the page; keys as in the YAML.
FIELDS: Final[Mapping[str, Field]] = MappingProxyType(
    {
        "id": Field("Model", _text),
        "provider": Field("Provider", _text),
        "status": Field("Status", _text),
        "input_usd_per_mtok": Field("Input price", _price),
        "output_usd_per_mtok": Field("Output price", _price),
        "cached_input_usd_per_mtok": Field("Cached input price", _price, optional=True),
        "long_prompts": Field("Long requests", _long_prompts, optional=True),
        "context_window": Field("Context window", _tokens),
        "vision": Field("Vision", _flag),
        "tools": Field("Tools", _flag),
        "variant_of": Field("Variant of", _text, optional=True),
        "tags": Field("Tags", _words, optional=True),
        "lacks": Field("Lacks", _words, optional=True),
        "latency_s": Field("Seconds", _number, optional=True),
        "ttft_s": Field("Seconds to first token", _number, optional=True),
        "retire_on": Field("Retires on", _day, optional=True),
        "price_date": Field("Price date", _day),
        "price_source": Field("Price source", _text),
        "notes": Field("Notes", _text, optional=True),
    }
)
#: What a variant has for itself alone; the rest of an empty cell comes from its base.
_OWN: Final = ("id", "variant_of", "notes")
_PLACE: Final = re.compile(r"models\[(\d+)\](?: '([^']*)')?(?:: ([\w.\-]+))?")


def model_rows(document: CatalogDocument) -> list[dict[str, Data]]:
    """One row per model, every column of `FIELDS`; None where the text has nothing there.

    A variant's row shows what it takes from its base.
    """
    models = _models(document)
    by_id = {str(model.get("id")): model for model in models}
    return [_row(model, by_id) for model in models]


def _row(model: Mapping[str, Data], by_id: Mapping[str, Mapping[str, Data]]) -> dict[str, Data]:
    row = {key: _cell(model.get(key)) for key in FIELDS}
    base = by_id.get(str(model.get("variant_of")), {})
    own = (*_OWN, "retire_on") if "status" in model else _OWN
    return row | {k: _cell(base.get(k)) for k in FIELDS if k not in model and k not in own and base}


def edit_cells(text: str, edits: Mapping[int, Mapping[str, object]]) -> str:
    """The text with cells written anew: row -> column -> value; None or "" empties a cell.

    A cell that says what the text says already is left alone, down to its spelling.

    Raises:
        CatalogError: A cell cannot be written there.
    """
    document = CatalogDocument.parse(text)
    rows = _models(document)
    for row, cells in edits.items():
        for key, value in cells.items():
            if key in FIELDS and 0 <= row < len(rows):
                _write(document, rows[row], row, key, value)
    return document.text()


def rows_after(
    rows: Sequence[Mapping[str, Data]], edits: Mapping[int, Mapping[str, object]]
) -> list[dict[str, Data]]:
    """What `model_rows` gives once these cells are written."""
    changed = [dict(row) for row in rows]
    for at, cells in edits.items():
        for key, value in cells.items():
            if key in FIELDS and 0 <= at < len(changed):
                empty = value is None or value == ""
                changed[at][key] = None if empty else _plain(FIELDS[key].read(value))
    return changed


def _write(
    document: CatalogDocument, before: Mapping[str, Data], row: int, key: str, value: object
) -> None:
    field = FIELDS[key]
    if value is None or value == "":
        if key not in before or (before[key] is None and not field.optional):
            return
        if key == "id":
            remedy = "type another id, or tick its row and press Remove"
            raise CatalogError.of("catalog", "needs an id", remedy, place=str(before.get("id")))
        if field.optional or ("variant_of" in before and key not in _OWN):
            document.remove("models", row, key)
        else:
            document.set("models", row, key, None)
        return
    new = field.read(value)
    if key not in before or _plain(new) != _cell(before[key]):
        document.set("models", row, key, new)
        if key == "id":
            _move_cost(document, before.get("id"), str(new))
            _rename_for_teams(document, before.get("id"), str(new))
            for place, other in enumerate(_models(document)):
                if before.get("id") and other.get("variant_of") == before.get("id"):
                    document.set("models", place, "variant_of", new)


def _move_cost(document: CatalogDocument, model: Data, renamed: str | None) -> None:
    """A model's measured cost and success profile go with it: to its new id, or away."""
    for place in (("realised_costs", "usd_per_query"), ("success_profiles", "models")):
        facts = mapping(mapping(mapping(document.data()).get(place[0])).get(place[1]))
        if not isinstance(model, str) or model not in facts:
            continue
        if renamed is not None:
            document.set(*place, renamed, facts[model])
        document.remove(*place, model)


def _rename_for_teams(document: CatalogDocument, model: Data, renamed: str) -> None:
    teams = mapping(mapping(mapping(document.data()).get("policy")).get("teams"))
    for name, team in teams.items():
        for place, one in enumerate(entries(mapping(team).get("models"))):
            if one == model:
                document.set("policy", "teams", name, "models", place, renamed)


def _plain(value: Value) -> Data:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list):
        return _cell(value)
    return value if isinstance(value, str | int | float | bool) else None


def add_model(text: str, model: Mapping[str, Value]) -> str:
    """The text with one more model at the end of the pool; CatalogError without a list."""
    document = CatalogDocument.parse(text)
    document.append("models", model)
    return document.text()


def add_variant(text: str, row: int) -> str:
    """The text with an effort level of one model at the end of the pool, under a free id.

    Raises:
        CatalogError: There is no such row, or it is a variant itself.
    """
    document = CatalogDocument.parse(text)
    models = _models_to(document, row)
    base = models[row].get("id")
    if "variant_of" in models[row]:
        message, remedy = "is an effort level itself", "tick the model it belongs to"
        raise CatalogError.of("catalog", message, remedy, place=str(base))
    name = free_id(f"{base}-high", [str(model.get("id")) for model in models])
    document.append("models", {"id": name, "variant_of": str(base)})
    return document.text()


def duplicate_model(text: str, row: int) -> str:
    """The text with a copy of one model under a free id; CatalogError for no such row."""
    document = CatalogDocument.parse(text)
    models = _models_to(document, row)
    copy = dict(models[row])
    copy["id"] = free_id(f"{copy.get('id')}-copy", [str(model.get("id")) for model in models])
    document.append("models", copy)
    return document.text()


def remove_models(text: str, rows: Sequence[int]) -> str:
    """The text without these models; CatalogError where there is no such row."""
    document = CatalogDocument.parse(text)
    models = _models(document)
    for row in sorted(set(rows), reverse=True):
        document.remove("models", row)
        if row < len(models):
            _move_cost(document, models[row].get("id"), None)
    return document.text()


def set_status(text: str, rows: Sequence[int], status: ModelStatus) -> str:
    """The text with these models' status changed; a date of retirement goes where it cannot stand.

    Raises:
        CatalogError: There is no such row.
    """
    document = CatalogDocument.parse(text)
    models = _models(document)
    for row in rows:
        document.set("models", row, "status", status.value)
        if status in (ModelStatus.ACTIVE, ModelStatus.DISABLED) and "retire_on" in models[row]:
            document.remove("models", row, "retire_on")
    return document.text()


def _models_to(document: CatalogDocument, row: int) -> list[dict[str, Data]]:
    models = _models(document)
    if not 0 <= row < len(models):
        raise CatalogError.of("catalog", f"there is no row {row + 1}")
    return models


def free_id(wanted: str, taken: Sequence[str]) -> str:
    """`wanted`, or `wanted-2`, `wanted-3`, ... where it is taken."""
    used = {name.casefold() for name in taken}
    number, name = 1, wanted
    while name.casefold() in used:
        number += 1
        name = f"{wanted}-{number}"
    return name


def cell_problems(problems: Sequence[Problem]) -> tuple[CellProblem, ...]:
    """The problems of a catalog with the row and column each belongs to."""
    return tuple(_cell_problem(problem) for problem in problems)


def _cell_problem(problem: Problem) -> CellProblem:
    found = _PLACE.match(problem.place)
    if found is None:
        return CellProblem(None, "", problem.place, problem.message, problem.remedy)
    row, key = int(found[1]), found[3] or ""
    column = FIELDS[key].label if key in FIELDS else key.replace(".", " ").replace("_", " ")
    return CellProblem(row, found[2] or f"row {row + 1}", column, problem.message, problem.remedy)


def _models(document: CatalogDocument) -> list[dict[str, Data]]:
    models = entries(mapping(document.data()).get("models"))
    return [model for model in models if isinstance(model, dict)]
