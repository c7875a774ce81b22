"""A flight's table as arrays by unit: CSV, TSV, JSONL or Parquet, user rows or request rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hydra_core.base.errors import EvalSetError, FlightError, Problem
from hydra_core.base.types import FloatArray, IntArray
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.tables import LINE, columns_of, read_columns
from hydra_core.live.flight.settings import ROWS, Flight, Level

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


def read_rows(file: TableFile, flight: Flight) -> Rows:
    """Read and check the table.

    Raises:
        FlightError: With every problem: missing columns, unknown arms, cells that are not numbers,
            units in two arms or strata.
    """
    try:
        there = columns_of(file)
        texts, numbers = _wanted(flight)
        missing = [name for name in dict.fromkeys([*texts, *numbers]) if name not in there]
        if missing:
            listed = ", ".join(there[:20])
            raise FlightError(
                file.name, [Problem(f"column {n!r}", "is missing", f"there are: {listed}")
                            for n in missing],
            )  # fmt: skip
        frame, _ = read_columns(file, list(dict.fromkeys([*texts, *numbers])), Budget())
    except EvalSetError as error:
        raise FlightError(error.source, error.problems) from error
    return _rows(frame, flight, numbers, file.name)


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
    if problems:
        raise FlightError(source, problems)
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
    if found.isna().any():
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
        problems.append(
            Problem("", f"{twice} units are in more than one {what}", "one each; drop others")
        )


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
