"""Ids of decisions that say for themselves whether they are ours and who asked, and their feedback.

An id is chance, a mark of this service and a mark of its caller, in 24 characters: with the key in
the log's folder every worker, and a restarted service, can check it without looking it up.
"""

import base64
import binascii
import hmac
import os
import secrets
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from hydra_core.base.errors import AccessError, HydraError, Problem
from hydra_core.decision_log.records import OutcomeRecord
from hydra_core.server.chat import RequestError
from hydra_core.store.roles import Actor, Role

_KEY_FILE: Final = ".decision-key"
_KEY_BYTES: Final = 32
_CHANCE, _OURS, _CALLERS = 8, 3, 4
#: Bytes of one outcome.
MOST_BYTES: Final = 100_000
#: Keys of it that are looked at.
_MOST_KEYS: Final = 20


class DecisionIds:
    """Makes and checks ids of decisions by a key that this service alone knows."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def new(self, caller: str) -> str:
        chance = secrets.token_bytes(_CHANCE)
        raw = chance + self._mark(chance)[:_OURS] + self._mark(chance, caller)[:_CALLERS]
        return base64.b32encode(raw).decode().lower()

    def is_ours(self, decision_id: str) -> bool:
        raw = _decoded(decision_id)
        chance, mark = raw[:_CHANCE], raw[_CHANCE : _CHANCE + _OURS]
        return bool(raw) and hmac.compare_digest(mark, self._mark(chance)[:_OURS])

    def is_callers(self, decision_id: str, caller: str) -> bool:
        raw = _decoded(decision_id)
        mark = self._mark(raw[:_CHANCE], caller)[:_CALLERS]
        return self.is_ours(decision_id) and hmac.compare_digest(raw[_CHANCE + _OURS :], mark)

    def _mark(self, chance: bytes, caller: str | None = None) -> bytes:
        whose = b"" if caller is None else b"\0" + caller.encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, chance + whose, "sha256")


def ids_of(folder: Path | None) -> DecisionIds:
    """The ids of a service with this log folder, else of this process; HydraError for no key."""
    if folder is None:
        return DecisionIds(secrets.token_bytes(_KEY_BYTES))
    path = folder / _KEY_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _write(path)
        key = path.read_bytes()
    except OSError as error:
        raise HydraError(f"{path}: cannot be read or written: {error.strerror}") from error
    if len(key) != _KEY_BYTES:
        raise HydraError(f"{path}: is damaged; remove it, and a new one is made")
    return DecisionIds(key)


def _write(path: Path) -> None:
    """Make the key whole and at once: another worker may be starting, too."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    file = os.open(fresh, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    with os.fdopen(file, "wb") as stream:
        stream.write(secrets.token_bytes(_KEY_BYTES))
        stream.flush()
        os.fsync(stream.fileno())
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass  # the other one was faster
    finally:
        fresh.unlink()


def _decoded(decision_id: str) -> bytes:
    try:
        raw = base64.b32decode(decision_id.upper().encode("ascii"))
    except (UnicodeEncodeError, binascii.Error):
        return b""
    return raw if len(raw) == _CHANCE + _OURS + _CALLERS else b""


class UnknownDecisionError(HydraError):
    """Feedback on a decision that this service did not make (404)."""


def require_rater(ids: DecisionIds, decision_id: str, actor: Actor, caller: str) -> None:
    """Make sure that a decision is known and that this actor, `caller` to decisions, may rate it.

    Raises:
        UnknownDecisionError: This service made no such decision.
        AccessError: Somebody else asked for it.
    """
    if not ids.is_ours(decision_id):
        raise UnknownDecisionError(
            "this service made no decision of this id; x-hydra-decision-id has it"
        )
    if actor.role is not Role.PUBLISHER and not ids.is_callers(decision_id, caller):
        raise AccessError("feedback is for whoever asked for the decision, or a publisher")


def read_outcome(found: dict[str, Any], author: str) -> OutcomeRecord:
    """The feedback in a decoded body; RequestError lists what is wrong."""
    problems = [
        Problem(name[:60], "is not known", "known: decision_id, quality, source, comment")
        for name in islice(found, _MOST_KEYS)
        if name not in ("decision_id", "quality", "source", "comment")
    ]
    decision_id, quality = found.get("decision_id"), found.get("quality")
    if not isinstance(decision_id, str) or not 0 < len(decision_id) <= 100:
        problems.append(Problem("decision_id", "is missing", "x-hydra-decision-id has it"))
    if isinstance(quality, bool) or not isinstance(quality, int | float) or not 0 <= quality <= 1:
        problems.append(Problem("quality", f"must be a number in [0, 1], got {quality!r:.60}"))
        quality = 0.0
    texts = {name: found.get(name, "") for name in ("source", "comment")}
    for name, text in texts.items():
        if not isinstance(text, str) or len(text) > 10_000:
            problems.append(Problem(name, "must be a text of at most 10,000 characters"))
    if problems:
        raise RequestError("request", problems)
    return OutcomeRecord(
        str(decision_id).lower(), datetime.now(UTC), float(quality), **texts, author=author
    )
