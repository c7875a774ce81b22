"""Cached decision logs and what is computed from them, keyed by the state of their files.

What needs scipy or scikit-learn is imported where it is used: Home waits for neither. Where a log
cannot be read, or a catalog cannot be replayed on it, HydraError says why.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hydra_core.base.errors import HydraError
from hydra_core.base.shipped import SAMPLE_DATA
from hydra_core.base.types import Catalog
from hydra_core.console import cache
from hydra_core.console.cache import SetEntry, cached
from hydra_core.console.demo import session
from hydra_core.console.replays import requirements
from hydra_core.decision_log.reading import DecisionLog, read_log
from hydra_core.live.flight.files import Flight, Metric, Rows
from hydra_core.live.flight.kept import FlightFolder, list_flights, load
from hydra_core.live.off_policy import LoggedValue, NoOverlapError, logged_value
from hydra_core.live.shadow import Shadow, shadow
from hydra_core.live.traffic import Traffic, traffic_of

if TYPE_CHECKING:
    from hydra_core.live.canary import CanaryReport
    from hydra_core.live.drift import Burst, Drift, Region
    from hydra_core.live.flight.analysis import FlightReport, TeamParts
    from hydra_core.live.flight.effects import Effect, Reading

_VARIABLE = "HYDRA_LOG"


@dataclass(frozen=True, slots=True)
class LogKey:
    """A log as it is now.

    Attributes:
        stamp: Name, time and size of every segment.
        since: Leave out decisions before it, in seconds since 1970; 0 for none.
        team: Its decisions alone, '' for those without a team; None for all.
    """

    folder: Path
    stamp: tuple[tuple[str, int, int], ...]
    since: int
    team: str | None = None


def folders() -> tuple[Path, ...]:
    """Return the known logs: HYDRA_LOG, `log` here, `log` and `logs` of the workspace."""
    named = [Path(one) for one in os.environ.get(_VARIABLE, "").split(os.pathsep) if one]
    own = session.folder()
    usual = [Path("log"), own / "log", *sorted((own / "logs").glob("*"))]
    return (*named, *(path for path in usual if path.is_dir() and _stamp(path)))


def key_of(folder: Path, window_s: int, now: datetime) -> LogKey:
    """Return the log as it is now, from `window_s` ago on (to the minute); 0 for all of it."""
    since = int(now.timestamp() - window_s) // 60 * 60 if window_s else 0
    return LogKey(folder, _stamp(folder), since)


def _stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    found = []
    for path in (*folder.glob("*.parquet"), *folder.glob("*.jsonl"), *folder.glob("*.json")):
        try:
            stat = path.stat()
        except FileNotFoundError:  # just became Parquet
            continue
        found.append((path.name, stat.st_mtime_ns, stat.st_size))
    return tuple(sorted(found))


@cached(2, "Reading the log")
def _log(key: LogKey) -> DecisionLog:
    since = datetime.fromtimestamp(key.since, UTC) if key.since else None
    return read_log(key.folder, since=since)


@cached(4)
def traffic(key: LogKey) -> Traffic:
    """The decisions of a log."""
    log = _log(replace(key, team=None))
    if key.team is not None:
        mine = log.decisions["team"].fillna("") == key.team
        log = replace(log, decisions=log.decisions[mine])
    return traffic_of(log)


@cached(4)
def canary(key: LogKey, digest: str, limit: float) -> CanaryReport:
    """How a canary does, as the service itself computes it."""
    from hydra_core.live.canary import COLUMNS, canary_report

    since = datetime.fromtimestamp(key.since, UTC)
    return canary_report(traffic_of(read_log(key.folder, since=since, columns=COLUMNS)), digest,
                         limit)  # fmt: skip


@cached(8, "Replaying the log")
def shadowed(key: LogKey, catalog: Catalog) -> Shadow:
    """A second catalog on the log."""
    return shadow(traffic(key), catalog, date.today())


@cached(8, "Weighing what was explored")
def worth(key: LogKey, catalog: Catalog) -> LoggedValue | str:
    """A catalog's estimated quality on the log, or why the log cannot say."""
    try:
        return logged_value(traffic(key), catalog, date.today())
    except NoOverlapError as error:
        return str(error)


@cached(8)
def drifted(key: LogKey, catalog: Catalog, entry: SetEntry) -> tuple[Drift, ...]:
    """The log's requirements against an eval set."""
    from hydra_core.live.drift import drift

    scored = scored_by(traffic(key), catalog)
    clusters = cache.evalset(entry).clusters
    return drift(scored, requirements(entry, catalog), catalog.dimensions, clusters)


@cached(8)
def bursts(key: LogKey, catalog: Catalog) -> tuple[Burst, ...]:
    """Windows of the log that ask for something else than the rest."""
    from hydra_core.live.drift import bursts_of

    return bursts_of(scored_by(traffic(key), catalog), catalog.dimensions)


@cached(8, "Grouping requests")
def clusters(key: LogKey, catalog: Catalog, entry: SetEntry | None) -> tuple[Region, ...]:
    """Group the requests of the log, with what is known about each group."""
    from hydra_core.live.drift import regions

    reference = None if entry is None else requirements(entry, catalog)
    return regions(scored_by(traffic(key), catalog), reference)


def scored_by(found: Traffic, catalog: Catalog) -> Traffic:
    """The decisions that the catalog's predictor scored; HydraError where there is none."""
    same = (found.rows["predictor"] == catalog.predictor_fingerprint).to_numpy(dtype=bool)
    scored = found.take(found.scored & same)
    if not len(scored):
        raise HydraError(
            f"no decision of this log was scored by {catalog.predictor!r}, the predictor of "
            f"{catalog.name}: choose the catalog that serves"
        )
    return scored


def flights() -> tuple[FlightFolder, ...]:
    """Return the operator's flights, then the sample's."""
    return list_flights(session.folder() / "flights", SAMPLE_DATA)


@cached(4, "Reading the table")
def opened(folder: FlightFolder) -> tuple[Flight, Rows]:
    """Load a flight's settings and table."""
    return load(folder)


@cached(16, "Comparing the arms")
def report(folder: FlightFolder, reading: Reading, adjust: bool) -> FlightReport:
    """Compute a flight's figures."""
    from hydra_core.live.flight.analysis import analyse

    flight, rows = opened(folder)
    return analyse(rows, flight, reading=reading, adjust=adjust)


@cached(16, "Comparing the arms in each team")
def teams(folder: FlightFolder, reading: Reading, adjust: bool) -> TeamParts | None:
    """Compute a flight's figures inside each team; None where it names no teams."""
    from hydra_core.live.flight.analysis import by_team

    flight, rows = opened(folder)
    return by_team(rows, flight, reading=reading, adjust=adjust)


@cached(64, "Looking at every day")
def path(folder: FlightFolder, metric: Metric, arm: str, reading: Reading, adjust: bool) -> Effect:
    """Compute one metric's effect after each day."""
    from hydra_core.live.flight.analysis import looks

    flight, rows = opened(folder)
    return looks(rows, flight, metric, arm, reading=reading, adjust=adjust)
