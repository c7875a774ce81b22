"""What a service logs of itself: JSON lines with one set of fields, on standard error.

Every line has all fields; one that has nothing to say is null::

    {"at": "...", "level": "info", "event": "revision_taken", "message": "...", "catalog": "pool",
     "revision": "7", "model": null, "kind": null, "status": null, "wait_s": null, "pid": 17}
"""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from typing import Final

#: Fields that an event may give with `extra`.
EXTRA: Final = ("catalog", "revision", "model", "kind", "status", "wait_s")
LEVELS: Final = ("debug", "info", "warning", "error")


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        message = record.getMessage()
        if record.exc_info:
            message = f"{message}\n{self.formatException(record.exc_info)}"
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", "note"),
            "message": message,
            **{name: getattr(record, name, None) for name in EXTRA},
            "pid": os.getpid(),
        }
        return json.dumps(line, default=str)


def log_json(level: str) -> None:
    """Log from now on as JSON lines.

    Args:
        level: One of `LEVELS`; what is less important is left out.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("asyncio").setLevel(logging.WARNING)
