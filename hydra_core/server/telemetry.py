"""What a service tells of itself: the counters of /metrics, and OpenTelemetry's spans.

Labels are models of the catalog and fixed words; all series begin at 0. The GenAI names of spans
are not stable yet: they stand only here.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from hydra_core.base.errors import ExtraError
from hydra_core.base.shipped import VERSION, commit
from hydra_core.base.types import FloatArray
from hydra_core.live.canary import CANARY, MAIN
from hydra_core.routing.decision import EXPLORED, Cause
from hydra_core.routing.gates import Gate
from hydra_core.server.deciding import NAMED, Decided, Result
from hydra_core.server.upstream.failures import KINDS
from hydra_core.server.upstream.reading import Counted

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


_MOST_MODELS: Final = 200
_OTHER: Final = "other"
_HEALTH: Final = "health"
_DROPPED: Final = ("full", "late", "gone")
_STATUSES: Final = ("decided", "answered", "rejected", "failed", "cancelled", "refused")
#: Statuses of upstreams that have a series of their own; others count as `other`.
_CODES: Final = (200, 400, 401, 402, 403, 404, 405, 408, 409, 410, 413, 415, 422, 425, 429,
                 500, 502, 503, 504, 529)  # fmt: skip
_SECONDS: Final = (0.001, 0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 1)
_LONG: Final = (0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60)
#: Lengths of windows in seconds, as labels.
WINDOWS: Final = {"15m": 900, "1h": 3600, "1d": 86_400}
_KEPT_S: Final = 7 * 86_400
_MOST: Final = 50_000
_LEAST, _LEAST_BEFORE = 30, 100
_AGAIN_S: Final = 60.0
_CHANCE: Final = 0.001  # looked at every minute
_Mode = Literal["mostrecent", "livesum", "livemax", "sum"]


class Metrics:
    """The counters of one process; with several workers prometheus_client adds them up.

    Series begin for `models`; later ones join, up to 200, the rest count as `other`.
    """

    def __init__(self, models: Iterable[str] = ()) -> None:
        self._registry = own = CollectorRegistry()
        self._models: set[str] = set()

        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(name, what, labels, namespace="hydra", registry=own)

        def gauge(name: str, what: str, *labels: str, mode: _Mode = "mostrecent") -> Gauge:
            return Gauge(name, what, labels, "hydra", registry=own, multiprocess_mode=mode)

        def seconds(name: str, what: str, buckets: Sequence[float], *labels: str) -> Histogram:
            return Histogram(name, what, labels, "hydra", registry=own, buckets=buckets)

        self._requests = counter("requests", "Requests by model and end", "model", "status")
        self._failures = counter("upstream_failures", "Attempts not answered", "model", "kind")
        self._codes = counter("upstream_responses", "Statuses of upstreams", "model", "code")
        self._causes = counter("decisions", "Decisions by model and cause", "model", "cause")
        self._vetoes = counter("vetoes", "Models taken out of a decision", "model", "reason")
        self._tokens = counter("tokens", "Tokens that upstreams counted", "model", "kind")
        self._cost = counter("cost_usd", "USD by the catalog's prices", "model")
        self._uncounted = counter(
            "usage_uncounted", "Answers whose tokens the upstream did not count", "model", "kind"
        )
        self._uncounted_usd = counter(
            "usage_uncounted_usd", "About what they cost, in USD", "model", "kind"
        )
        self._decide = seconds(
            "decide_seconds", "From request to decision, the wait included", _SECONDS
        )
        self.wait = seconds("queue_wait_seconds", "Wait for a decision's turn", _SECONDS)
        self.drops = counter("queue_dropped", "Requests refused before a decision", "reason")
        self._first = seconds("first_byte_seconds", "From request to first byte", _LONG, "model")
        promise = "1 once the catalog's promise about quality no longer covers its traffic"
        stopped = "1 once the canary was worse and gets no traffic"
        lost = "Log records that a full disk cost"
        self._states = {
            "problem": gauge("catalog_problem", "1 while the newest revision is not valid"),
            "stopped": gauge("canary_stopped", stopped),
            "promise_ended": gauge("promise_not_covered", promise),
        }
        # set as they change: of several workers, one alone is asked for the metrics
        self.depth = gauge("queue_depth", "Requests that wait to be decided", mode="livesum")
        self.given_up = gauge("log_given_up", lost, mode="sum")
        psi = "Largest PSI of requirements in the window against all before"
        self._psi = gauge("traffic_psi", psi, "window", mode="livemax")
        shifted = "1 while the window asks for something else than before"
        self._shifted = gauge("traffic_shifted", shifted, "window", mode="livemax")
        self._build = gauge("build_info", "1 for the version that runs", "version", "commit")
        self._build.labels(VERSION, commit()).set(1)
        self._revision = gauge(
            "revision_info", "1 for the revisions in use", "arm", "catalog", "revision"
        )
        self._alerts = counter("alerts", "Alerts to the webhook", "end")
        self._budgets = gauge(
            "team_budget_used", "Share of its budget that a team has used", "team"
        )
        self._arms = counter(
            "canary_requests", "Requests by arm while a canary runs", "arm", "status"
        )
        self._first_failures = counter(
            "canary_first_failures", "Requests whose first attempt failed", "arm"
        )
        self.kinds, self._unknown = RecentKinds(), set[str]()
        self._revisions: dict[str, tuple[str, str]] = {}
        self._teams: set[str] = set()
        for reason in _DROPPED:
            self.drops.labels(reason)
        for window in WINDOWS:
            self._psi.labels(window)
            self._shifted.labels(window)
        for end in ("sent", "lost"):
            self._alerts.labels(end)
        self.seed(models)

    def seed(self, models: Iterable[str]) -> None:
        """Begin the series of these models at 0."""
        for model in (*models, _OTHER):
            if model in self._models or len(self._models) > _MOST_MODELS:
                continue
            self._models.add(model)
            for status in _STATUSES:
                self._requests.labels(model, status)
            for kind in KINDS:
                self._failures.labels(model, kind)
            for code in (*_CODES, _OTHER):
                self._codes.labels(model, str(code))
            for kind in (Counted.ESTIMATED, Counted.UNKNOWN):
                self._uncounted.labels(model, kind.value)
                self._uncounted_usd.labels(model, kind.value)
            for cause in (*Cause, EXPLORED, NAMED):
                self._causes.labels(model, str(cause))
            for reason in (*Gate, _HEALTH):
                self._vetoes.labels(model, str(reason))
            for kind in ("input", "cached", "output"):
                self._tokens.labels(model, kind)
            self._cost.labels(model)

    def serving(self, arm: str, catalog: str = "", revision: str = "") -> None:
        """Name the revision that an arm serves; without a name the arm serves none any more."""
        now = (catalog, revision)
        before = self._revisions.get(arm, ("", ""))
        if before not in (now, ("", "")):
            self._revision.labels(arm, *before).set(0)
        if revision:
            self._revision.labels(arm, *now).set(1)
        self._revisions[arm] = now

    def seed_arms(self) -> None:
        """Begin the series of a canary and of the main revision beside it."""
        for arm in (MAIN, CANARY):
            self._first_failures.labels(arm)
            for status in _STATUSES:
                self._arms.labels(arm, status)

    def budgets(self, used: Mapping[str, float]) -> None:
        """Tell which share of its budget each team has used; a team without one has none."""
        for team in self._teams - set(used):
            self._budgets.labels(team).set(float("nan"))
        for team, share in used.items():
            self._budgets.labels(team).set(share)
        self._teams |= set(used)

    def armed(self, arm: str, status: str, *, first_failed: bool) -> None:
        """Count a request that was decided while a canary runs."""
        self._arms.labels(arm, status).inc()
        if first_failed:
            self._first_failures.labels(arm).inc()

    def decided(self, decided: Decided, gates: Iterable[tuple[str, Gate]], seconds: float) -> None:
        """Count one decision and the models that the router took out of it."""
        decision, named = decided.decision, decided.rule == NAMED
        cause = NAMED if named else decided.cause
        self._causes.labels(self._label(decided.model), cause).inc()
        self._decide.observe(seconds)
        if decision.scored:
            self.kinds.add(decision.requirements, decided.request.query.conversation_id)
        self.gated(gates)
        for i in () if named else (decision.health < decision.health_floor).nonzero()[0]:
            self._vetoes.labels(self._label(decision.pool.ids[i]), _HEALTH).inc()

    def gated(self, gates: Iterable[tuple[str, Gate]]) -> None:
        for model, gate in gates:
            self._vetoes.labels(self._label(model), gate.value).inc()

    def failed(self, model: str, kind: str) -> None:
        """Count an attempt that was not answered."""
        self._failures.labels(self._label(model), kind).inc()

    def responded(self, model: str, status: int | None) -> None:
        """Count the status of an upstream, None where it said none."""
        if status is not None:
            code = str(status) if status in _CODES else _OTHER
            self._codes.labels(self._label(model), code).inc()

    def first_byte(self, model: str, seconds: float) -> None:
        self._first.labels(self._label(model)).observe(seconds)

    def finished(self, model: str, status: str) -> None:
        """Count a request; `model` is '' where none served it."""
        self._requests.labels(self._label(model or _OTHER), status).inc()

    def billed(self, model: str, fresh: int, cached: int, output: int, cost_usd: float) -> None:
        name = self._label(model)
        for kind, count in (("input", fresh), ("cached", cached), ("output", output)):
            self._tokens.labels(name, kind).inc(count)
        self._cost.labels(name).inc(cost_usd)

    def uncounted(self, model: str, kind: Counted, about_usd: float) -> None:
        """Count an answer whose tokens the upstream did not count."""
        name = self._label(model)
        self._uncounted.labels(name, kind.value).inc()
        self._uncounted_usd.labels(name, kind.value).inc(about_usd)
        if kind is Counted.UNKNOWN:
            self._unknown.add(name)

    def take_unknown(self) -> list[str]:
        """The models that answered without counting since this was asked last."""
        return [self._unknown.pop() for _ in range(len(self._unknown))]

    def alerted(self, end: str) -> None:
        """Count an alert that was sent or lost."""
        self._alerts.labels(end).inc()

    def text(self, **states: float) -> bytes:
        """Everything in Prometheus' text form; of all workers where there are several.

        States are problem, stopped and promise_ended, as they are now.
        """
        for name, value in states.items():
            self._states[name].set(value)
        for window, (psi, shifted) in self.kinds.shifts().items():
            self._psi.labels(window).set(psi)
            self._shifted.labels(window).set(shifted)
        folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
        if folder is None:
            return generate_latest(self._registry)
        from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

        for path in Path(folder).glob("gauge_live*_*.db"):
            pid = int(path.stem.rpartition("_")[2])
            if not _is_alive(pid):
                mark_process_dead(pid)  # type: ignore[no-untyped-call]
        whole = CollectorRegistry()
        MultiProcessCollector(whole)  # type: ignore[no-untyped-call]
        return generate_latest(whole)

    def _label(self, model: str) -> str:
        return model if model in self._models else _OTHER


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


#: When a decision was made, what it required, and its conversation.
_Kind = tuple[float, tuple[float, ...], str | None]


class RecentKinds:
    """Requirements of the last seven days' decisions of one process, 50,000 at most."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._rows: deque[_Kind] = deque(maxlen=_MOST)
        self._found: dict[str, tuple[float, bool]] = {}
        self._looked = -_AGAIN_S

    def add(self, requirements: FloatArray, conversation: str | None = None) -> None:
        """Keep one scored decision; those of one conversation are dependent."""
        with self._lock:
            self._rows.append((self._clock(), tuple(requirements.tolist()), conversation))

    def shifts(self) -> dict[str, tuple[float, bool]]:
        """By window: the largest PSI of a dimension against all before, and if it is no chance.

        A window with too few decisions, or too few before it, is left out. Computed once a minute.
        """
        now = self._clock()
        if now - self._looked >= _AGAIN_S:
            with self._lock:
                rows = [row for row in self._rows if now - row[0] < _KEPT_S]
            self._found, self._looked = _shifts(rows, now), now
        return self._found


