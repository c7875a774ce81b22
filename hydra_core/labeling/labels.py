"""From verdicts to requirement labels (Eq. 5), and the files a run leaves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hydra_core.labeling.calls import planned
from hydra_core.labeling.config import LabelConfig
from hydra_core.labeling.ledger import Call, Record
from hydra_core.labeling.messages import Message
from hydra_core.labeling.prompts import ORDERS
from hydra_core.types import FloatArray

__all__ = ["label_of", "label_rows", "mean_scores", "requirement", "write_outputs"]

_SCALE = 5.0


def requirement(cheap: FloatArray, strong: FloatArray) -> FloatArray:
    """(n, K) judge scores 1 to 5 of both answers -> (n, K) labels in [0, 0.8]. Eq. 5."""
    return np.maximum(0.0, strong - cheap) / _SCALE


def mean_scores(
    record: Record, message: str, stage: str = "judge", generation: int = 0
) -> tuple[FloatArray, FloatArray] | None:
    """(K,) scores of the cheap and the strong answer, mean of both orders; None if not both."""
    found = [record.answered.get(Call(message, stage, order, generation)) for order in ORDERS]
    if None in found:
        return None
    verdicts: list[Mapping[str, Any]] = [one for one in found if one is not None]
    cheap, strong = (
        np.asarray([one[arm] for one in verdicts], dtype=float).mean(axis=0)
        for arm in ("cheap", "strong")
    )
    return cheap, strong


def label_of(config: LabelConfig, message: Message, record: Record) -> tuple[float, ...] | None:
    """(K,) labels of a message; None while calls are missing or it was set aside."""
    if message.tier not in config.label_tiers:
        return (config.synthetic_default,) * len(config.dimensions)
    needed = planned(config, message)
    if message.id in record.aside or any(call not in record.answered for call in needed):
        return None
    scores = mean_scores(record, message.id)
    return None if scores is None else tuple(requirement(*scores).round(6).tolist())


def label_rows(
    config: LabelConfig, messages: Sequence[Message], record: Record
) -> list[dict[str, Any]]:
    """Labelled messages as `evaluate-predictor` and training read them, in the messages' order."""
    rows = []
    for message in messages:
        label = label_of(config, message, record)
        if label is not None:
            named = dict(zip(config.dimensions, label, strict=True))
            judged = message.tier in config.label_tiers
            source = "judge" if judged else "synthetic_default"
            rows.append(
                {"id": message.id, "text": message.text, "lang": message.lang, **named}
                | {"tier": message.tier, "label_source": source}
            )
    return rows


def write_outputs(
    folder: Path, config: LabelConfig, messages: Sequence[Message], record: Record
) -> int:
    """Write ``labels.jsonl`` and ``set_aside.jsonl``; how many messages have a label."""
    rows = label_rows(config, messages, record)
    _replace(folder / "labels.jsonl", rows)
    aside = [{"id": m.id, "reason": record.aside[m.id]} for m in messages if m.id in record.aside]
    _replace(folder / "set_aside.jsonl", aside)
    return len(rows)


def _replace(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """A JSONL file, whole or not at all."""
    fresh = path.with_suffix(".part")
    with fresh.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
