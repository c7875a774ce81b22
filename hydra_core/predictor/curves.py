"""Recalibration curves of a bundle: one a dimension, others for messages of a writing system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hydra_core.predictor.languages import SCRIPTS
from hydra_core.predictor.plain_yaml import Problems, Yaml, mapping, numbers

__all__ = ["Curve", "read_curves", "read_script_curves"]

_BY_SCRIPT = "calibration_by_script"


@dataclass(frozen=True, slots=True)
class Curve:
    """A monotone piecewise-linear recalibration of one dimension, clipped to [0, 1].

    Attributes:
        x: (p,) raw scores, strictly ascending, p >= 2.
        y: (p,) recalibrated scores, not descending. An affine map a*x + b is the two knots
            x = (0, 1), y = (b, a + b).
    """

    x: tuple[float, ...]
    y: tuple[float, ...]


def read_curves(
    data: Yaml, dimensions: tuple[str, ...], problems: Problems
) -> tuple[Curve, ...] | None:
    """(K,) the curves of `calibration`, None where there are none."""
    if data.get("calibration") is None:
        return None
    given = mapping(data, "calibration", problems)
    for name in given.keys() ^ set(dimensions):
        problems.say(f"calibration.{name}", "must name exactly the bundle's dimensions")
    return tuple(_curve(f"calibration.{name}", given.get(name), problems) for name in dimensions)


def read_script_curves(
    data: Yaml, dimensions: tuple[str, ...], problems: Problems
) -> Mapping[str, Mapping[str, Curve]]:
    """Writing system -> dimension -> curve, of `calibration_by_script`; empty where there is none.

    A dimension left out goes through the curve of `calibration`, which must be there.
    """
    if data.get(_BY_SCRIPT) is None:
        return {}
    if data.get("calibration") is None:
        problems.say(_BY_SCRIPT, "needs calibration beside it, for all other messages")
    given = mapping(data, _BY_SCRIPT, problems)
    for script in given.keys() - set(SCRIPTS):
        problems.say(f"{_BY_SCRIPT}.{script:.80}", f"is none of {', '.join(SCRIPTS)}")
    found: dict[str, Mapping[str, Curve]] = {}
    for script in [one for one in SCRIPTS if one in given]:
        place = f"{_BY_SCRIPT}.{script}"
        curves = mapping(given, script, problems, place)
        for name in curves.keys() - set(dimensions):
            problems.say(f"{place}.{name:.80}", "is not one of the bundle's dimensions")
        found[script] = {
            name: _curve(f"{place}.{name}", curves[name], problems)
            for name in dimensions
            if name in curves
        }
        if not curves:
            problems.say(place, "holds no curve", "leave it out")
    return found


def _curve(place: str, value: object, problems: Problems) -> Curve:
    knots = value if isinstance(value, dict) else {}
    x, y = numbers(knots.get("x")), numbers(knots.get("y"))
    if x is None or y is None or len(x) != len(y) or not 2 <= len(x) <= 1000:
        problems.say(place, "must be {x: [...], y: [...]} of equal length, 2 to 1000 numbers each")
    elif any(b <= a for a, b in zip(x, x[1:], strict=False)):
        problems.say(f"{place}.x", "must ascend strictly")
    elif any(b < a for a, b in zip(y, y[1:], strict=False)):
        problems.say(f"{place}.y", "must not descend: a recalibration keeps the order of scores")
    else:
        return Curve(x, y)
    return Curve((0.0, 1.0), (0.0, 1.0))
