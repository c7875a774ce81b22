"""Looks for what somebody should know, and tells each event once to the webhook.

It is posted to beside the service: retried, never waited for, its address a secret.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import short_number
from hydra_core.base.types import WhenSpent
from hydra_core.decision_log.canaries_and_alerts import Events
from hydra_core.decision_log.reading import read_log
from hydra_core.live.drift import COLUMNS, promise_status
from hydra_core.live.traffic import traffic_of
from hydra_core.server.deciding import Decider
from hydra_core.server.live import LiveCatalog, Watch
from hydra_core.server.teams import percent_used, period_of
from hydra_core.server.telemetry import Metrics

_LOG = logging.getLogger(__name__)
#: What of the log's feedback a promise is compared with.
_PROMISE_WINDOW: Final = timedelta(days=7)
#: Time between two looks at it, in multiples of what a look takes: it may use 5 % of a core.
_PROMISE_REST: Final = 20.0
_LOOK_S: Final = 5.0
#: Drift takes longer to look for than the rest.
_DRIFT_EVERY: Final = timedelta(minutes=1)
_WINDOWS: Final = {"15m": "15 minutes", "1h": "hour", "1d": "day"}
#: Shares of a budget that are alerted.
SHARES: Final = (1.0, 0.8)
_Event = tuple[str, str]
#: The variable that holds the address.
VARIABLE: Final = "HYDRA_ALERT_WEBHOOK"
_TIMEOUT_S: Final = 10.0
_MOST_WAITING: Final = 100
#: Seconds before each further try.
_WAITS_S: Final = (2.0, 10.0, 60.0, 300.0, 900.0)


class Alerts(Watch):
    """Watches one process of the service.

    Args:
        promise: None where no log is kept.
        folder: Of the decision log; workers share through it what was sent. None for none.
    """

    def __init__(
        self,
        decider: Decider,
        metrics: Metrics,
        promise: PromiseWatch | None,
        webhook: Webhook,
        folder: Path | None,
        every_s: float = _LOOK_S,
    ) -> None:
        super().__init__("alerts", "nobody can be alerted", every_s)
        self._decider, self._metrics, self._promise = decider, metrics, promise
        self._webhook = webhook
        self._events, self._down = Events(folder), frozenset[str]()
        self._drift_due = datetime.now(UTC)
        self._events.clean(self._drift_due)

    def close(self) -> None:
        super().close()
        self._webhook.close()

    def look(self) -> None:
        now = datetime.now(UTC)
        for key, text in self._new(now):
            if self._events.first(key, text, now):
                _LOG.warning("%s", text, extra={"event": "alert"})
                self._webhook.post(f"HyDRA: {text}")

    def _new(self, now: datetime) -> Iterator[_Event]:
        canary, promise = self._decider.canary, self._promise
        if canary is not None and (why := canary.stopped):
            name = canary.live.now.catalog.name
            yield f"canary {name} {canary.stopped_at} {why}", f"the canary {name} is stopped: {why}"
        if promise is not None and promise.ended:
            yield f"promise {self._decider.live.now.catalog.digest}", promise.ended
        yield from self._upstreams()
        for model in self._metrics.take_unknown():
            text = f"{model} answers without counting its tokens: what it costs is not known"
            yield f"usage {model} {now:%Y-%m-%d}", text
        yield from self._budgets(now)
        if now >= self._drift_due:
            self._drift_due = now + _DRIFT_EVERY
            yield from shifted(self._metrics.kinds.shifts(), now)

    def _upstreams(self) -> Iterator[_Event]:
        """Told when a model goes down; once it answers again, the next time is a new event."""
        down = self._decider.health.down()
        fresh, back, self._down = down - self._down, self._down - down, down
        for model in back:
            self._events.over(f"down {model}")
        for model in sorted(fresh):
            text = f"{model} does not answer: its last attempts all failed; others are asked"
            yield f"down {model}", text

    def _budgets(self, now: datetime) -> Iterator[_Event]:
        teams = self._decider.live.now.catalog.policy.teams
        for name, used in self._decider.budgets_used().items():
            budget = teams[name].budget if name in teams else None
            share = next((share for share in SHARES if used >= share), None)
            if share is None or budget is None:
                continue
            period, _ = period_of(budget.per, now)
            refuses = budget.when_spent is WhenSpent.REFUSE
            then = "requests are refused" if refuses else "the cheapest model goes on"
            whole = short_number(budget.usd, 9)
            text = f"team {name} has used {percent_used(used)} % of ${whole} for {period}"
            text += f": {then}" if share >= 1.0 else ""
            yield f"budget {name} {period} {share:g}", text


def shifted(shifts: Mapping[str, tuple[float, bool]], now: datetime) -> Iterator[_Event]:
    """The windows whose traffic asks for something else than all before (`RecentKinds.shifts`)."""
    for window, (psi, beyond_chance) in shifts.items():
        if beyond_chance:
            text = f"requests of the last {_WINDOWS[window]} ask for something else than before"
            yield f"drift {window} {now:%Y-%m-%d}", f"{text} (PSI {psi:.2f})"


def webhook_address(environ: Mapping[str, str]) -> str:
    """The webhook's address, '' for none; HydraError, which does not show it, for no address."""
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


class PromiseWatch(Watch):
    """Compares the promise in use with the log's feedback of the last one to two weeks.

    It looks from one start for a week: over days that move with each look it would be contradicted
    by chance sooner or later.
    """

    def __init__(
        self,
        live: LiveCatalog,
        folder: Path,
        every_s: float = _LOOK_S,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__("promise", "the promise cannot be watched", every_s, _PROMISE_REST)
        self._live, self._folder, self._clock = live, folder, clock
        self._digest, self._since, self._start = "", clock(), 0
        self._ended: tuple[str, str] = ("", "")

    @property
    def ended(self) -> str:
        """Why the promise in use is no longer covered; '' while it is, or there is none."""
        digest, why = self._ended
        return why if digest == self._live.now.catalog.digest else ""

    def look(self) -> None:
        """Read the feedback; once contradicted, a promise stays so until another catalog is taken.

        Raises:
            LogError: The log cannot be read.
        """
        catalog = self._live.now.catalog
        if catalog.policy.promise is None or self.ended:
            return
        latest = self._clock() - _PROMISE_WINDOW
        if self._digest != catalog.digest:
            self._digest, self._since, self._start = catalog.digest, latest, 1
        elif latest - self._since >= _PROMISE_WINDOW:
            self._since, self._start = latest, self._start + 1
        log = read_log(self._folder, since=self._since, columns=COLUMNS)
        status = promise_status(catalog, traffic_of(log), start=self._start)
        if status is not None and status.ended:
            _LOG.warning("%s", status.sentence, extra={"event": "promise_ended"})
            self._ended = (catalog.digest, status.sentence)
