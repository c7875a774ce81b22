"""Import of Helicone's export: JSON or JSONL of its tool, with the bodies (`--include-body`).

A row is a request as Helicone's API answers it. Feedback and scores stand in the row: one of them
is the quality. A cost of 0 means that Helicone had no price. Input tokens are taken where nothing
came from the provider's prompt cache or went into it; elsewhere the export does not say whether
those tokens are a part of the input.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.given import NOTHING, Given
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.traffic.feedback import Feedback, Labels
from hydra_core.evalsets.importers.traffic.messages import asked_in
from hydra_core.evalsets.importers.traffic.rows import decoded, identifier, number, rows_of, text
from hydra_core.evalsets.importers.traffic.served import Served, Traffic

#: The score that holds a person's thumb up or down.
_THUMB: Final = "helicone-score-feedback"
#: `cache_reference_id` of an answer that came from no cache.
_NO_REFERENCE: Final = "00000000-0000-0000-0000-000000000000"
_NAMES: Final = ("model_override", "request_model", "response_model", "model")


def read_helicone(files: Sequence[TableFile], given: Given = NOTHING) -> Draft:
    """Answered requests with feedback or a score; each becomes a query.

    Raises:
        EvalSetError: Nothing is left, with the reasons, or a file is damaged.
    """
    traffic = Traffic(given)
    rows = []
    for place, row in rows_of(files, Budget(), traffic.unread):
        query_id = identifier(row.get("request_id"))
        if reason := _no_answer(row):
            traffic.skip(reason, query_id)
        else:
            rows.append((_served(place, query_id, row), dict(_scores(row, traffic.labels))))
    traffic.add_scored(rows, "Helicone")
    return traffic.draft("Helicone")


def _no_answer(row: Mapping[str, Any]) -> str:
    """Why a row holds no answer of a model, '' where it does."""
    status = number(row.get("response_status"))
    if not math.isnan(status) and not 200 <= status < 300:
        return "the request failed"
    cached = text(row.get("cache_reference_id"))
    return "answered from a cache" if cached not in ("", _NO_REFERENCE) else ""


def _served(place: tuple[str, int], query_id: str, row: Mapping[str, Any]) -> Served:
    own = (decoded(row.get(name)) for name in ("request_properties", "properties"))
    facts = next((one for one in own if isinstance(one, Mapping)), {})
    cache = (number(row.get(f"prompt_cache_{way}_tokens")) for way in ("read", "write"))
    alone = all(math.isnan(count) or count == 0.0 for count in cache)
    read, written = (number(row.get(f"{way}_tokens")) for way in ("prompt", "completion"))
    return Served(
        place,
        query_id,
        asked_in(row.get("request_body")),
        next(filter(None, (text(row.get(name)) for name in _NAMES)), ""),
        cost_usd=number(row.get("cost")),
        input_tokens=read if alone and read > 0 else math.nan,
        output_tokens=written,
        latency_s=number(row.get("delay_ms")) / 1000.0,
        conversation_id=text(facts.get("Helicone-Session-Id")),
    )


def _scores(row: Mapping[str, Any], labels: Labels) -> Iterator[tuple[str, Feedback]]:
    """Name -> score; older exports hold the thumb in a field of its own."""
    scores = decoded(row.get("scores"))
    found = dict(scores) if isinstance(scores, Mapping) else {}
    if row.get("feedback_rating") not in (None, ""):
        found.setdefault(_THUMB, row["feedback_rating"])
    for name, value in found.items():
        said = labels.read(value.get("value") if isinstance(value, Mapping) else value)
        if not said.absent:
            yield str(name), said
