"""Reads labelled and unlabelled messages and splits them without leaks.

Near-duplicates, texts with one code signature (a benchmark task in several languages) and wordings
of one parallel task never straddle splits.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from hydra_core.base.errors import HydraError
from hydra_core.routing.conversations.context import LastTurn, last_turn
from hydra_core.routing.conversations.messages import read_messages as conversation_of

_PRIME = np.uint64((1 << 61) - 1)
_SHINGLE, _HEAD = 8, 1000
_BANDS, _ROWS = 12, 4


def near_duplicates(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of texts whose estimated Jaccard similarity is about .65 or more.

    Character shingles of the letters and digits of their first 1,000 characters are compared.
    """
    rng = np.random.default_rng(0)
    a = rng.integers(1, 1 << 31, _BANDS * _ROWS, dtype=np.uint64)
    b = rng.integers(0, 1 << 31, _BANDS * _ROWS, dtype=np.uint64)
    first: dict[tuple[int, bytes], int] = {}
    signatures = [_signature(text[:_HEAD], a, b) for text in texts]
    pairs: dict[tuple[int, int], None] = {}
    for i, signature in enumerate(signatures):
        for band in range(_BANDS):
            key = (band, signature[band * _ROWS : (band + 1) * _ROWS].tobytes())
            j = first.setdefault(key, i)
            if j != i and np.mean(signatures[i] == signatures[j]) >= 0.65:
                pairs[j, i] = None
    return list(pairs)


def _signature(text: str, a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.uint64]:
    plain = re.sub(r"[\W_]+", " ", text.lower()).strip()
    shingles = {plain[i : i + _SHINGLE] for i in range(max(1, len(plain) - _SHINGLE + 1))}
    hashes = np.array([crc32(s.encode("utf-8", "replace")) for s in shingles], np.uint64)
    return ((hashes[:, None] * a + b) % _PRIME).min(0)


#: Models by tier. The reasoning models lack some benchmarks; where they have none, `STRONG` stands
#: alone.
CHEAP = ("llama-3-8b-instruct", "gpt-3.5-turbo-0125", "claude-3-haiku-20240307", "gemini-1.5-flash")
STRONG = (
    "claude-3-5-sonnet-20240620", "gpt-4o-2024-05-13", "gpt-4o-2024-08-06",
    "claude-3-opus-20240229",
)  # fmt: skip
REASONING = ("o1-mini-2024-09-12", "o1-preview-2024-09-12")

#: What a benchmark asks for, as shares of the gap by dimension.
ASKS: Mapping[str, Mapping[str, float]] = {
    "crux": {"reasoning": 1.0, "code_generation": 0.5},
    "gsm": {"reasoning": 1.0},
    "math-l5": {"reasoning": 1.0},
    "mmlu-redux": {"reasoning": 1.0},
    "zebra-grid": {"reasoning": 1.0},
    "bfcl": {"reasoning": 0.3, "tool_use": 1.0},
}

#: The top of the label scale: a gap of 4 over 5, as the judges give it.
TOP = 0.8


def files(folder: Path) -> list[Path]:
    """The two files of the folder that are read."""
    return [folder / "queries.jsonl.gz", folder / "outcomes.parquet"]


def is_kept_apart(text: str) -> bool:
    """Whether a query belongs to the third that nothing is learned from."""
    return int(hashlib.sha256(f"outer {text[:200]}".encode()).hexdigest(), 16) % 3 == 0


def gaps(quality: pd.DataFrame) -> pd.Series:
    """(n, models) quality by query -> (n,) gap in [0, 1]: max(0, strong - cheap)."""
    cheap = quality[list(CHEAP)].mean(axis=1)
    strong = quality[list(STRONG)].mean(axis=1)
    best = quality.reindex(columns=list(REASONING)).mean(axis=1).fillna(strong)
    return strong.combine(best, max).sub(cheap).clip(lower=0.0)


