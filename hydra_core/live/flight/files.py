"""A flight's files: `flight.yaml`, the table that it names, and the folders that hold both.

`flight.yaml` says what the table holds, its arms and its metrics; it is read with every check. The
table (CSV, TSV, JSONL or Parquet, user rows or request rows) becomes arrays by unit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from hydra_core.base.errors import EvalSetError, FlightError, Problem
from hydra_core.base.reading.fields import Bounds, Section, read_mapping
from hydra_core.base.reading.yaml_reader import ScalarNode
from hydra_core.base.types import FloatArray, IntArray
from hydra_core.decision_log.reading import read_log
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.cells import LINE
from hydra_core.evalsets.importers.reading.tables import columns_of, read_columns

SCHEMA: Final = "hydra.flight/v1"
#: Denominator that counts a unit's rows (its requests).
ROWS: Final = "rows"
_MAX_METRICS: Final = 50
_MAX_ARMS: Final = 10


class Better(StrEnum):
    """Which way a metric should go."""

    LOWER = "lower"
    HIGHER = "higher"


class Level(StrEnum):
    """What one row of the table is."""

    UNITS = "units"
    REQUESTS = "requests"


@dataclass(frozen=True, slots=True)
class Metric:
    """numerator / denominator, both summed by unit.

    Attributes:
        denominator: A column, `rows`, or empty for a mean per unit.
        guard: Relative worsening that is still borne, e.g. 0.01; None: not a guard metric.
        unit: What its values are in, such as s or USD; '' where that is not said.
    """

    name: str
    numerator: str
    denominator: str
    better: Better
    guard: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Flight:
    """A flight's settings.

    Attributes:
        arms: Arm -> share of units it was promised; the first one is the control.
        day, stratum, team, covariate: Columns, empty where there are none.
        retention: Days N after a unit's first on which it counts as back.
        cost, flagship: Columns with the cost, and what the flagship would have cost.
    """

    name: str
    table: str
    level: Level
    unit: str
    arm: str
    arms: dict[str, float]
    metrics: tuple[Metric, ...]
    day: str = ""
    stratum: str = ""
    team: str = ""
    covariate: str = ""
    retention: tuple[int, ...] = ()
    cost: str = ""
    flagship: str = ""
    synthetic: bool = False

    @property
    def control(self) -> str:
        """The arm that others are compared with."""
        return next(iter(self.arms))


def load_flight(path: Path) -> Flight:
    """Read a `flight.yaml`.

    Raises:
        FlightError: Every problem found, with its line.
        OSError: It cannot be read.
    """
    return parse_flight(path.read_text(encoding="utf-8-sig"), str(path))


def parse_flight(text: str, source: str = "flight.yaml") -> Flight:
    """The flight that a YAML text describes; FlightError lists every problem with its line."""
    root, problems = read_mapping(text, f"begin with schema: {SCHEMA}")
    flight = None if root is None else _flight(root)
    if flight is None or problems.found:
        raise FlightError(source, problems.listed())
    return flight


def _flight(top: Section) -> Flight:
    top.known(
        ("schema", "name", "synthetic", "table", "level", "unit", "arm", "arms", "day", "stratum")
        + ("team", "covariate", "retention", "savings", "metrics")
    )
    top.schema(SCHEMA)
    optional = {
        key: top.text(key, "a column's name", required=False)
        for key in ("table", "day", "stratum", "team", "covariate")
    }
    keys = ("cost", "flagship")
    savings = top.section("savings", "cost and flagship", required=False, keys=keys)
    cost, flagship = ("" if savings is None else savings.text(key, "a column") for key in keys)
    level = top.choice("level", Level, "units or requests", required=False) or Level.UNITS
    retention = _retention(top, level, optional["day"])
    synthetic = bool(top.flag("synthetic", "true or false", required=False))
    return Flight(
        top.text("name", "what the flight is called"),
        level=level,
        unit=top.text("unit", "the column that names the user or conversation"),
        arm=top.text("arm", "the column that names the arm"),
        arms=_arms(top),
        metrics=_metrics(top),
        retention=retention,
        cost=cost,
        flagship=flagship,
        synthetic=synthetic,
        **optional,
    )


def _arms(top: Section) -> dict[str, float]:
    section = top.section("arms", "arm: share, the control first")
    if section is None:
        return {}
    inside = Bounds(0.0, 1.0, above=True)
    found = {}
    for arm in section.node.entries:
        share = section.number(arm, inside, "its share of the units, such as 0.5")
        found[arm] = share or 0.0
    if not 2 <= len(found) <= _MAX_ARMS:
        top.wrong("arms", f"holds {len(found)} arms", f"give 2 to {_MAX_ARMS}, the control first")
    elif abs(sum(found.values()) - 1.0) > 1e-6:
        top.wrong("arms", f"shares sum to {sum(found.values()):g}", "they must sum to 1")
    return found


def _retention(top: Section, level: Level, day: str) -> tuple[int, ...]:
    if "retention" not in top.node.entries:
        return ()
    nodes = top.items("retention", "a list of days, such as [2, 3, 4, 5]", limit=30)
    days = [n.value for n in nodes if isinstance(n, ScalarNode) and isinstance(n.value, int)]
    if len(days) != len(nodes) or not all(1 <= day <= 365 for day in days):
        top.wrong("retention", "must hold whole days from 1 to 365", "such as [2, 3, 4, 5]")
    if level is not Level.REQUESTS or not day:
        top.wrong("retention", "needs level: requests and day", "or give retention as metrics")
    return tuple(days)


def _metrics(top: Section) -> tuple[Metric, ...]:
    found = []
    remedy = "a list of metrics: {name, numerator, better}"
    for one in top.sections("metrics", remedy, limit=_MAX_METRICS):
        one.known(("name", "numerator", "denominator", "better", "guard", "unit"))
        better = one.choice("better", Better, "lower or higher")
        guard = one.number("guard", Bounds(0.0, 1.0), "such as 0.01", required=False)
        found.append(
            Metric(
                one.text("name", "what it is called"),
                one.text("numerator", "a column"),
                one.text("denominator", "a column, or rows", required=False),
                better or Better.LOWER,
                guard,
                one.text("unit", "what its values are in, such as s or USD", required=False),
            )
        )
    names = [metric.name for metric in found]
    for name in sorted({name for name in names if names.count(name) > 1}):
        top.wrong("metrics", f"{name!r} occurs twice", "give each its own name")
    return tuple(found)


_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Rows:
    """The table as it came, one entry a row.

    Attributes:
        unit: Number of the row's unit.
        arm: Number of its arm in the flight's order.
        day: Whole days from the first one; zeros where the table has no day.
        days: Every day's name, in order.
        stratum, strata: Number and names.
        team, teams: Number and names, '' where a row has none; a unit may be in several.
        values: Column -> (rows,) numbers, NaN where empty.
    """

    unit: IntArray
    arm: IntArray
    day: IntArray
    days: tuple[str, ...]
    stratum: IntArray
    strata: tuple[str, ...]
    team: IntArray
    teams: tuple[str, ...]
    values: Mapping[str, FloatArray]


@dataclass(frozen=True, slots=True)
class Units:
    """Sums by unit up to one day; the arrays are (n,)."""

    arm: IntArray
    stratum: IntArray
    first_day: IntArray
    values: Mapping[str, FloatArray]


def read_rows(
    file: TableFile,
    flight: Flight,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Rows:
    """Read and check the table, or the decisions of a log's folder.

    Args:
        since, until: Of a log, only decisions from this moment on, and before that one.

    Raises:
        FlightError: With every problem: missing columns, unknown arms, cells that are not numbers,
            units in two arms or strata.
    """
    log = None
    if isinstance(file, Path) and file.is_dir():
        log = _decisions(file, flight, since, until)
    elif since is not None or until is not None:
        remedy = "leave the other rows out of the table"
        raise FlightError.of(file.name, "a time can be chosen of a decision log only", remedy)
    try:
        there = columns_of(file) if log is None else list(log.columns)
        texts, numbers = _wanted(flight)
        missing = [name for name in dict.fromkeys([*texts, *numbers]) if name not in there]
        remedy = f"there are: {', '.join(there[:20])}"
        FlightError.raise_any(
            file.name, [Problem(f"column {name!r}", "is missing", remedy) for name in missing]
        )
        wanted = list(dict.fromkeys([*texts, *numbers]))
        if log is None:
            frame, _ = read_columns(file, wanted, Budget())
        else:
            cells = log[wanted].astype(object)
            frame = cells.where(log[wanted].notna(), "").map(str).assign(**{LINE: log[LINE]})
    except EvalSetError as error:
        raise FlightError(error.source, error.problems) from error
    return _rows(frame, flight, numbers, file.name)


def _decisions(
    folder: Path, flight: Flight, since: datetime | None, until: datetime | None
) -> pd.DataFrame:
    """The decisions of a log that belong to an arm; one without a conversation is its own unit."""
    found = read_log(folder, since=since, until=until).decisions
    found = found[found["status"] != "refused"].reset_index(drop=True)
    found["conversation_id"] = found["conversation_id"].fillna(found["decision_id"])
    found.insert(0, LINE, range(1, len(found) + 1))
    if flight.arm not in found:
        return found
    of_arm = found[found[flight.arm].isin(list(flight.arms))]
    if of_arm.empty:
        there = ", ".join(sorted(set(found[flight.arm].dropna().astype(str)) - {""}))
        message = f"no decision of this time has one of the arms {', '.join(flight.arms)}"
        remedy = f"there are: {there}" if there else "there was no canary then"
        raise FlightError.of(folder.name, message, remedy)
    return of_arm


def _wanted(flight: Flight) -> tuple[list[str], list[str]]:
    texts = [flight.unit, flight.arm, *(c for c in (flight.day, flight.stratum, flight.team) if c)]
    numbers = [m.numerator for m in flight.metrics]
    numbers += [m.denominator for m in flight.metrics if m.denominator not in ("", ROWS)]
    numbers += [c for c in (flight.covariate, flight.cost, flight.flagship) if c]
    return texts, list(dict.fromkeys(numbers))


def _rows(frame: pd.DataFrame, flight: Flight, numbers: Sequence[str], source: str) -> Rows:
    problems: list[Problem] = []
    if frame.empty:
        raise FlightError(source, [Problem("", "there are no rows", "")])
    unit: IntArray = np.asarray(pd.factorize(frame[flight.unit])[0], dtype=np.intp)
    _check(problems, frame, frame[flight.unit] == "", f"{flight.unit} is empty", "name every unit")
    arms = list(flight.arms)
    numbered = frame[flight.arm].map({name: i for i, name in enumerate(arms)}).fillna(-1)
    arm: IntArray = np.asarray(numbered, dtype=np.intp)
    _check(problems, frame, arm < 0, f"{flight.arm} is none of {', '.join(arms)}", "see arms:")
    values = {}
    for name in numbers:
        cells = frame[name]
        found = pd.to_numeric(cells.where(cells != ""), errors="coerce").to_numpy(float)
        _check(problems, frame, (cells != "") & ~np.isfinite(found), f"{name} is not a number", "")
        values[name] = found
    values[ROWS] = np.ones(len(frame))
    day, days = _days(frame, flight, problems)
    stratum, strata = _labels(frame, flight.stratum)
    if not problems:
        _one_each(problems, unit, arm, "arm")
        _one_each(problems, unit, stratum, "stratum")
        if flight.level is Level.UNITS and len(np.unique(unit)) != len(unit):
            problems.append(Problem(flight.unit, "occurs in several rows", "write level: requests"))
    FlightError.raise_any(source, problems)
    return Rows(unit, arm, day, days, stratum, strata, *_labels(frame, flight.team), values)


def _labels(frame: pd.DataFrame, column: str) -> tuple[IntArray, tuple[str, ...]]:
    """(numbers, names) of a column's texts; one name for all where no column is named."""
    labels = frame[column] if column else pd.Series("all", index=frame.index)
    codes, names = pd.factorize(labels, sort=True)
    return np.asarray(codes, dtype=np.intp), tuple(map(str, names))


