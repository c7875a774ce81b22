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


_NUMBERS: Final = pa.list_(pa.float64())

#: Columns of a Parquet segment; a row leaves what its kind does not have empty.
SCHEMA: Final = pa.schema(
    [
        ("kind", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("decision_id", pa.string()),
        ("catalog", pa.string()),
        ("catalog_digest", pa.string()),
        ("revision", pa.string()),
        ("policy_digest", pa.string()),
        ("predictor", pa.string()),
        ("arm", pa.string()),
        ("rule", pa.string()),
        ("knob", pa.float64()),
        ("conversation_id", pa.string()),
        ("turn", pa.int64()),
        ("has_image", pa.bool_()),
        ("needs_tools", pa.bool_()),
        ("context_tokens", pa.int64()),
        ("allow", pa.list_(pa.string())),
        ("deny", pa.list_(pa.string())),
        ("dimensions", pa.list_(pa.string())),
        ("requirements", _NUMBERS),
        ("distance", pa.float64()),
        ("candidates", pa.list_(pa.string())),
        ("shortfalls", _NUMBERS),
        ("predicted_success", _NUMBERS),
        ("predicted_cost_usd", _NUMBERS),
        ("valued_by", pa.string()),
        ("chosen", pa.string()),
        ("served", pa.string()),
        ("cause", pa.string()),
        ("attempts", pa.list_(pa.string())),
        ("vetoed", pa.string()),
        ("propensity", pa.float64()),
        ("propensities", _NUMBERS),
        ("keep_probability", pa.float64()),
        ("status", pa.string()),
        ("input_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("cached_tokens", pa.int64()),
        ("cost_usd", pa.float64()),
        ("usage", pa.string()),
        ("about_usd", pa.float64()),
        ("upstream_status", pa.int64()),
        ("refusal", pa.string()),
        ("latency_ms", pa.float64()),
        ("decide_ms", pa.float64()),
        ("text", pa.string()),
        ("text_sha256", pa.string()),
        ("context", pa.string()),
        ("quality", pa.float64()),
        ("source", pa.string()),
        ("comment", pa.string()),
        ("author", pa.string()),
        ("caller", pa.string()),
        ("harness_tokens", pa.int64()),
        ("stalled", pa.int64()),
        ("needs", pa.list_(pa.string())),
        ("require", pa.list_(pa.string())),
        ("team", pa.string()),
        ("lost", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
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
            request itself is wrong; refused where no model may serve it (`chosen` is '' then).
        usage: How tokens and cost are known: counted by the upstream, estimated (an answer
            that broke off, or whose client left), or unknown (both are empty then); '' without
            an answer.
        about_usd: About what the request cost where the upstream did not count its tokens.
        upstream_status: The HTTP status that the last upstream said.
        refusal: Why the request was refused.
        team: Who pays, '' for nobody in particular.
        caller: Who asked, '' where nobody has to say who they are.
        text, context: The message and what came before it; only where the operator opted in.
        predictor: Fingerprint of the bundle that scored.
        arm: `canary` or `main` while a canary runs, else ''.
        has_image, needs_tools, context_tokens, allow, deny, needs, require: What the hard gates
            looked at.
    """

    decision_id: str
    at: datetime
    catalog: str
    catalog_digest: str
    revision: str
    policy_digest: str
    rule: str
    knob: float
    conversation_id: str | None
    turn: int
    dimensions: tuple[str, ...]
    requirements: tuple[float, ...] | None
    candidates: tuple[str, ...]
    shortfalls: tuple[float, ...] | None
    predicted_success: tuple[float, ...] | None
    predicted_cost_usd: tuple[float, ...] | None
    chosen: str
    cause: str
    served: str
    attempts: tuple[str, ...]
    propensity: float | None
    propensities: tuple[float, ...] | None
    keep_probability: float
    status: str
    text_sha256: str
    text: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    decide_ms: float | None = None
    distance: float | None = None
    context: str | None = None
    predictor: str = ""
    valued_by: str | None = None
    arm: str = ""
    has_image: bool = False
    needs_tools: bool = False
    context_tokens: int = 0
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    usage: str = ""
    about_usd: float | None = None
    upstream_status: int | None = None
    refusal: str | None = None
    caller: str = ""
    vetoed: str = ""
    harness_tokens: int = 0
    stalled: int = 0
    needs: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    team: str = ""
    kind: Kind = field(default=Kind.DECISION, init=False)


@dataclass(frozen=True, slots=True)
class OutcomeRecord:
    """Feedback on one decision: quality in [0, 1], who or what says so, and a comment.

    Attributes:
        author: Whose token sent it, '' where nobody has to say who they are.
    """

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


_NAMES: Final = {
    kind: tuple(one.name for one in fields(kind))
    for kind in (DecisionRecord, OutcomeRecord, GapRecord)
}