def read_outcomes(folder: Path, dimensions: Sequence[str]) -> list[dict[str, object]]:
    """Queries that are not kept apart, one object each with id, text, lang, source and labels."""
    queries, outcomes = files(folder)
    lines = gzip.decompress(queries.read_bytes()).decode("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    table = pd.read_parquet(outcomes, columns=["query_id", "model", "quality"])
    gap = gaps(table.pivot(index="query_id", columns="model", values="quality"))
    out: list[dict[str, object]] = []
    for row in rows:
        if is_kept_apart(row["text"]):
            continue
        asked, top = ASKS[row["benchmark"]], TOP * float(gap[row["query_id"]])
        out.append({
            "id": row["query_id"], "text": row["text"], "lang": row["language"],
            "source": row["benchmark"],
            **{name: round(top * asked.get(name, 0.0), 3) for name in dimensions},
        })  # fmt: skip
    return out


Origin = Literal[
    "corpus", "parallel", "extra", "held", "ours", "written", "outcomes", "fresh", "unlabelled"
]
Part = Literal["train", "validation", "test"]
_SIGNATURE = re.compile(r"(?:\bdef|\bfunction|\bfunc|\bfn|\bfun|\bsub)\s+(\w{5,})\s*\(")


@dataclass(frozen=True, slots=True)
class Message:
    """One user message; `labels` is (K,) in [0, 1] or None without labels.

    `turn` and `context` are of the conversation that it ends, where a row had `messages`.
    """

    id: str
    text: str
    lang: str
    origin: Origin
    source: str
    task: str | None = None
    labels: tuple[float, ...] | None = None
    turn: int = 1
    context: str = ""

    @property
    def asked(self) -> LastTurn:
        """What the model sees of it."""
        return LastTurn(self.text, self.turn, self.context)


@dataclass(frozen=True, slots=True)
class DataPaths:
    """Where the data lie.

    Files named in `extra` are parallel tasks of our own, `held` are more of them that are never
    trained on; `judged` has labels of our own for messages of `unlabelled`. `written` are messages
    that we wrote and labelled, `fresh` those of them that are never trained on. `outcomes` is a
    folder of replayed queries whose labels are what models achieved on them.
    """

    corpus: Path
    labels: Path
    parallel: Path
    unlabelled: Path | None = None
    extra: tuple[Path, ...] = ()
    judged: Path | None = None
    held: Path | None = None
    written: tuple[Path, ...] = ()
    fresh: Path | None = None
    outcomes: Path | None = None

    @staticmethod
    def under(root: Path, own: Path | None = None) -> DataPaths:
        """The usual layout: `corpus/`, `parallel/` and `replay/` under `root`, our files in `own`.

        Without `own` only what lies under `root` and its labels are read.
        """
        corpus, replay = root / "corpus", root / "replay" / "mixed-2024"
        shared = (
            corpus / "queries.jsonl.gz", corpus / "labels.jsonl.gz",
            root / "parallel" / "train.jsonl", corpus / "unlabelled.jsonl.gz",
        )  # fmt: skip
        if own is None:
            return DataPaths(*shared)
        return DataPaths(
            *shared, tuple(sorted(own.glob("tasks_*"))), own / "judged.jsonl.gz",
            own / "held_tasks.jsonl.gz", tuple(sorted(own.glob("written_*"))),
            own / "fresh.jsonl.gz", replay if replay.is_dir() else None,
        )  # fmt: skip

    def digests(self) -> dict[str, str]:
        """SHA-256 of every file by name, for the record of a run."""
        paths = [self.corpus, self.labels, self.parallel, *self.extra, *self.written]
        single = (self.unlabelled, self.judged, self.held, self.fresh)
        paths += [path for path in single if path is not None]
        paths += files(self.outcomes) if self.outcomes is not None else []
        return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


@dataclass(frozen=True, slots=True)
class Splits:
    """Labelled messages by part, messages without labels, our held-out tasks and messages."""

    train: tuple[Message, ...]
    validation: tuple[Message, ...]
    test: tuple[Message, ...]
    unlabelled: tuple[Message, ...] = field(default=())
    tasks: tuple[Message, ...] = field(default=())
    fresh: tuple[Message, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """How much is held out: per language of the corpus, and parallel tasks."""

    seed: int = 42
    test_per_language: int = 44
    validation_per_language: int = 30
    most: float = 0.2
    test_tasks: int = 8
    validation_tasks: int = 8


def read_messages(
    paths: DataPaths, dimensions: Sequence[str], *, conversation: int = 0
) -> list[Message]:
    """Every message of every file, labelled ones first.

    Args:
        conversation: Form of the context that the model reads; 0 leaves contexts out.
    """
    found = _every(paths, dimensions)
    return found if conversation else [replace(message, context="") for message in found]


def _every(paths: DataPaths, dimensions: Sequence[str]) -> list[Message]:
    judged = {str(r["id"]): _labels(r, dimensions, paths.labels) for r in read_lines(paths.labels)}
    out = [
        _message(r, "corpus", labels=judged.get(str(r["id"])))
        for r in read_lines(paths.corpus)
        if str(r["id"]) in judged
    ]
    tasks: list[tuple[Path, Origin]] = [(paths.parallel, "parallel")]
    tasks += [(path, "extra") for path in paths.extra]
    tasks += [(paths.held, "held")] if paths.held is not None else []
    tasks += [(path, "written") for path in paths.written]
    tasks += [(paths.fresh, "fresh")] if paths.fresh is not None else []
    for path, origin in tasks:
        out += [_message(r, origin, labels=_labels(r, dimensions, path)) for r in read_lines(path)]
    if paths.outcomes is not None:
        out += [
            _message(r, "outcomes", labels=_labels(r, dimensions, paths.outcomes))
            for r in read_outcomes(paths.outcomes, dimensions)
        ]
    if paths.unlabelled is not None:
        out += _free(paths.unlabelled, paths.judged, dimensions)
    return out


def _free(path: Path, judged: Path | None, dimensions: Sequence[str]) -> list[Message]:
    """Messages without labels, or with ours where we judged them."""
    rows = read_lines(judged) if judged is not None else []
    ours = {str(r["id"]): _labels(r, dimensions, judged) for r in rows if judged is not None}
    return [
        _message(r, "ours" if str(r["id"]) in ours else "unlabelled", ours.get(str(r["id"])))
        for r in read_lines(path)
    ]


def _labels(row: Mapping[str, object], dimensions: Sequence[str], path: Path) -> tuple[float, ...]:
    try:
        values = tuple(float(str(row[name])) for name in dimensions)
    except (KeyError, ValueError) as error:
        raise DatasetError(
            f"{path}: {row.get('id')}: label {error} missing or no number"
        ) from error
    if not all(0.0 <= value <= 1.0 for value in values):
        raise DatasetError(f"{path}: {row.get('id')}: labels must lie in [0, 1], got {values}")
    return values


def _message(
    row: Mapping[str, object], origin: Origin, labels: tuple[float, ...] | None = None
) -> Message:
    """A row has the message as `text`, or the conversation that it ends as `messages`."""
    given = row.get("messages")
    last = LastTurn(str(row["text"])) if given is None else last_turn(conversation_of(given))
    task = str(row["task"]) if "task" in row else None
    lang = str(row["lang"])
    ident = str(row.get("id", f"{task}-{lang}"))
    return Message(
        ident, last.text, lang, origin, str(row.get("source", origin)), task, labels,
        last.turn, last.context,
    )  # fmt: skip


def group_of(messages: Sequence[Message]) -> NDArray[np.int64]:
    """(n,) group of every message, the number of its first one; a group must stay together."""
    keyed: dict[str, int] = {}
    pairs = near_duplicates([m.text for m in messages])
    for i, message in enumerate(messages):
        pairs += [(keyed.setdefault(key, i), i) for key in _keys(message)]
    ends = np.array(pairs, np.int64).reshape(-1, 2).T
    graph = sparse.coo_array((np.ones(len(pairs)), tuple(ends)), shape=(len(messages),) * 2)
    _, first, group = np.unique(
        connected_components(graph, directed=False)[1], return_index=True, return_inverse=True
    )
    return first[group].astype(np.int64)


def _keys(message: Message) -> list[str]:
    keys = [f"task {message.task}"] if message.task else []
    # A stub's function name is its benchmark task, whatever the language around it.
    if message.source in {"humaneval-xl", "mhumaneval"}:
        keys += [f"def {m.lower()}" for m in _SIGNATURE.findall(message.text)[:1]]
    return keys


def split(messages: Sequence[Message], plan: SplitPlan = SplitPlan()) -> Splits:  # noqa: B008
    """Grouped splits, stratified by language, the same for the same seed.

    Validation and test come from the corpus and its parallel tasks alone; any other message that
    touches one of them, or a task or message held out by its file, is dropped.
    """
    labelled = [m for m in messages if m.origin in ("corpus", "parallel")]
    held = tuple(m for m in messages if m.origin == "held")
    fresh = tuple(m for m in messages if m.origin == "fresh")
    free = [m for m in messages if m.origin not in ("corpus", "parallel", "held", "fresh")]
    members: dict[int, list[int]] = defaultdict(list)
    for i, group in enumerate(group_of(labelled)):
        members[int(group)].append(i)
    # A hash, not a shuffle: messages added later must not move what is held out.
    order = sorted(members, key=lambda group: _draw(labelled[group].id, plan.seed))
    room = _rooms(labelled, plan)
    parts: dict[Part, list[Message]] = {"train": [], "validation": [], "test": []}
    for group in order:
        texts = [labelled[i] for i in members[group]]
        parts[_place(texts, room)] += texts
    clear = _clear_of(free, [*parts["validation"], *parts["test"], *held, *fresh])
    return Splits(
        (*parts["train"], *(m for m in clear if m.labels is not None)),
        tuple(parts["validation"]), tuple(parts["test"]),
        tuple(m for m in clear if m.labels is None),
        held, fresh,
    )  # fmt: skip


def _draw(ident: str, seed: int) -> str:
    return hashlib.sha256(f"{seed} {ident}".encode()).hexdigest()


def _clear_of(free: Sequence[Message], held: Sequence[Message]) -> list[Message]:
    """Those of `free` that share no key and no near-duplicate with `held`."""
    keys = {key for message in held for key in _keys(message)}
    near = near_duplicates([m.text for m in [*held, *free]])
    touched = {b - len(held) for a, b in near if a < len(held) <= b}
    return [m for i, m in enumerate(free) if i not in touched and keys.isdisjoint(_keys(m))]


def _rooms(messages: Sequence[Message], plan: SplitPlan) -> dict[tuple[str, str], int]:
    """Places left by (part, language of the corpus) and (part, "tasks")."""
    total: dict[str, int] = defaultdict(int)
    for message in messages:
        if message.origin == "corpus":
            total[message.lang] += 1
    room = {("test", "tasks"): plan.test_tasks, ("validation", "tasks"): plan.validation_tasks}
    for lang, count in total.items():
        room["test", lang] = min(plan.test_per_language, int(count * plan.most))
        room["validation", lang] = min(plan.validation_per_language, int(count * plan.most / 2))
    return room


def _place(group: Sequence[Message], room: dict[tuple[str, str], int]) -> Part:
    origins = {m.origin for m in group}
    if len(group) > 16:
        return "train"
    need: dict[str, int] = defaultdict(int)
    if "parallel" in origins:
        need["tasks"] = 1
    for message in group:
        if message.origin == "corpus":
            need[message.lang] += 1
    parts: tuple[Part, Part] = ("test", "validation")
    for part in parts:
        if all(room.get((part, key), 0) >= count for key, count in need.items()):
            for key, count in need.items():
                room[part, key] -= count
            return part
    return "train"


class DatasetError(HydraError):
    """A data file is missing or a line of it does not hold what it must."""


def read_lines(path: Path) -> list[dict[str, object]]:
    """The objects of a JSONL file, plain or gzipped; DatasetError where it is none."""
    if not path.is_file():
        raise DatasetError(f"{path}: no such file")
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DatasetError(f"{path}: line {number}: not JSON ({error})") from error
        if not isinstance(row, dict):
            raise DatasetError(f"{path}: line {number}: expected an object, got {row!r:.60}")
        rows.append(row)
    return rows