def _check(
    problems: list[Problem], frame: pd.DataFrame, wrong: object, message: str, remedy: str
) -> None:
    lines = frame.loc[np.asarray(wrong, dtype=bool), LINE].tolist()
    if lines:
        shown = ", ".join(map(str, lines[:_SHOWN])) + (", ..." if len(lines) > _SHOWN else "")
        problems.append(Problem(f"{len(lines)} row(s) (lines {shown})", message, remedy))


def _days(
    frame: pd.DataFrame, flight: Flight, problems: list[Problem]
) -> tuple[IntArray, tuple[str, ...]]:
    """Whole days from the first; numbers stay numbers, the rest must be dates or times."""
    if not flight.day:
        return np.zeros(len(frame), dtype=int), ("the end",)
    cells = frame[flight.day]
    found = pd.to_numeric(cells, errors="coerce")
    if not np.isfinite(found).all():
        moments = pd.to_datetime(cells, errors="coerce", utc=True, format="ISO8601")
        _check(problems, frame, moments.isna(), f"{flight.day} is no day", "YYYY-MM-DD or a number")
        if problems:
            return np.zeros(len(frame), dtype=int), ("",)
        start = moments.min().normalize()
        number = (moments - start).dt.days.to_numpy().astype(np.intp)
        names = pd.date_range(start, periods=int(number.max()) + 1).strftime("%Y-%m-%d")
        return number, tuple(names)
    number = np.floor(found.to_numpy(float)).astype(int)
    first = int(number.min())
    return number - first, tuple(f"day {first + i}" for i in range(int(number.max()) - first + 1))


