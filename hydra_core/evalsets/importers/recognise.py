"""Which format a file is in, told from its beginning; never from its name."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.importers.formats import Kind
from hydra_core.evalsets.importers.harness.adapters import adapter_of, is_helm_stats
from hydra_core.evalsets.importers.reading.beginning import names_in
from hydra_core.evalsets.importers.reading.bounded import TableFile

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
    if adapter_of(file) is not None or is_helm_stats(file):
        return Kind.HARNESS
    if "prompt" in names and any(f"{name}_response" in names for name in names):
        return Kind.ROUTELLM
    return Kind.TABLE if tabular and len(names) > 1 else None
