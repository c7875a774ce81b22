"""Posts alerts to a webhook beside the service: retried, never waited for, its address a secret."""

from __future__ import annotations

import json
import logging
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from hydra_core.base.errors import HydraError

#: The variable that holds the address.
VARIABLE: Final = "HYDRA_ALERT_WEBHOOK"
_LOG = logging.getLogger(__name__)
_TIMEOUT_S: Final = 10.0
_MOST_WAITING: Final = 100
#: Seconds before each further try.
_WAITS_S: Final = (2.0, 10.0, 60.0, 300.0, 900.0)


def webhook_address(environ: Mapping[str, str]) -> str:
    """The webhook's address, '' for none.

    Raises:
        HydraError: It is no address; the message does not show it.
    """
    url = environ.get(VARIABLE, "").strip()
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise HydraError(f"{VARIABLE} is no http(s) address: export the webhook's whole URL")
    return url


class Webhook:
    """Posts `{"text": ...}`, which Slack and others understand, in a thread of its own.

    Args:
        url: Never logged.
        counted: Called with `sent` or `lost` for each alert.
        waits_s: Seconds before each further try of one alert.
    """

    def __init__(
        self, url: str, counted: Callable[[str], object], waits_s: Sequence[float] = _WAITS_S
    ) -> None:
        self._url, self._counted, self._waits_s = url, counted, waits_s
        self._queue: queue.Queue[str] = queue.Queue(_MOST_WAITING)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="alerts-post", daemon=True)
        self._thread.start()

    def post(self, text: str) -> None:
        """Send an alert as soon as may be; it is lost where too many wait already."""
        try:
            self._queue.put_nowait(text)
        except queue.Full:
            self._lost("too many wait")

    def close(self) -> None:
        """Stop; what waits for another try is given up."""
        self._stop.set()

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                text = self._queue.get(timeout=0.5)
            except queue.Empty:
                continue
            self._send(text)

    def _send(self, text: str) -> None:
        why = ""
        for wait_s in (0.0, *self._waits_s):
            if wait_s and self._stop.wait(wait_s):
                break
            why = self._try(text)
            if not why:
                self._counted("sent")
                return
        self._lost(why)

    def _try(self, text: str) -> str:
        """Why one try failed, '' where it did not; never with the address in it."""
        body = json.dumps({"text": text}, ensure_ascii=False).encode("utf-8", "replace")
        headers = {"content-type": "application/json", "user-agent": "hydra-router"}
        try:
            request = urllib.request.Request(self._url, data=body, headers=headers)
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S):
                return ""
        except urllib.error.HTTPError as error:
            error.close()
            return f"status {error.code}"
        except Exception as error:  # whatever it was, it is tried again
            return type(error).__name__

    def _lost(self, why: str) -> None:
        self._counted("lost")
        _LOG.error("an alert did not reach the webhook: %s", why, extra={"event": "alert_lost"})
