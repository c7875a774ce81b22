"""What a run will cost before it begins: never more than this, and about this once answers came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hydra_core.labeling.calls import planned
from hydra_core.labeling.config import LabelConfig
from hydra_core.labeling.ledger import Record
from hydra_core.labeling.messages import Message
from hydra_core.labeling.prompts import tokens_about

__all__ = ["Estimate", "estimate"]

_ENOUGH = 20


@dataclass(frozen=True, slots=True)
class Estimate:
    """Calls still to make by stage, and their cost.

    Attributes:
        most_usd: Upper bound: every answer as long as it may be.
        about_usd: From the mean cost of the calls so far; None before twenty of each stage.
    """

    calls: dict[str, int]
    most_usd: float
    about_usd: float | None


def estimate(config: LabelConfig, messages: Sequence[Message], record: Record) -> Estimate:
    """The calls a run would still make and what they can cost."""
    left: Counter[str] = Counter()
    most = 0.0
    for message in messages:
        if message.id not in record.aside:
            for call in planned(config, message):
                if call not in record.answered:
                    left[call.stage] += 1
                    most += _most_usd(config, message, call.stage)
    made = Counter(call.stage for call in record.answered)
    means = {s: record.spent_usd[s] / made[s] for s in left if made[s] >= _ENOUGH}
    about = sum(left[s] * means[s] for s in left) if len(means) == len(left) else None
    return Estimate(dict(left), most, about)


def _most_usd(config: LabelConfig, message: Message, stage: str) -> float:
    server = config.servers[stage]
    inward = tokens_about(message.text) + sum(tokens_about(text) for _, text in message.history)
    if stage not in ("cheap", "strong"):
        inward += tokens_about(config.rubric) + tokens_about(str(config.verdict_schema))
        inward += sum(config.servers[arm].max_tokens for arm in ("cheap", "strong"))
    return server.cost_usd(inward, server.max_tokens)
