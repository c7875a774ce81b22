"""The append-only record of a run: what was asked, answered, refused and set aside.

A call is written down before it is sent, so that after a kill -9 one without an answer is known to
be in doubt: it may have been paid. A torn last line was never acted upon, and is cut off. Every
line ends with a digest of itself and of the line before: a changed ledger is refused. Only lines
taken off the end look like a crash.
"""

import asyncio
import fcntl
import hashlib
import json
import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from hydra_core.base.errors import LabelError

SCHEMA: Final = "hydra.ledger/v2"
#: How the names of files of requests for a batch API begin; they lie beside the ledger.
BATCH: Final = "batch-"
_CHAIN: Final = re.compile(rb',"chain":"([0-9a-f]{32})"\}$')
_EVENTS: Final = ("asked", "answered", "refused", "malformed", "aside", "again")


_UNCHAINED: Final = "hydra.ledger/v1"
_RESTORE: Final = "bring the file back from a backup; it is never repaired by guessing"


def _chained(before: bytes, line: bytes) -> bytes:
    return hashlib.sha256(before + b"\n" + line).hexdigest()[:32].encode()


class Call(NamedTuple):
    """One call: message id, stage (a server's role), order of the answers, generation."""

    message: str
    stage: str
    order: str = ""
    generation: int = 0

    def __str__(self) -> str:
        return "|".join((self.stage, self.order, str(self.generation), self.message))


class Used(NamedTuple):
    """What one answer took; tokens are None where the server did not state them.

    `seconds` are NaN where nobody measured them, as in a batch.
    """

    cost_usd: float
    tokens: tuple[int, int] | None
    cached: int
    seconds: float


def _used(entry: Mapping[str, Any]) -> Used:
    tokens = list(entry.get("tokens") or ())
    both = (int(tokens[0]), int(tokens[1])) if len(tokens) == 2 else None
    cached, seconds = int(entry.get("cached", 0)), float(entry.get("seconds") or math.nan)
    return Used(float(entry["cost_usd"]), both, cached, seconds)


@dataclass(slots=True)
class Record:
    """What the ledger says of one run so far.

    Attributes:
        answered: Content of each call that was answered well.
        used: (cost in USD, input, output and cached tokens, seconds) of each of these; None for
            tokens that the server did not state.
        attempts: Times a call was answered, well or malformed.
        unusable: Message id -> times that its calls were answered malformed, since it was last
            asked again.
        open: Calls asked and neither answered nor refused -> most they may have cost.
        aside: Messages set aside -> why.
        digests: Message id -> digest of its text when it was first asked.
        settings: Role of a server -> digest of the settings that it answered with; None under a
            role where a line does not say it.
        spent_usd: By stage, answered and malformed calls.
    """

    answered: dict[Call, Any] = field(default_factory=dict)
    used: dict[Call, Used] = field(default_factory=dict)
    attempts: dict[Call, int] = field(default_factory=lambda: defaultdict(int))
    unusable: dict[str, Counter[Call]] = field(default_factory=lambda: defaultdict(Counter))
    open: dict[Call, float] = field(default_factory=dict)
    aside: dict[str, str] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str | None] = field(default_factory=dict)
    spent_usd: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    doubtful_usd: float = 0.0

    def take(self, event: str, call: Call, more: Mapping[str, Any]) -> None:
        """Bring the record up to date with one line."""
        if event == "asked":
            self.open[call] = float(more["most_usd"])
            self.digests.setdefault(call.message, str(more["digest"]))
        elif event in ("answered", "malformed"):
            self.open.pop(call, None)
            self.attempts[call] += 1
            self.spent_usd[call.stage] += float(more["cost_usd"])
            role, digest = more.get("settings") or ("", None)
            self.settings[role] = digest
            if event == "answered":
                self.answered[call] = more["content"]
                self.used[call] = _used(more)
            else:
                self.unusable[call.message][call] += 1
        elif event == "refused":
            self.open.pop(call, None)
        elif event == "aside":
            self.aside[call.message] = str(more["reason"])
        else:
            self.aside.pop(call.message, None)
            self.unusable.pop(call.message, None)
            for old in [found for found in self.open if found.message == call.message]:
                self.doubtful_usd += self.open.pop(old)

    @property
    def committed_usd(self) -> float:
        """Spent, and what calls in doubt may have cost."""
        return sum(self.spent_usd.values()) + sum(self.open.values()) + self.doubtful_usd


