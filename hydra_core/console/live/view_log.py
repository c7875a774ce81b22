"""What a decision log can be used for as an eval set, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True, slots=True)
class LogUse:
    """How many requests of a log have what an eval set needs.

    Attributes:
        models: Serving model -> requests that are usable.
    """

    decisions: int
    texts: int
    rated: int
    usable: int
    models: dict[str, int]


def use_of(rows: pd.DataFrame) -> LogUse:
    """Count a log's rows by what they hold."""
    text = rows["text"].map(lambda one: isinstance(one, str) and bool(one.strip())).astype(bool)
    rated = rows["quality"].notna()
    served = rows["served"].fillna("").astype(str)
    usable = text & rated & (served != "")
    counts = {str(model): int(n) for model, n in served[usable].value_counts().items()}
    return LogUse(len(rows), int(text.sum()), int(rated.sum()), int(usable.sum()), counts)


def uses(found: LogUse) -> list[str]:
    """What the set can and cannot be used for, one sentence each."""
    if found.texts == 0:
        return [
            "No message is in this log, so no eval set can be made of it. Start `serve` with "
            "`--log-text`: then messages are kept."
        ]
    if found.rated == 0:
        return [
            "No request has feedback, so no outcome is known. Send it to `/v1/outcomes` with the "
            "decision id."
        ]
    if found.usable == 0:
        return ["No request has both its message and feedback."]
    models = ", ".join(f"{name} {n:,}" for name, n in found.models.items())
    return [
        f"Each request has the outcome of one model, the one that served it: {models}.",
        "Good for: what was served and paid, the mix of requirements, drift, and how often another "
        "policy would have chosen the same model.",
        "Not good for: comparing models. For that, have every model answer a sample of the "
        "messages: `hydra-router collect --from-log` (250 to 500 are enough to begin with).",
    ]
