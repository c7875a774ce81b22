"""Reading one JSON document strictly and within a bound."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile, open_plain

#: Bytes one JSON document may hold after decompression.
MAX_JSON_BYTES = 100 << 20


def read_json(file: TableFile, budget: Budget | None = None) -> Any:  # noqa: ANN401
    """The content of a .json file (also .gz or .zip), not yet checked.

    Args:
        budget: What the import may still read; by default this document alone.

    Raises:
        EvalSetError: No JSON file, damaged, an object with a key twice, or over the bound.
    """
    try:
        with open_plain(file, budget or Budget(MAX_JSON_BYTES)) as (kind, stream):
            if kind != "json":
                raise EvalSetError(file.name, [Problem("", "must be a .json file")])
            text = cast(io.TextIOWrapper, stream).read()
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        remedy = "the file may be cut off; get it again"
        raise EvalSetError(
            file.name, [Problem("", f"is not valid JSON: {error}", remedy)]
        ) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice!r} occurs twice in one object")
    return found


def objects(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list, none for anything else."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