def _one_each(problems: list[Problem], unit: IntArray, other: IntArray, what: str) -> None:
    pairs = np.unique(np.column_stack([unit, other]), axis=0)
    twice = len(pairs) - len(np.unique(unit))
    if twice:
        remedy = "one each: drop the others, of a log by --since and --until"
        problems.append(Problem("", f"{twice} units are in more than one {what}", remedy))


def by_unit(rows: Rows, flight: Flight, until: int | None = None) -> Units:
    """Sums by unit of the rows up to day `until`; the covariate is averaged, arms are kept.

    A column is NaN for a unit that has an empty cell in it.
    """
    kept = np.ones(len(rows.unit), dtype=bool) if until is None else rows.day <= until
    unit = rows.unit[kept]
    _, first, place, count = np.unique(
        unit, return_index=True, return_inverse=True, return_counts=True
    )
    values: dict[str, FloatArray] = {
        name: np.bincount(place, v[kept]).astype(float) for name, v in rows.values.items()
    }
    if flight.covariate:
        values[flight.covariate] = values[flight.covariate] / count
    day = np.full(len(first), np.iinfo(np.int64).max)
    np.minimum.at(day, place, rows.day[kept])
    values |= _retained(rows, flight, kept, place, day)
    return Units(rows.arm[kept][first], rows.stratum[kept][first], day, values)


def _retained(
    rows: Rows, flight: Flight, kept: np.ndarray, place: IntArray, first: IntArray
) -> dict[str, FloatArray]:
    """Whether a unit was back N days after its first; NaN where that day has not come yet."""
    last, after = int(rows.day[kept].max(initial=0)), rows.day[kept] - first[place]
    found = {}
    for days in flight.retention:
        back = np.bincount(place, after == days) > 0
        found[f"back after {days} days"] = np.where(first + days <= last, back, np.nan)
    return found