def _shifts(rows: Sequence[_Kind], now: float) -> dict[str, tuple[float, bool]]:
    from hydra_core.live.drift import compared  # scipy, which a start need not wait for

    at = np.array([moment for moment, _, _ in rows])
    widths = {len(values) for _, values, _ in rows}
    if len(widths) != 1:  # none, or the catalog's dimensions changed
        return {}
    values = np.array([values for _, values, _ in rows])
    units: dict[object, int] = {}
    named = (i if name is None else name for i, (_, _, name) in enumerate(rows))
    clusters = np.array([units.setdefault(name, len(units)) for name in named], dtype=np.intp)
    found = {}
    for name, width in WINDOWS.items():
        inside = at >= now - width
        if inside.sum() >= _LEAST and (~inside).sum() >= _LEAST_BEFORE:
            psi, chance = compared(values, inside, clusters)
            k = int(psi.argmax())
            found[name] = float(psi[k]), bool(chance[k] < _CHANCE)
    return found


#: Called with every finished request.
OnFinish = Callable[[Decided, Result], None]


def spans(tracer: Tracer | None = None) -> OnFinish:
    """A span of OpenTelemetry for every finished request; by default of the process's own tracer.

    Raises:
        ExtraError: opentelemetry-api is not installed.
    """
    try:
        from opentelemetry import trace
    except ModuleNotFoundError as error:
        raise ExtraError("tracing (--spans)", "tracing") from error
    source = tracer or trace.get_tracer("hydra_core.server")

    def record(decided: Decided, result: Result) -> None:
        end = time.time_ns()  # a request is recorded as it ends
        start = end - int(1e6 * (result.latency_ms or decided.decide_ms))
        asked = decided.request.model
        name = f"chat {asked}" if result.status != "decided" else f"route {asked}"
        kind = trace.SpanKind.CLIENT
        span = source.start_span(name, kind=kind, start_time=start)
        for key, value in _attributes(decided, result).items():
            if value not in (None, ""):
                span.set_attribute(key, value)
        if result.status in ("failed", "cancelled"):
            span.set_status(trace.StatusCode.ERROR, result.status)
        span.end(end_time=end)

    return record


def _attributes(decided: Decided, result: Result) -> dict[str, Any]:
    served = result.served or decided.model
    provider = {spec.id: spec.provider for spec in decided.serving.catalog.models}
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider.get(served, ""),
        "gen_ai.request.model": decided.request.model,
        "gen_ai.response.model": result.served,
        "gen_ai.conversation.id": decided.request.query.conversation_id,
        "gen_ai.usage.input_tokens": result.input_tokens,
        "gen_ai.usage.output_tokens": result.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": result.cached_tokens,
        "hydra.decision_id": decided.id,
        "hydra.rule": decided.rule,
        "hydra.cause": decided.cause,
        "hydra.catalog_revision": decided.serving.label,
        "hydra.attempts": len(result.attempts),
    }
