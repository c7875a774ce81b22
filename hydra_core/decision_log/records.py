"""What the decision log holds: one row for each decision, each outcome, each known loss.

Text is in a row only where the operator opted in; its digest always is. A propensity stands only
where the probability of serving that model was known: after a fallback it is not, and is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa


class Kind(StrEnum):
    """What a row tells of."""

    DECISION = "decision"
    OUTCOME = "outcome"
    GAP = "gap"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecord:
    """One decision, and what became of it.

    Attributes:
        revision: The store's number of the catalog's revision, '' for a file.
        policy_digest: SHA-256 (hex) over the policy that decided.
        knob: tau (rule shortfall) or the value of one more resolved query in USD (rule value).
        requirements: (K,) None where the conversation kept its model unscored.
        distance: From the messages that the predictor was trained on: above 1 this one is unlike
            them; None where its bundle has nothing to compare with, and where nothing was scored.
        candidates: (m,) ids of all routable models, catalog order.
        predicted_success, predicted_cost_usd: (m,) under the value rule, else None.
        valued_by: Digest of what predicted them (outcome model, models, profiles, prices).
        served: The model that answered, '' where nothing was asked of one or none answered.
        attempts: `model:why it did not answer`, in order.
        harness_tokens: Of harness text that was not scored, estimated.
        stalled: Tool results in a row that reported failure, or calls that were the same.
        vetoed: The model that the rule would have chosen but for its health, '' for none.
        propensity: Probability with which `served` was chosen, None where it is not known.
        propensities: (m,) probability of every candidate, None likewise.
        keep_probability: Probability that this turn kept the conversation's model.
        status: decided, answered, failed, cancelled; rejected where the upstream says that the
            request itself is wrong; refused where no model may serve it, or its team has
            no budget for it (`chosen` is '' then).
        usage: How tokens and cost are known: counted by the upstream, estimated (an answer
            that broke off, or whose client left), or unknown (both are empty then); '' without
            an answer.
        about_usd: About what the request cost where the upstream did not count its tokens.
        upstream_status: The HTTP status that the last upstream said.
        team: Who pays, '' for nobody in particular.
        caller: Who asked, '' where nobody has to say who they are.
        text, context: The message and what came before it; only where the operator opted in.
        predictor: Fingerprint of the bundle that scored.
        arm: `canary` or `main` while a canary runs, else ''.
        has_image, needs_tools, context_tokens, allow, deny, needs, require: What the hard gates
            looked at.
    """

    kind: Kind = field(default=Kind.DECISION, init=False)
    at: datetime
    decision_id: str
    catalog: str
    catalog_digest: str
    revision: str
    policy_digest: str
    predictor: str = ""
    arm: str = ""
    rule: str
    knob: float
    conversation_id: str | None
    turn: int
    has_image: bool = False
    needs_tools: bool = False
    context_tokens: int = 0
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    dimensions: tuple[str, ...]
    requirements: tuple[float, ...] | None = None
    distance: float | None = None
    candidates: tuple[str, ...] = ()
    shortfalls: tuple[float, ...] | None = None
    predicted_success: tuple[float, ...] | None = None
    predicted_cost_usd: tuple[float, ...] | None = None
    valued_by: str | None = None
    chosen: str = ""
    served: str = ""
    cause: str = ""
    attempts: tuple[str, ...] = ()
    vetoed: str = ""
    propensity: float | None = None
    propensities: tuple[float, ...] | None = None
    keep_probability: float = 0.0
    status: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    usage: str = ""
    about_usd: float | None = None
    upstream_status: int | None = None
    refusal: str | None = None
    latency_ms: float | None = None
    decide_ms: float | None = None
    text: str | None = None
    text_sha256: str
    context: str | None = None
    caller: str = ""
    harness_tokens: int = 0
    stalled: int = 0
    needs: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    team: str = ""


@dataclass(frozen=True, slots=True)
class OutcomeRecord:
    """Feedback on one decision: quality in [0, 1], who or what says so, and whose token sent it."""

    decision_id: str
    at: datetime
    quality: float
    source: str = ""
    comment: str = ""
    author: str = ""
    kind: Kind = field(default=Kind.OUTCOME, init=False)


@dataclass(frozen=True, slots=True)
class GapRecord:
    """Records that were accepted by a process and lost when it was killed before its flush."""

    at: datetime
    lost: int
    source: str
    kind: Kind = field(default=Kind.GAP, init=False)


def row(record: DecisionRecord | OutcomeRecord | GapRecord) -> Mapping[str, Any]:
    """The record as JSON-ready values; what is empty is left out."""
    values = ((name, getattr(record, name)) for name in _NAMES[type(record)])
    found = {name: value for name, value in values if value is not None}
    found["at"] = record.at.astimezone(UTC).isoformat(timespec="microseconds")
    return found


_RECORDS: Final = (DecisionRecord, OutcomeRecord, GapRecord)
_NAMES: Final = {kind: tuple(one.name for one in fields(kind)) for kind in _RECORDS}
_TEXT: Final = pa.string()
_TYPES: Final = {
    "Kind": _TEXT,
    "str": _TEXT,
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "datetime": pa.timestamp("us", tz="UTC"),
    "tuple[str, ...]": pa.list_(_TEXT),
    "tuple[float, ...]": pa.list_(pa.float64()),
}
#: Columns of a Parquet segment; a row leaves what its kind does not have empty.
SCHEMA: Final = pa.schema(
    {
        one.name: _TYPES[str(one.type).removesuffix(" | None")]
        for kind in _RECORDS
        for one in fields(kind)
    }
)
