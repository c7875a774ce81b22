"""Messages for a collection out of a decision log: a sample over requirement and model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from hydra_core.base.errors import LabelError, Problem
from hydra_core.base.whole_file import whole_file
from hydra_core.decision_log.reading import read_log
from hydra_core.evalsets.suspects import normalised

#: Of a run: its messages, drawn once, so that a log that grows changes nothing.
MESSAGES: Final = "messages.jsonl"
_ROLES: Final = {"U": "user", "A": "assistant", "R": "user"}


def sample_log(
    log: Path,
    out: Path,
    count: int,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    arm: str | None = None,
) -> int:
    """Write a sample of a log's messages as JSONL, one a different text; how many.

    They are taken evenly along the log ordered by serving model and mean requirement, so that
    every model and every level of requirement has its share. A later turn of a conversation comes
    with what came before it, as far as the log kept it.

    Args:
        count: How many at most.
        since, until, arm: Which part of the log.

    Raises:
        LabelError: No message is in that part.
        LogError: The log cannot be read.
    """
    rows = read_log(log, since=since, until=until, arm=arm).decisions
    text = rows["text"].map(lambda one: one if isinstance(one, str) else "")
    rows = rows.assign(text=text)[text.str.strip() != ""]
    if rows.empty:
        remedy = "start serve with --log-text, or choose another time"
        raise LabelError(str(log), [Problem("", "no message is in this part of the log", remedy)])
    rows = rows[~rows["text"].map(normalised).duplicated()]
    drawn = rows.iloc[_evenly(rows, count)]
    with whole_file(out) as target:
        lines = (json.dumps(_row(row), ensure_ascii=False) for row in drawn.to_dict("records"))
        target.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(drawn)


def _evenly(rows: pd.DataFrame, count: int) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Places of `count` rows, evenly along the rows by model and mean requirement."""
    need = [float(np.mean(one)) if one is not None else -1.0 for one in rows["requirements"]]
    served = rows["served"].where(rows["served"].fillna("") != "", rows["chosen"]).astype(str)
    ties = [hashlib.sha256(str(one).encode()).hexdigest() for one in rows["decision_id"]]
    order = np.lexsort((np.array(ties), np.array(need), served.to_numpy(dtype=np.str_)))
    count = min(count, len(rows))
    return np.sort(order[((np.arange(count) + 0.5) * len(rows) / count).astype(np.intp)])


def _row(row: Mapping[Hashable, Any]) -> dict[str, Any]:
    context = row["context"] if isinstance(row["context"], str) else ""
    found: dict[str, Any] = {"id": str(row["decision_id"])}
    found |= {"messages": turns(context, row["text"])} if context else {"text": row["text"]}
    if isinstance(row["conversation_id"], str):
        found["conversation_id"] = row["conversation_id"]
    return found


def turns(context: str, text: str) -> Sequence[dict[str, str]]:
    """The messages to send: what the log kept of the earlier ones, then the last."""
    before = [
        {"role": _ROLES[line[0]], "content": line[3:]}
        for line in context.splitlines()
        if line[:1] in _ROLES and line[1:3] == ": "
    ]
    return [*before, {"role": "user", "content": text}]
