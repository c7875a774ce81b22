"""What a run's labels are worth: stability, position bias, agreement of judges, distribution."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import usd
from hydra_core.base.types import FloatArray
from hydra_core.base.whole_file import whole_file
from hydra_core.lab.audit.tables import alpha_interval
from hydra_core.lab.labeling.calls import ORDERS, LabelPlan
from hydra_core.lab.labeling.config import LabelConfig
from hydra_core.lab.labeling.ledger import Call, Record
from hydra_core.lab.labeling.messages import Message
from hydra_core.replay.significance import mean_interval

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
    needed = LabelPlan(config).planned(message)
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
) -> None:
    """Write ``labels.jsonl`` and ``set_aside.jsonl``."""
    _replace(folder / "labels.jsonl", label_rows(config, messages, record))
    aside = [{"id": m.id, "reason": record.aside[m.id]} for m in messages if m.id in record.aside]
    _replace(folder / "set_aside.jsonl", aside)


def _replace(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with whole_file(path) as fresh:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        fresh.write_text("".join(lines), encoding="utf-8")


_SEED = 17
_LEVELS = (0.0, 0.2, 0.4, 0.6, 0.8)


def quality(config: LabelConfig, messages: Sequence[Message], record: Record) -> dict[str, Any]:
    """Figures of a run, plain values with 95 % intervals where there are any.

    Keys: messages, labelled, synthetic, waiting, set_aside (reason -> count), tiers, dimensions
    (distribution), position, stability (A/A), judges, spent_usd, recipe.
    """
    judged = [m for m in messages if m.tier in config.label_tiers]
    labels = [label_of(config, message, record) for message in judged]
    known = [label for label in labels if label is not None]
    aside = Counter(record.aside[m.id] for m in judged if m.id in record.aside)
    return {
        "messages": len(messages),
        "labelled": len(known),
        "synthetic": len(messages) - len(judged),
        "waiting": len(judged) - len(known) - sum(aside.values()),
        "set_aside": dict(aside.most_common()),
        "tiers": {str(t): sum(m.tier == t for m in messages) for t in (1, 2, 3)},
        "dimensions": _distribution(config, np.array(known).reshape(-1, len(config.dimensions))),
        "position": _position(config, judged, record),
        "stability": _agreement(config, judged, record, "judge", 1),
        "judges": _agreement(config, judged, record, "second_judge", 0),
        "spent_usd": {stage: round(usd, 6) for stage, usd in sorted(record.spent_usd.items())},
        "recipe": config.recipe,
    }


def _distribution(config: LabelConfig, labels: FloatArray) -> dict[str, Any]:
    if not len(labels):
        return {}
    nearest = np.abs(labels[:, :, None] - np.array(_LEVELS)).argmin(axis=2)
    return {
        name: {
            "mean": float(labels[:, k].mean()),
            "sd": float(labels[:, k].std()),
            "zero": float((labels[:, k] == 0.0).mean()),
            "near": {f"{v:g}": int((nearest[:, k] == i).sum()) for i, v in enumerate(_LEVELS)},
        }
        for k, name in enumerate(config.dimensions)
    }


def _position(config: LabelConfig, messages: Sequence[Message], record: Record) -> dict[str, Any]:
    """What standing first is worth, in points of the 1 to 5 scale, and changes of the winner."""
    first, turned = [], []
    for message in messages:
        found = [record.answered.get(Call(message.id, "judge", order)) for order in ORDERS]
        if None in found:
            continue
        one, other = (verdict for verdict in found if verdict is not None)
        cheap = np.subtract(one["cheap"], other["cheap"])
        strong = np.subtract(other["strong"], one["strong"])
        first.append((cheap + strong) / 2.0)
        turned.append(one["winner"] != other["winner"])
    if not first:
        return {}
    bias = np.array(first)
    named = {n: _shown(mean_interval(bias[:, k])) for k, n in enumerate(config.dimensions)}
    return {"n": len(first), "first_minus_second": named, "winner_turned": float(np.mean(turned))}


def _agreement(
    config: LabelConfig,
    messages: Sequence[Message],
    record: Record,
    stage: str,
    generation: int,
) -> dict[str, Any]:
    """Labels of another judging beside the run's own: alpha and mean absolute difference."""
    pairs = []
    for message in messages:
        other = mean_scores(record, message.id, stage, generation)
        own = mean_scores(record, message.id)
        if own is not None and other is not None:
            pairs.append([requirement(*own), requirement(*other)])
    if not pairs:
        return {}
    both = np.array(pairs).transpose(1, 0, 2)
    rng = np.random.default_rng(_SEED)
    rows: dict[str, Any] = {"n": len(pairs)}
    for k, name in enumerate(config.dimensions):
        interval = alpha_interval(both[:, :, k], rng=rng)
        gap = float(np.abs(both[0, :, k] - both[1, :, k]).mean())
        rows[name] = {"alpha": _shown(interval), "mean_absolute_difference": gap}
    return rows


