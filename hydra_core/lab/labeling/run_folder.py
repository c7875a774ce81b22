"""A run's folder from outside: its settings kept beside the ledger, and how far it is.

`run.json` holds what a look at the run needs: the settings and which messages there are, without
their texts. It holds names of environment variables, never a key.
"""

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from hydra_core.base.errors import LabelError
from hydra_core.base.list_price import ListPrice
from hydra_core.base.whole_file import whole_file
from hydra_core.lab.labeling.calls import LabelPlan, estimate
from hydra_core.lab.labeling.config import JsonMode, LabelConfig, Server
from hydra_core.lab.labeling.ledger import Record, Tail
from hydra_core.lab.labeling.messages import Message
from hydra_core.lab.labeling.quality import quality

LEDGER: Final = "ledger.jsonl"
_SETUP: Final = "run.json"
_SCHEMA: Final = "hydra.label-run/v1"


@dataclass(frozen=True, slots=True)
class Setup:
    """What a run was begun with.

    Attributes:
        messages: Without their texts.
        source, settings: The files it was begun with, as they were written on the command line.
        began: When it was last begun, UTC.
        done_before: Messages that were done or set aside then.
    """

    config: LabelConfig
    messages: tuple[Message, ...]
    source: str
    settings: str
    began: datetime
    done_before: int


@dataclass(frozen=True, slots=True)
class RunStatus:
    """How far a run is.

    Attributes:
        running: Whether a process is at it now.
        labelled: Messages whose verdicts are all there.
        waiting: Messages that still need a call.
        synthetic: Messages that get their tier's default and need none.
        calls: Calls still to make, by stage.
        about_usd: What those will cost, going by the mean so far; None before 20 of each.
        left_s: Seconds left at the pace since it was begun; None where it does not run.
    """

    running: bool
    labelled: int
    aside: int
    waiting: int
    synthetic: int
    calls: dict[str, int]
    spent_usd: dict[str, float]
    committed_usd: float
    budget_usd: float
    about_usd: float | None
    left_s: float | None


def list_runs(root: Path) -> tuple[Path, ...]:
    """Every folder below `root` that holds a ledger, by name."""
    return tuple(sorted(path.parent for path in root.glob(f"*/{LEDGER}")))


def keep_setup(
    folder: Path,
    config: LabelConfig,
    messages: Sequence[Message],
    record: Record,
    *,
    source: str,
    settings: str,
    now: datetime,
) -> None:
    """Write ``run.json``, whole or not at all; a run begun again replaces it."""
    found = {
        "schema": _SCHEMA,
        "source": source,
        "settings": settings,
        "began": now.isoformat(timespec="seconds"),
        "done_before": len(messages) - _left(config, messages, record),
        "config": asdict(config),
        "messages": [[one.id, one.lang, one.tier] for one in messages],
    }
    with whole_file(folder / _SETUP) as fresh:
        fresh.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")


def read_setup(folder: Path) -> Setup:
    """What a run was begun with; LabelError where ``run.json`` is missing or damaged."""
    path = folder / _SETUP
    remedy = "run the same command with --dry-run: it calls no model and writes the file"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["schema"] != _SCHEMA:
            raise ValueError(found["schema"])
        config = _config(found["config"])
        messages = tuple(Message(str(i), "", str(lang), (), int(t)) for i, lang, t in
                         found["messages"])  # fmt: skip
        began = datetime.fromisoformat(found["began"]).astimezone(UTC)
        return Setup(config, messages, str(found["source"]), str(found["settings"]), began,
                     int(found["done_before"]))  # fmt: skip
    except FileNotFoundError as error:
        raise LabelError.of(str(path), "is not there", remedy) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LabelError.of(str(path), "is damaged", remedy) from error


def _config(found: dict[str, Any]) -> LabelConfig:
    servers = {
        role: Server(
            **{
                **one,
                "price": ListPrice(**{**one["price"], "long_prompts": ()}),
                "json_mode": JsonMode(one["json_mode"]),
            }
        )
        for role, one in found["servers"].items()
    }
    lists = {key: tuple(found[key]) for key in ("dimensions", "label_tiers")}
    return LabelConfig(**{**found, **lists, "servers": servers})


def _left(config: LabelConfig, messages: Sequence[Message], record: Record) -> int:
    plan = LabelPlan(config)
    return sum(
        one.id not in record.aside
        and any(call not in record.answered for call in plan.planned(one))
        for one in messages
    )


class TrackedRun:
    """A run that is looked at, now and again; reads on where the last look ended.

    Safe to share between threads.

    Raises:
        LabelError: It has no ``run.json``, or that is damaged.
    """

    def __init__(
        self, folder: Path, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.folder, self._clock = folder, clock
        self._tail = Tail(folder / LEDGER)
        self._lock = threading.Lock()
        self._quality: tuple[tuple[int, str], dict[str, Any]] | None = None

    @property
    def setup(self) -> Setup:
        """What it was begun with; read anew, as it may have been begun again."""
        return read_setup(self.folder)

    def status(self) -> RunStatus:
        """How far it is.

        Raises:
            LabelError: Ledger or settings are damaged, or do not belong together.
            OSError: They cannot be read.
        """
        with self._lock:
            setup = self._brought_up()
            config, record = setup.config, self._tail.record
            judged = [one for one in setup.messages if one.tier in config.label_tiers]
            waiting = _left(config, judged, record)
            aside = sum(one.id in record.aside for one in judged)
            ahead = estimate(LabelPlan(config), judged, record)
            running = self._tail.is_written()
            done = len(setup.messages) - waiting - setup.done_before
            passed = (self._clock() - setup.began).total_seconds()
            return RunStatus(
                running=running,
                labelled=len(judged) - waiting - aside,
                aside=aside,
                waiting=waiting,
                synthetic=len(setup.messages) - len(judged),
                calls=ahead.calls,
                spent_usd=dict(record.spent_usd),
                committed_usd=record.committed_usd,
                budget_usd=config.budget_usd,
                about_usd=ahead.about_usd,
                left_s=waiting * passed / done if running and done > 0 else None,
            )

    def quality(self) -> dict[str, Any]:
        """The run's figures so far, as `hydra_core.lab.labeling.quality` gives them.

        Raises:
            LabelError: Ledger or settings are damaged, or do not belong together.
            OSError: They cannot be read.
        """
        with self._lock:
            setup = self._brought_up()
            key = (self._tail.read(), setup.config.recipe)
            if self._quality is None or self._quality[0] != key:
                found = quality(setup.config, setup.messages, self._tail.record)
                self._quality = (key, found)
            return self._quality[1]

    def aside(self) -> tuple[tuple[Message, str], ...]:
        """Messages set aside, with why, in the messages' order."""
        with self._lock:
            setup, record = self._brought_up(), self._tail.record
            return tuple((m, record.aside[m.id]) for m in setup.messages if m.id in record.aside)

    def _brought_up(self) -> Setup:
        setup = read_setup(self.folder)
        self._tail.read()
        if self._tail.recipe not in ("", setup.config.recipe):
            remedy = "run the same command with --dry-run"
            raise LabelError.of(
                str(self.folder), "run.json and ledger.jsonl are of different settings", remedy
            )
        return setup
