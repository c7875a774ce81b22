"""Which format a file is in, told from its beginning; never from its name."""

from __future__ import annotations

import csv
import re
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.importers.formats import Kind
from hydra_core.evalsets.importers.reading.bounded import MAX_BYTES, Budget, TableFile, open_plain

_HEAD: Final = 200_000
_KEY: Final = re.compile(r'"([^"\\\n]{1,80})"\s*:')
#: Names that one format alone has, all of a group together; the first that fits is the answer.
_SIGNS: Final = (
    (Kind.SWEBENCH, {"leaderboards"}),
    (Kind.LIVECODEBENCH, {"performances", "pass@1"}),
    (Kind.LIVECODEBENCH, {"question_content"}),
    (Kind.LLMROUTERBENCH, {"model_name", "dataset_name"}),
    (Kind.ROUTERARENA, {"global_index", "llm_selected"}),
    (Kind.LOG, {"decision_id", "propensity"}),
    (Kind.SPEND_LOGS, {"request_id", "spend"}),
    (Kind.LANGFUSE, {"provided_model_name"}),
    (Kind.LANGFUSE, {"observation_id", "trace_id"}),
    (Kind.SPANS, {"resourceSpans"}),
    (Kind.SPANS, {"attributes", "spanId"}),
    (Kind.SPANS, {"attributes", "span_id"}),
)


def looks_like(file: TableFile) -> Kind | None:
    """The format a file seems to be in; None where its beginning fits none or cannot be read."""
    try:
        names, tabular = _names(file)
    except (EvalSetError, pa.ArrowException, ValueError):
        return None
    for kind, signs in _SIGNS:
        if signs <= names:
            return kind
    if "prompt" in names and any(f"{name}_response" in names for name in names):
        return Kind.ROUTELLM
    return Kind.TABLE if tabular and len(names) > 1 else None


def _names(file: TableFile) -> tuple[set[str], bool]:
    """Columns or keys at the file's beginning, and whether it is a table."""
    with open_plain(file, Budget(MAX_BYTES)) as (kind, stream):
        if kind == "parquet":
            return set(pq.read_schema(stream).names), True
        head = str(stream.read(_HEAD))
    if kind in ("csv", "tsv"):
        lines = csv.reader(head.splitlines()[:1], delimiter="\t" if kind == "tsv" else ",")
        return set(next(lines, [])), True
    return set(_KEY.findall(head)), kind == "jsonl"
