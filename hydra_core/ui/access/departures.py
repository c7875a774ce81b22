"""What a closed tab leaves behind is given back soon, uploads above all.

Streamlit keeps the session of a tab that is gone for `server.disconnectedSessionTTL` (two minutes),
so that a dropped network loses nothing; but it looks for sessions that are over only when the next
tab is closed, so the last upload of a day would stay in memory until the morning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.session_manager import SessionInfo

__all__ = ["forget_departed"]

#: Seconds after a session's time is up.
_LATER = 0.05


def forget_departed() -> None:
    """Have sessions end, with what was uploaded in them, when their time is up."""
    MemorySessionStorage.save = _saving(MemorySessionStorage.save)  # type: ignore[assignment,method-assign]


def _saving(
    save: Callable[[MemorySessionStorage, SessionInfo], None],
) -> Callable[[MemorySessionStorage, SessionInfo], None]:
    def kept_for_a_while(self: MemorySessionStorage, session_info: SessionInfo) -> None:
        save(self, session_info)
        cache = self._cache

        def end() -> None:
            for _, gone in cache.expire():  # type: ignore[attr-defined]
                gone.session.shutdown()  # takes its uploads along

        asyncio.get_running_loop().call_later(cache.ttl + _LATER, end)  # type: ignore[attr-defined]

    return kept_for_a_while
