"""Reading one JSON document strictly and within a bound, and values inside it by their paths.

A path is `doc.question` or `messages.0.content`. `results[].score` is the score of each object of a
list, of which a record is made for each.
"""

import io
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from hydra_core.base.errors import EvalSetError
from hydra_core.base.json_values import TwiceError, unique_keys
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile, open_plain

#: Bytes one JSON document may hold after decompression.
MAX_JSON_BYTES = 100 << 20
_DEPTH: Final = 5
_FILLED: Final = re.compile(r"\S")
#: What follows the name of a list whose objects are records of their own.
EACH: Final = "[]"


def read_json(file: TableFile, budget: Budget | None = None) -> Any:  # noqa: ANN401
    """The content of a .json file (also .gz or .zip), not yet checked.

    Args:
        budget: What the import may still read; by default this document alone.

    Raises:
        EvalSetError: No JSON file, damaged, an object with a key twice, or over the bound.
    """
    with open_plain(file, budget or Budget(MAX_JSON_BYTES)) as (kind, stream):
        if kind != "json":
            raise EvalSetError.of(file.name, "must be a .json file")
        text = cast(io.TextIOWrapper, stream).read()
    return _document(text, file.name)


def _document(text: str, source: str, *, several: bool = False) -> Any:  # noqa: ANN401
    """A document; where several may stand behind each other a list of them."""
    try:
        found = documents(text) if several else [parsed(text)]
        return found[0] if len(found) == 1 else found
    except TwiceError as error:
        raise EvalSetError.of(source, str(error), "keep one of them") from error
    except (ValueError, RecursionError) as error:
        remedy = "the file may be cut off; get it again"
        raise EvalSetError.of(source, f"is not valid JSON: {error}", remedy) from error


def list_of_objects(text: str, source: str, most: int = MAX_JSON_BYTES) -> list[dict[str, Any]]:
    """The objects of a JSON document that is a list of them, or that holds one such list, or of
    several documents behind each other.

    Raises:
        EvalSetError: It is another document, damaged, or over the bound.
    """
    if len(text) > most:
        message = f"is a JSON document of more than {most >> 20} MiB"
        raise EvalSetError.of(source, message, "save it as .jsonl, one object per line")
    return records_of(_document(text, source, several=True), source)


def records_of(found: object, source: str) -> list[dict[str, Any]]:
    """The objects of a document that is a list, an object with one list: {"data": [...]}, or an
    object with an id.

    Raises:
        EvalSetError: It is neither.
    """
    if isinstance(found, dict):
        lists = [one for one in found.values() if isinstance(one, list)]
        one = lists[0] if len(lists) == 1 else [found] if "id" in found else found
        found = found.get("data", one)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        remedy = 'give [{...}, ...] or {"data": [...]}, or save it as .jsonl, one object per line'
        raise EvalSetError.of(source, "is JSON, but no list of objects", remedy)
    return found


def parsed(text: str) -> Any:  # noqa: ANN401
    """A JSON document; ValueError where it is damaged, or one key has different values."""
    return json.loads(text, object_pairs_hook=unique_keys)


def documents(text: str) -> list[Any]:
    """The JSON documents that stand behind each other, as exporters of spans write them.

    Raises:
        ValueError: One is damaged, or an object has a key twice with different values.
    """
    decoder = json.JSONDecoder(object_pairs_hook=unique_keys)
    found: list[Any] = []
    at = 0
    while begin := _FILLED.search(text, at):
        one, at = decoder.raw_decode(text, begin.start())
        found.append(one)
    return found or [parsed(text)]


def number_in(value: object) -> float:
    """A JSON number as float, infinite where it is too large for one; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def value_at(found: Any, path: str) -> Any:  # noqa: ANN401 (JSON)
    """The value under a name, else at a path of names and numbers; None where there is none.

    A name may hold points itself: `results.gpt-4.1.score`. The longest that is there counts.
    """
    if isinstance(found, Mapping) and path in found:
        return found[path]
    steps = path.split(".")
    if isinstance(found, list):
        step, rest = steps[0], ".".join(steps[1:])
        known = step.isdecimal() and int(step) < len(found)
        inner = found[int(step)] if known else None
        return value_at(inner, rest) if rest else inner
    if isinstance(found, Mapping):
        for end in range(len(steps) - 1, 0, -1):
            name = ".".join(steps[:end])
            if name in found:
                return value_at(found[name], ".".join(steps[end:]))
    return None


def paths_in(row: Mapping[str, Any], depth: int = _DEPTH) -> Iterator[str]:
    """The names of an object, and behind each that holds an object the paths inside it."""
    for name, value in row.items():
        yield name
        if isinstance(value, Mapping) and depth > 1:
            yield from (f"{name}.{inner}" for inner in paths_in(value, depth - 1))
        elif is_records(value) and depth > 1:
            yield from (f"{name}{EACH}.{inner}" for inner in paths_in(value[0], depth - 1))


def is_records(value: object) -> bool:
    """Whether a value is a list of objects, other than the messages of a conversation."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, Mapping) and "role" not in one for one in value)
    )


def each(row: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """A row for each object of the list under a name, its values under `name[]`."""
    value = row.get(name)
    if not isinstance(value, list) or not is_records(value):
        return [dict(row)]
    return [{**row, f"{name}{EACH}": one} for one in value]
