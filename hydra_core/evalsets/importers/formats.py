"""The formats that are imported: names, examples, one way to read them all, and to recognise them.

A format is recognised by the beginning of a file, never by its name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa

from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.given import Given
from hydra_core.evalsets.importers.harness.adapters import (
    adapter_of,
    goes_with_others,
    read_harness,
)
from hydra_core.evalsets.importers.reading.bounded import TableFile, bytes_of
from hydra_core.evalsets.importers.reading.tables import names_in
from hydra_core.evalsets.importers.records import (
    read_livecodebench,
    read_llmrouterbench,
    read_routellm,
    read_routerarena,
)
from hydra_core.evalsets.importers.traffic.gateways import (
    read_decision_log,
    read_helicone,
    read_spend_logs,
)
from hydra_core.evalsets.importers.traffic.langfuse import read_langfuse
from hydra_core.evalsets.importers.traffic.spans import read_spans


class Kind(StrEnum):
    """A format; the names are those of `hydra-router import`."""

    TABLE = "table"
    LOG = "log"
    SPEND_LOGS = "spend-logs"
    LANGFUSE = "langfuse"
    HELICONE = "helicone"
    SPANS = "spans"
    SWEBENCH = "swebench"
    LIVECODEBENCH = "livecodebench"
    LLMROUTERBENCH = "llmrouterbench"
    ROUTERARENA = "routerarena"
    ROUTELLM = "routellm"
    HARNESS = "harness"


def _decision_log(files: Sequence[TableFile], given: Given) -> Draft:
    """A log is a folder of segments: those that were given, by their own names."""
    with TemporaryDirectory() as folder:
        for file in files:
            with bytes_of(file) as stream:
                (Path(folder) / Path(file.name).name).write_bytes(stream.read())
        return read_decision_log(Path(folder), given.models)


def _livecodebench(files: Sequence[TableFile], given: Given) -> Draft:
    """The set with its texts, without which it would have no costs."""
    if not given.more:
        remedy = "give a submission's evaluation file with question_content"
        raise EvalSetError.of("LiveCodeBench", "has no problem texts", remedy)
    return read_livecodebench(files, given)


@dataclass(frozen=True, slots=True)
class Format:
    """What an operator reads about a format, and what reads it.

    Attributes:
        files: What to give.
        example: The beginning of such a file.
        read: Files to an eval set; None where more is asked than `Given` holds.
        more: What else belongs to it, '' for nothing.
        optional: Whether it can be read without that.
        priced: Whether costs may have to be estimated from prices.
        scored: Whether one of several kinds of feedback may have to be chosen.
    """

    name: str
    files: str
    example: str
    read: Callable[[Sequence[TableFile], Given], Draft] | None = None
    more: str = ""
    optional: bool = False
    priced: bool = False
    scored: bool = False


FORMATS: Final[Mapping[Kind, Format]] = {
    Kind.TABLE: Format(
        "Table",
        "CSV, TSV, Markdown, JSON, JSONL or Parquet: a row a query and model, or a row a query.",
        "query_id,text,model,quality,cost_usd\nq1,Fix the race in ...,gpt-5,1,0.012\n"
        "q1,Fix the race in ...,gpt-5-mini,0,0.001",
    ),
    Kind.LOG: Format(
        "HyDRA decision log",
        "The segments that `serve --log --log-text` wrote: .jsonl and .parquet.",
        '{"decision_id": "d-1", "text": "...", "served": "gpt-5", "quality": 1.0, ...}',
        _decision_log,
    ),
    Kind.SPEND_LOGS: Format(
        "LiteLLM spend logs",
        "Rows of LiteLLM_SpendLogs as JSON, JSONL, CSV or Parquet.",
        '{"request_id": "r1", "model": "gpt-5", "messages": [...], "spend": 0.012, ...}',
        read_spend_logs,
        more="Feedback, a table with request_id and quality",
        priced=True,
    ),
    Kind.LANGFUSE: Format(
        "Langfuse export",
        "Files of observations_v2.",
        '{"id": "o1", "type": "GENERATION", "provided_model_name": "gpt-5", "input": ...}',
        read_langfuse,
        more="Files of scores",
        priced=True,
        scored=True,
    ),
    Kind.HELICONE: Format(
        "Helicone export",
        "JSON or JSONL of @helicone/export with --include-body.",
        '{"request_id": "r1", "request_model": "gpt-5", "response_status": 200, ...}',
        read_helicone,
        priced=True,
        scored=True,
    ),
    Kind.SPANS: Format(
        "OpenTelemetry or OpenInference spans",
        "JSONL, one span or export request a line.",
        '{"spanId": "s1", "attributes": {"gen_ai.request.model": "gpt-5", ...}}',
        read_spans,
        priced=True,
        scored=True,
    ),
    Kind.SWEBENCH: Format(
        "SWE-bench leaderboard",
        "leaderboards.json with per-instance details, and the problem statements.",
        '{"leaderboards": [{"name": "Verified", "results": [{"folder": "...", ...}]}]}',
    ),
    Kind.LIVECODEBENCH: Format(
        "LiveCodeBench",
        "performances_generation.json.",
        '{"performances": [{"question_id": "a", "model": "...", "pass@1": 100.0}]}',
        _livecodebench,
        more="A submission's evaluation file with the problem texts",
        priced=True,
    ),
    Kind.LLMROUTERBENCH: Format(
        "LLMRouterBench",
        "Result files, one JSON a dataset, split and model.",
        '{"model_name": "...", "dataset_name": "...", "records": [{"index": 0, "score": 1}]}',
        read_llmrouterbench,
        priced=True,
    ),
    Kind.ROUTERARENA: Format(
        "RouterArena",
        "Cached results, one JSONL a model.",
        '{"global_index": "a_1", "question": "...", "llm_selected": "gpt-5", ...}',
        read_routerarena,
        priced=True,
    ),
    Kind.ROUTELLM: Format(
        "RouteLLM responses",
        "CSV with a prompt and a True/False column per model.",
        "prompt,mixtral-8x7b,gpt-4,gpt-4_response\nWhat is 2+2?,True,True,4",
        read_routellm,
        priced=True,
    ),
    Kind.HARNESS: Format(
        "Evaluation harness",
        "Results of lm-evaluation-harness, Inspect, promptfoo, HELM (scenario_state.json and "
        "per_instance_stats.json), EvalPlus or LLMRouter: one file a model or run.",
        '{"doc_id": 0, "doc": {"question": "..."}, "filter": "none", "acc": 1.0, ...}',
        read_harness,
        more="EvalPlus keeps its problems apart: JSONL with task_id and prompt",
        optional=True,
        priced=True,
        scored=True,
    ),
}


#: Formats whose quality may be feedback or a score in words.
LOGS: Final = (Kind.SPEND_LOGS, Kind.LANGFUSE, Kind.HELICONE, Kind.SPANS, Kind.HARNESS)


def read(kind: Kind, files: Sequence[TableFile], given: Given) -> Draft:
    """Read files of any format but tables and the SWE-bench leaderboard, which ask for more.

    Raises:
        EvalSetError: With every problem found.
        LogError: A decision log that is damaged.
    """
    reader = FORMATS[kind].read
    if reader is None:
        raise ValueError(f"{kind.value} is read by an importer of its own")
    return reader(files, given)


#: Names that one format alone has, all of a group together; the first that fits is the answer.
_SIGNS: Final = (
    (Kind.SWEBENCH, {"leaderboards"}),
    (Kind.LIVECODEBENCH, {"performances", "pass@1"}),
    (Kind.LIVECODEBENCH, {"question_content"}),
    (Kind.LLMROUTERBENCH, {"model_name", "dataset_name"}),
    (Kind.ROUTERARENA, {"global_index", "llm_selected"}),
    (Kind.LOG, {"decision_id", "propensity"}),
    (Kind.SPEND_LOGS, {"request_id", "spend"}),
    (Kind.SPEND_LOGS, {"response_cost", "call_type"}),
    (Kind.LANGFUSE, {"provided_model_name"}),
    (Kind.LANGFUSE, {"observation_id", "trace_id"}),
    (Kind.LANGFUSE, {"dataType", "traceId"}),
    (Kind.LANGFUSE, {"usageDetails", "traceId"}),
    (Kind.LANGFUSE, {"observations", "scores", "totalCost"}),
    (Kind.HELICONE, {"request_id", "response_status", "request_body"}),
    (Kind.SPANS, {"resourceSpans"}),
    (Kind.SPANS, {"resourceLogs"}),
    (Kind.SPANS, {"span_id", "annotator_kind"}),
    (Kind.SPANS, {"attributes", "spanId"}),
    (Kind.SPANS, {"attributes", "span_id"}),
)


def looks_like(file: TableFile) -> Kind | None:
    """The format a file seems to be in; None where its beginning fits none or cannot be read."""
    if file.name.lower().endswith(".eval"):
        return Kind.HARNESS
    try:
        names, tabular = names_in(file)
    except (EvalSetError, pa.ArrowException, ValueError):
        return None
    for kind, signs in _SIGNS:
        if signs <= names:
            return kind
    if any(name.startswith(("attributes.llm.", "attributes.gen_ai.")) for name in names):
        return Kind.SPANS
    if adapter_of(file) is not None or goes_with_others(file):
        return Kind.HARNESS
    if "prompt" in names and any(f"{name}_response" in names for name in names):
        return Kind.ROUTELLM
    return Kind.TABLE if tabular and len(names) > 1 else None