class Ledger:
    """An open ledger file; one process at a time.

    Args:
        path: The file; made where it is missing.
        recipe: Digest of what decides a label; a file of another recipe is refused.
        settings: Role of a server -> digest of what decides its answers. With them a file of
            another recipe is good, too, where no server that answered has other settings now.

    Attributes:
        recipe: That of the run when it was begun.

    Raises:
        LabelError: Another process has it, it belongs to another recipe, or a line is damaged.
    """

    def __init__(self, path: Path, recipe: str, settings: Mapping[str, str] | None = None) -> None:
        self.path, self.record, self.recipe = path, Record(), recipe
        self.settings = settings or {}
        self._file = path.open("ab+")
        self._written = self._synced = 0
        self._chain = b""
        self._lock = asyncio.Lock()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._load(recipe)
        except BlockingIOError:
            self._file.close()
            raise LabelError.of(
                str(path), "another run is writing to this folder", "wait for it to end"
            ) from None
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.fsync(self._file.fileno())
        self._file.close()

    def _load(self, recipe: str) -> None:
        self._file.seek(0)
        raw = self._file.read()
        whole = raw.rfind(b"\n") + 1
        if whole != len(raw):
            self._file.truncate(whole)
        if not whole:
            self._write({"schema": SCHEMA, "recipe": recipe})
            return
        lines = _Lines(self.path, self.record)
        lines.take(raw[:whole])
        self._chain = lines.chain
        if lines.recipe == recipe:
            return
        if lines.count == 1 and not any(self.path.parent.glob(f"{BATCH}*.jsonl")):
            self._file.truncate(0)  # nothing was asked yet: begin anew
            self._chain = b""
            self._write({"schema": SCHEMA, "recipe": recipe})
            return
        self.recipe = lines.recipe
        known = self.record.settings
        others = [role for role, was in known.items() if was != self.settings.get(role, was)]
        if others or None in known.values() or not known:
            said = "was written with another rubric, schema, model or tier setting"
            if others:
                said = f"has answers of {', '.join(others)}, which had other settings then"
            remedy = "choose another --out, or restore the settings"
            raise LabelError.of(str(self.path), said, remedy, place="line 1")

    def _write(self, entry: Mapping[str, Any]) -> None:
        line = json.dumps(entry, separators=(",", ":")).encode("ascii")[:-1]
        self._chain = _chained(self._chain, line)
        self._file.write(line + b',"chain":"' + self._chain + b'"}\n')
        self._file.flush()
        self._written += 1

    def add(self, event: str, call: Call, **more: Any) -> None:  # noqa: ANN401 (JSON values)
        """Add one line: it survives the process, and after `settled` the machine."""
        self._write({"event": event, "call": list(call), **more})
        self.record.take(event, call, more)

    async def settled(self) -> None:
        """Wait until every line so far is on the disk; callers at one time share one write."""
        mine = self._written
        async with self._lock:
            if self._synced >= mine:
                return
            upto = self._written
            await asyncio.to_thread(os.fsync, self._file.fileno())
            self._synced = upto


class Tail:
    """A ledger read while another process may be writing it; nothing is ever written here.

    Attributes:
        record: What the whole lines say that were read so far. What the two models answered is
            left out: answers are most of the file, and only that there is one matters here.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.record = path, Record()
        self._lines = _Lines(path, self.record, answers=False)
        self._at = 0

    @property
    def recipe(self) -> str:
        """Digest of what decides a label; empty before the first line."""
        return self._lines.recipe

    def read(self) -> int:
        """Take in what was written since; bytes read in all.

        Raises:
            LabelError: A line is damaged.
            OSError: The file cannot be read.
        """
        with self.path.open("rb") as file:
            file.seek(self._at)
            raw = file.read()
        whole = raw.rfind(b"\n") + 1
        self._lines.take(raw[:whole])
        self._at += whole
        return self._at

    def is_written(self) -> bool:
        """Whether a process holds the ledger at this moment."""
        with self.path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            fcntl.flock(file, fcntl.LOCK_UN)
        return False


class _Lines:
    """Whole lines of a ledger -> its record, with the number of a line that is damaged."""

    def __init__(self, path: Path, record: Record, *, answers: bool = True) -> None:
        self.path, self.record, self.answers = path, record, answers
        self.recipe, self.count, self.chain = "", 0, b""

    def take(self, raw: bytes) -> None:
        for line in raw.splitlines():
            self.count += 1
            try:
                entry = json.loads(line)
                if self.count == 1 and entry.get("schema") == _UNCHAINED:
                    raise self._refused("was written by an earlier version, without digests",
                                        "choose another --out")  # fmt: skip
                self._follow(line)
                if self.count == 1:
                    self.recipe = self._recipe(entry)
                else:
                    self._event(entry)
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
                raise self._refused("is damaged") from error

    def _follow(self, line: bytes) -> None:
        """Go on with the chain, which a line that was changed or moved breaks."""
        found = _CHAIN.search(line)
        if found is None or found[1] != _chained(self.chain, line[: found.start()]):
            raise self._refused("was changed, or a line before it was taken out")
        self.chain = found[1]

    def _refused(self, what: str, remedy: str = _RESTORE) -> LabelError:
        return LabelError.of(str(self.path), what, remedy, place=f"line {self.count}")

    def _recipe(self, head: Mapping[str, Any]) -> str:
        if head["schema"] != SCHEMA:
            raise ValueError(head["schema"])
        return str(head["recipe"])

    def _event(self, entry: dict[str, Any]) -> None:
        event, call = entry.pop("event"), Call(*entry.pop("call"))
        del entry["chain"]
        if event not in _EVENTS:
            raise ValueError(event)
        if event == "answered" and not self.answers and not call.order:
            entry["content"] = ""
        self.record.take(event, call, entry)