def _shown(interval: Interval) -> dict[str, float]:
    return {"value": interval.value, "lo": interval.lo, "hi": interval.hi}


def quality_text(found: Mapping[str, Any]) -> str:
    """The same as a Markdown page."""
    lines = ["# Quality of a labelling run", ""]
    lines += [f"{found['labelled']} of {found['messages']} messages labelled by the judge, "
              f"{found['synthetic']} with the default of their tier, "
              f"{sum(found['set_aside'].values())} set aside, {found['waiting']} waiting. "
              f"Spent {usd(sum(found['spent_usd'].values()))}.", ""]  # fmt: skip
    for title, key, part in _PARTS:
        if found[key]:
            lines += [f"## {title}", "", *part(found[key]), ""]
    return "\n".join(lines)


def _distribution_rows(found: Mapping[str, Any]) -> list[str]:
    head = ["dimension", "mean", "sd", "zero", *(f"near {v:g}" for v in _LEVELS)]
    rows = [
        [n, f"{d['mean']:.3f}", f"{d['sd']:.3f}", f"{d['zero']:.0%}", *map(str, d["near"].values())]
        for n, d in found.items()
    ]
    return _table(head, rows)


def _position_rows(found: Mapping[str, Any]) -> list[str]:
    rows = [[name, _signed(one)] for name, one in found["first_minus_second"].items()]
    turned = f"The winner changes with the order in {found['winner_turned']:.1%} of {found['n']}."
    return [*_table(["dimension", "first minus second, points of 5"], rows), "", turned]


def _agreement_rows(found: Mapping[str, Any]) -> list[str]:
    rows = [
        [name, _signed(one["alpha"]), f"{one['mean_absolute_difference']:.3f}"]
        for name, one in found.items()
        if name != "n"
    ]
    head = ["dimension", "alpha (interval)", "mean absolute difference"]
    return [*_table(head, rows), "", f"{found['n']} messages judged twice."]


def _aside_rows(found: Mapping[str, int]) -> list[str]:
    return _table(["reason", "messages"], [[why, str(count)] for why, count in found.items()])


def _signed(one: Mapping[str, float]) -> str:
    if not np.isfinite(one["value"]):
        return "not defined (all equal)"
    if not np.isfinite(one["lo"]):
        return f"{one['value']:.3f} (too few for an interval)"
    return f"{one['value']:.3f} [{one['lo']:.3f}, {one['hi']:.3f}]"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


_PARTS: tuple[tuple[str, str, Callable[[Any], list[str]]], ...] = (
    ("Labels by dimension", "dimensions", _distribution_rows),
    ("Position bias of the judge", "position", _position_rows),
    ("The judge against itself (A/A)", "stability", _agreement_rows),
    ("The judge against the second judge", "judges", _agreement_rows),
    ("Set aside", "set_aside", _aside_rows),
)
