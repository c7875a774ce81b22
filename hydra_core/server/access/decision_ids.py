"""Ids of decisions that say for themselves whether they are ours, and who asked.

An id is 24 characters: chance, a mark that this service made it, and a mark of its caller. Every
worker, and a restarted service, can check one without looking it up: the key lies in the folder of
the decision log.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Final

from hydra_core.base.errors import HydraError

_KEY_FILE: Final = ".decision-key"
_KEY_BYTES: Final = 32
_CHANCE, _OURS, _CALLERS = 8, 3, 4


class DecisionIds:
    """Makes and checks ids of decisions.

    Args:
        key: Known to this service alone.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def new(self, caller: str) -> str:
        """A fresh id of a decision that `caller` asked for."""
        chance = secrets.token_bytes(_CHANCE)
        raw = chance + self._mark(chance)[:_OURS] + self._mark(chance, caller)[:_CALLERS]
        return base64.b32encode(raw).decode().lower()

    def is_ours(self, decision_id: str) -> bool:
        """Whether this service made the id."""
        raw = _decoded(decision_id)
        chance, mark = raw[:_CHANCE], raw[_CHANCE : _CHANCE + _OURS]
        return bool(raw) and hmac.compare_digest(mark, self._mark(chance)[:_OURS])

    def is_callers(self, decision_id: str, caller: str) -> bool:
        """Whether `caller` asked for the decision."""
        raw = _decoded(decision_id)
        mark = self._mark(raw[:_CHANCE], caller)[:_CALLERS]
        return self.is_ours(decision_id) and hmac.compare_digest(raw[_CHANCE + _OURS :], mark)

    def _mark(self, chance: bytes, caller: str | None = None) -> bytes:
        whose = b"" if caller is None else b"\0" + caller.encode("utf-8", "surrogatepass")
        return hmac.new(self._key, chance + whose, hashlib.sha256).digest()


def ids_of(folder: Path | None) -> DecisionIds:
    """The ids of a service with this log folder; without one, of this process alone.

    Raises:
        HydraError: The key cannot be read or written.
    """
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
