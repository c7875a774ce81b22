"""`flight.yaml`: what a flight's table holds, its arms and its metrics, read with every check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from hydra_core.base.errors import FlightError
from hydra_core.base.reading.fields import Bounds, Section, read_mapping
from hydra_core.base.reading.yaml_reader import MapNode, ScalarNode

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
    """The flight that a YAML text describes.

    Raises:
        FlightError: Every problem found, with its line.
    """
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
    if top.text("schema", f"write schema: {SCHEMA}") not in ("", SCHEMA):
        top.wrong("schema", "is not a flight", f"write schema: {SCHEMA}")
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
    for number, node in enumerate(top.items("metrics", "a list of metrics", limit=_MAX_METRICS)):
        if not isinstance(node, MapNode):
            top.wrong("metrics", f"entry {number} must be a mapping", "name, numerator, better")
            continue
        one = Section(node, f"metrics[{number}]", top.problems)
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
